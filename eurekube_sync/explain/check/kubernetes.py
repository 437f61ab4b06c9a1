"""Kubernetes: whether it answers, which cluster it is, whether the CRD is this version's, and what time it is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eurekube_sync.explain.check.findings import Check, Finding, Grade, fails, fine, warns
from eurekube_sync.model.ports import Installable
from eurekube_sync.model.sources import Cause, Source, Unknown

_INSTALL = "eurekube-sync crd | kubectl apply --server-side -f -"
_SKEW = 10.0
"""Seconds between two clocks that are worth a word."""
_LARGE_SKEW = 60.0
"""Seconds at which a lease seems to have ended, or a new write older than the last."""


def reachable(cluster: Installable, identity: Source[str]) -> Iterator[Finding]:
    """The API answers, and says which cluster it is."""
    server = cluster.server()
    if isinstance(server, Unknown):
        yield fails(Check.KUBERNETES, server.message, "check --kubeconfig and --context: kubectl version")
        return
    if isinstance(identity, Unknown):
        text = f"it is unknown which cluster this is (the UID of the namespace kube-system): {identity.message}"
        yield fails(Check.KUBERNETES, text, "grant get on the namespace kube-system, as docs/install.md does")
        return
    yield fine(Check.KUBERNETES, f"Kubernetes {server.data} answers, cluster {identity.data[:8]}")


def definition(
    cluster: Installable, live: Source[float], expected: Mapping[str, Any], *, before: bool
) -> Iterator[Finding]:
    """The CRD is there, stays, and has this version's schema. `before`: it need not be there yet."""
    schema = cluster.schema()
    failed, said = Grade.FAILED, "CustomResourceDefinition eurekasyncers.eurekube.io"
    if isinstance(schema, Unknown) and schema.cause is Cause.CRD_MISSING and before:
        yield fine(Check.CRD, f"the {said} is not installed yet")
    elif isinstance(schema, Unknown):
        yield Finding(check=Check.CRD, grade=failed, text=schema.message, fix=f"install it: {_INSTALL}")
    elif isinstance(live, Unknown) and live.cause is Cause.CRD_TERMINATING:
        fix = "look at the deletion before anything else: kubectl get crd eurekasyncers.eurekube.io -o json"
        yield Finding(check=Check.CRD, grade=failed, text=live.message, fix=fix)
    elif schema.data != expected:
        text = f"the {said} is not of this version: its fields may be refused or dropped"
        yield warns(Check.CRD, text, f"bring it to this version: {_INSTALL}")
    else:
        yield fine(Check.CRD, f"the {said} is of this version")


def clock(name: str, ahead: Source[float]) -> Finding:
    """How far the clock of a server is from ours."""
    if isinstance(ahead, Unknown):
        return warns(Check.CLOCK, f"the clock of {name} could not be looked at: {ahead.message}")
    seconds = abs(ahead.data)
    if seconds < _SKEW:
        return fine(Check.CLOCK, f"the clock of {name} agrees with ours")
    side = "ahead of" if ahead.data > 0 else "behind"
    return Finding(
        check=Check.CLOCK,
        grade=Grade.FAILED if seconds >= _LARGE_SKEW else Grade.WARNING,
        text=f"the clock of {name} is {seconds:.0f} s {side} ours: the later of two writes may lose",
        fix="set the time on both machines: timedatectl, chronyc tracking",
    )
