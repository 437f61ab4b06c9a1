"""What a Kubernetes API does, as far as this program relies on it: one suite, on the embedded and
on the real server.

Each docstring is a fact of kube-apiserver 1.36; a test that fails on `embedded` only is a bug of
the embedded one.
"""

from __future__ import annotations

import pytest
import requests

from tests.contract.kubernetes_subject import (
    CORE,
    DEFINITIONS,
    JSON_PATCH,
    MERGE,
    METADATA,
    SYNCERS,
    TABLE,
    Json,
    KubernetesSubject,
    conditions,
    create_pod,
    endpoints,
    eventually,
    install,
    names,
    pods,
    service,
    services,
    set_pod_status,
    slices,
    syncer,
    syncers,
)
from tests.servers.go_builds import KUBERNETES_RELEASES, chosen_release


class TestDiscovery:
    def test_the_groups_and_our_resource_are_discovered(self, server: KubernetesSubject) -> None:
        """/api, /apis and /apis/GROUP/VERSION name what is served, short names and the status
        subresource included."""
        assert server.get("/api")["versions"] == ["v1"]
        groups = {group["name"] for group in server.get("/apis")["groups"]}
        assert {"eurekube.io", "discovery.k8s.io", "apiextensions.k8s.io"} <= groups
        listed = {entry["name"]: entry for entry in server.get(SYNCERS)["resources"]}
        assert listed["eurekasyncers"]["shortNames"] == ["esync"]
        assert listed["eurekasyncers"]["singularName"] == "eurekasyncer"
        assert "eurekasyncers/status" in listed

    def test_the_version_needs_no_token(self, server: KubernetesSubject) -> None:
        """/version and /readyz answer anybody."""
        version = requests.get(f"{server.url}/version", verify=server.verify, timeout=60)
        assert version.json()["gitVersion"] == KUBERNETES_RELEASES[chosen_release()].version
        assert requests.get(f"{server.url}/readyz", verify=server.verify, timeout=60).text == "ok"

    def test_kubectl_finds_a_patch_with_field_validation(self, server: KubernetesSubject) -> None:
        """The OpenAPI v3 document of our group has a PATCH with fieldValidation: kubectl leaves
        checking to it."""
        eventually(lambda: "apis/eurekube.io/v1" in server.get("/openapi/v3")["paths"])
        link = server.get("/openapi/v3")["paths"]["apis/eurekube.io/v1"]["serverRelativeURL"]
        paths = server.get(link)["paths"]
        operation = paths["/apis/eurekube.io/v1/namespaces/{namespace}/eurekasyncers/{name}"][
            "patch"
        ]
        assert "fieldValidation" in {parameter["name"] for parameter in operation["parameters"]}
        assert operation["x-kubernetes-group-version-kind"]["kind"] == "EurekaSyncer"

    def test_kube_system_has_a_uid(self, server: KubernetesSubject) -> None:
        """The namespace kube-system exists; its UID is the cluster's identity."""
        assert len(server.get(f"{CORE}/namespaces/kube-system")["metadata"]["uid"]) == 36


