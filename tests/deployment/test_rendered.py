"""The manifests: kustomize and Helm make the same of them, and the API server takes each, without a
warning, where Pod Security is `restricted`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from eurekube_sync import __version__
from tests.deployment.conftest import Helm, remove_namespace, restricted_namespace
from tests.deployment.rendered import (
    CHART,
    CRONJOB,
    FORMS,
    IMAGE,
    NAME,
    NETWORK,
    ROOT,
    Form,
    Json,
    documents,
    of_kind,
    output,
    pod_template,
    workload,
)
from tests.servers.go_builds import kubernetes
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld

pytestmark = pytest.mark.servers
EACH_FORM = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
REQUIRED = (
    "--set",
    "owner=a",
    "--set",
    "eurekaUrl=http://e/eureka",
    "--set",
    f"image.repository={IMAGE}",
)
WITHOUT_REGISTRY = (
    "set image.repository: the image with its registry, such as registry.example.com/eurekube-sync"
)


@pytest.fixture(scope="module")
def namespaces(world: KubernetesWorld) -> Iterator[None]:
    """Those of the forms."""
    names = {form.namespace for form in FORMS.values()}
    for name in names:
        restricted_namespace(world, name)
    yield
    for name in names:
        remove_namespace(world, name)


@pytest.mark.parametrize("major", [4, 3])
@EACH_FORM
def test_helm_and_kustomize_make_the_same_manifests(form: Form, major: int) -> None:
    """As data; only the hash in a ConfigMap's name is kustomize's own, and a checksum in its place
    Helm's."""
    assert documents(form.templated(major)) == documents(form.kustomized)


@pytest.mark.parametrize(
    ("changed", "rolls"), [({"settings": {"EUREKUBE_SYNC_INTERVAL": "20s"}}, True), ({}, False)]
)
def test_a_change_of_the_settings_replaces_the_daemons_pods(changed: Json, rolls: bool) -> None:
    """By both tools: a pod reads its variables once."""
    before = FORMS["daemon"]
    after = replace(
        before, values={**before.values, **changed}, settings=changed.get("settings", {})
    )
    pods = [
        (pod_template(workload(raw(a))), pod_template(workload(raw(b))))
        for a, b in rendered_by_both(before, after)
    ]
    assert [one != other for one, other in pods] == [rolls, rolls]


def rendered_by_both(before: Form, after: Form) -> list[tuple[str, str]]:
    """By kustomize, and by Helm."""
    return [(before.kustomized, after.kustomized), (before.templated(), after.templated())]


def raw(text: str) -> list[Json]:
    """With the hash and the checksum."""
    return [document for document in yaml.safe_load_all(text) if document]


def test_a_name_that_yaml_takes_for_something_else_stays_one() -> None:
    """A priority class may be called 123, and a Secret true."""
    form = Form(values={"secretName": "true", "priorityClassName": "123"})
    pod = pod_template(workload(documents(form.templated())))["spec"]
    assert (pod["volumes"][0]["secret"]["secretName"], pod["priorityClassName"]) == ("true", "123")


PLACED: Json = {
    "podAnnotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
    "podLabels": {"azure.workload.identity/use": "true", "team": "yes"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "pool", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 1,
                    "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                }
            ]
        }
    },
    "priorityClassName": "",
    "imagePullSecrets": [{"name": "registry"}],
    "extraEnv": [
        {"name": "TZ", "value": "UTC"},
        {
            "name": "EUREKUBE_SYNC_EUREKA_PASSWORD",
            "valueFrom": {"secretKeyRef": {"name": "eureka", "key": "password"}},
        },
    ],
    "extraVolumes": [{"name": "ca", "configMap": {"name": "company-ca", "optional": True}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/company", "readOnly": True}],
    "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/a"}},
}


