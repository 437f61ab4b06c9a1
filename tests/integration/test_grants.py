"""A tenant's token on the real API server: there is no way to a name that the Namespace does not
grant."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import requests
import yaml

from eurekube_sync.desired.claims import Serving
from eurekube_sync.desired.resolve import claim_all
from eurekube_sync.desired.scope import ALLOWED_APPS, ALLOWED_HOSTS, Scope, refusal
from tests.deployment.rendered import CRONJOB
from tests.integration.hand_made import (
    events_of,
    make_app,
    make_namespace,
    make_syncer,
    remove_app,
    slices_of,
    syncers_of,
)
from tests.integration.program import Program, Registry
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld
from tests.unit.worlds.build import NAMING, REF, endpoint, piece, service, view
from tests.unit.worlds.build import syncer as made_syncer
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

NS, BANK = "tenant", "bank"
VICTIM, NODE, CLOUD = "10.24.0.9", "192.168.24.1", "169.254.169.254"
"""The last one hands out a cloud's credentials."""
RBAC = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NS}"
ADMISSION = "/apis/admissionregistration.k8s.io/v1/"
PATHS = {
    "ValidatingAdmissionPolicy": f"{ADMISSION}validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{ADMISSION}validatingadmissionpolicybindings",
}
RULES = [
    {"apiGroups": ["eurekube.io"], "resources": ["eurekasyncers"], "verbs": ["*"]},
    {"apiGroups": [""], "resources": ["services", "pods", "endpoints"], "verbs": ["*"]},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["*"]},
]
"""These are more rights than Kubernetes' role `admin` gives, because they include slices."""


@pytest.fixture
def tenant(
    kubernetes_servers: KubernetesServers, kubernetes_world: KubernetesWorld, crd: None
) -> Iterator[KubernetesWorld]:
    """A tenant with all rights in one namespace, which grants the app `rating`."""
    world = kubernetes_world
    for name, app, address in ((NS, "rating", "10.24.0.1"), (BANK, "payment", VICTIM)):
        make_namespace(world, name)
        grant(world, name, app, address)  # the test writes the slices
    world.create_service_account(NS, "tenant")
    role: dict[str, Any] = {"metadata": {"name": "tenant", "namespace": NS}, "rules": RULES}
    world.request("POST", f"{RBAC}/roles", role)
    subject = {"kind": "ServiceAccount", "name": "tenant", "namespace": NS}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"}
    binding = {"metadata": {"name": "tenant"}, "subjects": [subject], "roleRef": reference}
    world.request("POST", f"{RBAC}/rolebindings", binding)
    world.wait_for_rules(f"system:serviceaccount:{NS}:tenant", [role])
    token = world.mint_token(NS, "tenant")
    hands = KubernetesWorld(kubernetes_servers.url, token=token, ca_file=kubernetes_servers.ca_file)
    make_app(hands, NS, "rating", ["10.24.0.1"])
    make_app(world, BANK, "payment", [VICTIM])
    yield hands
    remove_app(world, NS, "rating")
    remove_app(world, NS, "payment")
    remove_app(world, BANK, "payment")
    for kind in ("rolebindings", "roles"):
        world.request("DELETE", f"{RBAC}/{kind}/tenant")
    world.request("DELETE", f"/api/v1/namespaces/{NS}/serviceaccounts/tenant")


def grant(world: KubernetesWorld, name: str, apps: str | None, hosts: str | None) -> None:
    """Set the grants of a Namespace; None removes one."""
    annotations = {ALLOWED_APPS: apps, ALLOWED_HOSTS: hosts}
    world.request("PATCH", f"/api/v1/namespaces/{name}", {"metadata": {"annotations": annotations}})


@pytest.fixture
def policy(kubernetes_world: KubernetesWorld) -> Iterator[None]:
    """The shipped policy, in force. Afterwards it refuses nothing, as the next test needs."""
    found = list(yaml.safe_load_all((CRONJOB / "admission" / "policy.yaml").read_text()))
    for document in found:
        kubernetes_world.request("POST", PATHS[document["kind"]], document)

    def in_force() -> bool:
        try:
            kubernetes_world.request(
                "POST", f"{syncers_of(NS)}?dryRun=All", syncer("probe", appName="probe")
            )
        except requests.HTTPError:
            return True
        return False

    wait_until(in_force, "the policy refuses nothing")
    yield
    for document in found:
        kubernetes_world.request(
            "DELETE", f"{PATHS[document['kind']]}/{document['metadata']['name']}"
        )
    wait_until(lambda: not in_force(), "the policy still refuses")


