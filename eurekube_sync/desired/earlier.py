"""The claims of the pass before, taken again where nothing changed that they were made of.

Nothing is trusted here. All was listed anew, and an object is the same one only while its bytes are
(`adapters/kubernetes/decoded`). So a claim that was made of the same objects is the one that would be made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from operator import is_

from eurekube_sync.desired.claims import Claim, NotServed, Serving
from eurekube_sync.desired.instance import Naming
from eurekube_sync.desired.spec import Syncer
from eurekube_sync.desired.verdicts import Verdict
from eurekube_sync.model.eureka import InstanceKey, LeaseTimes
from eurekube_sync.model.kubernetes import Service, SyncerObject, SyncerRef
from eurekube_sync.model.ownership import Ownership
from eurekube_sync.model.values import dataclass


@dataclass(frozen=True, slots=True)
class Made:
    """A claim, and all that it was made of."""

    syncer: SyncerObject
    spec: Syncer | NotServed
    """The latter where it is wrong."""
    all_services: Sequence[Service]
    """Of its namespace, among which its selector was looked for."""
    services: tuple[Service, ...]
    """Those that it selects."""
    objects: Sequence[object]
    """Its Services and their slices, in the order in which they were read."""
    claim: Serving | NotServed

    def of_the_same(self, objects: Sequence[object]) -> bool:
        """Whether it would be made of these."""
        return _same(self.objects, objects)


def _same(some: Sequence[object], others: Sequence[object]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


@dataclass(frozen=True, slots=True)
class _Shared:
    """What the claims of a pass came to beside each other."""

    before: Mapping[SyncerRef, Serving]
    after: Mapping[SyncerRef, Mapping[InstanceKey, Verdict]]
    wanted_by: Mapping[InstanceKey, SyncerRef]


@dataclass(slots=True)
class EarlierClaims:
    """Changed by each pass, which takes out of `made` what it takes again or makes anew, and puts in what it made."""

    made: dict[SyncerRef, Made] = field(default_factory=dict)
    _marks: tuple[Ownership, LeaseTimes] | None = None
    _shared: _Shared | None = None
    _services: dict[str, Sequence[Service]] = field(default_factory=dict)
    _services_before: Mapping[str, Sequence[Service]] = field(default_factory=dict)
    """By namespace; of this pass, and of the one before."""

    def begin(self, naming: Naming) -> None:
        """A pass that gives its instances other marks or leases takes nothing again."""
        self._services_before, self._services = self._services, {}
        marks = (naming.ownership, naming.lease)
        if marks != self._marks:
            self.made.clear()
            self._marks = marks

    def end(self, claims: Mapping[SyncerRef, Claim]) -> None:
        """Forget what is no claim any more."""
        for ref in self.made.keys() - claims.keys():
            del self.made[ref]

    def same_services(self, namespace: str, found: Sequence[Service]) -> Sequence[Service]:
        """The very sequence that the pass before had of this namespace, if its objects are the same: what a selector
        means among them is then not looked for again."""
        if namespace not in self._services:
            before = self._services_before.get(namespace, ())
            self._services[namespace] = before if _same(before, found) else found
        return self._services[namespace]

    def shared(
        self, serving: Mapping[SyncerRef, Serving]
    ) -> tuple[Mapping[SyncerRef, Mapping[InstanceKey, Verdict]], Mapping[InstanceKey, SyncerRef]] | None:
        """The verdicts that these claims came to, and who wants what, if the last ones were made of the same; else
        None."""
        known = self._shared
        if known is None or known.before.keys() != serving.keys():
            return None
        pairs = ((known.before[ref], claim) for ref, claim in serving.items())
        same = all(was.verdicts is now.verdicts and was.syncer is now.syncer for was, now in pairs)
        return (known.after, known.wanted_by) if same else None

    def keep(
        self,
        serving: Mapping[SyncerRef, Serving],
        claims: Mapping[SyncerRef, Claim],
        wanted_by: Mapping[InstanceKey, SyncerRef],
    ) -> None:
        """What `serving` came to."""
        after = {ref: claim.verdicts for ref, claim in claims.items() if isinstance(claim, Serving)}
        self._shared = _Shared(serving, after, wanted_by)
