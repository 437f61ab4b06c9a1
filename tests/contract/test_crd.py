"""The real API server accepts the CRDs, and says of every manifest what `validate` says offline."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from hypothesis import HealthCheck, given, settings

from eurekube_sync.embedded.http import Request
from eurekube_sync.manifests.crd import FILE_NAMES, KIND, load_crd, load_crds
from eurekube_sync.manifests.documents import Severity, read_documents
from eurekube_sync.manifests.validation import refusal
from eurekube_sync.model.imports import IMPORT
from tests.cases import Case, all_cases, manifest_of, released_cases, validate_object
from tests.cases.specs import specs
from tests.embedded.kubernetes import FullKubernetes
from tests.servers.kube import KubernetesServers
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMESPACE = "crd-contract"
PATHS = {
    kind: f"/apis/eurekube.io/v1/namespaces/{NAMESPACE}/{load_crd(kind)['spec']['names']['plural']}"
    for kind in FILE_NAMES
}
SYNCERS, IMPORTS = PATHS[KIND], PATHS[IMPORT]
KINDS = list(FILE_NAMES)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
STRICT = {"dryRun": "All", "fieldValidation": "Strict"}
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
SHIPPED = sorted(
    file
    for folder in ("crds", "cronjob/base")
    for file in (ROOT / folder).glob("*.yaml")
    if file.stem != "kustomization"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """A session of the administrator."""

    url: str
    session: requests.Session

    def call(self, method: str, path: str, body: Any = None, **query: str) -> requests.Response:
        """One request with a JSON body."""
        return self.session.request(method, self.url + path, json=body, params=query, timeout=30)

    def verdict(self, manifest: Any) -> requests.Response:
        """What the API server says of a manifest, without storing it."""
        answer = self.call("POST", path_of(manifest), manifest, **STRICT)
        assert answer.status_code in (201, 400, 422), answer.text
        return answer


def path_of(manifest: Any) -> str:
    """Where an object of this kind is made; of a kind that is misspelt, where the right one is."""
    return IMPORTS if manifest.get("kind") in (IMPORT, f"{IMPORT}s") else SYNCERS


@pytest.fixture(scope="module")
def api(kubernetes_servers: KubernetesServers) -> Iterator[Api]:
    """An API server that serves the CRDs."""
    with requests.Session() as session:
        session.trust_env = False
        session.verify = str(kubernetes_servers.ca_file)
        session.headers["Authorization"] = f"Bearer {kubernetes_servers.admin_token}"
        api = Api(url=kubernetes_servers.url, session=session)
        for definition in load_crds():
            created = api.call("POST", DEFINITIONS, definition, fieldValidation="Strict")
            assert created.status_code in (201, 409), created.text
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        assert api.call("POST", "/api/v1/namespaces", namespace).status_code in (201, 409)
        for kind, path in PATHS.items():
            wait_until(
                lambda kind=kind, path=path: (  # type: ignore[misc]
                    api.call("GET", path).status_code == 200
                    and conditions(api, kind).get("Established") == "True"
                ),
                "the CRD is not established",
            )
        # The handler that validates is in place a moment after the first list.
        plain: dict[str, Any] = {"selector": {"app": "rating"}}
        verdicts = [
            (manifest_of(plain), 201),
            (manifest_of({**plain, "surprise": 1}), 400),
            (manifest_of({**plain, "mode": "podd"}), 422),
            (manifest_of({}, IMPORT), 201),
            (manifest_of({"surprise": 1}, IMPORT), 400),
            (manifest_of({"app": "a", "vipAddress": "a"}, IMPORT), 422),
        ]
        wait_until(
            lambda: all(
                api.call("POST", path_of(manifest), manifest, **STRICT).status_code == verdict
                for manifest, verdict in verdicts
            ),
            "the API server does not judge our objects",
        )
        yield api


@pytest.fixture(scope="module")
def embedded() -> FullKubernetes:
    """The embedded API server with the definition and the judge that `demo --serve` gives it."""
    server = FullKubernetes(time.time, definitions=load_crds(), validate=refusal)
    server.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    return server


def name_of(kind: str) -> str:
    """The name of a kind's CRD."""
    name: str = load_crd(kind)["metadata"]["name"]
    return name