@pytest.mark.parametrize("mode", ["cronjob", "daemon"])
@pytest.mark.parametrize("major", [4, 3])
def test_the_pod_goes_where_the_cluster_wants_it(
    mode: str, major: int, cluster: KubernetesServers, world: KubernetesWorld, namespaces: None
) -> None:
    """Each value is where Kubernetes reads it, and the API server takes the whole."""
    form = replace(FORMS[mode], values={**FORMS[mode].values, **PLACED})
    text = form.templated(major)
    dry = ("apply", "--dry-run=server", "--validate=strict", "-f", "-")
    assert "Warning" not in cluster.kubectl(*dry, stdin=text).stderr
    found = raw(text)
    template = pod_template(workload(found))
    pod = template["spec"]
    (container,) = pod["containers"]
    for part in ("nodeSelector", "tolerations", "affinity", "imagePullSecrets"):
        assert pod[part] == PLACED[part]
    assert template["metadata"]["labels"].items() >= PLACED["podLabels"].items()
    assert template["metadata"]["annotations"].items() >= PLACED["podAnnotations"].items()
    assert container["env"] == PLACED["extraEnv"]
    assert pod["volumes"][1:] == PLACED["extraVolumes"]
    assert container["volumeMounts"][1:] == PLACED["extraVolumeMounts"]
    (account,) = of_kind(found, "ServiceAccount")
    assert account["metadata"]["annotations"] == PLACED["serviceAccount"]["annotations"]


@EACH_FORM
def test_every_form_has_the_same_pod(form: Form) -> None:
    """But for what it runs, how often, and where."""
    pods = [
        pod_template(workload(documents(each.kustomized)))["spec"]
        for each in (FORMS["cronjob"], form)
    ]
    for pod in pods:
        pod.pop("affinity", None)
        pod.pop("restartPolicy", None)
        for own in ("args", "ports", "livenessProbe", "readinessProbe"):
            pod["containers"][0].pop(own, None)
    assert pods[0] == pods[1]


@EACH_FORM
def test_the_api_server_accepts_every_manifest(
    form: Form, cluster: KubernetesServers, world: KubernetesWorld, namespaces: None
) -> None:
    """Each field is one that it knows, and Pod Security has nothing to warn of; the pod itself is
    let in."""
    found = documents(form.kustomized)
    for how in ([], ["--server-side"]):  # the latter as Argo CD and Flux do
        dry = ("apply", "--dry-run=server", "--validate=strict", *how, "-f", "-")
        done = cluster.kubectl(*dry, stdin=form.kustomized)
        # That of `last-applied-configuration` is about an object that another test applied by the
        # client before.
        warnings = [line for line in done.stderr.splitlines() if "Warning" in line]
        assert [line for line in warnings if "last-applied-configuration" not in line] == []
        assert len(done.stdout.splitlines()) == len(found)
    template = pod_template(workload(found))
    account = {"apiVersion": "v1", **of_kind(found, "ServiceAccount")[0]}
    accounts = f"/api/v1/namespaces/{form.namespace}/serviceaccounts"
    world.request("POST", accounts, account)
    pod = {
        "metadata": {"name": "one", "labels": template["metadata"]["labels"]},
        "spec": template["spec"],
    }
    pods = f"/api/v1/namespaces/{form.namespace}/pods?dryRun=All&fieldValidation=Strict"
    try:
        world.request("POST", pods, pod)
        careless: Json = {"containers": [{"name": "a", "image": "a"}]}
        with pytest.raises(requests.HTTPError, match="violates PodSecurity"):
            world.request("POST", pods, {"metadata": {"name": "two"}, "spec": careless})
    finally:
        world.request("DELETE", f"{accounts}/{NAME}")


def test_the_log_of_a_job_made_by_hand_can_be_read() -> None:
    """`kubectl create job --from` makes one of the CronJob's own, so the schedule's next one must
    not remove it."""
    assert (
        workload(documents(FORMS["cronjob"].kustomized))["spec"].get(
            "successfulJobsHistoryLimit", 3
        )
        >= 3
    )


def test_the_base_alone_names_no_installation() -> None:
    """Applied as it is, it asks in its log for the options that are missing, instead of using an
    example's."""
    form = Form()
    (settings,) = of_kind(documents(form.kustomized), "ConfigMap")
    assert settings["data"] == {
        "EUREKUBE_SYNC_OWNER": form.owner,
        "EUREKUBE_SYNC_EUREKA_URL": form.eureka_url,
        "EUREKUBE_SYNC_REQUIRE_APP_GRANT": "true",
    }
    written = "".join(path.read_text() for path in (ROOT / "cronjob" / "base").iterdir())
    assert "EUREKUBE_SYNC_OWNER=" not in written


