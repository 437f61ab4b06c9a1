"""A stored syncer that a stricter CRD refuses: from Kubernetes 1.30 on our writes pass, before none
does. And an older CRD, which drops what it does not know."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
import requests

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.kubernetes.calls import JSON_PATCH
from eurekube_sync.adapters.kubernetes.client import SYNCERS as KIND
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.connection import ClientConnection, ConnectionSettings
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.manifests.crd import load_crd
from eurekube_sync.model.errors import ClusterRejected
from eurekube_sync.model.kubernetes import SyncerObject, SyncerStatus
from eurekube_sync.model.sources import Complete
from eurekube_sync.model.struct import replace
from tests.cases import manifest_of
from tests.servers.go_builds import OLDEST_KUBERNETES, kubernetes
from tests.servers.kube import ApiServer, Etcd
from tests.servers.world import KubernetesWorld, write_kubeconfig
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

DEFINITION = KIND.crd_path
SYNCERS = "/apis/eurekube.io/v1/namespaces/default/eurekasyncers"
SPEC = {"selector": {"app": "rating"}, "hostName": "ip"}
STATUS = SyncerStatus(observed_generation=1, ready="1/1", desired=1, registered=1, up=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An API server of its own, because each test changes the CRD of all."""

    world: KubernetesWorld
    cluster: KubernetesCluster
    calls: Counter[str]  # of the cluster, by the HTTP status of the answer

    def begin(self) -> None:
        """Have our own CRD, and no syncer."""
        self._define(load_crd())
        wait_until(lambda: self.takes(SPEC), "the CRD is not served")
        mended = {"spec": {"selector": {"app": "pay"}}, "metadata": {"finalizers": None}}
        for syncer in self.world.request("GET", SYNCERS)["items"]:
            self.world.request("PATCH", f"{SYNCERS}/{syncer['metadata']['name']}", mended)
        self.world.request("DELETE", SYNCERS)

    def define(self, stricter: Callable[[dict[str, Any]], None]) -> None:
        """Have a stricter CRD, and wait until new syncers are judged by it."""
        definition = deepcopy(load_crd())
        stricter(
            definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        )
        self._define(definition)
        wait_until(lambda: not self.takes(SPEC), "the CRD is not stricter")

    def define_without(self, *fields: str) -> None:
        """Have a CRD whose status lacks these fields, and wait until it drops one."""
        definition = deepcopy(load_crd())
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for field in fields:
            del schema["properties"]["status"]["properties"][field]
        self._define(definition)
        self.make("probe")
        path = f"{SYNCERS}/probe/status"
        given = {"status": {"observedGeneration": 1, fields[0]: "given"}}
        wait_until(
            lambda: fields[0] not in self.world.request("PATCH", path, given)["status"],
            "the CRD is not older",
        )

    def _define(self, definition: Any) -> None:
        self.world.request(
            "PATCH", DEFINITION, {"spec": definition["spec"]}
        )  # the list of versions as a whole

    def takes(self, spec: dict[str, Any]) -> bool:
        """Whether a new syncer may have this spec."""
        try:
            self.world.request("POST", f"{SYNCERS}?dryRun=All", manifest_of(spec))
        except requests.HTTPError:
            return False
        return True

    def make(self, name: str, *finalizers: str) -> SyncerObject:
        """Create a syncer and return it as our client lists it."""
        manifest = manifest_of(SPEC)
        manifest["metadata"] = {"name": name, "finalizers": list(finalizers)}
        self.world.request("POST", SYNCERS, manifest)
        return self.listed(name)

    def listed(self, name: str) -> SyncerObject:
        """The syncer as our client lists it."""
        (syncer,) = [syncer for syncer in self.all_listed() if syncer.name == name]
        return syncer

    def all_listed(self) -> Sequence[SyncerObject]:
        """All syncers of the namespace."""
        source = self.cluster.list_syncers(["default"]).of("default")
        assert isinstance(source, Complete), source
        return source.data


