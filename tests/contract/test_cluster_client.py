"""The Kubernetes adapter over HTTP, as the official client is configured: on the embedded server
and the real one."""

from __future__ import annotations

import itertools
import json
import os
import random
import socket
import time
from pathlib import Path
from typing import Any

import pytest
import requests

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.connection import ClientConnection, ConnectionSettings
from eurekube_sync.model.docs import SITE
from eurekube_sync.model.errors import ClusterConflict, ClusterDenied, ConfigurationError
from eurekube_sync.model.kubernetes import (
    Condition,
    ConditionStatus,
    EventRecord,
    HostPort,
    Ingress,
    IngressPath,
    Pod,
    PodHost,
    PodReadiness,
    ServedPort,
    SyncerObject,
    SyncerRef,
    SyncerStatus,
)
from eurekube_sync.model.sources import Cause, Complete, Listed, Source, Unknown
from eurekube_sync.model.struct import replace
from tests.contract.client_subject import Subject
from tests.servers.go_builds import NEWEST_KUBERNETES, chosen_release

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FINALIZER = "eurekube.io/cleanup"
START = 1_800_000_000.0
_numbers = itertools.count(1)


@pytest.fixture
def namespace(subject: Subject) -> str:
    name = f"client-{next(_numbers)}"
    assert subject.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})[0] == 201
    return name


def make_syncer(subject: Subject, namespace: str, name: str = "rating", **metadata: Any) -> None:
    head = {
        "apiVersion": "eurekube.io/v1",
        "kind": "EurekaSyncer",
        "metadata": {"name": name, **metadata},
    }
    path = f"/apis/eurekube.io/v1/namespaces/{namespace}/eurekasyncers"
    deadline = time.monotonic() + 180
    while (answer := subject.call("POST", path, {**head, "spec": {"selector": {"app": name}}}))[
        0
    ] != 201:
        assert time.monotonic() < deadline, answer
        time.sleep(0.1)


def data(source: Source[Any]) -> tuple[Any, ...]:
    assert isinstance(source, Complete), source
    found: tuple[Any, ...] = source.data
    return found


def one(listed: Listed[SyncerObject], namespace: str) -> SyncerObject:
    (found,) = data(listed.of(namespace))
    assert isinstance(found, SyncerObject)
    return found


def test_the_identity_and_the_crd_are_read(subject: Subject) -> None:
    """The UID of kube-system, and a definition that is there to stay."""
    uid = subject.call("GET", "/api/v1/namespaces/kube-system")[1]["metadata"]["uid"]
    assert subject.cluster().identity() == Complete(data=uid)
    assert isinstance(subject.cluster().crd_live(), Complete)


def test_a_changed_crd_keeps_its_creation_time(subject: Subject) -> None:
    """It is younger than a deletion only when it was installed anew."""
    created = subject.cluster().crd_live()
    assert isinstance(created, Complete)
    while time.time() < created.data.by_server + 1:  # the API tells whole seconds
        time.sleep(0.05)
    body = {
        "metadata": {
            "annotations": {"changed": str(time.time())},
            "creationTimestamp": "2020-01-01T00:00:00Z",
        }
    }
    assert subject.call("PATCH", f"{CRDS}/eurekasyncers.eurekube.io", body)[0] == 200
    assert subject.cluster().crd_live() == created


