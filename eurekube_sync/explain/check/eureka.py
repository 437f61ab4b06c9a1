"""Each Eureka server by itself: whether it answers, lists, takes writes, keeps the time, and evicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from eurekube_sync.explain.check.findings import Check, Finding, fails, fine, warns
from eurekube_sync.explain.check.kubernetes import clock
from eurekube_sync.model.errors import RegistryError, unknown_from
from eurekube_sync.model.eureka import DEFAULT_LEASE, Batching, InstanceKey, ObservedInstance
from eurekube_sync.model.ports import EurekaServer
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown
from eurekube_sync.model.wording import counted

_NOBODY = InstanceKey("EUREKUBE-SYNC-CHECK", "eurekube-sync-check-no-such-instance")
"""No instance can have it: ours have four colons, and others do not use our name."""
_EVICTED_AFTER = 240.0
"""Seconds after the end of a lease in which a server evicts: a minute's timer, and as long as the lease was late."""


def servers(found: Mapping[str, EurekaServer], now: float) -> Iterator[Finding]:
    """All of them; `now` in Unix seconds."""
    if not found:
        yield fails(Check.EUREKA_READ, "no Eureka is named", "give --eureka-url, or set EUREKUBE_SYNC_EUREKA_URL")
    for address, server in found.items():
        listed = server.list_instances()
        yield _read(address, listed)
        if isinstance(listed, Complete):
            yield _write(address, server)
            yield _evicts(address, listed.data, now)
            yield clock(address, _ahead(server))


def _read(address: str, listed: Source[tuple[ObservedInstance, ...]]) -> Finding:
    if isinstance(listed, Complete):
        return fine(Check.EUREKA_READ, f"{address} lists {counted(len(listed.data), 'instance')}")
    fix = {
        Cause.DENIED: "give its login: --eureka-username and --eureka-password-file",
        Cause.UNUSABLE: "check the URL: it ends in /eureka, and no proxy answers in its place",
    }.get(listed.cause, f"see that it runs and can be reached from here: curl -i {address}/apps")
    return fails(Check.EUREKA_READ, _sentence(listed), fix)


def _write(address: str, server: EurekaServer) -> Finding:
    """A renewal of an instance that cannot exist: 404 is good, and changes nothing."""
    try:
        taken = server.renew(_NOBODY)
    except RegistryError as error:
        text = f"{address} takes no writes: {_sentence(unknown_from(error))}"
        fix = "let its Spring Security ignore CSRF below /eureka/**, and give this login the right to write"
        return fails(Check.EUREKA_WRITE, text, fix)
    if taken:
        text = f"{address} says that it renewed an instance that does not exist: something answers in its place"
        return fails(Check.EUREKA_WRITE, text, "give the address of Eureka itself")
    return fine(Check.EUREKA_WRITE, f"{address} takes writes")


def _evicts(address: str, listed: Sequence[ObservedInstance], now: float) -> Finding:
    """A server in self-preservation lists instances whose leases ended long ago."""
    overdue = [one for one in listed if one.last_renewal and now - _end(one) > _EVICTED_AFTER]
    if not overdue:
        return fine(Check.SELF_PRESERVATION, f"{address} lists no instance whose lease ended long ago")
    text = f"{address} evicts nobody: {counted(len(overdue), 'instance')}, such as {overdue[0].key}, did not renew"
    fix = (
        "find out why renewals are missing; while self-preservation lasts, the server lists dead instances "
        "(eureka.server.enable-self-preservation)"
    )
    return warns(Check.SELF_PRESERVATION, text, fix)


def _end(one: ObservedInstance) -> float:
    return one.last_renewal / 1000 + (one.instance.lease.duration or DEFAULT_LEASE.duration)


def _ahead(server: EurekaServer) -> Source[float]:
    try:
        return Complete(data=server.ahead())
    except RegistryError as error:
        return unknown_from(error)


def replicas(batching: Batching | None) -> Iterator[Finding]:
    """Whether --eureka-url names every replica, as the servers themselves say."""
    if batching is None:
        return
    why = batching.why.rstrip(".")
    if batching.on:
        yield fine(Check.REPLICAS, "--eureka-url names every replica")
    else:
        yield warns(Check.REPLICAS, why, "name every server in --eureka-url, or use --eureka-batch off")


def _sentence(unknown: Unknown) -> str:
    return unknown.message.rstrip(".")