def started(programs: Path, directory: Path) -> Iterator[Subject]:
    """An API server with our CRD."""
    with Etcd() as etcd, ApiServer(etcd_url=etcd.url, programs=programs) as server:
        reached = {"url": server.url, "token": server.admin_token}
        kubeconfig = write_kubeconfig(directory / "kubeconfig", **reached, ca_file=server.ca_file)
        connection = ClientConnection(ConnectionSettings(kubeconfig=str(kubeconfig)), {})
        calls: Counter[str] = Counter()
        subject = Subject(
            calls=calls,
            world=KubernetesWorld(server.url, token=server.admin_token, ca_file=server.ca_file),
            cluster=KubernetesCluster(
                connection,
                clock=SystemClock(),
                random=random.Random(1),
                tries=2,
                count=lambda code: calls.update([code]),
            ),
        )
        subject.world.request("POST", DEFINITION.rpartition("/")[0], cast(Any, load_crd()))
        yield subject


@pytest.fixture(scope="module")
def oldest_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    yield from started(kubernetes(OLDEST_KUBERNETES), tmp_path_factory.mktemp("oldest"))


@pytest.fixture(scope="module")
def newest_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    yield from started(kubernetes(), tmp_path_factory.mktemp("newest"))


@pytest.fixture
def oldest(oldest_server: Subject) -> Subject:
    """Kubernetes 1.28, which checks the whole object at each write."""
    oldest_server.begin()
    return oldest_server


@pytest.fixture
def newest(newest_server: Subject) -> Subject:
    """A Kubernetes that lets stand what a write leaves as it was (CRD ratcheting, from 1.30 on)."""
    newest_server.begin()
    return newest_server


def pattern(spec: dict[str, Any]) -> None:
    """The app has to match."""
    spec["properties"]["selector"]["properties"]["app"]["pattern"] = "^pay"


def rule(spec: dict[str, Any]) -> None:
    """A rule in CEL, of the whole spec."""
    no_host = {"rule": "!has(self.hostName)", "message": "hostName is gone"}
    spec["x-kubernetes-validations"] = [*spec.get("x-kubernetes-validations", ()), no_host]


def required(spec: dict[str, Any]) -> None:
    """A field that was left out is required."""
    spec["required"] = [*spec.get("required", ()), "appName"]


STRICTER = pytest.mark.parametrize(
    ("stricter", "field"),
    [(pattern, "spec.selector.app"), (rule, "spec"), (required, "spec.appName")],
)


@pytest.mark.oldest
@STRICTER
def test_on_the_oldest_only_a_mended_spec_frees_a_syncer(
    oldest: Subject, stricter: Callable[[dict[str, Any]], None], field: str
) -> None:
    """The error names the field at the first try, for both directions. With another spec the
    finalizer goes."""
    stuck, bare = oldest.make("stuck", CLEANUP_FINALIZER), oldest.make("bare")
    oldest.define(stricter)
    oldest.world.request("DELETE", f"{SYNCERS}/stuck")
    stuck = oldest.listed("stuck")
    assert stuck.deleted is not None
    with pytest.raises(
        ClusterRejected,
        match=f"^the finalizer of syncer default/stuck .* mends its spec.*: {field}: ",
    ):
        oldest.cluster.remove_finalizer(stuck)
    with pytest.raises(
        ClusterRejected,
        match=f"^the finalizer of syncer default/bare .* mends its spec.*: {field}: ",
    ):
        oldest.cluster.add_finalizer(bare)
    mended = {"spec": {"selector": {"app": "pay"}, "hostName": None, "appName": "rating"}}
    oldest.world.request("PATCH", f"{SYNCERS}/stuck", mended)
    oldest.cluster.remove_finalizer(oldest.listed("stuck"))
    with pytest.raises(requests.HTTPError, match="404"):
        oldest.world.request("GET", f"{SYNCERS}/stuck")


