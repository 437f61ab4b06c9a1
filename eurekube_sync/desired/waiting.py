"""The ready endpoints that a syncer selects, counted in the slices alone. For syncers that are not
served, or that know too little of an endpoint, so that their claims have no verdict for it."""

from __future__ import annotations

from collections.abc import Iterator

from eurekube_sync.desired.catalog import Catalogs, drainable
from eurekube_sync.desired.endpoints import healthy, slices_in_use
from eurekube_sync.desired.spec import Syncer
from eurekube_sync.model.kubernetes import Endpoint
from eurekube_sync.model.sources import Unknown


def ready_behind(spec: Syncer | None, catalogs: Catalogs) -> Iterator[tuple[str, Endpoint]]:
    """Yield each ready endpoint with the app, in upper case, under which it would be registered.

    An endpoint of several Services comes several times. There is none if the spec is invalid, if
    the Services or slices could not be read, or if a person wants none: the syncer is suspended,
    has limit 0, or drains the Service."""
    if spec is None or spec.suspend or spec.claims_nothing:
        return
    catalog = catalogs.of(spec.namespace)
    if isinstance(catalog, Unknown):
        return
    there = catalog.data
    for service in there.matching(spec.selector):
        if drainable(service.name, service.annotations).drained:
            continue
        app = spec.app_of(service)
        for piece in slices_in_use(service, there.slices_of(service)):
            for endpoint in piece.endpoints:
                if healthy(endpoint, service) and not endpoint.terminating:
                    yield app, endpoint
