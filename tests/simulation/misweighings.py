"""Defects of the brake: what is counted, what is held, and what is removed all the same."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from eurekube_sync.brake import braking, confirm, weighing
from eurekube_sync.brake.holds import BrakeLimits, Hold
from eurekube_sync.brake.weighing import loss_of, too_much
from eurekube_sync.model.actions import Grounds, Removal
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.ownership import pod_namespace_of, pod_uid_of
from eurekube_sync.model.sources import Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan import ours

from .defect import Defect

_TOO_MUCH = too_much
_DEAD = braking.dead_pods
_LOSS_OF = loss_of


def _of_any_size(scales: Any, removals: Any, limits: BrakeLimits) -> Iterator[Hold]:
    return _TOO_MUCH(scales, removals, replace(limits, loss_percent=100))


def _of_any_app(scales: Any, removals: Any, limits: BrakeLimits) -> Iterator[Hold]:
    return _TOO_MUCH(scales, removals, replace(limits, app_loss_floor=10**9))


def _any_number_of_apps(scales: Any, removals: Any, limits: BrakeLimits) -> Iterator[Hold]:
    return _TOO_MUCH(scales, removals, replace(limits, apps_floor=10**9))


def _any_deletion(scales: Any, removals: Any, limits: BrakeLimits) -> Iterator[Hold]:
    return _TOO_MUCH(scales, removals, replace(limits, asked_percent=100))


def _any_limit_or_drain(scales: Any, removals: Any, limits: BrakeLimits) -> Iterator[Hold]:
    asked = (Grounds.OVER_LIMIT, Grounds.DRAINED)
    return _TOO_MUCH(
        scales, [removal for removal in removals if removal.grounds not in asked], limits
    )


def _with_hostages(scales: Any, removals: Any, limits: BrakeLimits) -> Iterator[Hold]:
    for hold in _TOO_MUCH(scales, removals, limits):
        yield replace(hold, removals=tuple(removals)) if hold.removals else hold


def _nothing(*arguments: Any) -> frozenset[Any]:
    return frozenset()


def _nothing_waits(*weighed: Any) -> tuple[Any, ...]:
    return ()


def _at_the_first_look(
    removals: Collection[Removal], brake: Any, **how: bool
) -> frozenset[InstanceKey]:
    return frozenset(one.key for one in removals)


def _however_soon(brake: Any) -> Any:
    return brake.seen.keys()


def _all_that_end(
    removals: Collection[Removal], observed: Observed, listed: Mapping[str, Any]
) -> Any:
    ending = {one.key for one in removals if one.grounds is Grounds.TERMINATING}
    return _DEAD(removals, observed, listed) | ending


def _unless_listed(
    removals: Collection[Removal], observed: Observed, listed: Mapping[str, Any]
) -> Any:
    """Reads a failed list as empty."""
    asked = [
        one.key for one in removals if (pod_namespace_of(observed.ours[one.key]) or "") in listed
    ]
    failed = (
        key
        for key in asked
        if isinstance(listed[pod_namespace_of(observed.ours[key]) or ""], Unknown)
    )
    return _DEAD(removals, observed, listed) | {
        key for key in failed if pod_uid_of(observed.ours[key])
    }


def _but_duplicates(removals: Collection[Removal], *rest: Any) -> Any:
    return _LOSS_OF([one for one in removals if one.grounds is not Grounds.DUPLICATE], *rest)


def misweighings() -> tuple[Defect, ...]:
    """All of these defects, in the order of the table."""
    wrong: Callable[..., Any] = _nothing
    return (
        Defect(
            name="any number of apps may go to nothing",
            about="teams",
            patches=((braking, "too_much", _any_number_of_apps),),
        ),
        Defect(
            name="the last of an app goes at the first look",
            patches=((braking, "unconfirmed", _nothing_waits),),
        ),
        Defect(
            name="the second look may follow at once",
            patches=((confirm, "_long_ago", _however_soon),),
        ),
        Defect(
            name="a larger hold is no look at what it holds",
            about="a flapping app",
            patches=((braking, "_for_a_second_pass", _nothing_waits),),
        ),
        Defect(
            name="a pass may take ever so many",
            about="a crowd",
            patches=((braking, "too_much", _of_any_size),),
        ),
        Defect(
            name="an app may lose ever so many",
            about="a crowd",
            patches=((braking, "too_much", _of_any_app),),
        ),
        Defect(
            name="an instance that gives way to its pod's own is not counted",
            about="a crowd",
            patches=((weighing, "loss_of", _but_duplicates),),
        ),
        Defect(
            name="any number of syncers may be deleted",
            about="teams",
            patches=((braking, "too_much", _any_deletion),),
        ),
        Defect(
            name="any number of apps may be drained or get the limit 0",
            about="teams",
            patches=((braking, "too_much", _any_limit_or_drain),),
        ),
        Defect(
            name="a hold takes apps that lose nothing",
            about="teams",
            patches=((braking, "too_much", _with_hostages),),
        ),
        Defect(
            name="a new name is a loss",
            about="a crowd",
            patches=((braking, "in_other_apps", wrong),),
        ),
        Defect(
            name="dead pods are a loss for ever",
            about="teams",
            patches=((braking, "dead_pods", wrong),),
        ),
        Defect(
            name="dead pods go at the first look",
            about="teams",
            patches=((braking, "seen_before", _at_the_first_look),),
        ),
        Defect(
            name="a pod that terminates is dead",
            about="teams",
            patches=((braking, "dead_pods", _all_that_end),),
        ),
        Defect(
            name="a list of pods that failed is read as empty",
            about="teams",
            patches=((braking, "dead_pods", _unless_listed),),
        ),
        Defect(
            name="nobody reads whose an address is now",
            about="teams",
            patches=((ours, "_replaced", lambda instance, desired: None),),
        ),
    )
