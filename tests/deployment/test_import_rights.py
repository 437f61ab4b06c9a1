"""The rights to import, on the real API server: each write needs its own, there is no more, and
the admission policies bound what a stolen token can write."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.connection import ClientConnection, ConnectionSettings
from eurekube_sync.embedded.http import Request
from eurekube_sync.manifests.crd import load_crd
from eurekube_sync.model.errors import ClusterDenied
from eurekube_sync.model.imports import (
    IMPORT,
    MANAGER,
    ImportObject,
    ImportPort,
    ImportService,
    ImportSlice,
    ImportStatus,
)
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.struct import replace
from tests.deployment.conftest import hands
from tests.deployment.rendered import CRONJOB, NETWORK, Form, Json, documents, shipped
from tests.deployment.rights import Right, granted, lacking, right_for, rights_of
from tests.integration.conftest import CRD_PATH
from tests.integration.hand_made import make_namespace, slices_of
from tests.integration.program import CountingProxy, Program, Registry
from tests.servers.eureka import EurekaServer
from tests.servers.kube import ApiServer, Etcd, KubernetesServers
from tests.servers.world import KubernetesWorld, write_kubeconfig
from tests.waiting import wait_until

pytestmark = pytest.mark.servers
SHOP = "imports"
IMPORTS = f"/apis/eurekube.io/v1/namespaces/{SHOP}/eurekaimports"
SERVICES = f"/api/v1/namespaces/{SHOP}/services"
SLICES = slices_of(SHOP)
ADMISSION = "/apis/admissionregistration.k8s.io/v1/"
WITH_IMPORTS = documents(Form(components=("rights/imports",)).kustomized)
RIGHTS = sorted(rights_of(WITH_IMPORTS) - rights_of(shipped()))
"""What the component adds. Reading the CRD is a right that syncers need, too, on another name."""
PORT = ImportPort(name="http", port=80)


def open_shop(world: KubernetesWorld) -> None:
    """Make the namespace, and the CRD of imports."""
    with suppress(requests.HTTPError):
        world.request("POST", CRD_PATH, load_crd(IMPORT))

    def served() -> bool:
        with suppress(requests.HTTPError):
            world.request("GET", "/apis/eurekube.io/v1/eurekaimports")
            return True
        return False

    wait_until(served, "the CRD is not served")
    make_namespace(world, SHOP)


@pytest.fixture
def shop(world: KubernetesWorld, with_crd: None) -> Iterator[None]:
    """A namespace with the CRD of imports; afterwards it is empty."""
    open_shop(world)
    yield
    for path in (IMPORTS, SERVICES, SLICES):
        for item in world.request("GET", path)["items"]:
            one = f"{path}/{item['metadata']['name']}"
            with suppress(requests.HTTPError):  # the collector may be faster
                world.request("PATCH", one, {"metadata": {"finalizers": None}})
                world.request("DELETE", one)


@pytest.fixture
def import_(world: KubernetesWorld, shop: None) -> Json:
    return world.request("POST", IMPORTS, of_kind({}))


def of_kind(spec: Json, name: str = "review") -> Json:
    head = {"apiVersion": "eurekube.io/v1", "kind": "EurekaImport"}
    return {**head, "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def as_account(cluster: KubernetesServers, tmp_path: Path) -> Callable[[str], KubernetesCluster]:
    """Our client with a token."""
    return lambda token: client_of(cluster, token, tmp_path)


def client_of(server: KubernetesServers | ApiServer, token: str, folder: Path) -> KubernetesCluster:
    path = folder / "kubeconfig"
    write_kubeconfig(path, url=server.url, token=token, ca_file=server.ca_file)
    connection = ClientConnection(ConnectionSettings(kubeconfig=str(path)), {})
    return KubernetesCluster(connection, clock=SystemClock(), random=random.Random(1), tries=2)


def life(cluster: KubernetesCluster) -> None:
    """Each call for an import, from its first slice until its finalizer is gone. Raise the error of
    the first call that is refused."""
    imports = cluster.imports
    assert isinstance(must_read(imports.import_crd_live()), Complete)
    listed = must_read(imports.list_imports(None).of(SHOP))
    (import_,) = listed.data
    import_ = imports.add_import_finalizer(import_)
    service = ImportService(owner=import_, name="review", ports=(PORT,))
    made = imports.create_service(service)
    https = replace(service, ports=(PORT, ImportPort(name="https", port=443)))
    imports.write_service_ports(https, resource_version=made.resource_version)
    imports.create_slice(import_, slice_(import_, "10.20.0.1"))
    imports.write_slice(as_it_is(cluster, slice_(import_, "10.20.0.2")))
    imports.delete_slice(as_it_is(cluster, slice_(import_)))
    imports.write_import_status(import_, ImportStatus(observed_generation=1))
    (import_,) = must_read(imports.list_imports(None).of(SHOP)).data
    # Somebody changed it since: it is read again
    imports.remove_import_finalizer(replace(import_, resource_version="1"))


def must_read(source: Any) -> Complete[Any]:
    if isinstance(source, Unknown) and source.cause is Cause.DENIED:
        raise ClusterDenied(source.message)
    assert isinstance(source, Complete), source
    return source


def slice_(import_: ImportObject, *addresses: str) -> ImportSlice:
    return ImportSlice(
        namespace=SHOP,
        name="review-3f393-0",
        service="review",
        address_type="IPv4",
        ports=(ImportPort(name="http", port=8080),),
        endpoints=addresses,
        owner_uid=import_.uid,
    )


def as_it_is(cluster: KubernetesCluster, wanted: ImportSlice) -> ImportSlice:
    (listed,) = must_read(cluster.list_slices(None).of(SHOP)).data
    return replace(wanted, uid=listed.uid, resource_version=listed.resource_version)


def test_these_are_the_rights_to_import() -> None:
    """None deletes a Service, and none is on Endpoints, Secrets or Pods."""
    assert [str(right) for right in RIGHTS] == [
        "create services",
        "patch services",
        "create endpointslices",
        "delete endpointslices",
        "patch endpointslices",
        "get eurekaimports",
        "list eurekaimports",
        "patch eurekaimports",
        "patch eurekaimports/status",
    ]


def test_an_imports_whole_life_needs_no_other_right(
    world: KubernetesWorld, import_: Json, as_account: Callable[[str], KubernetesCluster]
) -> None:
    """From its Service until its finalizer is gone."""
    with granted(world, WITH_IMPORTS) as token:
        life(as_account(token))
    assert "finalizers" not in world.request("GET", f"{IMPORTS}/review")["metadata"]


def test_an_api_that_guards_owners_asks_for_no_other_right(tmp_path: Path) -> None:
    """As on OpenShift. It would ask for more if we set `blockOwnerDeletion`, or gave an object that
    is there to another owner."""
    with (
        Etcd() as etcd,
        ApiServer(
            etcd_url=etcd.url,
            service_accounts=True,
            plugins=("OwnerReferencesPermissionEnforcement",),
        ) as server,
    ):
        world = KubernetesWorld(server.url, token=server.admin_token, ca_file=server.ca_file)
        open_shop(world)
        import_ = world.request("POST", IMPORTS, of_kind({}))
        with granted(world, WITH_IMPORTS) as token:
            life(client_of(server, token, tmp_path))
            thief = KubernetesWorld(server.url, token=token, ca_file=server.ca_file)
            blocks = piece(import_, "10.20.0.9")
            blocks["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = True
            with pytest.raises(requests.HTTPError, match="cannot set blockOwnerDeletion"):
                thief.request("POST", SLICES, blocks)
            world.request("POST", SERVICES, FOREIGN_SERVICE)
            taken = {"metadata": {"ownerReferences": owners(import_)}}
            with pytest.raises(requests.HTTPError, match="cannot set an ownerRef"):
                thief.request("PATCH", f"{SERVICES}/bank", taken)


@pytest.mark.parametrize("right", RIGHTS, ids=str)
def test_each_right_is_needed(
    right: Right,
    world: KubernetesWorld,
    import_: Json,
    as_account: Callable[[str], KubernetesCluster],
) -> None:
    """Without it the API server names it, and the error is of its own kind."""
    sentence = f'cannot {right.verb} resource "{right.resource}"'
    with (
        granted(world, lacking(WITH_IMPORTS, right)) as token,
        pytest.raises(ClusterDenied, match=sentence),
    ):
        life(as_account(token))


@contextmanager
def in_force(
    world: KubernetesWorld, found: Sequence[Json], probes: Sequence[Callable[[], object]]
) -> Iterator[None]:
    """Apply policies, and wait until each probe is refused; afterwards until none is."""
    paths = {
        "ValidatingAdmissionPolicy": f"{ADMISSION}validatingadmissionpolicies",
        "ValidatingAdmissionPolicyBinding": f"{ADMISSION}validatingadmissionpolicybindings",
    }

    def refused(probe: Callable[[], object]) -> bool:
        try:
            probe()
        except requests.HTTPError as error:
            return "ValidatingAdmissionPolicy" in str(error)
        return False

    for document in found:
        world.request("POST", paths[document["kind"]], document)
    try:
        wait_until(lambda: all(map(refused, probes)), "a policy refuses nothing")
        yield
    finally:
        for document in found:
            world.request("DELETE", f"{paths[document['kind']]}/{document['metadata']['name']}")
    wait_until(lambda: not any(map(refused, probes)), "a policy still refuses")


def policies(file: str) -> list[Json]:
    return list(yaml.safe_load_all((CRONJOB / "admission" / file).read_text()))


def piece(import_: Json, *addresses: str, name: str = "made", **fields: Any) -> Json:
    """A slice as an import writes it."""
    labels = {
        "kubernetes.io/service-name": "review",
        "endpointslice.kubernetes.io/managed-by": MANAGER,
    }
    return {
        "metadata": {"name": name, "labels": labels, "ownerReferences": owners(import_)},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080}],
        "endpoints": [{"addresses": [address]} for address in addresses],
        **fields,
    }


def owners(import_: Json) -> list[Json]:
    metadata = import_["metadata"]
    reference = {"apiVersion": "eurekube.io/v1", "kind": IMPORT, "controller": True}
    return [{**reference, "name": metadata["name"], "uid": metadata["uid"]}]


def service(import_: Json, name: str = "made", **spec: Any) -> Json:
    return {
        "metadata": {"name": name, "ownerReferences": owners(import_)},
        "spec": {"ports": [{"port": 80}], **spec},
    }


FOREIGN_SLICE: Json = {
    "metadata": {
        "name": "foreign",
        "labels": {
            "kubernetes.io/service-name": "bank",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        },
    },
    "addressType": "IPv4",
    "ports": [{"name": "http", "port": 8080}],
    "endpoints": [{"addresses": ["10.1.0.1"]}],
}
FOREIGN_SERVICE: Json = {"metadata": {"name": "bank"}, "spec": {"ports": [{"port": 80}]}}
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
OTHERS: Json = {"metadata": {"labels": {MANAGED_BY: "endpointslice-controller.k8s.io"}}}


def stolen(import_: Json) -> dict[str, tuple[str, str, Json | None]]:
    """What whoever stole the token may try: method, path and body of each call."""
    taken = {"labels": {MANAGED_BY: MANAGER}, "ownerReferences": owners(import_)}
    uncontrolled = {**owners(import_)[0], "controller": False}
    plain = {"metadata": {"name": "made"}, "spec": {"ports": [{"port": 80}]}}
    unowned = piece(import_, "10.20.0.9")
    unowned["metadata"].pop("ownerReferences")
    unmanaged = piece(import_, "10.20.0.9")
    unmanaged["metadata"]["labels"].pop(MANAGED_BY)
    names = piece(import_, "dc.example.com", addressType="FQDN")
    return {
        "an address of the cluster": ("POST", SLICES, piece(import_, "10.20.0.9", "10.96.0.1")),
        "an address of IPv6": ("POST", SLICES, piece(import_, "fd00::1", addressType="IPv6")),
        "a host name": ("POST", SLICES, names),
        "an address added": (
            "PATCH",
            f"{SLICES}/ours",
            {"endpoints": [{"addresses": ["10.1.0.1"]}]},
        ),
        "a slice of nobody": ("POST", SLICES, unowned),
        "a slice without a manager": ("POST", SLICES, unmanaged),
        "a foreign slice": ("PATCH", f"{SLICES}/foreign", {"endpoints": []}),
        "a foreign slice relabelled": ("PATCH", f"{SLICES}/foreign", {"metadata": taken}),
        "a foreign slice deleted": ("DELETE", f"{SLICES}/foreign", None),
        "ours relabelled": ("PATCH", f"{SLICES}/ours", OTHERS),
        "ours disowned": ("PATCH", f"{SLICES}/ours", {"metadata": {"ownerReferences": []}}),
        "a Service of nobody": ("POST", SERVICES, plain),
        "a Service that nobody controls": (
            "POST",
            SERVICES,
            {**plain, "metadata": {"name": "made", "ownerReferences": [uncontrolled]}},
        ),
        "a foreign Service": ("PATCH", f"{SERVICES}/bank", {"spec": {"selector": {"a": "b"}}}),
        "a foreign Service taken": (
            "PATCH",
            f"{SERVICES}/bank",
            {"metadata": {"ownerReferences": owners(import_)}},
        ),
        "a Service with a selector": (
            "POST",
            SERVICES,
            service(import_, selector={"app": "bank"}),
        ),
        "a Service at an external address": (
            "POST",
            SERVICES,
            service(import_, externalIPs=["203.0.113.1"]),
        ),
        "a load balancer": ("POST", SERVICES, service(import_, type="LoadBalancer")),
        "a node port": ("POST", SERVICES, service(import_, type="NodePort")),
        "a name of elsewhere": (
            "POST",
            SERVICES,
            service(import_, type="ExternalName", externalName="dc.example.com"),
        ),
        "our Service with a selector": (
            "PATCH",
            f"{SERVICES}/ours",
            {"spec": {"selector": {"app": "bank"}}},
        ),
        "our Service disowned": (
            "PATCH",
            f"{SERVICES}/ours",
            {"metadata": {"ownerReferences": []}},
        ),
    }


def test_a_stolen_token_redirects_nothing_else(
    cluster: KubernetesServers,
    world: KubernetesWorld,
    import_: Json,
    as_account: Callable[[str], KubernetesCluster],
) -> None:
    """Without the policy each of these calls passes; with it each is refused, and the program's own
    calls pass."""
    world.request("POST", SLICES, FOREIGN_SLICE)
    world.request("POST", SLICES, piece(import_, "10.20.0.8", name="ours"))
    world.request("POST", SERVICES, FOREIGN_SERVICE)
    world.request("POST", SERVICES, service(import_, "ours"))
    calls = stolen(import_)
    with granted(world, WITH_IMPORTS) as token:
        thief = KubernetesWorld(cluster.url, token=token, ca_file=cluster.ca_file)

        def tried(case: str) -> None:
            method, path, body = calls[case]
            thief.request(method, f"{path}?dryRun=All", body)

        for case in calls:
            tried(case)
        with pytest.raises(requests.HTTPError, match="cannot delete resource"):
            thief.request("DELETE", f"{SERVICES}/bank")
        probes = [
            lambda: tried("a foreign slice"),
            lambda: tried("a foreign Service"),
        ]
        passed = []
        with in_force(world, policies("imports/policy.yaml"), probes):
            for case in calls:
                with suppress(requests.HTTPError):
                    tried(case)
                    passed.append(case)
            most = [f"10.20.{number // 250}.{number % 250 + 1}" for number in range(100)]
            thief.request("POST", f"{SLICES}?dryRun=All", piece(import_, *most))
            # The administrator and the controllers are not bound
            world.request("PATCH", f"{SLICES}/foreign", {"metadata": {"labels": {"a": "b"}}})
            for path in (f"{SLICES}/ours", f"{SLICES}/foreign", f"{SERVICES}/ours"):
                world.request("DELETE", path)
            life(as_account(token))
    assert passed == []


TENANT = f"system:serviceaccount:{SHOP}:tenant"
MAY_IMPORT = {"apiGroups": ["eurekube.io"], "resources": ["eurekaimports"], "verbs": ["*"]}


@pytest.fixture
def tenant(
    cluster: KubernetesServers, world: KubernetesWorld, shop: None
) -> Iterator[KubernetesWorld]:
    """Who may write imports in one namespace, and no slice."""
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{SHOP}"
    role = {"metadata": {"name": "tenant", "namespace": SHOP}, "rules": [MAY_IMPORT]}
    binding = {
        "metadata": {"name": "tenant"},
        "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": SHOP}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"},
    }
    world.create_service_account(SHOP, "tenant")
    world.request("POST", f"{rbac}/roles", role)
    world.request("POST", f"{rbac}/rolebindings", binding)
    world.wait_for_rules(TENANT, [role])
    token = world.mint_token(SHOP, "tenant")
    yield KubernetesWorld(cluster.url, token=token, ca_file=cluster.ca_file)
    for path in (f"{rbac}/rolebindings", f"{rbac}/roles"):
        world.request("DELETE", f"{path}/tenant")
    world.request("DELETE", f"/api/v1/namespaces/{SHOP}/serviceaccounts/tenant")


def grant(world: KubernetesWorld, imports: str | None) -> None:
    annotations = {"eurekube.io/allowed-imports": imports, "eurekube.io/allowed-apps": "bank"}
    world.request("PATCH", f"/api/v1/namespaces/{SHOP}", {"metadata": {"annotations": annotations}})


REFUSED: dict[str, tuple[str, Json]] = {
    "an app by its import's name": ("bank", {}),
    "an app in capitals": ("review", {"app": "BANK"}),
    "a VIP": ("review", {"vipAddress": "bank"}),
    "a VIP with a port": ("review", {"vipAddress": "review:8080"}),
}


def test_a_tenant_imports_nothing_that_is_not_granted(
    tenant: KubernetesWorld, world: KubernetesWorld
) -> None:
    """At once, in words that name the annotation. To be allowed to register an app is no grant to
    call it; and an older import keeps its finalizer writable."""
    grant(world, "review*, other-*")
    made = tenant.request("POST", IMPORTS, of_kind({}))

    def probe() -> None:
        tenant.request("POST", f"{IMPORTS}?dryRun=All", of_kind({}, "bank"))

    grant(world, "review")
    with in_force(world, policies("imports-grant.yaml"), [probe]):
        for case, (name, spec) in REFUSED.items():
            with pytest.raises(requests.HTTPError) as refused:
                tenant.request("POST", IMPORTS, of_kind(spec, name))
            assert refused.value.response is not None
            assert "to the annotation eurekube.io/allowed-imports" in refused.value.response.text, (
                case
            )
        tenant.request("PATCH", f"{IMPORTS}/review", {"spec": {"app": "REVIEW"}})
        with pytest.raises(requests.HTTPError, match="bank is not granted"):
            tenant.request("PATCH", f"{IMPORTS}/review", {"spec": {"app": "bank"}})
        grant(world, None)
        finalizers = {"metadata": {"finalizers": ["eurekube.io/cleanup"]}}
        tenant.request("PATCH", f"{IMPORTS}/review", finalizers)
        with pytest.raises(requests.HTTPError, match="403"):
            grant(tenant, "*")
        with pytest.raises(requests.HTTPError, match="403"):
            tenant.request("POST", SLICES, piece(made, "10.20.0.9"))


ELSEWHERE = "10.1.0.9"
"""Outside of the networks, as an address of the cluster."""


@pytest.fixture
def program(
    cluster: KubernetesServers, eureka_fast: EurekaServer, registry: Registry, tmp_path: Path
) -> Iterator[Program]:
    """The program as in its pod, with the networks of the data centre. Somebody else changes an
    import a moment before its status is written for the first time."""
    other = hands(cluster)
    raced: list[str] = []

    def race(call: Request) -> None:
        if call.method == "PATCH" and call.path == f"{IMPORTS}/review/status" and not raced:
            raced.append(call.path)
            labels = {"metadata": {"labels": {"raced": "yes"}}}
            other.request("PATCH", f"{IMPORTS}/review", labels)

    with (
        CountingProxy(cluster.url, ca_file=cluster.ca_file, before=race) as kubernetes,
        CountingProxy(eureka_fast.url.removesuffix("/eureka")) as counted,
    ):
        yield Program(
            kubernetes=kubernetes,
            eureka=counted,
            token="",
            folder=tmp_path,
            owner="imports",
            options=(
                "--registry-cache=3s",
                "--lock=off",
                "--require-app-grant",
                f"--import-networks={NETWORK}",
            ),
            registry=registry,
        )


@pytest.fixture
def data_centre(registry: Registry, eureka_fast: EurekaServer) -> Iterator[None]:
    """Apps with an instance each; one of BANK is nobody's business, and one of REVIEW is at an
    address of the cluster."""
    instances = {
        ("REVIEW", "dc-1:review:8080"): "10.20.0.1",
        ("REVIEW", "dc-2:review:8080"): ELSEWHERE,
        ("BANK", "dc-1:bank:8080"): "10.20.0.7",
    }
    for (app, id_), address in instances.items():
        registry.register(app, id_, address)
    for app in ("REVIEW", "BANK"):
        registry.list_follows(app, [id_ for of, id_ in instances if of == app])
    yield
    for app, id_ in instances:
        eureka_fast.session().delete(f"{registry.url}/apps/{app}/{id_}", timeout=30)


def written(world: KubernetesWorld) -> dict[str, list[str]]:
    """The addresses of each Service that an import made."""
    found: dict[str, list[str]] = {}
    for item in world.request("GET", SERVICES)["items"]:
        found[item["metadata"]["name"]] = []
    for item in world.request("GET", SLICES)["items"]:
        if item["metadata"]["labels"].get(MANAGED_BY) == MANAGER:
            service = item["metadata"]["labels"]["kubernetes.io/service-name"]
            for endpoint in item["endpoints"] or ():
                found[service] += endpoint["addresses"]
    return found


def ready(world: KubernetesWorld, name: str) -> tuple[str, str]:
    status = world.request("GET", f"{IMPORTS}/{name}")["status"]
    (condition,) = (each for each in status["conditions"] if each["type"] == "Ready")
    return condition["status"], condition["reason"]


def test_a_pass_with_these_rights_alone_imports(
    world: KubernetesWorld, import_: Json, program: Program, data_centre: None
) -> None:
    """A granted app gets its Service and its slice, and nothing is refused, also under the policy
    for the account. An address outside of the networks is never written."""
    grant(world, "review")
    probe = piece(import_, ELSEWHERE)
    with granted(world, WITH_IMPORTS) as token:
        program.token = token
        thief = KubernetesWorld(program.kubernetes.url, token=token, ca_file=None)

        def tried() -> None:
            thief.request("POST", f"{SLICES}?dryRun=All", probe)

        with in_force(world, policies("imports/policy.yaml"), [tried]):
            done = program.run()
    assert "cannot" not in done.stdout + done.stderr
    assert written(world) == {"review": ["10.20.0.1"]}
    assert ready(world, "review")[0] == "True"


WITHDRAWN = [f"10.21.0.{number}" for number in range(1, 13)]


@pytest.fixture
def two_networks(registry: Registry, eureka_fast: EurekaServer) -> Iterator[None]:
    """Twelve instances of REVIEW in a network that will be withdrawn, and one in another."""
    hosts = [*WITHDRAWN, "10.20.0.1"]
    for host in hosts:
        registry.register("REVIEW", host, host)
    registry.list_follows("REVIEW", hosts)
    yield
    for host in [*hosts, "10.20.0.2"]:
        eureka_fast.session().delete(f"{registry.url}/apps/REVIEW/{host}", timeout=30)


def test_what_is_held_of_a_withdrawn_network_stays_in_its_slice(
    world: KubernetesWorld, import_: Json, program: Program, registry: Registry, two_networks: None
) -> None:
    """The brake holds its endpoints, and the policy for the account has the network no more. The
    slice still gets a new endpoint, and no other address outside of the networks."""
    grant(world, "review")
    probe = piece(import_, ELSEWHERE)
    own = program.options
    with granted(world, WITH_IMPORTS) as token:
        program.token = token
        thief = KubernetesWorld(program.kubernetes.url, token=token, ca_file=None)
        program.options = (*own, f"--import-networks={NETWORK},10.21.0.0/16")
        program.run()
        assert sorted(written(world)["review"]) == sorted(["10.20.0.1", *WITHDRAWN])
        program.options = own

        def tried() -> None:
            thief.request("POST", f"{SLICES}?dryRun=All", probe)

        with in_force(world, policies("imports/policy.yaml"), [tried]):
            registry.register("REVIEW", "10.20.0.2", "10.20.0.2")
            registry.list_follows("REVIEW", ["10.20.0.2"])
            report = json.loads(program.run("-o", "json").stdout)
            assert [hold["reason"] for hold in report["imports"]["holds"]] == ["TooManyRemovals"]
            expected = sorted(["10.20.0.1", "10.20.0.2", *WITHDRAWN])
            assert sorted(written(world)["review"]) == expected
            (made,) = world.request("GET", SLICES)["items"]
            path = f"{SLICES}/{made['metadata']['name']}?dryRun=All"
            added = {"endpoints": [*made["endpoints"], {"addresses": [ELSEWHERE]}]}
            with pytest.raises(requests.HTTPError, match="outside of the networks"):
                thief.request("PATCH", path, added)


def test_the_programs_life_of_an_import_uses_every_right(
    world: KubernetesWorld,
    import_: Json,
    program: Program,
    data_centre: None,
    registry: Registry,
    eureka_fast: EurekaServer,
) -> None:
    """From its Service until it is gone: a person edits what it made, an instance goes DOWN and
    takes the only slice of its port along, and the import is deleted."""
    second = ("REVIEW", "dc-3:review:9090")
    registry.register(*second, "10.20.0.3", port=9090)
    registry.list_follows("REVIEW", [second[1]])
    grant(world, "review")
    used: set[Right] = set()

    def passes() -> None:
        done = program.run()
        assert "cannot" not in done.stdout + done.stderr
        used.update(right_for(call) for call in program.kubernetes.calls)

    try:
        with granted(world, WITH_IMPORTS) as token:
            program.token = token
            passes()
            assert sorted(written(world)["review"]) == ["10.20.0.1", "10.20.0.3"]
            ports = [{"name": "http", "port": 81}]
            world.request("PATCH", f"{SERVICES}/review", {"spec": {"ports": ports}})
            (first,) = (
                item
                for item in world.request("GET", SLICES)["items"]
                if item["ports"][0]["port"] == 8080
            )
            world.request("PATCH", f"{SLICES}/{first['metadata']['name']}", {"endpoints": []})
            url = f"{registry.url}/apps/{'/'.join(second)}/status"
            eureka_fast.session().put(url, params={"value": "DOWN"}, timeout=30)
            wait_until(
                lambda: registry.listed_hosts("REVIEW") == [ELSEWHERE, "10.20.0.1"],
                "the list is old",
            )
            passes()
            assert written(world) == {"review": ["10.20.0.1"]}
            assert [
                port["port"] for port in world.request("GET", f"{SERVICES}/review")["spec"]["ports"]
            ] == [80]
            world.request("DELETE", f"{IMPORTS}/review")
            passes()
        wait_until(lambda: world.request("GET", SERVICES)["items"] == [], "the Service stays")
        wait_until(lambda: world.request("GET", SLICES)["items"] == [], "a slice stays")
    finally:
        eureka_fast.session().delete(f"{registry.url}/apps/{'/'.join(second)}", timeout=30)
    assert set(RIGHTS) <= used <= rights_of(WITH_IMPORTS)


def test_a_tenant_makes_the_program_write_nothing_that_is_not_granted(
    tenant: KubernetesWorld, world: KubernetesWorld, program: Program, data_centre: None
) -> None:
    """Without the admission policies, too: the program decides. A grant to register is none to
    call, and an address outside of the networks stays outside of them."""
    for name, spec in (
        ("bank", {}),
        ("capitals", {"app": "BANK"}),
        ("vip", {"vipAddress": "bank"}),
        ("review", {}),
    ):
        tenant.request("POST", IMPORTS, of_kind(spec, name))
    grant(world, "review")
    with granted(world, WITH_IMPORTS) as token:
        program.token = token
        for _ in range(2):
            program.run()
    assert written(world) == {"review": ["10.20.0.1"]}
    for name in ("bank", "capitals", "vip"):
        assert ready(world, name) == ("False", "NotGranted")