def test_services_and_slices_are_listed(subject: Subject, namespace: str) -> None:
    """Cluster-wide and by namespace; a slice without endpoints is an empty one."""
    spec = {"selector": {"app": "a"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}
    path = f"/api/v1/namespaces/{namespace}/services"
    assert (
        subject.call(
            "POST", path, {"metadata": {"name": "a", "labels": {"app": "a"}}, "spec": spec}
        )[0]
        == 201
    )
    cluster = subject.cluster()
    for namespaces in (None, [namespace]):
        (service,) = data(cluster.list_services(namespaces).of(namespace))
        assert (service.name, service.labels, service.ip_families) == ("a", {"app": "a"}, ("IPv4",))
        assert (service.ports[0].port, service.ports[0].target) == (80, 8080)
    deadline = time.monotonic() + 180
    while not (slices := data(cluster.list_slices(None).of(namespace))):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert (slices[0].service, slices[0].address_type, slices[0].endpoints) == ("a", "IPv4", ())


def test_pods_are_listed_by_name_and_uid(subject: Subject, namespace: str) -> None:
    """Each Pod, whatever it is of; none where there are none."""
    cluster = subject.cluster()
    assert data(cluster.list_pods([namespace]).of(namespace)) == ()
    path = f"/api/v1/namespaces/{namespace}/pods"
    subject.call(
        "POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}}
    )
    expected = []
    for name in ("a", "b"):
        body = {
            "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "example.com/c"}]},
        }
        deadline = time.monotonic() + 180
        while (made := subject.call("POST", path, body))[0] != 201:
            assert time.monotonic() < deadline, made
            time.sleep(0.1)
        expected.append(Pod(name=name, uid=made[1]["metadata"]["uid"]))
    for namespaces in (None, [namespace]):
        found = data(cluster.list_pods(namespaces).of(namespace))
        assert sorted(found, key=lambda pod: pod.name) == expected


def test_drained_pods_are_listed_by_their_annotation(subject: Subject, namespace: str) -> None:
    """They are listed by UID, cluster-wide and by namespace. Only "true" drains, and the others are
    listed too."""
    cluster = subject.cluster()
    pods = f"/api/v1/namespaces/{namespace}/pods"
    subject.call(
        "POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}}
    )
    uids: dict[str, str] = {}
    for name, value in (("a", "true"), ("b", "false"), ("c", None)):
        annotations = {"eurekube.io/drain": value} if value else None
        pod = {
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"containers": [_CONTAINER]},
        }
        deadline = time.monotonic() + 180
        while (made := subject.call("POST", pods, pod))[0] != 201:
            assert time.monotonic() < deadline, made
            time.sleep(0.1)
        uids[name] = made[1]["metadata"]["uid"]
    for namespaces in (None, [namespace]):
        listed = data(cluster.list_pod_drains(namespaces).of(namespace))
        drained = {pod.id: pod.drained for pod in listed}
        assert drained == {uids["a"]: True, uids["b"]: False, uids["c"]: False}


_CONTAINER = {"name": "c", "image": "example.com/c"}


def test_the_host_ports_of_pods_are_read(subject: Subject, namespace: str) -> None:
    """With the node's addresses from the status. A UDP port is none."""
    cluster = subject.cluster()
    pods = f"/api/v1/namespaces/{namespace}/pods"
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    subject.call("POST", account, {"metadata": {"name": "default"}})
    ports = [
        {"containerPort": 8080, "hostPort": 31080},
        {"containerPort": 8443, "hostPort": 31443, "hostIP": "203.0.113.1"},
        {"containerPort": 53, "hostPort": 31053, "protocol": "UDP"},
        {"containerPort": 9090},
    ]
    specs: dict[str, Any] = {
        "a": {"containers": [{**_CONTAINER, "ports": ports}]},
        "b": {"containers": [_CONTAINER], "hostNetwork": True},
    }
    uids: dict[str, str] = {}
    for name, spec in specs.items():
        pod = {"metadata": {"name": name}, "spec": spec}
        deadline = time.monotonic() + 180
        while (made := subject.call("POST", pods, pod))[0] != 201:
            assert time.monotonic() < deadline, made
            time.sleep(0.1)
        uids[name] = made[1]["metadata"]["uid"]
    status = {"hostIP": "192.168.7.1", "hostIPs": [{"ip": "192.168.7.1"}, {"ip": "fd00:7::1"}]}
    subject.call("PATCH", f"{pods}/a/status", {"status": status})
    a = PodHost(
        uid=uids["a"],
        addresses=("192.168.7.1", "fd00:7::1"),
        ports={8080: HostPort(31080), 8443: HostPort(31443, "203.0.113.1")},
    )
    b = PodHost(uid=uids["b"], host_network=True)
    for namespaces in (None, [namespace]):
        listed = data(cluster.list_hosts(namespaces).of(namespace))
        assert sorted(listed, key=lambda host: len(host.ports)) == [b, a]