def syncer(name: str, **spec: Any) -> dict[str, Any]:
    """A syncer that selects the tenant's Service."""
    return {
        "apiVersion": "eurekube.io/v1",
        "kind": "EurekaSyncer",
        "metadata": {"name": name},
        "spec": {"selector": {"app": "rating"}, **spec},
    }


def own_service(tenant: KubernetesWorld) -> None:
    """The Service gives the app's name."""
    make_app(tenant, NS, "payment", ["10.24.0.1"])


def external_name(tenant: KubernetesWorld) -> None:
    """A Service of type ExternalName."""
    patch_service(tenant, {"type": "ExternalName", "externalName": "evil.example.com"})


def external_ip(tenant: KubernetesWorld) -> None:
    """A Service with the victim's address as an external address."""
    patch_service(tenant, {"externalIPs": [VICTIM]})


def victims_address(tenant: KubernetesWorld) -> None:
    """A slice with the victim's address."""
    patch_slice(tenant, VICTIM)


def nodes_address(tenant: KubernetesWorld) -> None:
    """A slice with the address of a node."""
    patch_slice(tenant, NODE)


def patch_service(tenant: KubernetesWorld, spec: dict[str, Any]) -> None:
    tenant.request("PATCH", f"/api/v1/namespaces/{NS}/services/rating", {"spec": spec})


def patch_slice(tenant: KubernetesWorld, address: str) -> None:
    ends = [{"addresses": [address], "conditions": {"ready": True}}]
    tenant.request("PATCH", f"{slices_of(NS)}/rating-1", {"endpoints": ends})


ROADS: dict[str, tuple[Any, dict[str, Any]]] = {
    "app": (None, {"appName": "payment"}),
    "app in capitals": (None, {"appName": "PAYMENT"}),
    "VIP": (None, {"vipAddress": "payment"}),
    "one VIP of two": (None, {"vipAddress": "rating,payment"}),
    "secure VIP": (None, {"secureVipAddress": "payment"}),
    "host name": (None, {"mode": "service", "port": 443, "service": {"hostname": VICTIM}}),
    "suffix": (None, {"hostName": "ip.evil.example.com"}),
    "name of a Service": (own_service, {"selector": {"app": "payment"}}),
    "external name": (external_name, {"mode": "service", "port": 443}),
    "external address": (external_ip, {"mode": "service", "service": {"address": "ExternalIP"}}),
    "address in a slice": (victims_address, {}),
    "address of a node in a slice": (nodes_address, {}),
    "address of a node": (None, {"mode": "service", "port": 443, "service": {"hostname": NODE}}),
    "address of the cloud": (None, {"mode": "service", "port": 80, "service": {"hostname": CLOUD}}),
    "suspended": (
        external_ip,
        {"mode": "service", "service": {"address": "ExternalIP"}, "suspend": True},
    ),
    "another namespace": (None, {"selector": {"app": "payment", "namespace": BANK}}),
}
"""The tenant's syncer is older than the victim's in each."""
AT_ADMISSION = (
    "app",
    "app in capitals",
    "VIP",
    "one VIP of two",
    "secure VIP",
    "host name",
    "suffix",
)


@pytest.mark.parametrize("road", ROADS)
def test_a_tenant_cannot_register_what_is_not_granted(
    road: str,
    tenant: KubernetesWorld,
    program: Program,
    registry: Registry,
    kubernetes_world: KubernetesWorld,
) -> None:
    """The victim's instance stays UP, and nothing of the tenant is registered. The condition of the
    tenant's syncer says why."""
    prepare, spec = ROADS[road]
    if prepare:
        prepare(tenant)
    tenant.request("POST", syncers_of(NS), syncer("rating", **spec))
    time.sleep(1.1)  # ages are whole seconds
    make_syncer(kubernetes_world, BANK, "payment", "payment")
    for _ in range(2):
        program.run("--require-app-grant")
        assert registry.status("PAYMENT", f"{program.owner}:{BANK}:payment:{VICTIM}:8080") == "UP"
    listed = requests.get(
        f"{registry.url}/apps", headers={"Accept": "application/json"}, timeout=30
    ).json()
    found = [one for app in listed["applications"]["application"] for one in app["instance"]]
    assert [one["instanceId"] for one in found if f":{NS}:" in one["instanceId"]] == []
    status = tenant.request("GET", f"{syncers_of(NS)}/rating")["status"]
    (ready,) = (condition for condition in status["conditions"] if condition["type"] == "Ready")
    reason = "NamespaceNotAllowed" if road == "another namespace" else "NotGranted"
    assert (ready["status"], ready["reason"]) == ("False", reason)


