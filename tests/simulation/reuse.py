"""What a pass takes from the one before is what it would make anew: compared in every pass of every story."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from eurekube_sync.adapters.kubernetes import walks
from eurekube_sync.adapters.kubernetes.decoded import digest
from eurekube_sync.controller import reconcile
from eurekube_sync.desired.claims import Desired
from eurekube_sync.desired.earlier import EarlierClaims
from eurekube_sync.desired.instance import Naming
from eurekube_sync.desired.resolve import claim_all
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.kubernetes import ClusterView

from .view import Violation


@contextmanager
def compared() -> Iterator[None]:
    """A difference is a broken promise while this lasts."""
    seen: dict[bytes, bytes] = {}

    def claims(view: ClusterView, naming: Naming, scope: Scope, earlier: EarlierClaims) -> Desired:
        found = claim_all(view, naming, scope, earlier)
        if found != claim_all(view, naming, scope):
            raise Violation("reuse", "the claims of the pass before were taken for others")
        return found

    def known_by(raw: bytes | memoryview) -> bytes:
        name = digest(raw)
        if seen.setdefault(name, bytes(raw)) != bytes(raw):
            raise Violation("reuse", "an item of a list was taken for another")
        return name

    setattr(reconcile, "claim_all", claims)  # noqa: B010 - mypy knows it as that module's own alone
    setattr(walks, "digest", known_by)  # noqa: B010
    try:
        yield
    finally:
        setattr(reconcile, "claim_all", claim_all)  # noqa: B010
        setattr(walks, "digest", digest)  # noqa: B010