def test_ingresses_are_read_with_their_hosts(subject: Subject, namespace: str) -> None:
    """Each path names its Service and port. A backend of another kind is none."""
    cluster = subject.cluster()
    to_http = {"service": {"name": "a", "port": {"name": "http"}}}
    paths = [
        {"path": "/", "pathType": "Prefix", "backend": to_http},
        {
            "pathType": "ImplementationSpecific",
            "backend": {"service": {"name": "b", "port": {"number": 81}}},
        },
        {
            "path": "/c",
            "pathType": "Exact",
            "backend": {"resource": {"kind": "Bucket", "name": "c"}},
        },
    ]
    spec = {
        "defaultBackend": {"service": {"name": "d", "port": {"number": 80}}},
        "rules": [{"host": "a.example.com", "http": {"paths": paths}}, {"host": "b.example.com"}],
        "tls": [{"hosts": ["a.example.com", "*.example.net"]}, {"secretName": "all"}],
    }
    path = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/ingresses"
    status, answer = subject.call("POST", path, {"metadata": {"name": "web"}, "spec": spec})
    assert status == 201, answer
    balancer = {"ingress": [{"ip": "203.0.113.1"}, {"hostname": "lb.example.net"}]}
    subject.call("PATCH", f"{path}/web/status", {"status": {"loadBalancer": balancer}})
    web = Ingress(
        name="web",
        paths=(
            IngressPath("", "", "d", 80),
            IngressPath("a.example.com", "/", "a", "http"),
            IngressPath("a.example.com", "", "b", 81),
        ),
        tls=("a.example.com", "*.example.net", ""),
        addresses=("203.0.113.1", "lb.example.net"),
    )
    for namespaces in (None, [namespace]):
        assert data(cluster.list_ingresses(namespaces).of(namespace)) == (web,)


def test_without_the_gateway_api_its_lists_are_unknown(subject: Subject, namespace: str) -> None:
    """They are not empty, and the sentence says what lacks."""
    cluster = subject.cluster()
    for source in (
        cluster.list_routes(None).of(namespace),
        cluster.list_routes([namespace]).of(namespace),
        cluster.list_gateways([namespace]).of(namespace),
        cluster.list_reference_grants([namespace]).of(namespace),
    ):
        assert isinstance(source, Unknown)
        assert source.cause is Cause.API_MISSING
        assert "the Gateway API is not installed" in source.message


