"""What the instances of the last list were read as, so that one of which nothing changed but its last renewal is the
same `Instance` again.

All is listed in each pass all the same, and each instance is compared whole. Later stages recognise by the same object
that nothing changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

from eurekube_sync.adapters.eureka.documents import InstanceDocument
from eurekube_sync.model.eureka import ObservedInstance

_TEXT = frozenset({str})
_Read: TypeAlias = Callable[[InstanceDocument, str | None], ObservedInstance]


class _Known(NamedTuple):
    document: InstanceDocument | None
    """Without its last renewal. None for one with numbers in its metadata: 1 equals true, which reads differently."""
    observed: ObservedInstance


class Decoded:
    """The instances of the last list that could be read, by app and id. Of the first list nothing is kept: a process
    that lists once needs no memory for it."""

    def __init__(self) -> None:
        self._known: Mapping[tuple[str | None, str | None], _Known] | None = None

    @contextmanager
    def reading(self, afresh: _Read) -> Iterator[_Read]:
        """How each instance of a list is read, `afresh` where it changed. All others are forgotten at its end, unless
        the list cannot be read."""
        before = self._known
        now: dict[tuple[str | None, str | None], _Known] = {}

        def read(document: InstanceDocument, app: str | None) -> ObservedInstance:
            lease = document.lease_info
            renewal = 0
            if lease is not None:
                renewal, lease.last_renewal_timestamp = int(lease.last_renewal_timestamp or 0), None
            known = before.get((document.app or app, document.instance_id)) if before else None
            if known is None or known.document != document:
                text = _TEXT.issuperset(map(type, (document.metadata or {}).values()))
                known = _Known(document if text else None, afresh(document, app))
            observed = known.observed
            if observed.last_renewal != renewal:
                dirty = observed.last_dirty_timestamp
                observed = ObservedInstance(
                    instance=observed.instance, last_dirty_timestamp=dirty, last_renewal=renewal
                )
                known = _Known(known.document, observed)
            now[observed.key] = known
            return observed

        yield read if before is not None else afresh
        self._known = now
