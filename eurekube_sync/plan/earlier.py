"""The renewals of the last plan, taken again where they would be made of the same: the verdict on an instance, and the
instance as it is registered. Both are the same objects only where all is listed again as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import is_

from eurekube_sync.desired.verdicts import Wanted
from eurekube_sync.model.actions import Action, Renew
from eurekube_sync.model.eureka import Instance, InstanceKey
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.plan.value import Blocked, Plan, sorted_plan


@dataclass(slots=True)
class EarlierPlan:
    """Changed by each plan that is made."""

    renewals: dict[InstanceKey, tuple[Wanted, Instance, Renew]] = field(default_factory=dict)
    _found: Sequence[Action | Blocked] = ()
    _plan: Plan = field(default_factory=Plan)

    def renewal(self, syncer: SyncerRef, wanted: Wanted, instance: Instance) -> Renew | None:
        """What it came to that the instance is as its syncer wants it; None where it is to be compared."""
        known = self.renewals.get(instance.key)
        if known is None or known[0] is not wanted or known[1] is not instance or known[2].syncer != syncer:
            return None
        return known[2]

    def keep(self, wanted: Wanted, instance: Instance, renewal: Renew) -> None:
        """What the comparison came to."""
        self.renewals[instance.key] = (wanted, instance, renewal)

    def planned(self, found: Sequence[Action | Blocked]) -> Plan:
        """All that a plan comes to, sorted: the last plan itself, if it came to the same. What it does not renew is
        forgotten."""
        if len(found) == len(self._found) and all(map(is_, found, self._found)):
            return self._plan
        for key in self.renewals.keys() - {one.key for one in found}:
            del self.renewals[key]
        blocked = [one for one in found if isinstance(one, Blocked)]
        self._found, self._plan = found, sorted_plan((one for one in found if not isinstance(one, Blocked)), blocked)
        return self._plan
