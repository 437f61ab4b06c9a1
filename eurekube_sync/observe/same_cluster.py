"""Whether the cluster that answers is still the one whose UID is known."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from eurekube_sync.model.ports import Clock, Cluster
from eurekube_sync.model.sources import Cause, Complete, Unknown

_MOMENT = 10.0
"""Seconds for which an answer holds: an object that is written after it bears a UID or a version all the same."""


class SameCluster:
    """Whether the cluster that answers is still the one whose UID is known. A kubeconfig that is read again after a
    401, or a name, may lead elsewhere while the process lives. To be asked when all was listed, before anything is
    changed for it, and before anything is written there.

    One that does not say who it is may be any: its lists prove nothing. So does a process that begins in that
    moment, and a daemon is to do no more for having known it once. It costs a pass, and is asked again in the next.
    """

    def __init__(self, cluster: Cluster, clock: Clock, known: Complete[str]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._known = known
        self._confirmed = -inf

    def doubt(self, otherwise: str) -> Unknown | None:
        """Why it may be another one, and what is done `otherwise`; None when it is the same, or was a moment ago."""
        if self._clock.monotonic() - self._confirmed < _MOMENT:
            return None
        found = self._cluster.identity(anew=True)
        if found == self._known:
            self._confirmed = self._clock.monotonic()
            return None
        if isinstance(found, Unknown):
            why = "it is unknown whether the Kubernetes API still serves the same cluster"
            return replace(found, message=f"{why}: {found.message}; {otherwise}")
        message = (
            f"the Kubernetes API now serves another cluster: the UID of kube-system was {self._known.data} and is "
            f"{found.data}; {otherwise}. If this is intended, restart eurekube-sync"
        )
        return Unknown(cause=Cause.UNUSABLE, message=message)
