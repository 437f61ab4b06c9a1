"""What is said of ports and slices: the warning of a served syncer, and the object that has to be
corrected."""

from __future__ import annotations

import pytest

from eurekube_sync.explain.links import Mark, Outcome, Part
from eurekube_sync.model.kubernetes import (
    SLICE_CONTROLLER,
    EndpointPort,
    PodDetail,
    ServicePort,
    ServiceSelector,
)
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.asked import Asked, broken, text
from tests.unit.worlds.build import NS, endpoint, piece, service, syncer

STRAY = replace(
    piece(endpoint(7, pod=None), name="stray", port=9000, port_name=""), managed_by="mesh"
)


def test_a_slice_that_is_ignored_is_told_and_breaks_nothing() -> None:
    """The answer names it, with the one who writes it."""
    asked = Asked(endpoint(1))
    asked.fake.cluster.apply(STRAY)
    asked.fake.run()
    found = asked.why()
    assert found.outcome is Outcome.REGISTERED
    (note,) = [link for link in found.links if link.part is Part.PORT and link.mark is Mark.NOTE]
    assert note.text.startswith(
        "EndpointSlice stray (managed by mesh) is ignored, as kube-proxy ignores it"
    )


def test_without_eureka_a_port_that_stays_is_not_called_wrong() -> None:
    """A developer has no rights in Eureka. The status tells at which port the syncer stays."""
    asked = Asked(endpoint(1), one=syncer(port="http"))
    asked.fake.run()
    asked.fake.cluster.apply(service("rating", ServicePort(name="web", port=80, target=8080)))
    asked.fake.run()
    assert asked.why().outcome is Outcome.REGISTERED
    asked.fake.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="no Eureka was given")
    found = asked.why()
    assert found.outcome is Outcome.UNKNOWN
    assert "Until then port 8080 is served on, as before" in text(found)
    asked.fake.cluster.apply(syncer("new", selector={"app": "rating"}, port="grpc"))
    asked.fake.run()
    assert asked.why(f"{NS}/new").reason == "NoSuchPort"  # it was never served


def test_the_fix_is_about_the_object_to_correct() -> None:
    """It is the slice that somebody wrote, and the Service whose targetPort no container has."""
    asked = Asked(services=[replace(service(), selects=False)])
    asked.fake.cluster.slices = [STRAY]
    found = asked.why()
    assert (found.reason, found.fix) == ("NoSuchPort", f"kubectl edit endpointslice stray -n {NS}")
    assert "has unnamed (9000)" in found.sentence

    named = service("rating", ServicePort(name="http", port=80, target="http"))
    asked = Asked(services=[named])
    asked.fake.cluster.slices = [replace(piece(endpoint(1)), ports=(), managed_by=SLICE_CONTROLLER)]
    found = asked.why()
    assert found.fix == f"kubectl edit service rating -n {NS}"
    assert "pod rating-1 has no container port named http" in found.sentence
    # What the sentence names first is what the command edits.
    assert found.sentence.endswith(
        ": correct targetPort in the Service, or name the port in the pod's containers"
    )


@pytest.mark.parametrize("read", [True, False])
def test_a_missing_container_port_shows_those_that_the_pods_declare(read: bool) -> None:
    """One of their numbers is what targetPort should be. Pods of other apps are not shown."""
    named = service("rating", ServicePort(name="http", port=80, target="http"))
    asked = Asked(services=[named])
    asked.fake.cluster.slices = [replace(piece(endpoint(1)), ports=(), managed_by=SLICE_CONTROLLER)]
    app = {"app": "rating"}
    selector = ServiceSelector(name="rating", labels=app, selector=app)
    asked.details.selectors = Complete(data=(selector,))
    pods = [
        PodDetail(name="rating-1", uid="1", labels=app, ports=(8080, 9000)),
        PodDetail(name="rating-0", uid="0", labels=app),
        PodDetail(name="cart-1", uid="2", labels={"app": "cart"}, ports=(1,)),
    ]
    if read:
        asked.details.pods = Complete(data=tuple(pods))
    details = broken(asked.why()).details
    assert details == (("containers of pod rating-1 declare port 8080, 9000",) if read else ())


def test_a_pod_without_the_port_beside_others_is_told() -> None:
    """Another pod has it, so the syncer is served."""
    named = service("rating", ServicePort(name="http", port=80, target="http"))
    asked = Asked(endpoint(1), services=[named])
    lacking = replace(piece(endpoint(2), name="lacking"), ports=(), managed_by=SLICE_CONTROLLER)
    asked.fake.cluster.apply(lacking)
    asked.fake.run()
    found = asked.why(f"pod/{NS}/rating-2")
    assert (found.reason, found.fix) == ("NoSuchPort", f"kubectl edit service rating -n {NS}")
    assert (
        "pod rating-2 has no container port with a name that Service rating has as targetPort"
        in found.sentence
    )


def test_a_slice_of_host_names_beside_another_service_is_told() -> None:
    """The other Service has an address."""
    one = syncer(selector={"matchLabels": {"app": "rating"}})
    hosts = replace(service("hosts"), selects=False)
    asked = Asked(endpoint(1), one=one, services=[service(), hosts])
    named = piece(
        endpoint(2, pod=None, address="rating.example.com"), service="hosts", family="FQDN"
    )
    asked.fake.cluster.apply(named)
    found = asked.why(f"svc/{NS}/hosts")
    assert "addressType FQDN" in text(found)
    assert broken(found).reason == "NoEndpointSlices"


