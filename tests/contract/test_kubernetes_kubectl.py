"""What a person does with kubectl: the same commands, with the same words, on the embedded and on
the real server."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from eurekube_sync.embedded.http import LoopbackServer
from eurekube_sync.embedded.kubernetes.server import EmbeddedKubernetes
from eurekube_sync.manifests.validation import refusal, stored
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld, write_kubeconfig
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

ROOT = Path(__file__).parents[2]
DEFINITION = ROOT / "crds" / "eurekasyncer.yaml"
SYNCER = """
apiVersion: eurekube.io/v1
kind: EurekaSyncer
metadata: {name: rating, namespace: shop}
spec: {selector: {app: rating}}
"""


class Kubectl:
    """kubectl of the real server's release, for one server."""

    def __init__(self, servers: KubernetesServers, kubeconfig: Path) -> None:
        self._servers = servers
        self._kubeconfig = kubeconfig

    def run(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return self._servers.kubectl(
            *arguments, stdin=stdin, kubeconfig=self._kubeconfig, check=False
        )

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module", params=["embedded", "real"])
def kubectl(
    request: pytest.FixtureRequest,
    kubernetes_servers: KubernetesServers,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Kubectl]:
    """A server with our CRD, applied by kubectl, and a namespace `shop`."""
    if request.param == "embedded":
        # No tokens: kubectl sends none over plain HTTP.
        with LoopbackServer(
            EmbeddedKubernetes(time.time, validate=refusal, conform=stored).handle
        ) as loopback:
            path = tmp_path_factory.mktemp("kubectl") / "kubeconfig"
            yield _prepared(
                Kubectl(kubernetes_servers, write_kubeconfig(path, url=loopback.url, token="none")),
                KubernetesWorld(loopback.url),
            )
    else:
        world = KubernetesWorld(
            kubernetes_servers.url,
            token=kubernetes_servers.admin_token,
            ca_file=kubernetes_servers.ca_file,
        )
        yield _prepared(Kubectl(kubernetes_servers, kubernetes_servers.kubeconfig), world)


def _prepared(kubectl: Kubectl, world: KubernetesWorld) -> Kubectl:
    kubectl("apply", "-f", str(DEFINITION))
    kubectl(
        "wait", "crd/eurekasyncers.eurekube.io", "--for=condition=Established", "--timeout=300s"
    )
    world.create_namespace("shop")
    wait_until(
        lambda: kubectl.run("get", "esync", "-n", "shop").returncode == 0, "the CRD is not served"
    )
    return kubectl


def test_a_syncer_is_applied_shown_changed_and_deleted(kubectl: Kubectl) -> None:
    """created, unchanged, configured; our columns; a strict refusal of a misspelt field;
    deleted."""
    assert kubectl("apply", "-f", "-", stdin=SYNCER) == "eurekasyncer.eurekube.io/rating created\n"
    assert (
        kubectl("apply", "-f", "-", stdin=SYNCER) == "eurekasyncer.eurekube.io/rating unchanged\n"
    )
    head, row = kubectl("get", "esync", "-n", "shop").splitlines()
    assert head.split() == ["NAME", "APP", "MODE", "READY", "REASON", "AGE"]
    assert row.split()[:2] == ["rating", "pod"]
    changed = SYNCER.replace("app: rating", "app: other")
    assert (
        kubectl("apply", "-f", "-", stdin=changed) == "eurekasyncer.eurekube.io/rating configured\n"
    )
    misspelt = kubectl.run("apply", "-f", "-", stdin=SYNCER.replace("selector", "selectors"))
    assert misspelt.returncode == 1
    assert 'unknown field "spec.selectors"' in misspelt.stderr
    described = kubectl("describe", "esync", "rating", "-n", "shop")
    assert "App:  other" in described
    deleted = kubectl("delete", "esync", "rating", "-n", "shop", "--timeout=300s")
    assert deleted.startswith('eurekasyncer.eurekube.io "rating" deleted')


def test_a_delete_waits_for_the_finalizer(kubectl: Kubectl) -> None:
    """--wait=false returns at once; the object goes when its finalizer does."""
    kubectl(
        "apply",
        "-f",
        "-",
        stdin=SYNCER.replace("namespace: shop", "namespace: shop, finalizers: [x.io/a]"),
    )
    kubectl("delete", "esync", "rating", "-n", "shop", "--wait=false")
    assert (
        kubectl("get", "esync", "rating", "-n", "shop", "-o", "jsonpath={.metadata.finalizers}")
        == '["x.io/a"]'
    )
    kubectl(
        "patch",
        "esync",
        "rating",
        "-n",
        "shop",
        "--type=merge",
        "-p",
        '{"metadata":{"finalizers":null}}',
    )
    gone = kubectl.run("get", "esync", "rating", "-n", "shop")
    assert 'eurekasyncers.eurekube.io "rating" not found' in gone.stderr


def test_a_service_is_changed_by_a_strategic_merge(kubectl: Kubectl) -> None:
    """One port of two is changed, the cluster IP stays."""
    service = """
apiVersion: v1
kind: Service
metadata: {name: rating, namespace: shop}
spec:
  selector: {app: rating}
  ports: [{name: http, port: 80, targetPort: 8080}, {name: metrics, port: 9100}]
"""
    assert kubectl("apply", "-f", "-", stdin=service) == "service/rating created\n"
    before = kubectl("get", "svc", "rating", "-n", "shop", "-o", "jsonpath={.spec.clusterIP}")
    changed = service.replace("targetPort: 8080", "targetPort: web")
    assert kubectl("apply", "-f", "-", stdin=changed) == "service/rating configured\n"
    spec = kubectl(
        "get",
        "svc",
        "rating",
        "-n",
        "shop",
        "-o",
        "jsonpath={.spec.clusterIP} {.spec.ports[*].targetPort}",
    )
    assert spec == f"{before} web 9100"
    assert kubectl("delete", "svc", "rating", "-n", "shop").startswith('service "rating" deleted')


def test_the_first_commands_of_anybody(kubectl: Kubectl) -> None:
    """Commands that create Namespaces, Services and ServiceAccounts send protobuf; one may also ask
    what one may."""
    assert kubectl("create", "namespace", "first") == "namespace/first created\n"
    assert (
        kubectl("create", "service", "clusterip", "x", "--tcp=80", "-n", "first")
        == "service/x created\n"
    )
    assert (
        kubectl("create", "service", "nodeport", "y", "--tcp=80:http", "-n", "first")
        == "service/y created\n"
    )
    external = (
        "create",
        "service",
        "externalname",
        "z",
        "--external-name=example.com",
        "-n",
        "first",
    )
    assert kubectl(*external) == "service/z created\n"
    assert (
        kubectl("create", "serviceaccount", "reader", "-n", "first")
        == "serviceaccount/reader created\n"
    )
    assert kubectl("auth", "can-i", "list", "pods", "-n", "first") == "yes\n"
    ports = kubectl(
        "get", "svc", "x", "y", "-n", "first", "-o", "jsonpath={.items[*].spec.ports[*].targetPort}"
    )
    assert ports == "80 http"
    assert kubectl("get", "ns", "first", "-o", "name") == "namespace/first\n"
    again = kubectl.run("create", "namespace", "first")
    assert 'namespaces "first" already exists' in again.stderr
    assert kubectl("delete", "service", "x", "-n", "first").startswith('service "x" deleted')
    assert kubectl("delete", "namespace", "first", "--timeout=300s").startswith(
        'namespace "first" deleted'
    )
    assert kubectl.run("get", "ns", "first").returncode == 1


def test_the_cronjob_is_applied_and_deleted(kubectl: Kubectl) -> None:
    """Roles, bindings and the CronJob are stored, and a second time nothing changes."""
    kubectl.run("create", "namespace", "eurekube-sync")
    rbac = "rbac.authorization.k8s.io"
    made = (
        "serviceaccount/eurekube-sync",
        f"role.{rbac}/eurekube-sync-lock",
        f"clusterrole.{rbac}/eurekube-sync",
        f"clusterrole.{rbac}/eurekube-sync-cluster",
        f"rolebinding.{rbac}/eurekube-sync-lock",
        f"clusterrolebinding.{rbac}/eurekube-sync",
        f"clusterrolebinding.{rbac}/eurekube-sync-cluster",
        "configmap/eurekube-sync-HASH",
        "cronjob.batch/eurekube-sync",
        "networkpolicy.networking.k8s.io/eurekube-sync",
    )
    base = str(ROOT / "cronjob" / "base")
    for outcome in ("created", "unchanged"):
        told = re.sub(
            "(?<=configmap/eurekube-sync-)[a-z0-9]+", "HASH", kubectl("apply", "-k", base)
        ).splitlines()
        assert told == [f"{name} {outcome}" for name in made]
    kubectl("delete", "-k", base)
    assert kubectl.run("get", "cronjob", "eurekube-sync", "-n", "eurekube-sync").returncode == 1


WRONG = [
    ("mode: pods", "spec.mode"),
    ("port: 99999", "spec.port"),
    ("limit: -3", "spec.limit"),
    ("hostName: foo", "spec.hostName"),
    ("port: a, securePort: a", "spec.securePort"),
]


@pytest.mark.parametrize(("field", "place"), WRONG)
def test_a_wrong_syncer_is_refused(kubectl: Kubectl, field: str, place: str) -> None:
    """The sentence names the field, and nothing is stored."""
    refused = kubectl.run(
        "apply", "-f", "-", stdin=SYNCER.replace("{app: rating}", f"{{app: rating}}, {field}")
    )
    assert refused.returncode == 1
    assert 'The EurekaSyncer "rating" is invalid: ' in refused.stderr
    assert f"{place}: " in refused.stderr
    assert kubectl.run("get", "esync", "rating", "-n", "shop").returncode == 1


@pytest.mark.parametrize("selector", ["{}", "rating"])
def test_a_selector_that_means_nothing_is_refused(kubectl: Kubectl, selector: str) -> None:
    """An empty one, and a word in its place."""
    assert (
        kubectl.run("apply", "-f", "-", stdin=SYNCER.replace("{app: rating}", selector)).returncode
        == 1
    )


def test_the_schema_is_explained(kubectl: Kubectl) -> None:
    """`kubectl explain` reads our descriptions from OpenAPI v3."""
    assert "KIND:       EurekaSyncer" in kubectl("explain", "esync.spec.mode")
