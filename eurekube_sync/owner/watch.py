"""Whether somebody still renews what is to be moved: Eureka does not say, so it is watched."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eurekube_sync.model.errors import Refused
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.owner.moves import DEFAULT_PERIOD, Move, duration_of, names
from eurekube_sync.owner.world import OwnerWorld, listed


def observation_time(moves: Sequence[Move], observe: float | None) -> float:
    """Seconds in which whoever renews one of these instances would have done so: two periods of the slowest, or what
    was asked for."""
    if observe is not None:
        return observe
    sources = [move.source for move in moves]
    periods = [min(one.instance.lease.renewal or DEFAULT_PERIOD, duration_of(one)) for one in sources]
    return 2.0 * max(periods, default=DEFAULT_PERIOD) + 5


def watch_all(
    world: OwnerWorld,
    find: Callable[[Sequence[ObservedInstance]], Sequence[Move]],
    observe: float | None,
    way_out: str,
) -> Sequence[Move]:
    """What `find` makes of the list, once all of it was watched: a list may be old, and who registers one anew
    renews it, too."""
    watched: set[InstanceKey] = set()
    while True:
        moves = find(listed(world))
        fresh = [move for move in moves if move.source.key not in watched]
        if not fresh:
            return moves
        watch(world, fresh, observe, way_out)
        watched |= {move.source.key for move in fresh}


def watch(world: OwnerWorld, moves: Sequence[Move], observe: float | None, way_out: str) -> None:
    """Raises Refused, with the way out, when somebody renews one of them."""
    seconds = observation_time(moves, observe)
    renewed = world.transfer.renewed_by_others([move.source.key for move in moves], seconds)
    if renewed:
        raise Refused(f"somebody still renews {names(renewed)}: {way_out}. Nothing was changed.")