class TestRefusals:
    def test_a_wrong_token_is_a_401_status(self, server: KubernetesSubject) -> None:
        """A bearer token nobody knows is 401 with a Status body."""
        headers = {"Authorization": "Bearer wrong"}
        answer = requests.get(
            f"{server.url}{CORE}/services", headers=headers, verify=server.verify, timeout=60
        )
        assert answer.status_code == 401
        assert answer.json() == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "Unauthorized",
            "reason": "Unauthorized",
            "code": 401,
        }

    def test_who_may_not_list_gets_a_403_status(self, server: KubernetesSubject) -> None:
        """Without a permission a LIST is 403 Forbidden, with RBAC's sentence; never an empty
        list."""
        answer = requests.get(f"{server.url}{CORE}/services", verify=server.verify, timeout=60)
        assert answer.status_code == 403
        body = answer.json()
        assert (body["reason"], body["details"]) == ("Forbidden", {"kind": "services"})
        assert body["message"] == (
            'services is forbidden: User "system:anonymous" cannot list resource "services" in API group "" '
            "at the cluster scope"
        )

    def test_a_missing_object_is_a_404_status(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """A GET of an object that is not there names it."""
        answer = server.call("GET", syncers(namespace, "nobody"))
        assert answer.status_code == 404
        body = answer.json()
        assert (body["reason"], body["code"]) == ("NotFound", 404)
        assert body["message"] == 'eurekasyncers.eurekube.io "nobody" not found'
        assert body["details"] == {
            "name": "nobody",
            "group": "eurekube.io",
            "kind": "eurekasyncers",
        }

    def test_a_group_nobody_serves_is_a_404_in_plain_text(self, server: KubernetesSubject) -> None:
        """A custom resource without its CRD answers `404 page not found`, and no Status."""
        answer = server.call("GET", "/apis/absent.example.org/v1/things")
        assert (answer.status_code, answer.text) == (404, "404 page not found\n")
        assert answer.headers["Content-Type"].startswith("text/plain")

    def test_an_unknown_resource_of_the_core_group_is_a_404_status(
        self, server: KubernetesSubject
    ) -> None:
        """Within a served group the 404 is a Status."""
        answer = server.call("GET", f"{CORE}/things")
        assert (answer.status_code, answer.json()["reason"]) == (404, "NotFound")
        assert answer.json()["message"] == "the server could not find the requested resource"

    def test_the_same_name_twice_is_a_409(self, server: KubernetesSubject, namespace: str) -> None:
        """A POST of a name that exists is 409 AlreadyExists."""
        server.post(syncers(namespace), syncer())
        answer = server.call("POST", syncers(namespace), syncer())
        assert (answer.status_code, answer.json()["reason"]) == (409, "AlreadyExists")
        assert answer.json()["message"] == 'eurekasyncers.eurekube.io "rating" already exists'

    def test_a_namespace_that_does_not_exist_refuses_creates_and_lists_nothing(
        self, server: KubernetesSubject
    ) -> None:
        """A POST into a namespace that is not there is 404; a LIST of it is empty and 200."""
        answer = server.call("POST", syncers("no-such-namespace"), syncer())
        assert (answer.status_code, answer.json()["details"]["kind"]) == (404, "namespaces")
        assert server.get(syncers("no-such-namespace"))["items"] == []

    def test_a_body_that_is_no_json_is_a_400(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """A POST of something else is 400 BadRequest."""
        answer = server.call("POST", syncers(namespace), "x")
        assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")

    def test_an_illegal_name_is_a_422(self, server: KubernetesSubject, namespace: str) -> None:
        """A name with capitals is 422 Invalid with a cause for metadata.name."""
        answer = server.call("POST", syncers(namespace), syncer("Rating"))
        body = answer.json()
        assert (answer.status_code, body["reason"]) == (422, "Invalid")
        assert [cause["field"] for cause in body["details"]["causes"]] == ["metadata.name"]
        assert body["details"]["kind"] == "EurekaSyncer"
        assert (
            'EurekaSyncer.eurekube.io "Rating" is invalid: metadata.name: Invalid value: "Rating"'
            in body["message"]
        )


class TestLists:
    def test_items_of_a_built_in_list_carry_no_kind(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """An item of a ServiceList has neither kind nor apiVersion; a EurekaSyncer in its list has
        both."""
        server.post(services(namespace), service())
        server.post(syncers(namespace), syncer())
        built_in, custom = server.get(services(namespace)), server.get(syncers(namespace))
        assert (built_in["kind"], built_in["apiVersion"]) == ("ServiceList", "v1")
        assert "kind" not in built_in["items"][0]
        assert (custom["kind"], custom["apiVersion"]) == ("EurekaSyncerList", "eurekube.io/v1")
        assert custom["items"][0]["kind"] == "EurekaSyncer"

    def test_an_empty_list_is_an_empty_array(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """A LIST without objects has `items: []`, and a resourceVersion."""
        found = server.get(services(namespace))
        assert found["items"] == []
        assert int(found["metadata"]["resourceVersion"]) > 0

    def test_a_list_is_walked_in_pages(self, server: KubernetesSubject, namespace: str) -> None:
        """`limit` cuts, `continue` goes on, remainingItemCount counts the rest, each page has the
        first's revision."""
        for number in range(5):
            server.post(services(namespace), service(f"svc-{number}"))
        first = server.get(services(namespace), limit=2)
        second = server.get(
            services(namespace), limit=2, **{"continue": first["metadata"]["continue"]}
        )
        third = server.get(
            services(namespace), limit=2, **{"continue": second["metadata"]["continue"]}
        )
        assert [names(page) for page in (first, second, third)] == [
            ["svc-0", "svc-1"],
            ["svc-2", "svc-3"],
            ["svc-4"],
        ]
        assert [page["metadata"].get("remainingItemCount") for page in (first, second, third)] == [
            3,
            1,
            None,
        ]
        assert "continue" not in third["metadata"]
        assert len({page["metadata"]["resourceVersion"] for page in (first, second, third)}) == 1

    def test_a_walk_sees_one_moment(self, server: KubernetesSubject, namespace: str) -> None:
        """What is created or deleted during a walk is not seen by its later pages."""
        for number in range(3):
            server.post(syncers(namespace), syncer(f"s-{number}"))
        first = server.get(syncers(namespace), limit=1)
        server.post(syncers(namespace), syncer("s-9"))
        server.call("DELETE", syncers(namespace, "s-2"))
        rest = server.get(
            syncers(namespace), limit=10, **{"continue": first["metadata"]["continue"]}
        )
        assert names(rest) == ["s-1", "s-2"]

    def test_a_cluster_wide_list_has_every_namespace(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """Without a namespace the LIST has all of them, ordered by namespace and name."""
        server.post(services(namespace), service("b"))
        server.post(services(namespace), service("a"))
        found = server.get(f"{CORE}/services")["items"]
        keys = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in found]
        assert keys == sorted(keys, key="/".join)
        assert {(namespace, "a"), (namespace, "b")} <= set(keys)

    def test_an_expired_continue_token_is_a_410(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """410 Expired: a walk must start again."""
        for name in ("a", "b", "c"):
            server.post(syncers(namespace), syncer(name))
        first = server.get(syncers(namespace), limit=1)
        token = server.expired(first["metadata"]["continue"])
        answer = server.call("GET", syncers(namespace), limit=1, **{"continue": token})
        body = answer.json()
        assert (answer.status_code, body["reason"], body["code"]) == (410, "Expired", 410)
        assert body["message"].startswith(
            "The provided continue parameter is too old to display a consistent list"
        )

    def test_a_broken_continue_token_is_a_400(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """A token that nobody gave out is 400 BadRequest."""
        answer = server.call("GET", services(namespace), limit=1, **{"continue": "nonsense"})
        assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")

    @pytest.mark.parametrize(
        ("selector", "expected"),
        [
            ("app=a", ["one"]),
            ("app==a,tier=web", ["one"]),
            ("app!=a", ["three", "two"]),
        ],
    )
    def test_label_selectors(
        self, server: KubernetesSubject, namespace: str, selector: str, expected: list[str]
    ) -> None:
        """Requirements of equality, joined by commas; `!=` also chooses what lacks the label."""
        labels: dict[str, Json] = {
            "one": {"app": "a", "tier": "web"},
            "two": {"app": "b"},
            "three": {},
        }
        for name, chosen in labels.items():
            server.post(syncers(namespace), syncer(name, labels=chosen))
        assert names(server.get(syncers(namespace), labelSelector=selector)) == expected

    def test_a_selector_that_cannot_be_parsed_is_a_400(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """A broken selector is refused, and selects neither everything nor nothing."""
        answer = server.call("GET", syncers(namespace), labelSelector="app in (a")
        assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")

    def test_field_selectors_choose_by_name(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """metadata.name is selectable everywhere; a field that is not indexed is a 400."""
        for name in ("one", "two"):
            server.post(syncers(namespace), syncer(name))
        assert names(server.get(syncers(namespace), fieldSelector="metadata.name=two")) == ["two"]
        assert names(server.get(syncers(namespace), fieldSelector="metadata.name!=two")) == ["one"]
        assert (
            server.call("GET", syncers(namespace), fieldSelector="spec.mode=pod").status_code == 400
        )

    def test_large_answers_are_compressed_for_who_asks(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """Above 128 KiB the body is gzip, if accepted."""
        filler = {"annotations": {"filler": "x" * 100_000}}
        for name in ("one", "two"):
            server.post(syncers(namespace), syncer(name, **filler))
        answer = server.call("GET", syncers(namespace))
        assert answer.headers["Content-Encoding"] == "gzip"
        assert len(answer.json()["items"]) == 2

    def test_printer_columns_come_as_a_table(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """`as=Table` gives the definition's columns and a cell for each; absent values are null."""
        server.post(syncers(namespace), syncer())
        ready = {"type": "Ready", "status": "False", "reason": "NoService", "message": "none"}
        status = {"appName": "RATING", "ready": "0/2", "conditions": [{**ready, **transition()}]}
        server.patch(syncers(namespace, "rating", "status"), {"status": status})
        table = server.call("GET", syncers(namespace), accept=TABLE).json()
        assert table["kind"] == "Table"
        narrow = [column["name"] for column in table["columnDefinitions"] if not column["priority"]]
        assert narrow == ["Name", "App", "Mode", "Ready", "Reason", "Age"]
        wide = [column["name"] for column in table["columnDefinitions"]]
        cells = dict(zip(wide, table["rows"][0]["cells"], strict=True))
        assert [cells[name] for name in narrow[:5]] == [
            "rating",
            "RATING",
            "pod",
            "0/2",
            "NoService",
        ]
        assert cells["Up"] is None
        assert cells["Age"].endswith("s")
        assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"

    def test_metadata_alone_comes_in_pages(self, server: KubernetesSubject, namespace: str) -> None:
        """`as=PartialObjectMetadataList` gives kind and metadata of each object, also of built-in
        ones, and no spec."""
        empty = server.call("GET", pods(namespace), accept=METADATA).json()
        assert (empty["kind"], empty["apiVersion"]) == (
            "PartialObjectMetadataList",
            "meta.k8s.io/v1",
        )
        assert not empty["items"]
        for name in ("p1", "p2"):
            spec = {"containers": [{"name": "a", "image": "example.invalid/a"}]}
            server.post(pods(namespace), {"metadata": {"name": name}, "spec": spec})
        first = server.call("GET", pods(namespace), accept=METADATA, limit=1).json()
        second = server.call(
            "GET", pods(namespace), accept=METADATA, **{"continue": first["metadata"]["continue"]}
        )
        rest = second.json()
        assert first["metadata"]["resourceVersion"] == rest["metadata"]["resourceVersion"]
        for page, name in ((first, "p1"), (rest, "p2")):
            (item,) = page["items"]
            assert set(item) == {"kind", "apiVersion", "metadata"}
            assert (item["kind"], item["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
            assert item["metadata"]["name"] == name
            assert (
                item["metadata"]["uid"]
                == server.call("GET", pods(namespace, name)).json()["metadata"]["uid"]
            )


def transition() -> Json:
    return {"observedGeneration": 1, "lastTransitionTime": "2026-01-02T03:04:05Z"}


class TestWrites:
    def test_a_create_sets_what_only_the_server_may_set(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """uid, creationTimestamp, generation 1 and the mode's default are the server's; a given
        status is dropped."""
        body = syncer(uid="x", generation=7)
        del body["spec"]["mode"]
        body["status"] = {"ready": "9/9"}
        created = server.post(syncers(namespace), body)
        assert len(created["metadata"]["uid"]) == 36
        assert created["metadata"]["generation"] == 1
        assert created["metadata"]["namespace"] == namespace
        assert created["metadata"]["creationTimestamp"].endswith("Z")
        assert created["spec"] == {"mode": "pod", "selector": {"app": "rating"}}
        assert "status" not in created

    def test_strict_field_validation_refuses_an_unknown_field(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """With fieldValidation=Strict, as kubectl sends it, it is a 400 that names the field."""
        body = syncer()
        body["spec"]["colour"] = "red"
        answer = server.call("POST", syncers(namespace), body, fieldValidation="Strict")
        assert answer.status_code == 400
        assert 'strict decoding error: unknown field "spec.colour"' in answer.json()["message"]

    def test_a_dry_run_stores_nothing(self, server: KubernetesSubject, namespace: str) -> None:
        """dryRun=All answers as if, and leaves nothing behind."""
        server.post(syncers(namespace), syncer(), dryRun="All")
        assert server.call("GET", syncers(namespace, "rating")).status_code == 404

    def test_the_generation_counts_changes_of_the_spec_only(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """Labels, annotations and status leave metadata.generation alone; a change of spec adds
        one."""
        server.post(syncers(namespace), syncer())
        labelled = server.patch(syncers(namespace, "rating"), {"metadata": {"labels": {"a": "b"}}})
        written = server.patch(syncers(namespace, "rating", "status"), {"status": {"ready": "1/1"}})
        changed = server.patch(syncers(namespace, "rating"), {"spec": {"mode": "service"}})
        assert [obj["metadata"]["generation"] for obj in (labelled, written, changed)] == [1, 1, 2]

    def test_a_patch_that_changes_nothing_keeps_the_resource_version(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """A no-op is not written: the resourceVersion stays."""
        created = server.post(syncers(namespace), syncer())
        same = server.patch(syncers(namespace, "rating"), {"spec": {"mode": "pod"}})
        first = server.patch(syncers(namespace, "rating", "status"), {"status": {"ready": "1/1"}})
        again = server.patch(syncers(namespace, "rating", "status"), {"status": {"ready": "1/1"}})
        assert same["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]
        assert first["metadata"]["resourceVersion"] != created["metadata"]["resourceVersion"]
        assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]

    def test_status_and_spec_ignore_each_other(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """A write of /status changes neither spec nor labels; a write of the object does not change
        its status."""
        server.post(syncers(namespace), syncer())
        both = {
            "metadata": {"labels": {"x": "y"}},
            "spec": {"mode": "service"},
            "status": {"ready": "1/1"},
        }
        by_status = server.patch(syncers(namespace, "rating", "status"), both)
        assert (by_status["spec"]["mode"], by_status["status"]["ready"]) == ("pod", "1/1")
        assert "labels" not in by_status["metadata"]
        by_object = server.patch(syncers(namespace, "rating"), {**both, "status": {"ready": "2/2"}})
        assert (by_object["spec"]["mode"], by_object["status"]["ready"]) == ("service", "1/1")

    def test_a_merge_patch_of_an_older_version_is_a_409(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """metadata.resourceVersion in a merge patch is a precondition: Conflict, on /status as
        well."""
        created = server.post(syncers(namespace), syncer())
        server.patch(syncers(namespace, "rating"), {"metadata": {"labels": {"a": "b"}}})
        stale = {
            "metadata": {"resourceVersion": created["metadata"]["resourceVersion"]},
            "status": {"ready": "1/1"},
        }
        answer = server.call("PATCH", syncers(namespace, "rating", "status"), stale, content=MERGE)
        assert (answer.status_code, answer.json()["reason"]) == (409, "Conflict")
        assert answer.json()["message"] == (
            'Operation cannot be fulfilled on eurekasyncers.eurekube.io "rating": the object has been modified; '
            "please apply your changes to the latest version and try again"
        )
        assert answer.json()["details"] == {
            "name": "rating",
            "group": "eurekube.io",
            "kind": "eurekasyncers",
        }

    def test_a_put_needs_a_resource_version(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """A PUT of a custom resource without resourceVersion is 422; of an older one 409."""
        created = server.post(syncers(namespace), syncer())
        assert server.call("PUT", syncers(namespace, "rating"), syncer()).status_code == 422
        created["spec"]["mode"] = "service"
        assert server.call("PUT", syncers(namespace, "rating"), created).status_code == 200
        assert server.call("PUT", syncers(namespace, "rating"), created).status_code == 409

    def test_a_patch_of_another_kind_is_a_415(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """A custom resource takes no strategic merge patch."""
        server.post(syncers(namespace), syncer())
        content = "application/strategic-merge-patch+json"
        assert (
            server.call("PATCH", syncers(namespace, "rating"), {}, content=content).status_code
            == 415
        )

    def test_a_patch_of_the_wrong_shape_is_a_400(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """A merge patch is an object, a JSON Patch an array; anything else is 400 BadRequest."""
        server.post(syncers(namespace), syncer())
        for patch, content in (([], MERGE), ({}, JSON_PATCH)):
            answer = server.call("PATCH", syncers(namespace, "rating"), patch, content=content)
            assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")

    def test_labels_are_text(self, server: KubernetesSubject, namespace: str) -> None:
        """A label whose value is a number is 400 BadRequest, by POST."""
        assert server.call("POST", syncers(namespace), syncer(labels={"a": 1})).status_code == 400

    def test_a_merge_patch_with_null_removes(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """RFC 7386: null removes a key, a list is replaced as a whole."""
        server.post(
            syncers(namespace),
            syncer(annotations={"a": "1", "b": "2"}, finalizers=["x.io/a", "x.io/b"]),
        )
        patch = {"metadata": {"annotations": {"a": None}, "finalizers": ["x.io/c"]}}
        metadata = server.patch(syncers(namespace, "rating"), patch)["metadata"]
        assert (metadata["annotations"], metadata["finalizers"]) == ({"b": "2"}, ["x.io/c"])


class TestFinalizers:
    def test_a_failed_test_is_a_422_without_a_cause(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """JSON Patch: a `test` that fails answers 422 Invalid, not 409, and does not say why."""
        server.post(syncers(namespace), syncer())
        patch = [{"op": "test", "path": "/metadata/resourceVersion", "value": "1"}]
        answer = server.call("PATCH", syncers(namespace, "rating"), patch, content=JSON_PATCH)
        assert answer.status_code == 422
        assert answer.json() == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "the server rejected our request due to an error in our request",
            "reason": "Invalid",
            "details": {},
            "code": 422,
        }

    def test_appending_to_an_absent_list_is_the_same_422(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """`add /metadata/finalizers/-` needs the list; `test ... null` and `add [..]` makes it."""
        server.post(syncers(namespace), syncer())
        append = [{"op": "add", "path": "/metadata/finalizers/-", "value": "eurekube.io/cleanup"}]
        answer = server.call("PATCH", syncers(namespace, "rating"), append, content=JSON_PATCH)
        assert (answer.status_code, answer.json()["details"]) == (422, {})
        create = [
            {"op": "test", "path": "/metadata/finalizers", "value": None},
            {"op": "add", "path": "/metadata/finalizers", "value": ["eurekube.io/cleanup"]},
        ]
        patched = server.patch(syncers(namespace, "rating"), create, JSON_PATCH)
        assert patched["metadata"]["finalizers"] == ["eurekube.io/cleanup"]
        appended = server.patch(
            syncers(namespace, "rating"), [{**append[0], "value": "x.io/a"}], JSON_PATCH
        )
        assert appended["metadata"]["finalizers"] == ["eurekube.io/cleanup", "x.io/a"]

    def test_a_test_of_the_resource_version_guards_a_patch(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """With the right resourceVersion the rest of the patch is applied."""
        created = server.post(syncers(namespace), syncer(finalizers=["x.io/a"]))
        patch = [
            {
                "op": "test",
                "path": "/metadata/resourceVersion",
                "value": created["metadata"]["resourceVersion"],
            },
            {
                "op": "replace",
                "path": "/metadata/finalizers",
                "value": ["x.io/a", "eurekube.io/cleanup"],
            },
        ]
        patched = server.patch(syncers(namespace, "rating"), patch, JSON_PATCH)
        assert patched["metadata"]["finalizers"] == ["x.io/a", "eurekube.io/cleanup"]

    def test_an_object_with_a_finalizer_only_begins_to_go(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """DELETE sets deletionTimestamp, grace 0 and one more generation, and answers with the
        object."""
        server.post(syncers(namespace), syncer(finalizers=["eurekube.io/cleanup"]))
        answer = server.call("DELETE", syncers(namespace, "rating"))
        assert answer.status_code == 200
        metadata = answer.json()["metadata"]
        assert answer.json()["kind"] == "EurekaSyncer"
        assert (metadata["deletionGracePeriodSeconds"], metadata["generation"]) == (0, 2)
        assert (
            server.get(syncers(namespace, "rating"))["metadata"]["deletionTimestamp"]
            == metadata["deletionTimestamp"]
        )

    def test_the_last_finalizer_lets_it_go(self, server: KubernetesSubject, namespace: str) -> None:
        """Removing the last finalizer of a deleting object removes the object."""
        server.post(syncers(namespace), syncer(finalizers=["x.io/a", "eurekube.io/cleanup"]))
        server.call("DELETE", syncers(namespace, "rating"))
        server.patch(syncers(namespace, "rating"), {"metadata": {"finalizers": ["x.io/a"]}})
        assert server.call("GET", syncers(namespace, "rating")).status_code == 200
        server.patch(syncers(namespace, "rating"), {"metadata": {"finalizers": None}})
        assert server.call("GET", syncers(namespace, "rating")).status_code == 404

    def test_a_deleting_object_takes_no_new_finalizer(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """Adding one is 422 with a cause for metadata.finalizers; status can still be written."""
        server.post(syncers(namespace), syncer(finalizers=["x.io/a"]))
        server.call("DELETE", syncers(namespace, "rating"))
        patch = {"metadata": {"finalizers": ["x.io/a", "eurekube.io/cleanup"]}}
        answer = server.call("PATCH", syncers(namespace, "rating"), patch, content=MERGE)
        assert answer.status_code == 422
        causes = {(cause["field"], cause["reason"]) for cause in answer.json()["details"]["causes"]}
        assert causes == {("metadata.finalizers", "FieldValueForbidden")}
        written = server.patch(syncers(namespace, "rating", "status"), {"status": {"ready": "0/0"}})
        assert written["status"] == {"ready": "0/0"}

    def test_without_finalizers_a_delete_is_done(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """DELETE of an object without finalizers answers with a Status that names its uid."""
        created = server.post(syncers(namespace), syncer())
        body = server.call("DELETE", syncers(namespace, "rating")).json()
        assert (body["kind"], body["status"]) == ("Status", "Success")
        assert body["details"]["uid"] == created["metadata"]["uid"]
        assert server.call("DELETE", syncers(namespace, "rating")).status_code == 404


class TestServices:
    def test_a_service_gets_an_address_and_a_family(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """clusterIP, clusterIPs, ipFamilies, type and the port's protocol are filled in."""
        spec = server.post(services(namespace), service())["spec"]
        assert spec["clusterIPs"] == [spec["clusterIP"]]
        assert (spec["type"], spec["ipFamilies"], spec["ipFamilyPolicy"]) == (
            "ClusterIP",
            ["IPv4"],
            "SingleStack",
        )
        assert spec["ports"] == [
            {"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080}
        ]

    def test_a_headless_service_has_no_address(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """clusterIP None stays, clusterIPs says so too; the target port defaults to the port."""
        spec = server.post(services(namespace), service(clusterIP="None", ports=[{"port": 80}]))[
            "spec"
        ]
        assert (spec["clusterIP"], spec["clusterIPs"], spec["ipFamilies"]) == (
            "None",
            ["None"],
            ["IPv4"],
        )
        assert spec["ports"] == [{"protocol": "TCP", "port": 80, "targetPort": 80}]

    def test_an_external_name_has_no_address_at_all(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """type ExternalName has neither cluster IPs nor families."""
        body = service(
            type="ExternalName", externalName="db.example.org", selector=None, ports=None
        )
        spec = server.post(services(namespace), body)["spec"]
        assert not {"clusterIP", "clusterIPs", "ipFamilies"} & set(spec)

    def test_a_node_port_is_allocated(self, server: KubernetesSubject, namespace: str) -> None:
        """type NodePort and LoadBalancer get a port from 30000 on; a load balancer's address is
        status."""
        spec = server.post(services(namespace), service(type="LoadBalancer"))["spec"]
        assert 30000 <= spec["ports"][0]["nodePort"] < 32768
        status = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.10"}]}}}
        patched = server.patch(services(namespace, "rating") + "/status", status)
        assert patched["status"]["loadBalancer"]["ingress"][0]["ip"] == "192.0.2.10"

    def test_several_ports_need_names(self, server: KubernetesSubject, namespace: str) -> None:
        """Two ports of which one has no name are 422."""
        answer = server.call(
            "POST", services(namespace), service(ports=[{"port": 80, "name": "a"}, {"port": 81}])
        )
        assert answer.status_code == 422
        assert answer.json()["details"]["causes"][0]["field"] == "spec.ports[1].name"


NOT_AN_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
LOOPBACK = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
LINK_LOCAL = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
MULTICAST = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
MAPPED = "must not be an IPv4-mapped IPv6 address"
REFUSED = {
    "169.254.169.254": LINK_LOCAL,
    "127.0.0.1": LOOPBACK,
    "0.0.0.0": "may not be unspecified (0.0.0.0)",
    "224.0.0.1": MULTICAST,
    "not-an-ip": NOT_AN_IP,
    "1.2.3": NOT_AN_IP,
    "": NOT_AN_IP,
    "10.0.0.1%eth0": NOT_AN_IP,
    "010.0.0.1": "must not have leading 0s",
    "fe80::1": LINK_LOCAL,
    "::1": LOOPBACK,
    "::": "may not be unspecified (::)",
    "ff02::1": MULTICAST,
    "fe80::1%eth0": NOT_AN_IP,
    "::ffff:10.0.0.1": MAPPED,
}
"""Addresses that no endpoint may have, and why."""
SPECIAL = ("10.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "2001:db8::1", "ff05::2")
"""Addresses that are taken, odd as some of them are."""


def hand_made(*addresses: str, family: str = "") -> Json:
    """A slice of one endpoint, of the first address's family."""
    return {
        "metadata": {"name": "by-hand", "labels": {"kubernetes.io/service-name": "rating"}},
        "addressType": family or ("IPv6" if ":" in addresses[0] else "IPv4"),
        "ports": [{"name": "http", "port": 80}],
        "endpoints": [{"addresses": list(addresses)}],
    }


def refusal(answer: requests.Response) -> list[tuple[str, str]]:
    """Field and text of each cause of a 422."""
    assert answer.status_code == 422, answer.text
    return [(cause["field"], cause["message"]) for cause in answer.json()["details"]["causes"]]


@pytest.mark.newest_alone  # older ones say it in other words, and take addresses that are not canonical
class TestAddresses:
    @pytest.mark.parametrize("address", REFUSED)
    def test_an_endpoint_has_no_special_address(
        self, server: KubernetesSubject, namespace: str, address: str
    ) -> None:
        """Loopback, link-local and unspecified ones are 422, and whatever is no canonical IP
        address."""
        text = f'Invalid value: "{address}": {REFUSED[address]}'
        answer = server.call("POST", slices(namespace), hand_made(address))
        assert refusal(answer) == [("endpoints[0].addresses[0]", text)]
        said = f'EndpointSlice.discovery.k8s.io "by-hand" is invalid: endpoints[0].addresses[0]: {text}'
        assert answer.json()["message"] == said
        twice = (
            [f'Invalid value: "{address}": must be a valid IP address']
            if REFUSED[address] == NOT_AN_IP
            else []
        )
        subsets = [{"addresses": [{"ip": address}], "ports": [{"port": 80}]}]
        old = {"metadata": {"name": "by-hand"}, "subsets": subsets}
        if address:
            answer = server.call("POST", f"{CORE}/namespaces/{namespace}/endpoints", old)
            assert refusal(answer) == [
                ("subsets[0].addresses[0].ip", each) for each in (text, *twice)
            ]
            answer = server.call("POST", services(namespace), service(externalIPs=[address]))
            assert refusal(answer) == [("spec.externalIPs[0]", text)]

    def test_only_slices_ask_for_the_canonical_form(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """Endpoints and external IPs may be written in capitals, and with zeros."""
        answer = server.call("POST", slices(namespace), hand_made("2001:DB8:0::1"))
        text = 'Invalid value: "2001:DB8:0::1": must be in canonical form ("2001:db8::1")'
        assert refusal(answer) == [("endpoints[0].addresses[0]", text)]
        subsets = [{"addresses": [{"ip": "2001:DB8:0::1"}], "ports": [{"port": 80}]}]
        body = {"metadata": {"name": "by-hand"}, "subsets": subsets}
        server.post(f"{CORE}/namespaces/{namespace}/endpoints", body)
        server.post(services(namespace), service(externalIPs=["2001:DB8:0::1"]))

    @pytest.mark.parametrize("address", SPECIAL)
    def test_other_addresses_are_taken(
        self, server: KubernetesSubject, namespace: str, address: str
    ) -> None:
        """Also those of a whole network, and of multicast beyond the link."""
        server.post(slices(namespace), hand_made(address))

    @pytest.mark.parametrize(
        ("family", "address", "more"),
        [
            ("IPv4", "2001:db8::1", []),
            ("IPv4", "fe80::1", [LINK_LOCAL]),
            ("IPv4", "::1", [LOOPBACK]),
            ("IPv6", "10.0.0.1", []),
        ],
    )
    def test_an_address_is_of_the_slices_family(
        self, server: KubernetesSubject, namespace: str, family: str, address: str, more: list[str]
    ) -> None:
        """It is told of the field as a whole, and then what else is wrong with the address."""
        answer = server.call("POST", slices(namespace), hand_made(address, family=family))
        value = f'Invalid value: "{address}": '
        assert refusal(answer) == [
            ("endpoints[0].addresses", f"{value}must be an {family} address"),
            *(("endpoints[0].addresses[0]", f"{value}{text}") for text in more),
        ]

    def test_every_address_of_an_endpoint_is_checked(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """Not the first alone; and an endpoint has at least one."""
        answer = server.call("POST", slices(namespace), hand_made("10.0.0.1", "127.0.0.1"))
        assert refusal(answer) == [
            ("endpoints[0].addresses[1]", f'Invalid value: "127.0.0.1": {LOOPBACK}')
        ]
        body = {**hand_made("10.0.0.1"), "endpoints": [{"addresses": []}]}
        answer = server.call("POST", slices(namespace), body)
        assert refusal(answer) == [
            ("endpoints[0].addresses", "Required value: must contain at least 1 address")
        ]

    def test_a_patch_is_checked_as_well(self, server: KubernetesSubject, namespace: str) -> None:
        """The address, and the type, which never changes."""
        server.post(slices(namespace), hand_made("10.0.0.1"))
        path = f"{slices(namespace)}/by-hand"
        answer = server.call(
            "PATCH", path, {"endpoints": [{"addresses": ["127.0.0.1"]}]}, content=MERGE
        )
        assert refusal(answer) == [
            ("endpoints[0].addresses[0]", f'Invalid value: "127.0.0.1": {LOOPBACK}')
        ]
        answer = server.call("PATCH", path, {"addressType": "IPv6", "endpoints": []}, content=MERGE)
        assert refusal(answer) == [("addressType", 'Invalid value: "IPv6": field is immutable')]

    @pytest.mark.parametrize(
        ("family", "text"),
        [
            ("", "Required value"),
            ("IPv5", 'Unsupported value: "IPv5": supported values: "FQDN", "IPv4", "IPv6"'),
        ],
    )
    def test_a_slice_has_one_of_three_types(
        self, server: KubernetesSubject, namespace: str, family: str, text: str
    ) -> None:
        """And must say which."""
        body = {**hand_made("10.0.0.1"), "addressType": family}
        assert refusal(server.call("POST", slices(namespace), body)) == [("addressType", text)]

    def test_a_slice_of_names_is_taken(self, server: KubernetesSubject, namespace: str) -> None:
        """Type FQDN."""
        server.post(slices(namespace), hand_made("a.example.com", family="FQDN"))


class TestPodsAndSlices:
    def test_a_service_without_pods_has_an_empty_slice(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """The slice of a Service that no pod matches has `endpoints: null` and `ports: null`."""
        server.post(services(namespace), service())
        selector = {"labelSelector": "kubernetes.io/service-name=rating"}
        eventually(lambda: len(server.get(slices(namespace), **selector)["items"]) == 1)
        (found,) = server.get(slices(namespace), **selector)["items"]
        assert (found["addressType"], found["endpoints"], found["ports"]) == ("IPv4", None, None)
        assert found["metadata"]["ownerReferences"][0]["kind"] == "Service"
        assert found["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"] == (
            "endpointslice-controller.k8s.io"
        )

    def test_a_ready_pod_becomes_an_endpoint(
        self, server: KubernetesSubject, namespace: str, node: str
    ) -> None:
        """An endpoint has the pod's address, uid, node and zone, three conditions, and the target
        port's number."""
        server.post(
            services(namespace), service(ports=[{"name": "http", "port": 80, "targetPort": "web"}])
        )
        pod = create_pod(server, namespace, "p1", node, "10.1.0.1")
        eventually(lambda: len(endpoints(server, namespace)) == 1)
        (endpoint,) = endpoints(server, namespace)
        assert endpoint == {
            "addresses": ["10.1.0.1"],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "targetRef": {
                "kind": "Pod",
                "namespace": namespace,
                "name": "p1",
                "uid": pod["metadata"]["uid"],
            },
            "nodeName": node,
            "zone": "zone-a",
        }
        (found,) = server.get(slices(namespace))["items"]
        assert found["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]

    def test_an_unready_pod_stays_as_an_unready_endpoint(
        self, server: KubernetesSubject, namespace: str, node: str
    ) -> None:
        """ready false, serving false, terminating false."""
        server.post(services(namespace), service())
        create_pod(server, namespace, "p1", node, "10.1.0.2", ready=False)
        eventually(lambda: conditions(server, namespace) == [(False, False, False)])
        set_pod_status(server, namespace, "p1", "10.1.0.2", ready=True)
        eventually(lambda: conditions(server, namespace) == [(True, True, False)])

    def test_a_terminating_pod_still_serves_and_is_then_gone(
        self, server: KubernetesSubject, namespace: str, node: str
    ) -> None:
        """DELETE with a grace period: ready false, serving true, terminating true; with grace 0 it
        is gone."""
        server.post(services(namespace), service())
        create_pod(server, namespace, "p1", node, "10.1.0.3")
        eventually(lambda: conditions(server, namespace) == [(True, True, False)])
        gone = server.call("DELETE", pods(namespace, "p1"), {"gracePeriodSeconds": 30}).json()
        assert (gone["kind"], gone["metadata"]["deletionGracePeriodSeconds"]) == ("Pod", 30)
        eventually(lambda: conditions(server, namespace) == [(False, True, True)])
        server.call("DELETE", pods(namespace, "p1"), {"gracePeriodSeconds": 0})
        assert server.call("GET", pods(namespace, "p1")).status_code == 404
        eventually(lambda: conditions(server, namespace) == [])

    def test_publish_not_ready_addresses_is_not_health(
        self, server: KubernetesSubject, namespace: str, node: str
    ) -> None:
        """With publishNotReadyAddresses an unready pod is `ready`, and `serving` tells the
        truth."""
        server.post(services(namespace), service(clusterIP="None", publishNotReadyAddresses=True))
        create_pod(server, namespace, "p1", node, "10.1.0.4", ready=False)
        eventually(lambda: conditions(server, namespace) == [(True, False, False)])
        (found,) = server.get(slices(namespace))["items"]
        assert found["metadata"]["labels"]["service.kubernetes.io/headless"] == ""

    def test_a_pod_on_an_unknown_node_is_skipped(
        self, server: KubernetesSubject, namespace: str, node: str
    ) -> None:
        """The slice controller leaves a pod out whose Node object does not exist."""
        server.post(services(namespace), service())
        create_pod(server, namespace, "p1", node, "10.1.0.5")
        create_pod(server, namespace, "p2", "no-such-node", "10.1.0.6")
        eventually(lambda: len(endpoints(server, namespace)) == 1)
        assert endpoints(server, namespace)[0]["targetRef"]["name"] == "p1"

    def test_a_pod_without_a_node_is_removed_at_once(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """A pod that was never scheduled needs nobody to end it."""
        body = {
            "metadata": {"name": "p1"},
            "spec": {"containers": [{"name": "a", "image": "example.invalid/a"}]},
        }
        created = server.post(pods(namespace), body)
        assert created["status"]["phase"] == "Pending"
        server.call("DELETE", pods(namespace, "p1"))
        assert server.call("GET", pods(namespace, "p1")).status_code == 404

    def test_the_slices_go_with_their_service(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """Deleting the Service removes its slices."""
        server.post(services(namespace), service())
        eventually(lambda: len(server.get(slices(namespace))["items"]) == 1)
        server.call("DELETE", services(namespace, "rating"))
        eventually(lambda: server.get(slices(namespace))["items"] == [])

    def test_endpoints_of_a_service_without_a_selector_are_mirrored(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """A slice per family, whose endpoints are ready or not, without `serving`, under another
        manager's label."""
        server.post(services(namespace), service(selector=None))
        subset = {
            "addresses": [{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}],
            "notReadyAddresses": [{"ip": "192.0.2.2"}],
            "ports": [{"name": "http", "port": 8080}],
        }
        server.post(
            f"{CORE}/namespaces/{namespace}/endpoints",
            {"metadata": {"name": "rating"}, "subsets": [subset]},
        )
        eventually(lambda: len(endpoints(server, namespace)) == 3)
        items = server.get(slices(namespace))["items"]
        assert sorted(item["addressType"] for item in items) == ["IPv4", "IPv6"]
        assert {
            item["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"] for item in items
        } == {"endpointslicemirroring-controller.k8s.io"}
        ready = {one["addresses"][0]: one["conditions"] for one in endpoints(server, namespace)}
        assert ready == {
            "192.0.2.1": {"ready": True},
            "192.0.2.2": {"ready": False},
            "2001:db8::1": {"ready": True},
        }
        path = f"{CORE}/namespaces/{namespace}/endpoints/rating"
        server.patch(
            path,
            {
                "subsets": [
                    {"addresses": [{"ip": "192.0.2.1"}], "ports": [{"name": "http", "port": 1}]}
                ]
            },
        )
        eventually(
            lambda: [one["addresses"] for one in endpoints(server, namespace)] == [["192.0.2.1"]]
        )

    def test_a_dual_stack_service_has_a_slice_per_family(
        self, server: KubernetesSubject, namespace: str, node: str
    ) -> None:
        """The families in the Service's order; an address of each for the same pod."""
        made = server.post(
            services(namespace),
            service(ipFamilyPolicy="RequireDualStack", ipFamilies=["IPv6", "IPv4"]),
        )["spec"]
        assert (made["ipFamilies"], [":" in ip for ip in made["clusterIPs"]]) == (
            ["IPv6", "IPv4"],
            [True, False],
        )
        create_pod(server, namespace, "p1", node, "10.1.0.10")
        both = [{"ip": "10.1.0.10"}, {"ip": "fd00::10"}]
        server.patch(pods(namespace, "p1", "status"), {"status": {"podIPs": both}})
        eventually(lambda: len(endpoints(server, namespace)) == 2)
        items = server.get(slices(namespace))["items"]
        found = {item["addressType"]: item["endpoints"][0]["addresses"] for item in items}
        assert found == {"IPv4": ["10.1.0.10"], "IPv6": ["fd00::10"]}

    def test_a_dual_stack_service_without_pods_has_an_empty_slice_per_family(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """So one that has none of a family was not looked at yet, or lost it."""
        server.post(
            services(namespace),
            service(ipFamilyPolicy="RequireDualStack", ipFamilies=["IPv4", "IPv6"]),
        )
        eventually(lambda: len(server.get(slices(namespace))["items"]) == 2)
        found = server.get(slices(namespace))["items"]
        assert sorted((one["addressType"], one["endpoints"]) for one in found) == [
            ("IPv4", None),
            ("IPv6", None),
        ]

    def test_a_slice_that_is_deleted_is_made_again(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """Also an empty one."""
        server.post(services(namespace), service())
        eventually(lambda: len(server.get(slices(namespace))["items"]) == 1)
        (was,) = server.get(slices(namespace))["items"]
        server.call("DELETE", slices(namespace, was["metadata"]["name"]))
        server.patch(services(namespace, "rating"), {"metadata": {"labels": {"touched": "true"}}})
        eventually(
            lambda: [one["endpoints"] for one in server.get(slices(namespace))["items"]] == [None]
        )

    def test_a_service_that_becomes_an_external_name_keeps_its_slices(
        self, server: KubernetesSubject, namespace: str, node: str
    ) -> None:
        """As they were: no controller looks at them any more, and a pod that has ended stays ready
        there."""
        server.post(services(namespace), service())
        create_pod(server, namespace, "p1", node, "10.1.0.1")
        eventually(lambda: len(endpoints(server, namespace)) == 1)
        before = server.get(slices(namespace))["items"]
        elsewhere = {
            "type": "ExternalName",
            "externalName": "db.example.org",
            "clusterIP": None,
            "clusterIPs": None,
        }
        server.patch(services(namespace, "rating"), {"spec": elsewhere})
        server.call("DELETE", pods(namespace, "p1"), gracePeriodSeconds="0")
        server.post(
            services(namespace), service("another")
        )  # its slice comes after all that was done before
        eventually(lambda: len(server.get(slices(namespace))["items"]) == 2)
        selector = {"labelSelector": "kubernetes.io/service-name=rating"}
        left = server.get(slices(namespace), **selector)["items"]
        assert [one["endpoints"] for one in left] == [one["endpoints"] for one in before]
        assert left[0]["endpoints"][0]["conditions"]["ready"] is True

    def test_a_service_without_a_selector_has_no_slice(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """Nor when its Endpoints are emptied: the mirrored slice goes with the last address."""
        server.post(services(namespace), service(selector=None))
        subset = {"addresses": [{"ip": "192.0.2.1"}], "ports": [{"name": "http", "port": 8080}]}
        server.post(
            f"{CORE}/namespaces/{namespace}/endpoints",
            {"metadata": {"name": "rating"}, "subsets": [subset]},
        )
        eventually(lambda: len(server.get(slices(namespace))["items"]) == 1)
        server.patch(f"{CORE}/namespaces/{namespace}/endpoints/rating", {"subsets": None})
        eventually(lambda: server.get(slices(namespace))["items"] == [])

    def test_the_status_has_the_addresses_of_a_load_balancer(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """Entries with an IP or a host name, in the order in which they were written; none while it
        waits."""
        made = server.post(services(namespace), service(type="LoadBalancer"))
        assert made["status"] == {"loadBalancer": {}}
        entries = [{"ip": "203.0.113.1"}, {"hostname": "lb.example.com"}]
        path = f"{services(namespace, 'rating')}/status"
        server.patch(path, {"status": {"loadBalancer": {"ingress": entries}}})
        found = server.get(services(namespace, "rating"))["status"]["loadBalancer"]["ingress"]
        assert [entry.get("ip") or entry.get("hostname") for entry in found] == [
            "203.0.113.1",
            "lb.example.com",
        ]

    def test_a_node_shows_its_addresses_and_whether_it_is_ready(
        self, server: KubernetesSubject, node: str
    ) -> None:
        """Addresses by type, conditions by type; a list of Nodes is of the kind NodeList, in no
        namespace."""
        addresses = [
            {"type": "InternalIP", "address": "192.168.0.1"},
            {"type": "ExternalIP", "address": "203.0.113.1"},
        ]
        status = {"addresses": addresses, "conditions": [{"type": "Ready", "status": "True"}]}
        server.patch(f"{CORE}/nodes/{node}/status", {"status": status})
        listed = server.get(f"{CORE}/nodes")
        assert listed["kind"] == "NodeList"
        (found,) = [item for item in listed["items"] if item["metadata"]["name"] == node]
        assert found["status"]["addresses"] == addresses
        assert [(one["type"], one["status"]) for one in found["status"]["conditions"]] == [
            ("Ready", "True")
        ]
        assert "namespace" not in found["metadata"]

    def test_a_slice_can_be_written_by_hand(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """A Service without a selector has the slices somebody writes; a port without a name has
        the name ''."""
        server.post(services(namespace), service(selector=None))
        body = {
            "metadata": {"name": "by-hand", "labels": {"kubernetes.io/service-name": "rating"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["192.0.2.1"]}],
            "ports": [{"port": 8080}],
        }
        created = server.post(slices(namespace), body)
        assert created["metadata"]["generation"] == 1
        assert created["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
        assert endpoints(server, namespace) == [{"addresses": ["192.0.2.1"], "conditions": {}}]


class TestEvents:
    def event(self, namespace: str, name: str) -> Json:
        return {
            "metadata": {"name": name},
            "involvedObject": {
                "apiVersion": "eurekube.io/v1",
                "kind": "EurekaSyncer",
                "namespace": namespace,
                "name": "rating",
                "uid": "u",
            },
            "reason": "Held",
            "message": "held",
            "type": "Warning",
            "count": 1,
            "firstTimestamp": "2026-01-02T03:04:05Z",
            "lastTimestamp": "2026-01-02T03:04:05Z",
            "source": {"component": "eurekube-sync"},
        }

    def test_an_event_of_the_same_name_is_counted_up(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """A second POST is 409; a merge patch of count and lastTimestamp goes through."""
        path = f"{CORE}/namespaces/{namespace}/events"
        server.post(path, self.event(namespace, "rating.held"))
        assert server.call("POST", path, self.event(namespace, "rating.held")).status_code == 409
        patched = server.patch(
            f"{path}/rating.held", {"count": 2, "lastTimestamp": "2026-01-02T03:09:05Z"}
        )
        assert (patched["count"], patched["lastTimestamp"]) == (2, "2026-01-02T03:09:05Z")
        selector = "involvedObject.name=rating,involvedObject.kind=EurekaSyncer"
        assert names(server.get(path, fieldSelector=selector)) == ["rating.held"]

    def test_a_terminating_namespace_refuses_creates_only(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """An event there is 403 with cause NamespaceTerminating; /status can still be patched; then
        it goes."""
        server.post(syncers(namespace), syncer(finalizers=["eurekube.io/cleanup"]))
        deleted = server.call("DELETE", f"{CORE}/namespaces/{namespace}").json()
        assert (deleted["kind"], deleted["status"]["phase"]) == ("Namespace", "Terminating")
        path = f"{CORE}/namespaces/{namespace}/events"
        answer = server.call("POST", path, self.event(namespace, "rating.held"))
        assert (answer.status_code, answer.json()["reason"]) == (403, "Forbidden")
        (cause,) = answer.json()["details"]["causes"]
        assert cause == {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
        eventually(
            lambda: "deletionTimestamp" in server.get(syncers(namespace, "rating"))["metadata"]
        )
        server.patch(syncers(namespace, "rating", "status"), {"status": {"ready": "0/0"}})
        server.patch(syncers(namespace, "rating"), {"metadata": {"finalizers": None}})
        eventually(lambda: server.call("GET", f"{CORE}/namespaces/{namespace}").status_code == 404)


class TestDefinition:
    def definition(self, plural: str) -> Json:
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schema},
        }
        names_ = {"plural": plural, "kind": plural.title(), "listKind": f"{plural.title()}List"}
        spec = {
            "group": "contract.example.org",
            "scope": "Namespaced",
            "names": names_,
            "versions": [version],
        }
        head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        return {**head, "metadata": {"name": f"{plural}.contract.example.org"}, "spec": spec}

    def terminating(self, server: KubernetesSubject, name: str) -> bool:
        listed = server.get(f"{DEFINITIONS}/{name}")["status"]["conditions"]
        return any((each["type"], each["status"]) == ("Terminating", "True") for each in listed)

    def test_a_definition_that_is_deleted_takes_its_objects_with_it(
        self, server: KubernetesSubject, namespace: str
    ) -> None:
        """While an object keeps its finalizer, LIST is 200, every item deleting, the CRD
        Terminating; then 404."""
        definition = self.definition("widgets")
        name = definition["metadata"]["name"]
        path = f"/apis/contract.example.org/v1/namespaces/{namespace}/widgets"
        install(server, definition, path)
        body = {
            "apiVersion": "contract.example.org/v1",
            "kind": "Widgets",
            "metadata": {"name": "a"},
        }
        body["metadata"] = {"name": "a", "finalizers": ["x.io/a"]}
        eventually(lambda: server.call("POST", path, body).status_code in (201, 409))
        answer = server.call("DELETE", f"{DEFINITIONS}/{name}")
        assert answer.status_code == 200
        eventually(lambda: self.terminating(server, name))
        eventually(
            lambda: all(
                "deletionTimestamp" in item["metadata"] for item in server.get(path)["items"]
            )
        )
        assert names(server.get(path)) == ["a"]
        body["metadata"] = {"name": "b"}
        refused = server.call("POST", path, body)
        # 1.28 answers 405, and no version creates it.
        assert (refused.status_code, refused.json()["reason"]) in (
            (403, "Forbidden"),
            (405, "MethodNotAllowed"),
        )
        server.patch(f"{path}/a", {"metadata": {"finalizers": None}})
        eventually(lambda: server.call("GET", f"{DEFINITIONS}/{name}").status_code == 404)
        eventually(lambda: server.call("GET", path).text == "404 page not found\n")
        assert server.call("GET", path).status_code == 404

    def test_our_definition_is_established(self, server: KubernetesSubject) -> None:
        """A definition that is served has Established=True, and no Terminating."""
        found = server.get(f"{DEFINITIONS}/eurekasyncers.eurekube.io")
        types = {each["type"]: each["status"] for each in found["status"]["conditions"]}
        assert types["Established"] == "True"
        assert "Terminating" not in types


def test_the_caller_can_ask_what_it_may_do(server: KubernetesSubject, namespace: str) -> None:
    """A SelfSubjectAccessReview answers 201 with status.allowed."""
    asked = {"verb": "list", "resource": "services", "namespace": namespace}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    answer = server.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
    assert answer["status"]["allowed"] is True