def test_a_gate_is_opened_beside_the_pods_other_conditions(
    subject: Subject, namespace: str
) -> None:
    """A pod is as ready as its containers and its other gates; another pod of that name, or none,
    is left alone."""
    cluster = subject.cluster()
    pods = f"/api/v1/namespaces/{namespace}/pods"
    subject.call(
        "POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}}
    )
    gates = [{"conditionType": "eurekube.io/registered"}, {"conditionType": "example.com/other"}]
    spec = {"containers": [{"name": "c", "image": "example.com/c"}], "readinessGates": gates}
    deadline = time.monotonic() + 180
    while (made := subject.call("POST", pods, {"metadata": {"name": "a"}, "spec": spec}))[0] != 201:
        assert time.monotonic() < deadline, made
        time.sleep(0.1)
    (pod,) = data(cluster.list_readiness([namespace]).of(namespace))
    uid = made[1]["metadata"]["uid"]
    assert pod == PodReadiness(
        namespace=namespace, name="a", uid=uid, ready=False, registered=False
    )
    ready = [{"type": name, "status": "True"} for name in ("ContainersReady", "example.com/other")]
    subject.call("PATCH", f"{pods}/a/status", {"status": {"conditions": ready}})
    (pod,) = data(cluster.list_readiness([namespace]).of(namespace))
    assert (pod.ready, pod.registered) == (True, False)
    for other in (replace(pod, uid="another"), replace(pod, name="gone")):
        cluster.open_gate(other, reason="Registered", message="x", at=START)
    assert data(cluster.list_readiness([namespace]).of(namespace)) == (pod,)
    cluster.open_gate(pod, reason="Registered", message="it is UP", at=START)
    assert data(cluster.list_readiness([namespace]).of(namespace)) == (
        replace(pod, registered=True),
    )
    conditions = subject.call("GET", f"{pods}/a")[1]["status"]["conditions"]
    assert [c["type"] for c in conditions if c["status"] == "True"].count(
        "eurekube.io/registered"
    ) == 1
    assert {"ContainersReady", "example.com/other"} <= {c["type"] for c in conditions}


def test_more_than_a_page_is_listed_whole(subject: Subject, namespace: str) -> None:
    """501 objects are two pages, the answers above 128 KiB compressed."""
    head = {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["192.0.2.1"]}],
        "ports": [{"port": 80}],
    }
    path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {subject.token}"
        for number in range(501):
            labels = {"kubernetes.io/service-name": "a", "filler": "x" * 60}
            body = {"metadata": {"name": f"s-{number}", "labels": labels}, **head}
            url = f"{subject.url}{path}"
            assert (
                session.post(url, json=body, verify=subject.ca_file or True, timeout=60).status_code
                == 201
            )
    assert len(data(subject.cluster().list_slices([namespace]).of(namespace))) == 501