@pytest.mark.oldest
def test_on_the_oldest_a_rule_of_the_whole_spec_refuses_a_status_as_well(oldest: Subject) -> None:
    """A pattern does not: a write of the status is checked by the rules, and not by the schema of
    the spec."""
    oldest.make("bare")
    oldest.define(pattern)
    oldest.cluster.write_status(oldest.listed("bare"), STATUS)
    oldest.define(rule)
    wait_until(lambda: status_refused(oldest), "the rule does not refuse a status")


def status_refused(subject: Subject) -> bool:
    """Whether a write of the status names the spec. The handler for it may be a moment behind that
    for new syncers."""
    try:
        subject.cluster.write_status(
            subject.listed("bare"), SyncerStatus(observed_generation=1, ready="0/1")
        )
    except ClusterRejected as error:
        return str(error).startswith("the status of syncer default/bare cannot be written")
    return False


@STRICTER
def test_on_the_newest_our_writes_pass(
    newest: Subject, stricter: Callable[[dict[str, Any]], None], field: str
) -> None:
    """They leave the spec as it was."""
    stuck, bare = newest.make("stuck", CLEANUP_FINALIZER), newest.make("bare")
    newest.define(stricter)
    newest.cluster.write_status(stuck, STATUS)
    newest.cluster.add_finalizer(bare)
    newest.world.request("DELETE", f"{SYNCERS}/stuck")
    newest.cluster.remove_finalizer(newest.listed("stuck"))
    with pytest.raises(requests.HTTPError, match="404"):
        newest.world.request("GET", f"{SYNCERS}/stuck")


@pytest.mark.oldest
def test_on_the_oldest_a_failed_test_of_a_json_patch_has_no_cause_either(oldest: Subject) -> None:
    """It is a 422 as well, and means that somebody else was faster."""
    oldest.make("rating")
    patch: Any = [{"op": "test", "path": "/metadata/uid", "value": "another"}]
    with pytest.raises(requests.HTTPError, match=r'"reason":"Invalid","details":\{\},"code":422'):
        oldest.world.request("PATCH", f"{SYNCERS}/rating", patch, patch_type=JSON_PATCH)


@pytest.mark.parametrize("server", [pytest.param("oldest", marks=pytest.mark.oldest), "newest"])
def test_what_an_older_crd_drops_is_written_once_a_pass(
    server: str, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    """To see whether the CRD has it by now. No other status is written again, and who reads the log
    learns what to do."""
    subject: Subject = request.getfixturevalue(server)
    subject.define_without("vipAddress", "appName")
    status = replace(STATUS, app_name="PAY", vip_address="pay")
    names = ("a", "b", "c")
    for name in names:
        subject.make(name)
    for listed in written(subject, names, status):
        assert listed.status == STATUS
    before = subject.calls["200"]
    written(subject, names, status)
    # A list before and after, and one write.
    assert subject.calls["200"] - before == 3
    changed = replace(status, up=0, down=1)
    for listed in written(subject, names, changed):
        assert listed.status == replace(STATUS, up=0, down=1)
    assert [record.getMessage() for record in caplog.records] == [
        "the CustomResourceDefinition eurekasyncers.eurekube.io drops what it does not know of a "
        "status: appName, vipAddress. Bring it to this version: eurekube-sync crd | kubectl apply "
        "--server-side -f -"
    ]
    subject.begin()
    subject.make("a")
    wait_until(
        lambda: [listed.status for listed in written(subject, ["a"], status)] == [status],
        "the CRD does not know the fields again",
    )


def written(subject: Subject, names: Sequence[str], status: SyncerStatus) -> Sequence[SyncerObject]:
    """Write this status of each syncer, as a pass does, and return the syncers as listed then."""
    for syncer in subject.all_listed():
        if syncer.name in names:
            subject.cluster.write_status(syncer, status)
    return [syncer for syncer in subject.all_listed() if syncer.name in names]