@pytest.mark.parametrize(
    ("original", "copy"),
    [
        ("crds/eurekasyncer.yaml", "crds/eurekasyncer.yaml"),
        ("crds/eurekaimport.yaml", "crds/eurekaimport.yaml"),
        ("cronjob/monitoring/rules.yml", "files/rules.yml"),
        ("cronjob/monitoring/dashboard.json", "files/dashboard.json"),
    ],
)
def test_the_chart_has_a_copy(original: str, copy: str) -> None:
    """Because it cannot reach beyond its folder: `cp` the one over the other."""
    assert (CHART / copy).read_text() == (ROOT / original).read_text()


def test_the_chart_and_the_program_have_one_version() -> None:
    """The image's tag comes from the chart's."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    image = pod_template(workload(documents(Form().kustomized)))["spec"]["containers"][0]["image"]
    assert (chart["version"], chart["appVersion"], image) == (
        __version__,
        __version__,
        f"{IMAGE}:{__version__}",
    )


@EACH_FORM
def test_only_the_daemon_can_be_reached(form: Form) -> None:
    """At its one port; nobody has to reach the others."""
    found = documents(form.kustomized)
    (policy,) = of_kind(found, "NetworkPolicy")
    template = pod_template(workload(found))
    assert (
        policy["spec"]["podSelector"]["matchLabels"].items()
        <= template["metadata"]["labels"].items()
    )
    ports = [port["name"] for port in template["spec"]["containers"][0].get("ports", ())]
    allowed = [each["port"] for rule in policy["spec"].get("ingress", ()) for each in rule["ports"]]
    assert (policy["spec"]["policyTypes"], allowed) == (["Ingress"], ports)


@pytest.mark.parametrize("namespaces", [[], ["shop"]])
def test_without_grants_no_right_to_namespaces_is_asked_for(namespaces: list[str]) -> None:
    """But to the one that tells which cluster it is."""
    form = Form(values={"requireAppGrant": False, "namespaces": namespaces})
    found = documents(form.templated())
    (settings,) = of_kind(found, "ConfigMap")
    assert settings["data"]["EUREKUBE_SYNC_REQUIRE_APP_GRANT"] == "false"
    rules = [rule for role in of_kind(found, "Role", "ClusterRole") for rule in role["rules"]]
    assert [rule["resourceNames"] for rule in rules if rule["resources"] == ["namespaces"]] == [
        ["kube-system"]
    ]


@pytest.mark.parametrize(("policy", "set_to"), [("sync", None), ("upsert-only", "upsert-only")])
def test_what_run_may_do_is_a_value_of_the_chart(policy: str, set_to: str | None) -> None:
    """The default is the program's own."""
    (settings,) = of_kind(documents(Form(values={"policy": policy}).templated()), "ConfigMap")
    assert settings["data"].get("EUREKUBE_SYNC_POLICY") == set_to


def test_the_policy_of_the_chart_is_the_one_that_is_applied_alone() -> None:
    """kustomize would give it the namespace of the installation."""
    alone = output(kubernetes() / "kubectl", "kustomize", CRONJOB / "admission")
    kinds = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    assert of_kind(
        documents(Form(values={"admissionPolicy": True}).templated()), *kinds
    ) == documents(alone)