def test_a_finalizer_is_put_on_and_taken_off(subject: Subject, namespace: str) -> None:
    """Beside another's, which stays; an older version that only differs in labels is read again."""
    make_syncer(subject, namespace, finalizers=["x.io/a"])
    cluster = subject.cluster()
    seen = one(cluster.list_syncers([namespace]), namespace)
    path = f"/apis/eurekube.io/v1/namespaces/{namespace}/eurekasyncers/rating"
    subject.call("PATCH", path, {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(ClusterConflict):
        cluster.add_finalizer(
            replace(one(cluster.list_syncers([namespace]), namespace), uid="another")
        )
    assert cluster.add_finalizer(seen).finalizers == ("x.io/a", FINALIZER)
    subject.call("DELETE", path)
    deleting = one(cluster.list_syncers(None), namespace)
    cluster.remove_finalizer(replace(deleting, uid="another"))
    assert one(cluster.list_syncers(None), namespace) == deleting
    assert deleting.deleted is not None
    with pytest.raises(ClusterConflict):
        cluster.add_finalizer(seen)
    cluster.remove_finalizer(deleting)
    assert one(cluster.list_syncers(None), namespace).finalizers == ("x.io/a",)
    subject.call("PATCH", path, {"metadata": {"finalizers": None}})
    cluster.remove_finalizer(deleting)
    assert data(cluster.list_syncers([namespace]).of(namespace)) == ()


def test_a_status_is_written_once(subject: Subject, namespace: str) -> None:
    """A conflict is read again; the same status again leaves the resourceVersion alone."""
    make_syncer(subject, namespace)
    cluster = subject.cluster()
    seen = one(cluster.list_syncers([namespace]), namespace)
    path = f"/apis/eurekube.io/v1/namespaces/{namespace}/eurekasyncers/rating"
    subject.call("PATCH", path, {"metadata": {"labels": {"a": "b"}}})
    status = SyncerStatus(
        observed_generation=1,
        ready="1/2",
        desired=2,
        registered=2,
        up=1,
        down=1,
        apps=("RATING",),
        ports=(ServedPort("a", 8080, 8443), ServedPort("b", secure_port=8443)),
        unconfirmed_removal="0123456789ab",
        unconfirmed_since=1700000000,
        eureka_unknown_since=1700000001,
    )
    cluster.write_status(seen, status)
    written = one(cluster.list_syncers([namespace]), namespace)
    assert written.status == status
    cluster.write_status(written, status)
    assert (
        one(cluster.list_syncers([namespace]), namespace).resource_version
        == written.resource_version
    )
    subject.call("PATCH", path, {"spec": {"mode": "service"}})
    with pytest.raises(ClusterConflict):
        cluster.write_status(written, SyncerStatus(observed_generation=1, ready="2/2"))


def test_a_condition_says_where_its_help_is(subject: Subject, namespace: str) -> None:
    """For a reader of `kubectl describe`, if something is wrong or unknown. Our own messages are
    not longer for it, and the status that is read back is the same."""
    make_syncer(subject, namespace)
    cluster = subject.cluster()
    seen = one(cluster.list_syncers([namespace]), namespace)
    conditions = []
    for type_, condition_status, reason in (
        ("Ready", "False", "NoMatchingService"),
        ("Synced", "Unknown", "SourceUnknown"),
        ("Conflict", "True", "Conflict"),
        ("RemovalHeld", "False", "NothingHeld"),
    ):
        conditions.append(
            Condition(
                type=type_,
                status=ConditionStatus(condition_status),
                reason=reason,
                message="why",
                observed_generation=1,
                last_transition=1_700_000_000,
            )
        )
    status = SyncerStatus(observed_generation=1, conditions=tuple(conditions), ready="0/0")
    cluster.write_status(seen, status)
    assert one(cluster.list_syncers([namespace]), namespace).status == status
    path = f"/apis/eurekube.io/v1/namespaces/{namespace}/eurekasyncers/rating"
    written = subject.call("GET", path)[1]["status"]["conditions"]
    assert {condition["type"]: condition.get("help") for condition in written} == {
        "Ready": f"{SITE}/troubleshooting/#nomatchingservice",
        "Synced": f"{SITE}/troubleshooting/#sourceunknown",
        "Conflict": f"{SITE}/troubleshooting/#conflict",
        "RemovalHeld": None,
    }


def test_a_warning_says_where_its_help_is(subject: Subject, namespace: str) -> None:
    """At the end, where a long message is not cut; the API takes 1024 characters. Good news need
    none."""
    make_syncer(subject, namespace)
    warning = EventRecord(
        syncer=SyncerRef(namespace, "rating"),
        uid="u",
        warning=True,
        reason="TooManyRemovals",
        message="x" * 1024,
        key="held",
    )
    cluster = subject.cluster()
    good = replace(warning, warning=False, reason="NothingHeld", message="well", key="well")
    now = time.time()
    cluster.record_event(warning, at=now)
    cluster.record_event(good, at=now)
    subject.cluster().record_event(warning, at=now + 360)
    items = subject.call("GET", f"/api/v1/namespaces/{namespace}/events")[1]["items"]
    messages = {item["reason"]: item["message"] for item in items}
    assert messages["NothingHeld"] == "well"
    long = messages["TooManyRemovals"]
    assert len(long) == 1024
    assert long.endswith(f"x. See {SITE}/troubleshooting/#toomanyremovals")


def test_an_event_is_counted_and_not_repeated(subject: Subject, namespace: str) -> None:
    """Two processes, six minutes apart: one Event, counted twice, read by an empty patch."""
    make_syncer(subject, namespace)
    event = EventRecord(
        syncer=SyncerRef(namespace, "rating"),
        uid="u",
        warning=True,
        reason="Held",
        message="12 held",
        key="held",
    )
    now = time.time()
    for seconds in (0, 120, 360):
        subject.cluster().record_event(event, at=now + seconds)
    items = subject.call("GET", f"/api/v1/namespaces/{namespace}/events")[1]["items"]
    assert [(item["reason"], item["type"], item["count"]) for item in items] == [
        ("Held", "Warning", 2)
    ]


def test_a_terminating_namespace_takes_no_event_and_says_so_to_nobody(
    subject: Subject, namespace: str
) -> None:
    """The event is dropped; the status is still written, the finalizer still comes off."""
    make_syncer(subject, namespace, finalizers=[FINALIZER])
    cluster = subject.cluster()
    subject.call("DELETE", f"/api/v1/namespaces/{namespace}")
    deadline = time.monotonic() + 180
    while (seen := one(cluster.list_syncers([namespace]), namespace)).deleted is None:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    event = EventRecord(
        syncer=seen.ref,
        uid=seen.uid,
        warning=False,
        reason="Deleted",
        message="deleted",
        key="deleted",
    )
    cluster.record_event(event, at=time.time())
    cluster.write_status(seen, SyncerStatus(observed_generation=seen.generation, ready="0/0"))
    cluster.remove_finalizer(seen)
    assert data(cluster.list_syncers([namespace]).of(namespace)) == ()


def test_a_wrong_token_is_denied(subject: Subject) -> None:
    """401, also after the credentials were read anew."""
    cluster = subject.cluster(subject.kubeconfig(token="wrong"))
    found = cluster.identity()
    assert isinstance(found, Unknown)
    assert found.cause is Cause.DENIED
    assert "wrong" not in found.message
    listed = cluster.list_syncers(None).elsewhere
    assert isinstance(listed, Unknown)
    assert listed.cause is Cause.DENIED
    event = EventRecord(
        syncer=SyncerRef("a", "b"), uid="u", warning=True, reason="Held", message="m", key="k"
    )
    with pytest.raises(ClusterDenied):
        cluster.record_event(event, at=0)


def test_a_new_token_is_read_after_a_401(subject: Subject) -> None:
    """The kubeconfig is read again once: whoever rotates it need not restart us."""
    path = subject.kubeconfig(token="old")
    cluster = subject.cluster(path)
    Path(path).write_text(Path(subject.kubeconfig()).read_text())
    assert isinstance(cluster.identity(), Complete)


def test_an_exec_plugin_gives_the_token(subject: Subject) -> None:
    """As the clouds' kubeconfigs do it."""
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": subject.token},
    }
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", f"echo '{json.dumps(credential)}'"],
        "interactiveMode": "Never",
    }
    assert isinstance(
        subject.cluster(subject.kubeconfig(user={"exec": plugin})).identity(), Complete
    )


