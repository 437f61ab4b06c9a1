"""Each server by itself: whether it answers and is what it should be, takes writes and evicts, and its clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eurekube_sync.explain.check.findings import Check, Finding, Grade
from eurekube_sync.explain.registry import lease_end
from eurekube_sync.model.errors import RegistryError, unknown_from
from eurekube_sync.model.eureka import Batching, InstanceKey, ObservedInstance
from eurekube_sync.model.ports import Details, EurekaServer
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown
from eurekube_sync.model.wording import counted

_INSTALL = "eurekube-sync crd | kubectl apply --server-side -f -"
_SKEW = 10.0
"""Seconds between two clocks that are worth a word."""
_LARGE_SKEW = 60.0
"""Seconds at which a lease seems to have ended, or a new write older than the last."""
_NOBODY = InstanceKey("EUREKUBE-SYNC-CHECK", "eurekube-sync-check-no-such-instance")
"""No instance can have it: ours have four colons, and others do not use our name."""
_EVICTED_AFTER = 240.0
"""Seconds after the end of a lease in which a server evicts: a minute's timer, and as long as the lease was late."""


def reachable(cluster: Details, identity: Source[str]) -> Finding:
    """The API answers, and says which cluster it is."""
    server = cluster.server()
    if isinstance(server, Unknown):
        fix = "check --kubeconfig and --context: kubectl version"
        return Finding(Check.KUBERNETES, Grade.FAILED, server.message, fix)
    if isinstance(identity, Unknown):
        text = f"it is unknown which cluster this is (the UID of the namespace kube-system): {identity.message}"
        fix = "grant get on the namespace kube-system, as docs/install.md does"
        return Finding(Check.KUBERNETES, Grade.FAILED, text, fix)
    return Finding(Check.KUBERNETES, Grade.OK, f"Kubernetes {server.data} answers, cluster {identity.data[:8]}")


def definition(cluster: Details, live: Source[float], expected: Mapping[str, Any], *, before: bool) -> Finding:
    """The CRD is there, stays, and has this version's schema. `before`: it need not be there yet."""
    schema, said = cluster.schema(), "the CustomResourceDefinition eurekasyncers.eurekube.io"
    if isinstance(schema, Unknown):
        if schema.cause is Cause.CRD_MISSING and before:
            return Finding(Check.CRD, Grade.OK, f"{said} is not installed yet")
        return Finding(Check.CRD, Grade.FAILED, schema.message, f"install it: {_INSTALL}")
    if isinstance(live, Unknown) and live.cause is Cause.CRD_TERMINATING:
        fix = "look at the deletion before anything else: kubectl get crd eurekasyncers.eurekube.io -o json"
        return Finding(Check.CRD, Grade.FAILED, live.message, fix)
    if schema.data != expected:
        text = f"{said} is not of this version: its fields may be refused or dropped"
        return Finding(Check.CRD, Grade.WARNING, text, f"bring it to this version: {_INSTALL}")
    return Finding(Check.CRD, Grade.OK, f"{said} is of this version")


def clock(name: str, ahead: Source[float]) -> Finding:
    """How far the clock of a server is from ours."""
    if isinstance(ahead, Unknown):
        text = f"the clock of {name} could not be looked at: {ahead.message}"
        return Finding(Check.CLOCK, Grade.WARNING, text)
    seconds = abs(ahead.data)
    if seconds < _SKEW:
        return Finding(Check.CLOCK, Grade.OK, f"the clock of {name} agrees with ours")
    side = "ahead of" if ahead.data > 0 else "behind"
    grade = Grade.FAILED if seconds >= _LARGE_SKEW else Grade.WARNING
    text = f"the clock of {name} is {seconds:.0f} s {side} ours: the later of two writes may lose"
    return Finding(Check.CLOCK, grade, text, "set the time on both machines: timedatectl, chronyc tracking")


def servers(found: Mapping[str, EurekaServer], now: float) -> Iterator[Finding]:
    """Each Eureka server, by its address; `now` in Unix seconds."""
    if not found:
        fix = "give --eureka-url, or set EUREKUBE_SYNC_EUREKA_URL"
        yield Finding(Check.EUREKA_READ, Grade.FAILED, "no Eureka is named", fix)
    for address, server in found.items():
        listed = server.list_instances()
        if isinstance(listed, Complete):
            text = f"{address} lists {counted(len(listed.data), 'instance')}"
            yield Finding(Check.EUREKA_READ, Grade.OK, text)
            yield _write(address, server)
            yield _evicts(address, listed.data, now)
            try:
                yield clock(address, Complete(data=server.ahead()))
            except RegistryError as error:
                yield clock(address, unknown_from(error))
        else:
            fix = {
                Cause.DENIED: "give its login: --eureka-username and --eureka-password-file",
                Cause.UNUSABLE: "check the URL: it ends in /eureka, and no proxy answers in its place",
            }.get(listed.cause, f"see that it runs and can be reached from here: curl -i {address}/apps")
            yield Finding(Check.EUREKA_READ, Grade.FAILED, listed.message.rstrip("."), fix)


def _write(address: str, server: EurekaServer) -> Finding:
    """A renewal of an instance that cannot exist: 404 is good, and changes nothing."""
    try:
        taken = server.renew(_NOBODY)
    except RegistryError as error:
        text = f"{address} takes no writes: {unknown_from(error).message.rstrip('.')}"
        fix = "let its Spring Security ignore CSRF below /eureka/**, and give this login the right to write"
        return Finding(Check.EUREKA_WRITE, Grade.FAILED, text, fix)
    if taken:
        text = f"{address} says that it renewed an instance that does not exist: something answers in its place"
        return Finding(Check.EUREKA_WRITE, Grade.FAILED, text, "give the address of Eureka itself")
    return Finding(Check.EUREKA_WRITE, Grade.OK, f"{address} takes writes")


def _evicts(address: str, listed: Sequence[ObservedInstance], now: float) -> Finding:
    """A server in self-preservation lists instances whose leases ended long ago."""
    overdue = [one for one in listed if one.last_renewal and now - lease_end(one) > _EVICTED_AFTER]
    if not overdue:
        return Finding(Check.SELF_PRESERVATION, Grade.OK, f"{address} lists no instance whose lease ended long ago")
    text = f"{address} evicts nobody: {counted(len(overdue), 'instance')}, such as {overdue[0].key}, did not renew"
    fix = (
        "find out why renewals are missing; while self-preservation lasts, the server lists dead instances "
        "(eureka.server.enable-self-preservation)"
    )
    return Finding(Check.SELF_PRESERVATION, Grade.WARNING, text, fix)


def replicas(batching: Batching) -> Finding:
    """Whether --eureka-url names every replica, as the servers themselves say."""
    if batching.on:
        return Finding(Check.REPLICAS, Grade.OK, "--eureka-url names every replica")
    fix = "name every server in --eureka-url, or use --eureka-batch off"
    return Finding(Check.REPLICAS, Grade.WARNING, batching.why.rstrip("."), fix)