def test_the_policy_is_bound_to_the_namespaces_that_are_served() -> None:
    """Other installations may have other rules."""
    form = Form(values={"admissionPolicy": True, "namespaces": ["shop"]})
    bindings = of_kind(documents(form.templated()), "ValidatingAdmissionPolicyBinding")
    assert [binding["metadata"]["name"] for binding in bindings] == [
        "eurekube-sync",
        "eurekube-sync-imports",
    ]
    for binding in bindings:
        (expression,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        assert expression == {
            "key": "kubernetes.io/metadata.name",
            "operator": "In",
            "values": ["shop"],
        }


def test_the_policy_for_the_account_is_the_one_that_is_applied_alone() -> None:
    """It has the networks of the chart's values."""
    alone = output(kubernetes() / "kubectl", "kustomize", CRONJOB / "admission" / "imports")
    kinds = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    imports = {"networks": [NETWORK], "admissionPolicy": True}
    form = Form(values={"imports": imports})
    assert of_kind(documents(form.templated()), *kinds) == documents(alone)


def test_without_networks_nothing_is_imported() -> None:
    """There is neither the option, nor a right, nor a policy."""
    form = Form(values={"imports": {"networks": [], "admissionPolicy": True}})
    text = form.templated()
    assert documents(text) == documents(Form().templated())
    assert "eurekaimports" not in text
    assert "EUREKUBE_SYNC_IMPORT_NETWORKS" not in text


def test_helm_finds_no_fault(helms: Helm) -> None:
    """`helm lint --strict`."""
    helms("lint", "--strict", CHART, *REQUIRED)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"owner": ""},
            "set owner: the name of this installation, a different one in each cluster",
        ),
        (
            {"eurekaUrl": ""},
            "set eurekaUrl: where Eureka is, such as http://eureka.example.com:8761/eureka",
        ),
        ({"owner": "My_Cluster"}, "/owner"),
        ({"eurekaUrl": "eureka:8761"}, "/eurekaUrl"),
        ({"mode": "deamon"}, "/mode"),
        ({"policy": "UpsertOnly"}, "/policy"),
        ({"ower": "a"}, "'ower'"),
        ({"image": {"repo": "a"}}, "'repo'"),
        ({"image": {"repository": ""}}, WITHOUT_REGISTRY),
        ({"image": {"repository": "eurekube-sync"}}, WITHOUT_REGISTRY),
        ({"image": {"repository": "eurekube-sync", "tag": "a/b"}}, WITHOUT_REGISTRY),
        ({"image": {"digest": f"sha256:{'0' * 64}"}}, WITHOUT_REGISTRY),
        ({"mode": "daemon", "image": {}}, WITHOUT_REGISTRY),
        ({"settings": {"LOG_FORMAT": "json"}}, "'LOG_FORMAT'"),
        ({"settings": {"EUREKUBE_SYNC_OWNER": "b"}}, "EUREKUBE_SYNC_OWNER"),
        ({"settings": {"EUREKUBE_SYNC_EUREKA_PASSWORD": "b"}}, "EUREKUBE_SYNC_EUREKA_PASSWORD"),
        ({"namespaces": "shop"}, "/namespaces"),
        ({"podLabels": {"app.kubernetes.io/name": "b"}}, "/podLabels"),
        ({"podAnnotations": {"a": 1}}, "/podAnnotations"),
        ({"affinity": {"nodeAfinity": {}}}, "'nodeAfinity'"),
        ({"extraEnv": [{"name": "EUREKUBE_SYNC_OWNER", "value": "b"}]}, "/extraEnv/0/name"),
        ({"extraEnv": [{"name": "A", "val": "b"}]}, "'val'"),
        ({"extraEnv": {"A": "b"}}, "/extraEnv"),
        ({"extraVolumes": [{"name": "secret", "emptyDir": {}}]}, "/extraVolumes/0/name"),
        ({"extraVolumeMounts": [{"name": "ca"}]}, "'mountPath'"),
        ({"serviceAccount": {"annotation": {}}}, "'annotation'"),
        (
            {"requireAppGrant": None},
            "'requireAppGrant'",
        ),  # null takes a default away, and the program's own is false
        ({"image": {"repository": None}}, "'repository'"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(
    values: dict[str, Any], sentence: str, helm4: Helm, tmp_path: Path
) -> None:
    """A missing owner, URL or registry with a sentence, a misspelt or impossible value with its
    path."""
    required = {"owner": "a", "eurekaUrl": "http://e/eureka", "image": {"repository": IMAGE}}
    whole = {**required, **values}
    refused = helm4.run("template", NAME, CHART, "--values", "-", stdin=json.dumps(whole))
    assert refused.returncode != 0
    assert sentence in refused.stderr


def test_every_value_has_its_place_in_the_schema() -> None:
    """No value is one that the schema leaves open."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(values) == set(schema["properties"]) - {"global"}
    for name, value in values.items():
        if isinstance(value, dict) and value and name != "resources":
            assert set(value) == set(schema["properties"][name]["properties"]), name