def conditions(api: Api, kind: str) -> dict[str, str]:
    """The conditions of a CRD."""
    status = api.call("GET", f"{DEFINITIONS}/{name_of(kind)}").json().get("status", {})
    return {condition["type"]: condition["status"] for condition in status.get("conditions", ())}


def errors(manifest: Any) -> list[str]:
    """What `validate` refuses in a manifest."""
    return [
        str(finding) for finding in validate_object(manifest) if finding.severity is Severity.ERROR
    ]


def fields_of(status: Any) -> set[str]:
    """The fields that a refusal names, without indexes: the API server leaves out some of them, and
    says `<nil>` for no field."""
    causes = status.get("details", {}).get("causes", ())
    return {re.sub(r"\[[0-9]+\]", "", cause["field"]) for cause in causes} - {"<nil>"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_crd_is_accepted_as_it_is(api: Api, kind: str) -> None:
    """The API server finds no unknown field, no costly rule and no unstructural schema in the
    CRD."""
    again = api.call(
        "PUT",
        f"{DEFINITIONS}/{name_of(kind)}",
        api.call("GET", f"{DEFINITIONS}/{name_of(kind)}").json(),
        dryRun="All",
    )
    assert again.status_code == 200, again.text
    assert "Warning" not in again.headers
    assert conditions(api, kind)["Established"] == "True"
    assert conditions(api, kind)["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in conditions(api, kind)


@pytest.mark.parametrize("case", [*all_cases(), *released_cases()], ids=lambda case: case.name)
def test_each_case_is_accepted_or_refused_as_the_table_says(api: Api, case: Case) -> None:
    """The API server gives each case of the table the verdict that the table says."""
    answer = api.verdict(case.manifest)
    assert (answer.status_code == 201) is case.accepted, answer.text
    causes = answer.json().get("details", {}).get("causes", ()) if answer.status_code == 422 else ()
    named = [cause["field"] for cause in causes if cause["field"].startswith("spec.")]
    paths = [finding.path.removeprefix("$.") for finding in validate_object(case.manifest)]
    assert not named or any(
        path.startswith(field) or field.startswith(path) for field in named for path in paths
    ), (
        named,
        paths,
    )


ANSWERED_ALIKE = [
    case
    for case in all_cases()
    if case.name
    not in (
        "another version",
        "import of another version",
        "port beyond 64 bits",
        "generated name with a dot at its end",
    )
]
"""Both refuse the others: the embedded server names another field, or writes a number in another
way than Go."""


@pytest.mark.parametrize("case", ANSWERED_ALIKE, ids=lambda case: case.name)
def test_the_embedded_server_answers_as_the_real_one(
    api: Api, embedded: FullKubernetes, case: Case
) -> None:
    """Status code; of a refusal the fields; of what is taken, the spec. The words are our own."""
    path = path_of(case.manifest)
    real = api.call("POST", path, case.manifest, dryRun="All")
    request = Request(
        method="POST",
        path=path,
        query={"dryRun": "All"},
        headers={"content-type": "application/json"},
        body=json.dumps(case.manifest).encode(),
    )
    answer = embedded.handle(request)
    ours, theirs = json.loads(answer.body), real.json()
    assert answer.status == real.status_code
    assert ours.get("spec") == theirs.get("spec")
    named, told = (fields_of(body) for body in (theirs, ours))
    for field in told if named else ():
        assert any(field.startswith(other) or other.startswith(field) for other in named), (
            field,
            named,
        )


def test_a_full_status_is_stored_and_printed(api: Api) -> None:
    """The status that we write is accepted on `/status`, and `kubectl get` prints its columns."""
    manifest = manifest_of({"selector": {"app": "rating"}})
    assert api.call("POST", SYNCERS, manifest, fieldValidation="Strict").status_code == 201
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "InSync",
        "message": "2 of 2 instances are UP",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
    }
    status = {
        "observedGeneration": 1,
        "conditions": [
            {**condition, "type": kind} for kind in ("Ready", "Synced", "Conflict", "RemovalHeld")
        ],
        "ready": "2/2",
        "desired": 2,
        "registered": 2,
        "up": 2,
        "down": 0,
        "appName": "RATING",
        "vipAddress": "rating",
        "apps": ["RATING"],
        "errors": ["x" * 1024] * 10,
    }
    path = f"{SYNCERS}/{manifest['metadata']['name']}"
    stored = api.call("GET", path).json()
    answer = api.call(
        "PUT", f"{path}/status", {**stored, "status": status}, fieldValidation="Strict"
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] == status
    table = api.session.get(api.url + path, headers={"Accept": TABLE}, timeout=30).json()
    names = [column["name"] for column in table["columnDefinitions"]]
    row = dict(zip(names, table["rows"][0]["cells"], strict=True))
    assert {
        name: row[name] for name in ("App", "Mode", "VIP", "Ready", "Up", "Down", "Reason")
    } == {
        "App": "RATING",
        "Mode": "pod",
        "VIP": "rating",
        "Ready": "2/2",
        "Up": 2,
        "Down": 0,
        "Reason": "InSync",
    }
    assert validate_object(answer.json()) == ()
    assert api.call("DELETE", path).status_code == 200


def examples() -> Iterator[Any]:
    """Yield the syncers of the documentation's examples, each with the name of its file."""
    for file in sorted(EXAMPLES.glob("*.yaml")):
        for document in read_documents(file.read_text(encoding="utf-8"), file=file.name):
            if document.value["kind"] == "EurekaSyncer":
                yield pytest.param(document.value, id=f"{file.stem}-{document.number}")


@pytest.mark.parametrize("syncer", list(examples()))
def test_example(api: Api, syncer: dict[str, Any]) -> None:
    """The examples of the documentation are accepted."""
    metadata = {name: value for name, value in syncer["metadata"].items() if name != "namespace"}
    assert api.verdict({**syncer, "metadata": metadata}).status_code == 201


@settings(
    max_examples=250,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(spec=specs())
def test_random_specs(api: Api, spec: Any) -> None:
    """A random spec, valid or mutated, gets the same verdict offline and from the API server."""
    manifest = manifest_of(spec)
    answer = api.verdict(manifest)
    assert (answer.status_code == 201) is (not errors(manifest)), (answer.text, errors(manifest))


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: str(file.relative_to(ROOT)))
def test_shipped_files_pass_through_kubectl_and_kustomize(
    api: Api, kubernetes_servers: KubernetesServers, tmp_path: Path, file: Path
) -> None:
    """`kubectl create --dry-run=client -o yaml` and `kubectl kustomize` write each file out with
    all that it holds."""
    kubectl = kubernetes_servers.kubectl
    written = kubectl("create", "--dry-run=client", "-o", "yaml", "-f", str(file)).stdout
    (tmp_path / "kustomization.yaml").write_text("resources: [resource.yaml]\n")
    (tmp_path / "resource.yaml").write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    rendered = kubectl("kustomize", str(tmp_path)).stdout
    shipped = list(yaml.safe_load_all(file.read_text(encoding="utf-8")))
    created = [item for one in yaml.safe_load_all(written) for item in one.get("items", [one])]
    assert [one["metadata"]["name"] for one in created] == [
        one["metadata"]["name"] for one in shipped
    ]
    by_name = sorted(shipped, key=lambda one: (one["kind"], one["metadata"]["name"]))
    assert (
        sorted(yaml.safe_load_all(rendered), key=lambda one: (one["kind"], one["metadata"]["name"]))
        == by_name
    )


def test_the_crd_is_applied_by_the_server_and_printed_as_yaml(
    api: Api, kubernetes_servers: KubernetesServers
) -> None:
    """`kubectl apply --server-side` takes the CRD, and `kubectl get -o yaml` gives its schema back
    as it was."""
    applied = ("apply", "--server-side", "--force-conflicts", "-f", str(ROOT / "crds"))
    lines = kubernetes_servers.kubectl(*applied).stdout.splitlines()
    assert sorted(lines) == sorted(
        f"customresourcedefinition.apiextensions.k8s.io/{name_of(kind)} serverside-applied"
        for kind in FILE_NAMES
    )
    for kind in FILE_NAMES:
        text = kubernetes_servers.kubectl("get", "crd", name_of(kind), "-o", "yaml").stdout
        assert yaml.safe_load(text)["spec"]["versions"] == load_crd(kind)["spec"]["versions"]


@pytest.mark.parametrize("text", ["\ufffe", "\uffff", "\x07", "\x7f", "\x9f"], ids=ascii)
def test_a_metadata_value_that_would_break_the_registry_is_refused(api: Api, text: str) -> None:
    """The API server refuses control characters, U+FFFE and U+FFFF, at the end of a value and
    within it."""
    for value in (text, f"a{text}b"):
        answer = api.verdict(
            manifest_of({"selector": {"app": "rating"}, "metadata": {"note": value}})
        )
        assert (
            answer.status_code,
            [cause["field"] for cause in answer.json()["details"]["causes"]],
        ) == (
            422,
            ["spec.metadata.note"],
        )


@pytest.mark.parametrize(
    "text", ["\u00fc", "\u00a0", "\ud7ff", "\ufffd", "\U0001f600", "\U0010ffff"], ids=ascii
)
def test_a_metadata_value_beyond_ascii_is_taken(api: Api, text: str) -> None:
    """Letters, signs and emoji of any alphabet are plain text."""
    answer = api.verdict(
        manifest_of({"selector": {"app": "rating"}, "metadata": {"note": f"a{text}b"}})
    )
    assert answer.json()["spec"]["metadata"] == {"note": f"a{text}b"}


def test_only_mode_is_defaulted(api: Api) -> None:
    """The API server adds `mode: pod` to a spec and nothing else."""
    answer = api.verdict(manifest_of({"selector": {"app": "rating"}})).json()
    assert answer["spec"] == {"mode": "pod", "selector": {"app": "rating"}}


def test_nothing_of_an_import_is_defaulted(api: Api) -> None:
    """A stored default could never be corrected."""
    assert api.verdict(manifest_of({"service": {}, "select": {}}, IMPORT)).json()["spec"] == {
        "service": {},
        "select": {},
    }


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "its default name": ({}, {"service": {"name": "case"}}, ""),
    "another name": ({}, {"service": {"name": "other"}}, "service.name is immutable"),
    "no name": ({"service": {"name": "other"}}, {}, "service.name is immutable"),
    "headless": ({}, {"service": {"headless": True}}, "service.headless is immutable"),
    "not headless": ({"service": {"headless": True}}, {}, "service.headless is immutable"),
    "headless said": ({}, {"service": {"headless": False}}, ""),
    "adopt": ({}, {"service": {"adopt": True, "port": "http"}}, ""),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_immutable(api: Api, embedded: FullKubernetes, change: str) -> None:
    """The Service's name and whether it is headless; both servers say the same."""
    before, after, why = CHANGES[change]
    answers = []
    path = f"{IMPORTS}/case"
    created = api.call("POST", IMPORTS, manifest_of(before, IMPORT))
    assert created.status_code == 201, created.text
    try:
        answer = api.call("PUT", path, {**created.json(), "spec": after}, dryRun="All")
        answers.append((answer.status_code, answer.json()))
    finally:
        api.call("DELETE", path)
    stored = embedded.call("POST", IMPORTS, manifest_of(before, IMPORT))[1]
    answers.append(embedded.call("PUT", path, {**stored, "spec": after}))
    embedded.call("DELETE", path)
    for status, body in answers:
        assert status == (422 if why else 200), body
        assert why in body.get("message", "")


def test_a_full_import_status_is_stored_and_printed(api: Api) -> None:
    """The status that we write is accepted on `/status`, and `kubectl get` prints its columns."""
    assert api.call("POST", IMPORTS, manifest_of({}, IMPORT)).status_code == 201
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "InSync",
        "message": "2 endpoints",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
    }
    status = {
        "observedGeneration": 1,
        "conditions": [condition],
        "ready": "2/2",
        "app": "REVIEW",
        "service": "review",
        "instances": 3,
        "leftOut": [{"reason": "NotUp", "instances": 1}],
        "errors": ["x" * 1024] * 10,
        "unconfirmedRemoval": "a",
        "unconfirmedSince": "2026-01-01T00:00:00Z",
        "eurekaUnknownSince": "2026-01-01T00:00:00Z",
    }
    path = f"{IMPORTS}/case"
    stored = api.call("GET", path).json()
    answer = api.call(
        "PUT", f"{path}/status", {**stored, "status": status}, fieldValidation="Strict"
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] == status
    table = api.session.get(api.url + path, headers={"Accept": TABLE}, timeout=30).json()
    names = [column["name"] for column in table["columnDefinitions"]]
    row = dict(zip(names, table["rows"][0]["cells"], strict=True))
    assert [row[name] for name in ("App", "Service", "Ready", "Reason")] == [
        "REVIEW",
        "review",
        "2/2",
        "InSync",
    ]
    assert validate_object(answer.json()) == ()
    assert api.call("DELETE", path).status_code == 200
