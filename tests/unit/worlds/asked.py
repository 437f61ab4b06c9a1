"""Questions of `explain` and `status` to the fake world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from eurekube_sync.controller.look import (
    Deployed,
    Look,
    LookWorld,
    look,
    with_details,
    with_readings,
)
from eurekube_sync.desired.scope import Scope
from eurekube_sync.explain.chain import explain
from eurekube_sync.explain.links import Explanation, Link, Mark
from eurekube_sync.explain.missing import explain_missing, namespaces_beside
from eurekube_sync.explain.overview import Overview, overview, renewals_to_read
from eurekube_sync.explain.registry import keys_to_read
from eurekube_sync.explain.subject import subjects
from eurekube_sync.explain.what import parse_what
from eurekube_sync.model import ports
from eurekube_sync.model.kubernetes import (
    Endpoint,
    LockName,
    PodDetail,
    Service,
    ServiceSelector,
    SyncerObject,
    SyncerRef,
)
from eurekube_sync.model.ports import EurekaServer, LockStore, Registry
from eurekube_sync.model.sources import Complete, Source
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import NS, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld


class Details:
    """Details of Pods and Services from Kubernetes. By default there are none."""

    def __init__(self) -> None:
        self.pods: Source[tuple[PodDetail, ...]] = Complete(data=())
        self.selectors: Source[tuple[ServiceSelector, ...]] = Complete(data=())

    def list_pod_details(self, namespace: str) -> Source[tuple[PodDetail, ...]]:
        return self.pods

    def list_service_selectors(self, namespace: str) -> Source[tuple[ServiceSelector, ...]]:
        return self.selectors


class Asked:
    """A world and the questions about it."""

    def __init__(
        self,
        *endpoints: Endpoint,
        one: SyncerObject | None = None,
        services: Sequence[Service] | None = None,
    ) -> None:
        """It has one new syncer, one Service and these endpoints, unless the arguments say
        otherwise."""
        self.fake = FakeWorld()
        self.details = Details()
        self.servers: dict[str, Registry] = {"http://eureka-1/eureka": self.fake.registry}
        self.locks: list[tuple[LockName, LockStore]] = []
        self.add(replace(one or syncer(), created=self.fake.clock.now()))
        self.fake.cluster.services = [service()] if services is None else list(services)
        self.fake.cluster.slices = [piece(*endpoints)]
        self.owner = self.fake.owner
        self.deployed = Deployed()
        self.offline = False

    def add(self, one: SyncerObject) -> None:
        self.fake.cluster.syncers[one.ref] = one

    def remove(self) -> None:
        self.fake.cluster.syncers.clear()

    @property
    def syncer(self) -> SyncerObject:
        return self.fake.cluster.syncers[SyncerRef(NS, "rating")]

    def look(self, what: str) -> Look:
        """The look of `explain`."""
        seen, namespace = self._seen(), parse_what(what).namespace
        named = [namespace] if namespace else sorted(self.fake.scope.namespaces or ())
        found = look(seen, replace(self.fake.settings, owner=self.owner), named)
        found = with_details(seen, found, [namespace or NS])
        about = subjects(parse_what(what), found)
        if not about and not namespace:
            beside = namespaces_beside(parse_what(what), found)
            if beside:
                settings = replace(self.fake.settings, owner=self.owner)
                found = with_details(seen, look(seen, settings, beside), [NS])
                about = subjects(parse_what(what), found)
        return with_readings(
            seen, found, frozenset().union(*(keys_to_read(one, found) for one in about))
        )

    def overview(self) -> Overview:
        """The result of `status`."""
        seen, named = self._seen(), sorted(self.fake.scope.namespaces or ())
        found = look(seen, replace(self.fake.settings, owner=self.owner), named)
        found = with_details(seen, found, [NS])
        return overview(with_readings(seen, found, renewals_to_read(found)))

    def _seen(self) -> LookWorld:
        return LookWorld(
            world=replace(self.fake.world, servers=cast(Mapping[str, EurekaServer], self.servers)),
            details=cast(ports.Details, self.details),  # only `check` uses the rest
            locks=lambda _owner, _scope: self.locks,
            deployed=self.deployed,
            offline=self.offline,
        )

    def all(self, what: str = f"{NS}/rating") -> list[Explanation]:
        found = self.look(what)
        about = subjects(parse_what(what), found)
        return [explain(one, found) for one in about] or [explain_missing(parse_what(what), found)]

    def why(self, what: str = f"{NS}/rating") -> Explanation:
        (one,) = self.all(what)
        return one

    def in_scope(self, **changes: object) -> None:
        self.fake.scope = replace(Scope(), **changes)  # type: ignore[arg-type]


def broken(one: Explanation) -> Link:
    """The only broken link."""
    (link,) = (link for link in one.links if link.mark is Mark.BROKEN)
    return link


def text(one: Explanation) -> str:
    """The whole text of an explanation."""
    lines = [line for link in one.links for line in (link.text, *link.details)]
    return "\n".join([*lines, one.sentence, one.fix])