@pytest.mark.parametrize("suspend", [False, True])
def test_a_forged_slice_takes_no_other_app_and_removes_no_instance(
    suspend: bool,
    tenant: KubernetesWorld,
    program: Program,
    registry: Registry,
    kubernetes_world: KubernetesWorld,
) -> None:
    """The slice of an older syncer says that a pod of its own namespace has the victim's address.
    It is registered under the granted name at most. The victim's pod is registered too, and stays
    when its Service is gone."""
    pod = {
        "kind": "Pod",
        "namespace": NS,
        "name": "forged",
        "uid": "6f9b3f0e-0000-4000-8000-000000000000",
    }
    ends = [{"addresses": [VICTIM], "conditions": {"ready": True}, "targetRef": pod}]
    tenant.request("PATCH", f"{slices_of(NS)}/rating-1", {"endpoints": ends})
    tenant.request("POST", syncers_of(NS), syncer("rating", suspend=suspend))
    time.sleep(1.1)  # ages are whole seconds
    make_syncer(kubernetes_world, BANK, "payment", "payment")
    victim = f"{program.owner}:{BANK}:payment:{VICTIM}:8080"
    for _ in range(2):
        program.run("--require-app-grant")
        assert registry.status("PAYMENT", victim) == "UP"
    kubernetes_world.request("DELETE", f"/api/v1/namespaces/{BANK}/services/payment")
    for _ in range(2):
        program.run("--require-app-grant")
        assert registry.status("PAYMENT", victim) == "UP"
    listed = requests.get(
        f"{registry.url}/apps", headers={"Accept": "application/json"}, timeout=30
    ).json()
    found = [one for app in listed["applications"]["application"] for one in app["instance"]]
    assert {one["app"] for one in found if f":{NS}:" in one["instanceId"]} <= {"RATING"}


def test_granted_names_are_served(
    tenant: KubernetesWorld, program: Program, registry: Registry, kubernetes_world: KubernetesWorld
) -> None:
    """A tenant cannot grant itself more. An instance whose grant is removed later stays registered,
    and an event says so."""
    with pytest.raises(requests.HTTPError, match="403"):
        grant(tenant, NS, "*", "*")
    tenant.request("POST", syncers_of(NS), syncer("rating"))
    program.good("--require-app-grant")
    assert registry.status("RATING", f"{program.owner}:{NS}:rating:10.24.0.1:8080") == "UP"
    grant(kubernetes_world, NS, "rating", None)
    program.run("--require-app-grant")
    assert registry.status("RATING", f"{program.owner}:{NS}:rating:10.24.0.1:8080") == "UP"
    assert any(
        "is not granted to namespace" in said
        for said in events_of(kubernetes_world, NS, "NotGranted")
    )


def test_the_policy_refuses_at_admission(
    tenant: KubernetesWorld, kubernetes_world: KubernetesWorld, policy: None
) -> None:
    """It refuses what the spec alone shows, in words that name the annotation. It accepts what is
    granted. It also accepts any change of an older syncer that leaves the spec as it is."""
    grant(kubernetes_world, NS, "rating", None)
    for road in AT_ADMISSION:
        _, spec = ROADS[road]
        with pytest.raises(requests.HTTPError) as refused:
            tenant.request("POST", syncers_of(NS), syncer("rating", **spec))
        assert refused.value.response is not None, road
        assert (
            "by the annotation" in refused.value.response.text
            or "to the annotation" in refused.value.response.text
        )
    tenant.request("POST", syncers_of(NS), syncer("rating", vipAddress="rating", appName="Rating"))
    path = f"{syncers_of(NS)}/rating"
    with pytest.raises(requests.HTTPError):
        tenant.request("PATCH", path, {"spec": {"appName": "payment"}})
    grant(kubernetes_world, NS, None, None)
    with pytest.raises(requests.HTTPError):
        tenant.request("PATCH", path, {"spec": {"limit": 1}})
    tenant.request("PATCH", path, {"metadata": {"finalizers": ["eurekube.io/cleanup"]}})
    tenant.request("PATCH", path, {"metadata": {"finalizers": None}})