class TestConfiguration:
    """No server is needed: what is wrong with the configuration is one sentence."""

    def refused(
        self, kubeconfig: str = "", context: str = "", environ: dict[str, str] | None = None
    ) -> str:
        settings = ConnectionSettings(kubeconfig=kubeconfig, context=context)
        with pytest.raises(ConfigurationError) as caught:
            ClientConnection(settings, environ or {})
        text = str(caught.value)
        assert "\n" not in text
        return text

    def kubeconfig(self, directory: Path, **changes: Any) -> str:
        content = {
            "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "one",
            **changes,
        }
        path = directory / "config"
        path.write_text(json.dumps(content))
        return str(path)

    def test_a_missing_file(self, tmp_path: Path) -> None:
        """It is named, and the option that helps."""
        path = str(tmp_path / "absent")
        expected = (
            f"there is no kubeconfig {path}, and this does not run in a cluster: give "
            "--kubeconfig FILE"
        )
        assert self.refused(path) == expected
        assert self.refused(environ={"KUBECONFIG": path}) == expected

    def test_an_unknown_context(self, tmp_path: Path) -> None:
        """The contexts there are."""
        path = self.kubeconfig(tmp_path)
        assert (
            self.refused(path, "two") == f"the kubeconfig {path} has no context 'two'; it has: one"
        )

    def test_no_current_context(self, tmp_path: Path) -> None:
        """None is set, or one that does not exist."""
        path = self.kubeconfig(tmp_path, **{"current-context": ""})
        assert "has no current context: give --context; it has: one" in self.refused(path)
        path = self.kubeconfig(tmp_path, **{"current-context": "gone"})
        assert "has no context 'gone'" in self.refused(path)

    @pytest.mark.parametrize("text", ["a: [", "- a", "", "\x00"])
    def test_a_file_that_is_no_kubeconfig(self, tmp_path: Path, text: str) -> None:
        """Broken YAML, a list, nothing."""
        (tmp_path / "config").write_text(text)
        assert str(tmp_path / "config") in self.refused(str(tmp_path / "config"))

    def test_a_context_without_a_cluster_or_with_a_bad_certificate(self, tmp_path: Path) -> None:
        """What only the client itself finds is passed on in one line."""
        assert "cannot be used" in self.refused(self.kubeconfig(tmp_path, clusters=[]))
        cluster = {"server": "https://127.0.0.1:9", "certificate-authority": "/absent/ca.crt"}
        path = self.kubeconfig(tmp_path, clusters=[{"name": "c", "cluster": cluster}])
        assert "/absent/ca.crt" in self.refused(path)

    def test_a_cluster_without_a_service_account(self) -> None:
        """In a pod whose token is not mounted."""
        if os.path.exists("/var/run/secrets/kubernetes.io/serviceaccount/token"):
            pytest.fail("this test must not run in a pod with a service account")
        environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
        assert "its service account cannot be used" in self.refused(environ=environ)

    def test_a_server_that_is_not_there(self, tmp_path: Path) -> None:
        """Connecting is no matter of configuration: the source is Unknown, and the address is
        named."""
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{bound.getsockname()[1]}"
            path = self.kubeconfig(tmp_path, clusters=[{"name": "c", "cluster": {"server": url}}])
            connection = ClientConnection(ConnectionSettings(kubeconfig=path), {})
            cluster = KubernetesCluster(
                connection, clock=SystemClock(), random=random.Random(1), tries=1
            )
            found = cluster.identity()
        assert isinstance(found, Unknown)
        assert found.cause is Cause.UNAVAILABLE
        assert url in found.message

    def test_a_server_that_never_answers(self, tmp_path: Path) -> None:
        """Every call has a timeout."""
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            path = self.kubeconfig(tmp_path, clusters=[{"name": "c", "cluster": {"server": url}}])
            connection = ClientConnection(ConnectionSettings(kubeconfig=path, read_seconds=0.2), {})
            cluster = KubernetesCluster(
                connection, clock=SystemClock(), random=random.Random(1), tries=1
            )
            assert isinstance(cluster.identity(), Unknown)


@pytest.mark.parametrize(
    ("family", "written", "read"),
    [("IPv4", "010.0.0.1", "10.0.0.1"), ("IPv6", "2001:DB8:0::1", "2001:db8::1")],
)
def test_an_address_that_is_not_canonical_is_refused_or_read_as_if_it_were(
    subject: Subject, family: str, written: str, read: str
) -> None:
    """The newest API server refuses it in a slice, and older ones take it."""
    namespace = f"canonical-{next(_numbers)}"
    subject.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    body = {
        "metadata": {"name": "by-hand", "labels": {"kubernetes.io/service-name": "rating"}},
        "addressType": family,
        "ports": [{"name": "http", "port": 80}],
        "endpoints": [{"addresses": [written]}],
    }
    code, _ = subject.call("POST", slices, body)
    pieces = data(subject.cluster().list_slices([namespace]).of(namespace))
    addresses = [endpoint.address for piece in pieces for endpoint in piece.endpoints]
    assert (code, addresses) in ((422, []), (201, [read]))
    assert code == 422 or chosen_release() != NEWEST_KUBERNETES