def test_a_slice_of_host_names_beside_the_controllers_empty_one_is_told() -> None:
    """The Service selects no pod, and somebody wrote a slice of host names for it."""
    asked = Asked()
    asked.fake.cluster.apply(
        piece(endpoint(2, pod=None, address="rating.example.com"), name="hosts", family="FQDN")
    )
    found = asked.why()
    assert (found.reason, found.fix) == ("NoSuchPort", f"kubectl edit endpointslice hosts -n {NS}")
    assert "EndpointSlice hosts is of addressType FQDN" in found.sentence


def test_a_pod_at_an_address_with_two_ports_is_asked_about_alone() -> None:
    """Two pods on the network of one node have one address. The answer counts the pod in
    question."""
    asked = Asked(endpoint(1))
    other = piece(endpoint(2, address="10.0.0.1"), name="other", port=8081)
    asked.fake.cluster.apply(other)
    asked.fake.run()
    assert "its EndpointSlices list 2 endpoints" in text(asked.why())
    found = asked.why(f"pod/{NS}/rating-2")
    assert (found.up, found.of) == (1, 1)


def test_two_processes_at_one_address_are_two_endpoints() -> None:
    """A Service without a selector has a slice for each."""
    asked = Asked(endpoint(1, pod=None), services=[replace(service(), selects=False)])
    asked.fake.cluster.apply(piece(endpoint(1, pod=None), name="other", port=8081))
    asked.fake.run()
    found = asked.why()
    assert (found.up, found.of) == (2, 2)
    assert "its EndpointSlices list 2 endpoints" in text(found)


def test_a_service_without_ports_has_its_pods_all_the_same() -> None:
    """Its slices have no ports either, so the pod's instance is known by its address."""
    bare = replace(service(cluster_ips=("None",)), ports=())
    asked = Asked(one=syncer(port=8080), services=[bare])
    asked.fake.cluster.slices = [replace(piece(endpoint(1)), ports=())]
    asked.fake.run()
    found = asked.why(f"pod/{NS}/rating-1")
    assert (found.up, found.of) == (1, 1)
    asked.fake.cluster.slices = [
        replace(piece(endpoint(1)), ports=(EndpointPort(name="x", port=1),))
    ]
    assert asked.why(f"pod/{NS}/rating-1").outcome is not Outcome.REGISTERED


def test_one_pod_with_two_numbers_is_two_endpoints() -> None:
    """A second controller has another number for the Service's port. Two Services of one pod are
    one."""
    headless = service("rating-headless", cluster_ips=("None",))
    asked = Asked(endpoint(1), services=[service(), headless])
    asked.fake.cluster.apply(piece(endpoint(1), service="rating-headless"))
    asked.fake.cluster.apply(piece(endpoint(2, terminating=True), name="ends"))
    asked.fake.run()
    assert "its EndpointSlices list 1 endpoint" in text(asked.why())
    asked.fake.cluster.apply(replace(piece(endpoint(1), name="mesh", port=8081), managed_by="mesh"))
    asked.fake.run()
    for found in (asked.why(), asked.why(f"pod/{NS}/rating-1"), asked.why(f"svc/{NS}/rating")):
        assert (found.outcome, found.up, found.of) == (Outcome.REGISTERED, 2, 2)
    assert "its EndpointSlices list 2 endpoints" in text(asked.why())


def test_a_pod_whose_slices_are_being_renumbered_is_told() -> None:
    """The controller will write the other slice in a moment. Until then nothing new is
    registered."""
    asked = Asked(endpoint(1))
    asked.fake.cluster.slices = [
        replace(piece(endpoint(1), name=f"rating-{port}", port=port), managed_by=SLICE_CONTROLLER)
        for port in (8080, 8081)
    ]
    asked.fake.run()
    found = asked.why(f"pod/{NS}/rating-1")
    assert found.outcome is not Outcome.REGISTERED
    why = "pod rating-1 is in EndpointSlices with different numbers for port http of Service rating"
    assert why in found.sentence


def test_an_app_that_keeps_its_name_is_told() -> None:
    """So is a pod behind the added Service alone."""
    one = syncer(selector={"matchLabels": {"app": "rating"}})
    asked = Asked(endpoint(1), one=one)
    asked.fake.run()
    asked.fake.cluster.apply(
        service("rating-metrics"), piece(endpoint(1), endpoint(2), service="rating-metrics")
    )
    asked.fake.run()
    found = asked.why()
    assert (found.outcome, found.apps, found.of) == (Outcome.REGISTERED, ("RATING",), 1)
    (note,) = [link for link in found.links if link.part is Part.PORT and link.mark is Mark.NOTE]
    assert "Until then it is app rating" in note.text
    alone = asked.why(f"pod/{NS}/rating-2")
    assert alone.reason == "AmbiguousService"
    assert "not name the app that its syncer registers" in alone.sentence


def test_endpoints_of_an_import_are_not_counted_as_those_of_a_syncer() -> None:
    """A mixed Service has them beside its pods, and they are registered already."""
    imported = replace(
        piece(endpoint(8, pod=None), name="review-3f393-0"), managed_by="import.eurekube.io"
    )
    asked = Asked(endpoint(1))
    asked.fake.cluster.apply(imported)
    asked.fake.run()
    assert "its EndpointSlices list 1 endpoint" in text(asked.why())


def test_a_service_of_an_import_is_selected_by_no_syncer() -> None:
    """The answer does not name it as one whose port could be corrected."""
    asked = Asked(services=[replace(service(), controller="EurekaImport")])
    found = asked.why()
    assert found.reason == "NoMatchingService"