NETWORK = ("10.1.0.0/16", "10.1.2.3")
GRANTED_HOSTS = {
    "*": "169.254.169.254 127.0.0.1 0.0.0.7 224.0.0.1 239.1.2.3 255.255.255.255 240.0.0.1 "
    "198.51.100.7 localhost "
    "a.localhost localhost6 localhost.localdomain ip6-loopback a-localhost localhosts 127.1 "
    "2130706433 0 0177.0.0.1 "
    "0x7f.1 a.0x7f000001 0x 169.254.43518 256.1.1.1 a.1 127.0.0.1.example.com 169.254.example.com "
    "1.2.3.4.5 1a x0",
    "169.254.*,127.0.0.1,0x7f.1,localhost,*.1": "169.254.169.254 127.0.0.1 0x7f.1 localhost a.1 "
    "10.0.0.1",
    "10.1.*": "10.1.2.3 10.1.evil.com 10.10.2.3 10.1.2 10.1.2.300",
    "10.1.2.3": "10.1.2.3 10.1.2.30 10.1.2.3.evil.com",
    "*.*.*.*": "10.1.2.3 a.b.c.evil",
    "*7": "198.51.100.7 a7",
    "f*,*.EXAMPLE.com": "f1 f.evil a.b.example.com example.com a.example.com.evil.com",
    "a|.*,(evil),[a-z]*,evi.,e+vil,evil$": "evil a b",
    "shop.*.example.com,b**": "shop.eu.example.com shop.a.b.example.com b.a bcd",
    NETWORK[0]: "10.1.2.3 10.2.0.1 169.254.169.254",
}
"""Grants of a Namespace, and the value that a tenant then writes into `service.hostname`."""
NO_HOST_NAMES = (
    "::1 ::ffff:169.254.169.254 fd00:ec2::254 fe80::1%eth0 [::1] 169.254.169.254. LOCALHOST"
)
"""Values that the CRD accepts from nobody."""


def test_the_policy_is_never_laxer_than_the_program(
    tenant: KubernetesWorld, kubernetes_world: KubernetesWorld, policy: None
) -> None:
    """Both judge each host in the same way. The exception is a host that only a network grants,
    because the policy cannot calculate with networks."""
    differ = []
    for number, (granted, hosts) in enumerate(GRANTED_HOSTS.items()):
        probe = f"probe-{number}.example.org"
        grant(kubernetes_world, NS, "rating", f"{granted},{probe}")
        wait_until(partial(taken, tenant, probe), "the policy does not see what is granted")
        differ += [
            (granted, host)
            for host in hosts.split()
            if taken(tenant, host) is not served(granted, host)
        ]
    assert differ == [NETWORK]
    assert served(*NETWORK)
    for host in NO_HOST_NAMES.split():
        with pytest.raises(
            requests.HTTPError, match=r"spec[.]service[.]hostname in body should match"
        ):
            taken(tenant, host)


def taken(tenant: KubernetesWorld, host: str) -> bool:
    """Whether the API server accepts a syncer with this host."""
    spec = {"mode": "service", "port": 443, "appName": "rating", "service": {"hostname": host}}
    try:
        tenant.request("POST", f"{syncers_of(NS)}?dryRun=All", syncer("asked", **spec))
    except requests.HTTPError as error:
        if (
            error.response is None
            or "ValidatingAdmissionPolicy 'eurekube-sync'" not in error.response.text
        ):
            raise
        return False
    return True


def served(granted: str, host: str) -> bool:
    """Whether the program registers it."""
    spec: dict[str, Any] = {"mode": "service", "port": 443, "service": {"hostname": host}}
    desired = claim_all(
        view([made_syncer(**spec)], [service()], [piece(endpoint(1))]), NAMING, Scope()
    )
    claim = desired.claims[REF]
    assert isinstance(claim, Serving)
    return refusal(claim, {ALLOWED_APPS: "rating", ALLOWED_HOSTS: granted}) is None
