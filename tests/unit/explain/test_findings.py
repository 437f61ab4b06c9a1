"""The findings of `check`, from fakes that answer as servers do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from eurekube_sync.adapters.clock import ahead
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.explain.check import (
    TO_INSTALL,
    clock,
    code_of_check,
    definition,
    dropped,
    of_a_pass,
    of_workload,
    pod_ends,
    reachable,
    rights,
    servers,
)
from eurekube_sync.explain.links import Check, Finding, Grade
from eurekube_sync.explain.subject import workload
from eurekube_sync.model.errors import (
    RegistryDenied,
    RegistryError,
    RegistryUnavailable,
    RegistryUnusable,
)
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import CrdAge, PodDetail, Right, SyncerRef
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.asked import Asked, Details
from tests.unit.worlds.build import NS, endpoint, instance, stored

NOW = 1_800_000_000.0
GONE = Unknown(cause=Cause.UNAVAILABLE, message="the connection was refused")
REF = SyncerRef("shop", "orders")


class Cluster(Details):
    """A cluster that answers the questions of `check`."""

    def __init__(self) -> None:
        super().__init__()
        self.version: Source[str] = Complete(data="v1.36.0")
        self.crd: Source[Mapping[str, Any]] = Complete(data={"type": "object"})
        self.networks: Source[tuple[str, ...]] = Complete(data=("10.96.0.0/12",))
        self.denied: set[tuple[str, str, str]] = set()
        self.unknown: Unknown | None = None

    def server(self) -> Source[str]:
        return self.version

    def schema(self, kind: str = "EurekaSyncer") -> Source[Mapping[str, Any]]:
        return self.crd

    def service_networks(self) -> Source[tuple[str, ...]]:
        return self.networks

    def may(self, right: Right, namespace: str) -> Source[bool]:
        return self.unknown or Complete(
            data=(right.verb, right.resource, namespace) not in self.denied
        )

    def ahead(self) -> Source[float]:
        return Complete(data=0.0)


class Eureka:
    """A Eureka that lists, and answers a renewal of an unknown instance with 404."""

    def __init__(self, *instances: ObservedInstance) -> None:
        self.instances = instances
        self.refuses = False
        self.takes_nobody = False
        self.unregistered: RegistryError | None = None

    def list_instances(self) -> Source[tuple[ObservedInstance, ...]]:
        return Complete(data=self.instances)

    def read_instance(self, key: InstanceKey) -> ObservedInstance | None:
        return next((one for one in self.instances if one.key == key), None)

    def renew(self, key: InstanceKey) -> bool:
        if self.refuses:
            raise RegistryDenied("403: CSRF protection refuses writes")
        return self.takes_nobody or self.read_instance(key) is not None

    def try_registration(self) -> None:
        if self.unregistered is not None:
            raise self.unregistered

    def ahead(self) -> float:
        return 0.0


def _seen(number: int, *, ended: float = -60.0) -> ObservedInstance:
    """An instance whose lease of 300 s ended this many seconds ago."""
    return replace(stored(instance(number)), last_renewal=int((NOW - ended - 300) * 1000))


def wrong(found: Any) -> list[Finding]:
    """The findings that are not OK."""
    return [one for one in found if one.grade is not Grade.OK]


def test_a_healthy_server_has_nothing_to_see_to() -> None:
    """`check` tries its list, a write, its clock and its evictions."""
    found = list(servers({"http://one/eureka": Eureka(_seen(1))}, NOW))
    assert not wrong(found)
    assert [one.check for one in found] == [
        Check.EUREKA_READ,
        Check.EUREKA_WRITE,
        Check.SELF_PRESERVATION,
        Check.CLOCK,
    ]
    assert code_of_check(found) == ExitCode.OK


def test_without_a_eureka_nothing_can_work() -> None:
    """No Eureka was given."""
    assert [one.check for one in wrong(servers({}, NOW))] == [Check.EUREKA_READ]


@pytest.mark.parametrize("how", ["refuses", "takes_nobody"])
def test_writes_that_are_refused_or_swallowed_fail(how: str) -> None:
    """A renewal of an unknown instance has to be a 404."""
    server = Eureka(_seen(1))
    setattr(server, how, True)
    found = wrong(servers({"http://one/eureka": server}, NOW))
    assert [(one.check, one.grade) for one in found] == [(Check.EUREKA_WRITE, Grade.FAILED)]


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        (
            RegistryUnusable("POST was answered 404 although reads work"),
            "give the address of Eureka itself",
        ),
        (
            RegistryDenied("POST was answered 403 by a proxy"),
            "let Spring Security, and each proxy before it",
        ),
        (RegistryUnavailable("POST failed"), "see that it runs"),
    ],
    ids=str,
)
def test_a_404_of_a_renewal_is_no_proof_of_writes(error: RegistryError, fix: str) -> None:
    """Any program says 404. A registration has to reach Eureka, too."""
    server = Eureka(_seen(1))
    server.unregistered = error
    (found,) = wrong(servers({"http://one/eureka": server}, NOW))
    assert (found.check, found.grade) == (Check.EUREKA_WRITE, Grade.FAILED)
    assert found.text == f"http://one/eureka takes no writes: {error}"
    assert found.fix.startswith(fix)


def test_the_advice_for_a_wrong_url_names_both_paths() -> None:
    """Netflix's own server has another path than Spring's."""

    class Elsewhere(Eureka):
        def list_instances(self) -> Source[tuple[ObservedInstance, ...]]:
            return Unknown(cause=Cause.UNUSABLE, message="GET /eureka/apps was not found")

    (found,) = wrong(servers({"http://one/eureka": Elsewhere()}, NOW))
    assert "/eureka with Spring Cloud and /eureka/v2 with Netflix's own server" in found.fix


def test_a_server_that_lists_the_dead_is_in_self_preservation() -> None:
    """Their leases ended long ago. An instance whose lease has just ended is evicted soon."""
    assert not wrong(servers({"http://one/eureka": Eureka(_seen(1, ended=100))}, NOW))
    found = wrong(servers({"http://one/eureka": Eureka(_seen(1, ended=400))}, NOW))
    assert [(one.check, one.grade) for one in found] == [(Check.SELF_PRESERVATION, Grade.WARNING)]


def test_each_right_that_is_missing_says_what_lacks_without_it() -> None:
    """The right is missing in the served namespaces, in the whole cluster, or in the namespace of
    the lock."""
    cluster = Cluster()
    needed = of_a_pass(lock="ops", gates=True, nodes=True, ingresses=True, gateways=True)
    assert not wrong(rights(needed, ["shop"], cluster))
    cluster.denied = {
        ("patch", "pods/status", "shop"),
        ("list", "nodes", ""),
        ("list", "ingresses", "shop"),
        ("list", "gateways", "shop"),
        ("create", "leases", "ops"),
    }
    found = wrong(rights(needed, ["shop"], cluster))
    assert [one.text for one in found] == [
        "the right to patch pods/status is not granted in shop: where it is missing, pods with "
        "the readiness gate are "
        "never ready",
        "the right to list nodes is not granted for the whole cluster: where it is missing, no "
        "instance of a node "
        "port is found",
        "the right to list ingresses.networking.k8s.io is not granted in shop: where it is "
        "missing, no instance of an Ingress is found",
        "the right to list gateways.gateway.networking.k8s.io is not granted in shop: where it is "
        "missing, no instance of a Gateway is found",
        "the right to create leases.coordination.k8s.io is not granted in ops: where it is "
        "missing, no replica gets the "
        "lock",
    ]
    assert [one.grade for one in found] == [Grade.FAILED] * 4 + [Grade.WARNING]
    assert found[0].fix.endswith("kubectl auth can-i patch pods --subresource status -n shop")


@pytest.mark.parametrize(
    ("grants", "names", "where"), [("list", (), ""), ("get", ("shop",), "shop")]
)
def test_grants_need_a_right_of_their_own(grants: str, names: tuple[str, ...], where: str) -> None:
    """The chart asks for grants. If Namespaces cannot be read, every syncer is unknown."""
    cluster = Cluster()
    cluster.denied = {(grants, "namespaces", where)}
    needed = of_a_pass(lock=None, gates=False, nodes=False)
    assert not wrong(rights(needed, names, cluster))
    needed = of_a_pass(lock=None, gates=False, nodes=False, grants=grants)
    found = wrong(rights(needed, names, cluster))
    assert [(one.check, one.grade) for one in found] == [(Check.RIGHTS, Grade.FAILED)]
    assert "where it is missing, grants are unknown, so nothing new is registered" in found[0].text


def test_rights_that_nobody_can_ask_for_are_not_granted() -> None:
    """No right is called missing either."""
    cluster = Cluster()
    cluster.unknown = GONE
    found = list(rights(TO_INSTALL, ["ops"], cluster))
    assert [(one.grade, "no right" in one.text) for one in found] == [(Grade.FAILED, False)]


@pytest.mark.parametrize(
    ("schema", "live", "before", "grade"),
    [
        (Complete(data={"type": "object"}), Complete(data=CrdAge(1.0, 1.0)), False, Grade.OK),
        (Complete(data={}), Complete(data=CrdAge(1.0, 1.0)), False, Grade.WARNING),
        (
            Unknown(cause=Cause.CRD_MISSING, message="there is none"),
            Complete(data=CrdAge(1.0, 1.0)),
            False,
            Grade.FAILED,
        ),
        (
            Unknown(cause=Cause.CRD_MISSING, message="there is none"),
            Complete(data=CrdAge(1.0, 1.0)),
            True,
            Grade.OK,
        ),
        (
            Complete(data={"type": "object"}),
            Unknown(cause=Cause.CRD_TERMINATING, message="it is being deleted"),
            False,
            Grade.FAILED,
        ),
    ],
)
def test_the_crd_is_there_stays_and_is_this_versions(
    schema: Source[Mapping[str, Any]], live: Source[CrdAge], before: bool, grade: Grade
) -> None:
    """An installation may create the CRD later."""
    cluster = Cluster()
    cluster.crd = schema
    assert definition(cluster, live, {"type": "object"}, before=before).grade is grade


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        ({"properties": {"spec": {}}}, "older than this program: it drops status"),
        (
            {"properties": {"spec": {}, "status": {}, "scale": {}}},
            "newer than this program, which lacks scale",
        ),
        ({"properties": {"spec": {"type": "object"}, "status": {}}}, "not of this version"),
    ],
    ids=["older", "newer", "rules"],
)
def test_another_schema_says_what_is_lost(stored: Mapping[str, Any], says: str) -> None:
    """Nobody is told to put an older CRD over a newer one."""
    cluster = Cluster()
    cluster.crd = Complete(data=stored)
    expected: Mapping[str, Any] = {"properties": {"spec": {}, "status": {}}}
    found = definition(cluster, Complete(data=CrdAge(1.0, 1.0)), expected, before=False)
    assert says in found.text
    assert ("eurekube-sync crd" in found.fix) is ("newer" not in says)
    assert bool(dropped(cluster, expected)) is ("older" in says)


def test_a_crd_that_nobody_may_read_drops_nothing_that_is_known() -> None:
    cluster = Cluster()
    cluster.crd = GONE
    assert dropped(cluster, {"properties": {"spec": {}}}) == ""


def test_a_cluster_has_to_answer_and_to_say_who_it_is() -> None:
    """Without its UID no pass does anything."""
    cluster = Cluster()
    assert reachable(cluster, Complete(data="341a66fe-0d2c")).grade is Grade.OK
    assert reachable(cluster, GONE).grade is Grade.FAILED
    cluster.version = GONE
    assert reachable(cluster, GONE).text == GONE.message


@pytest.mark.parametrize(
    ("seconds", "grade"),
    [(0, Grade.OK), (9, Grade.OK), (-11, Grade.WARNING), (61, Grade.FAILED), (-90, Grade.FAILED)],
)
def test_a_clock_that_differs_is_a_warning_and_then_fails(seconds: float, grade: Grade) -> None:
    """It may be ahead or behind."""
    assert clock("Eureka", Complete(data=seconds)).grade is grade


@pytest.mark.parametrize(
    ("begun", "ended", "expected"),
    [(100.0, 101.0, 0.0), (100.9, 130.0, 0.0), (105.0, 106.0, -4.0), (90.0, 91.5, 8.5)],
)
def test_how_far_a_clock_is_ahead_is_no_more_than_the_call_leaves_open(
    begun: float, ended: float, expected: float
) -> None:
    """The header has whole seconds, and the answer may have taken as long as the call."""
    assert ahead("Thu, 01 Jan 1970 00:01:40 GMT", begun, ended) == expected
    assert ahead("soon", begun, ended) is None
    assert ahead("1 Jan 99999999999 10:00:00 GMT", begun, ended) is None


def _pod(
    *pre_stops: float | None, grace: float = 30, controller: str = "ReplicaSet orders-6c9f"
) -> PodDetail:
    return PodDetail(
        name="orders-a",
        uid="u",
        containers=("app",),
        pre_stops=pre_stops,
        grace=grace,
        controller=controller,
    )


@pytest.mark.parametrize(
    ("pod", "grade"),
    [
        (_pod(125.0, grace=155), Grade.OK),
        (_pod(None, 125.0, grace=155), Grade.OK),
        (_pod(None, grace=155), Grade.OK),
        (_pod(None, grace=60), Grade.WARNING),
        (_pod(), Grade.WARNING),
        (_pod(60.0, grace=155), Grade.WARNING),
        (_pod(125.0, grace=30), Grade.WARNING),
    ],
)
def test_a_workload_has_to_serve_as_long_as_callers_call(pod: PodDetail, grade: Grade) -> None:
    """A preStop that is killed before its end does not count. One that cannot be read counts with
    the time that it has."""
    assert of_workload(REF, "shop", "Deployment orders", [pod], 125).grade is grade


def test_a_pod_without_a_pre_stop_is_said_to_have_none() -> None:
    """The time of an unreadable preStop is not given."""
    assert (
        "has no preStop, but callers"
        in of_workload(REF, "shop", "Deployment orders", [_pod()], 125).text
    )
    unreadable = of_workload(REF, "shop", "Deployment orders", [_pod(None, grace=30)], 125)
    assert "has a preStop whose time cannot be read, but callers" in unreadable.text


def test_the_lines_to_add_are_those_of_what_a_person_edits() -> None:
    """A person edits the template of a Deployment, in the namespace of its pods. The shortest time
    of a pod counts."""
    found = of_workload(REF, "shared", workload(_pod()), [_pod(125.0, grace=155), _pod()], 125)
    assert found.fix == "add these lines: kubectl edit deployment orders -n shared"
    assert found.manifest.splitlines() == [
        "spec:",
        "  template:",
        "    spec:",
        "      terminationGracePeriodSeconds: 155",
        "      containers:",
        "      - name: app",
        "        lifecycle:",
        "          preStop:",
        "            sleep:",
        "              seconds: 125",
    ]
    assert workload(_pod(controller="StatefulSet db")) == "StatefulSet db"
    assert workload(_pod(controller="")) == "pod orders-a"


def test_bare_pods_of_a_syncer_are_one_finding() -> None:
    """Each would have the same lines to add. One that ends otherwise is another."""
    asked = Asked(*(endpoint(number) for number in range(1, 5)))
    pods = []
    for number, controller in ((1, ""), (2, ""), (3, "StatefulSet db"), (4, "")):
        name = f"rating-{number}"
        pod = _pod(125.0, grace=155, controller="") if number == 4 else _pod(controller=controller)
        pods.append(replace(pod, name=name, uid=f"uid-of-{name}"))
    asked.details.pods = Complete(data=tuple(pods))
    texts = [found.text for found in pod_ends(asked.look(f"{NS}/rating"), 30.0)]
    assert [text.partition(" has no")[0] for text in texts] == [
        f"{NS}/rating: StatefulSet db (1 pod)",
        f"{NS}/rating: pod rating-1 (and 1 more)",
        f"{NS}/rating: pod rating-4 has a preStop of 125 s",
    ]


def test_the_cure_of_a_missing_crd_is_shown_once() -> None:
    """The message of a pass has the command, and so has the fix."""
    message = "the CRD is not installed: eurekube-sync crd | kubectl apply --server-side -f -"
    missing = Unknown(cause=Cause.CRD_MISSING, message=message)
    cluster = Cluster()
    cluster.crd = missing
    found = definition(cluster, missing, {}, before=False)
    assert "kubectl apply" not in found.text
    assert "kubectl apply" in found.fix


def test_pods_that_were_left_out_are_no_missing_right() -> None:
    """In a large cluster only some namespaces are read."""
    asked = Asked(endpoint(1))
    (found,) = pod_ends(replace(asked.look(f"{NS}/rating"), pods={}), 30.0)
    assert (found.grade, found.text) == (
        Grade.WARNING,
        "the pods of 1 more namespace were not looked at",
    )
    assert found.fix.endswith(f"eurekube-sync check -n {NS}")
