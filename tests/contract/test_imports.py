"""What a Kubernetes API does with what an import writes: Services without a selector, slices of
another manager, owners and preconditions.

Each docstring is a fact of kube-apiserver 1.36; a test that fails on `embedded` only is a bug of
the embedded one.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.contract.kubernetes_subject import (
    CORE,
    DEFINITIONS,
    SYNCERS,
    Json,
    KubernetesSubject,
    create_pod,
    endpoints,
    eventually,
    install,
    service,
    services,
    slices,
)

MANAGER = "import.eurekube.io"
STRANGERS_UID = "b5b2b1d8-6c5e-4a6e-9f0e-2f7f5a0f4e11"


def imports(namespace: str, name: str = "", sub: str = "") -> str:
    parts = [f"{SYNCERS}/namespaces/{namespace}/eurekaimports", name, sub]
    return "/".join(part for part in parts if part)


def make_import(server: KubernetesSubject, namespace: str, **metadata: Any) -> Json:
    head = {"apiVersion": "eurekube.io/v1", "kind": "EurekaImport"}
    body = {**head, "metadata": {"name": "review", **metadata}, "spec": {}}
    return server.post(imports(namespace), body)


def owned(owner: Json) -> list[Json]:
    """The ownerReferences of what an import made."""
    reference = {"apiVersion": "eurekube.io/v1", "kind": "EurekaImport", "controller": True}
    metadata = owner["metadata"]
    return [{**reference, "name": metadata["name"], "uid": metadata["uid"]}]


def piece(name: str = "review-0", **fields: Any) -> Json:
    """A slice as an import writes it."""
    labels = {
        "kubernetes.io/service-name": "review",
        "endpointslice.kubernetes.io/managed-by": MANAGER,
    }
    body: Json = {
        "metadata": {"name": name, "labels": labels, **fields.pop("metadata", {})},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "endpoints": [{"addresses": ["192.0.2.1"], "conditions": {"ready": True}}],
    }
    return body | fields


def refused_fields(server: KubernetesSubject, path: str, body: Json) -> set[str]:
    answer = server.call("POST", path, body)
    assert answer.status_code == 422, answer.text
    return {cause["field"] for cause in answer.json()["details"]["causes"]}


class TestSlices:
    def test_what_is_accepted_although_nobody_can_be_reached(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """Multicast, reserved and metadata addresses, a ClusterIP, an address twice, and a Service
        that does not exist: an import has to check its addresses itself."""
        made = server.post(services(namespace), service("other", selector=None))
        addresses = ["239.1.1.1", "255.255.255.255", "240.0.0.1", "192.0.2.1", "192.0.2.1"]
        addresses.append(made["spec"]["clusterIP"])
        entries = [{"addresses": [address]} for address in addresses]
        created = server.post(slices(namespace), piece(endpoints=entries))
        assert len(created["endpoints"]) == len(addresses)
        entries = [{"addresses": ["fd00:ec2::254"]}, {"addresses": ["64:ff9b::7f00:1"]}]
        server.post(slices(namespace), piece("v6", addressType="IPv6", endpoints=entries))

    @pytest.mark.parametrize("number", [0, 65536, None])
    def test_a_port_that_is_none_is_accepted(
        self, server: KubernetesSubject, namespace: str, number: int | None
    ) -> None:
        """0, 65536 and a port without a number."""
        port = {"name": "http"} if number is None else {"name": "http", "port": number}
        created = server.post(slices(namespace), piece(ports=[port]))
        assert created["ports"][0].get("port") == number

    def test_a_slice_has_at_most_1000_endpoints(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """1001 are 422, with a cause for `endpoints`."""
        entries = [{"addresses": [f"10.9.{n // 250}.{n % 250}"]} for n in range(1001)]
        server.post(slices(namespace), piece(endpoints=entries[:1000]))
        body = piece("more", endpoints=entries)
        assert refused_fields(server, slices(namespace), body) == {"endpoints"}

    @pytest.mark.parametrize("name", ["a.b", "Http", "-a", "x" * 64])
    def test_a_port_is_named_by_a_label_of_dns(
        self, server: KubernetesSubject, namespace: str, name: str
    ) -> None:
        """A dot, a capital or more than 63 characters are 422."""
        body = piece(ports=[{"name": name, "port": 80}])
        assert refused_fields(server, slices(namespace), body) == {"ports[0].name"}

    def test_two_ports_do_not_have_one_name(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """Nor do two have none."""
        for name in ("http", ""):
            ports = [{"name": name, "port": 80}, {"name": name, "port": 81}]
            body = piece(ports=ports)
            assert refused_fields(server, slices(namespace), body) == {"ports[1].name"}

    def test_only_the_address_type_is_immutable(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """A merge patch changes labels, ports and endpoints, and keeps other labels."""
        server.post(slices(namespace), piece(metadata={"annotations": {"a": "b"}}))
        path = slices(namespace, "review-0")
        patch = {
            "metadata": {"labels": {"kubernetes.io/service-name": "reviews"}},
            "ports": [{"name": "http", "port": 9090, "protocol": "TCP"}],
            "endpoints": [],
        }
        changed = server.patch(path, patch)
        assert changed["metadata"]["labels"] == {
            "kubernetes.io/service-name": "reviews",
            "endpointslice.kubernetes.io/managed-by": MANAGER,
        }
        assert (changed["endpoints"], changed["ports"][0]["port"]) == (None, 9090)
        answer = server.call(
            "PATCH", path, {"addressType": "IPv6"}, content="application/merge-patch+json"
        )
        assert answer.status_code == 422
        assert answer.json()["details"]["causes"][0]["field"] == "addressType"

    def test_the_manager_has_no_slash(self, server: KubernetesSubject, namespace: str) -> None:
        """The value of a label has none, so the manager is `import.eurekube.io`."""
        body = piece()
        body["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"] = "eurekube.io/import"
        assert refused_fields(server, slices(namespace), body) == {"metadata.labels"}

    @pytest.mark.parametrize("selector", [None, {"app": "review"}])
    def test_no_controller_touches_them(
        self,
        server: KubernetesSubject,
        namespace: str,
        node: str,
        selector: Json | None,
    ) -> None:
        """A slice with another manager stays as it was, beside a Service with a selector or
        without, and after that Service is gone."""
        server.post(services(namespace), service("review", selector=selector))
        made = server.post(slices(namespace), piece())
        body = service("rating")
        server.post(services(namespace), body)
        create_pod(server, namespace, "p1", node, "10.1.0.1")
        eventually(lambda: len(endpoints(server, namespace)) == 1)
        server.call("DELETE", services(namespace, "review"))
        server.post(services(namespace), service("another"))
        selects = {"labelSelector": "kubernetes.io/service-name=another"}
        eventually(lambda: len(server.get(slices(namespace), **selects)["items"]) == 1)
        assert server.get(slices(namespace, "review-0")) == made

    def test_they_serve_beside_the_slices_of_a_selector(
        self, server: KubernetesSubject, namespace: str, node: str
    ) -> None:
        """The Service then has the endpoints of both."""
        server.post(services(namespace), service("rating"))
        create_pod(server, namespace, "p1", node, "10.1.0.1")
        body = piece()
        body["metadata"]["labels"]["kubernetes.io/service-name"] = "rating"
        server.post(slices(namespace), body)
        eventually(lambda: len(endpoints(server, namespace)) == 2)


class TestWrites:
    def test_a_merge_patch_of_equal_content_changes_nothing(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """Nor does a PUT: the resourceVersion stays."""
        body = piece()
        made = server.post(slices(namespace), body)
        patch = {"metadata": {"labels": body["metadata"]["labels"]}}
        patch |= {"endpoints": body["endpoints"], "ports": body["ports"]}
        assert server.patch(slices(namespace, "review-0"), patch) == made
        answer = server.call("PUT", slices(namespace, "review-0"), made)
        assert answer.json() == made

    def test_a_merge_patch_of_an_old_version_is_a_409(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """Of a slice and of a Service."""
        first = server.post(slices(namespace), piece())["metadata"]["resourceVersion"]
        server.patch(slices(namespace, "review-0"), {"endpoints": []})
        before = server.post(services(namespace), service("review", selector=None))
        server.patch(services(namespace, "review"), {"metadata": {"labels": {"a": "b"}}})
        for path, version in (
            (slices(namespace, "review-0"), first),
            (services(namespace, "review"), before["metadata"]["resourceVersion"]),
        ):
            patch = {"metadata": {"resourceVersion": version, "labels": {"c": "d"}}}
            answer = server.call("PATCH", path, patch, content="application/merge-patch+json")
            assert (answer.status_code, answer.json()["reason"]) == (409, "Conflict")

    def test_a_merge_patch_of_another_uid_is_a_422(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """So an object that was made again under the name is not changed."""
        server.post(slices(namespace), piece())
        patch = {"metadata": {"uid": STRANGERS_UID}, "endpoints": []}
        answer = server.call(
            "PATCH",
            slices(namespace, "review-0"),
            patch,
            content="application/merge-patch+json",
        )
        assert answer.status_code == 422
        assert [cause["field"] for cause in answer.json()["details"]["causes"]] == ["metadata.uid"]

    @pytest.mark.parametrize(
        ("field", "value", "called"),
        [("uid", STRANGERS_UID, "UID"), ("resourceVersion", "1", "ResourceVersion")],
    )
    def test_a_delete_has_preconditions(
        self, server: KubernetesSubject, namespace: str, field: str, value: str, called: str
    ) -> None:
        """Another UID or version is a 409, and nothing goes; with the right ones it does."""
        made = server.post(slices(namespace), piece())["metadata"]
        path = slices(namespace, "review-0")
        right = {"uid": made["uid"], "resourceVersion": made["resourceVersion"]}
        answer = server.call("DELETE", path, {"preconditions": {**right, field: value}})
        assert (answer.status_code, answer.json()["reason"]) == (409, "Conflict")
        said = f"the {called} in the precondition ({value}) does not match the {called} in record "
        assert answer.json()["message"].startswith(
            f'Operation cannot be fulfilled on EndpointSlice.discovery.k8s.io "review-0": {said}'
            f"({right[field]}). The object might have been "
        )
        assert server.call("DELETE", path, {"preconditions": right}).status_code == 200
        assert server.call("DELETE", path, {"preconditions": right}).status_code == 404

    def test_ports_of_a_service_are_replaced_as_a_whole(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """By a merge patch; the cluster IP stays."""
        made = server.post(services(namespace), service("review", selector=None))["spec"]
        ports = [{"name": "https", "port": 443, "protocol": "TCP"}]
        changed = server.patch(services(namespace, "review"), {"spec": {"ports": ports}})["spec"]
        assert changed["ports"] == [{**ports[0], "targetPort": 443}]
        assert changed["clusterIP"] == made["clusterIP"]

    @pytest.mark.parametrize(("now", "later"), [("", "None"), ("None", "10.96.77.7")])
    def test_a_cluster_ip_is_immutable(
        self, server: KubernetesSubject, namespace: str, now: str, later: str
    ) -> None:
        """So a Service does not become headless later, or the other way round."""
        body = service("review", selector=None, clusterIP=now or None)
        server.post(services(namespace), body)
        patch = {"spec": {"clusterIP": later, "clusterIPs": [later]}}
        answer = server.call(
            "PATCH", services(namespace, "review"), patch, content="application/merge-patch+json"
        )
        assert answer.status_code == 422
        fields = {cause["field"] for cause in answer.json()["details"]["causes"]}
        assert fields == {"spec.clusterIPs[0]"}

    def test_a_family_is_asked_for(self, server: KubernetesSubject, namespace: str) -> None:
        """A SingleStack Service of IPv6 has one address, of that family."""
        body = service("review", selector=None, ipFamilyPolicy="SingleStack", ipFamilies=["IPv6"])
        spec = server.post(services(namespace), body)["spec"]
        assert (spec["ipFamilies"], len(spec["clusterIPs"])) == (["IPv6"], 1)
        assert ":" in spec["clusterIP"]

    def test_nothing_is_created_in_a_namespace_that_ends(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """A 403 with the cause NamespaceTerminating, for Services and slices; a slice that is there
        can be changed and deleted until it is gone."""
        owner = make_import(server, namespace, finalizers=["eurekube.io/cleanup"])
        server.call("DELETE", f"{CORE}/namespaces/{namespace}")
        bodies = {services(namespace): service("review"), slices(namespace): piece()}
        for path, body in bodies.items():
            answer = server.call("POST", path, body)
            assert answer.status_code == 403
            causes = answer.json()["details"]["causes"]
            assert [cause["reason"] for cause in causes] == ["NamespaceTerminating"]
        path = imports(namespace, owner["metadata"]["name"])
        eventually(lambda: "deletionTimestamp" in server.get(path)["metadata"])
        server.patch(path, {"metadata": {"finalizers": None}})
        eventually(lambda: server.call("GET", f"{CORE}/namespaces/{namespace}").status_code == 404)


class TestOwners:
    def test_what_has_no_owner_any_more_goes(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """The Service and the slices of an import, when it is gone."""
        owner = make_import(server, namespace)
        references = {"ownerReferences": owned(owner)}
        body = service("review", selector=None)
        body["metadata"] |= references
        server.post(services(namespace), body)
        server.post(slices(namespace), piece(metadata=references))
        server.post(slices(namespace), piece("by-hand"))
        server.call("DELETE", imports(namespace, "review"))
        eventually(lambda: server.call("GET", services(namespace, "review")).status_code == 404)
        eventually(lambda: server.call("GET", slices(namespace, "review-0")).status_code == 404)
        assert server.call("GET", slices(namespace, "by-hand")).status_code == 200

    def test_an_owner_with_a_finalizer_keeps_all(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """Until its finalizer is removed: the references delete, and the finalizer says when."""
        owner = make_import(server, namespace, finalizers=["eurekube.io/cleanup"])
        made = server.post(slices(namespace), piece(metadata={"ownerReferences": owned(owner)}))
        server.call("DELETE", imports(namespace, "review"))
        gone = make_import_that_is_gone(server, namespace)
        eventually(lambda: server.call("GET", slices(namespace, gone)).status_code == 404)
        assert server.get(slices(namespace, "review-0")) == made
        server.patch(imports(namespace, "review"), {"metadata": {"finalizers": None}})
        eventually(lambda: server.call("GET", slices(namespace, "review-0")).status_code == 404)

    def test_a_slice_of_an_owner_that_was_never_there_goes(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """Also if another object has the owner's name, as after a deletion."""
        owner = make_import(server, namespace)
        owner["metadata"]["uid"] = STRANGERS_UID
        answer = server.call(
            "POST", slices(namespace), piece(metadata={"ownerReferences": owned(owner)})
        )
        assert answer.status_code == 201
        eventually(lambda: server.call("GET", slices(namespace, "review-0")).status_code == 404)

    def test_a_definition_that_is_deleted_waits_for_finalizers(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """With them all Services and slices stay; they go when the finalizers are removed."""
        definition = server.get(f"{DEFINITIONS}/eurekaimports.eurekube.io")
        fresh = {key: definition[key] for key in ("apiVersion", "kind", "spec")}
        fresh["spec"] = {**fresh["spec"], "group": "copy.eurekube.io"}
        fresh["metadata"] = {"name": "eurekaimports.copy.eurekube.io"}
        path = f"/apis/copy.eurekube.io/v1/namespaces/{namespace}/eurekaimports"
        install(server, fresh, path)
        body = {
            "apiVersion": "copy.eurekube.io/v1",
            "kind": "EurekaImport",
            "metadata": {"name": "review", "finalizers": ["eurekube.io/cleanup"]},
            "spec": {},
        }
        eventually(lambda: server.call("POST", path, body).status_code in (201, 409))
        owner = server.get(f"{path}/review")
        (reference,) = owned(owner)
        reference["apiVersion"] = "copy.eurekube.io/v1"
        # The collector looks for new kinds each 30 seconds. It knows this one when it has taken the
        # slice of an import that never was.
        stranger = {**reference, "uid": STRANGERS_UID}
        server.post(slices(namespace), piece("known", metadata={"ownerReferences": [stranger]}))
        eventually(lambda: server.call("GET", slices(namespace, "known")).status_code == 404)
        made = server.post(slices(namespace), piece(metadata={"ownerReferences": [reference]}))
        server.call("DELETE", f"{DEFINITIONS}/eurekaimports.copy.eurekube.io")
        eventually(lambda: "deletionTimestamp" in server.get(f"{path}/review")["metadata"])
        gone = make_import_that_is_gone(server, namespace)
        eventually(lambda: server.call("GET", slices(namespace, gone)).status_code == 404)
        assert server.get(slices(namespace, "review-0")) == made
        server.patch(f"{path}/review", {"metadata": {"finalizers": None}})
        eventually(lambda: server.call("GET", slices(namespace, "review-0")).status_code == 404)


def make_import_that_is_gone(server: KubernetesSubject, namespace: str) -> str:
    """Make a slice of an import that does not exist, and return its name: when the collector has
    taken it, it has seen what was written before, too."""
    body = piece("of-nobody")
    reference = {"apiVersion": "eurekube.io/v1", "kind": "EurekaImport", "name": "nobody"}
    body["metadata"]["ownerReferences"] = [{**reference, "uid": STRANGERS_UID}]
    server.post(slices(namespace), body)
    return "of-nobody"


class TestImports:
    def test_the_resource_is_discovered(self, server: KubernetesSubject) -> None:
        """With its short name and the status subresource."""
        listed = {entry["name"]: entry for entry in server.get(SYNCERS)["resources"]}
        assert listed["eurekaimports"]["shortNames"] == ["eimp"]
        assert listed["eurekaimports"]["singularName"] == "eurekaimport"
        assert "eurekaimports/status" in listed

    def test_status_and_spec_ignore_each_other(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """A list in the status is replaced as a whole by a merge patch."""
        make_import(server, namespace)
        path = imports(namespace, "review", "status")
        left_out = [{"reason": "NotUp", "instances": 2}, {"reason": "OtherZone", "instances": 1}]
        server.patch(path, {"status": {"leftOut": left_out}, "spec": {"suspend": True}})
        changed = server.patch(path, {"status": {"leftOut": left_out[1:]}})
        assert changed["status"] == {"leftOut": left_out[1:]}
        assert (changed["spec"], changed["metadata"]["generation"]) == ({}, 1)

    def test_they_end_as_syncers_do(self, server: KubernetesSubject, namespace: str) -> None:
        """An import with a finalizer only begins to go."""
        make_import(server, namespace, finalizers=["eurekube.io/cleanup"])
        began = time.time()
        server.call("DELETE", imports(namespace, "review"))
        assert "deletionTimestamp" in server.get(imports(namespace, "review"))["metadata"]
        server.patch(imports(namespace, "review"), {"metadata": {"finalizers": None}})
        assert server.call("GET", imports(namespace, "review")).status_code == 404
        assert time.time() - began < 60
