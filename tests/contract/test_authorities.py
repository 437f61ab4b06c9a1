"""Certificates that strict verification refuses, on embedded and real servers: kubectl, curl and
Java accept them."""

from __future__ import annotations

import json
import random
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.connection import ClientConnection, ConnectionSettings
from eurekube_sync.model.sources import Complete, Unknown
from tests.certificates import Authority, server_context, serving_tls
from tests.contract.eureka_subject import SetClock
from tests.embedded.eureka import FullEureka
from tests.embedded.kubernetes import FullKubernetes
from tests.odd_authorities import (
    FOR_CLIENTS,
    KINDS,
    PINNED,
    Issued,
    issue,
    verify_strictly,
    verify_up_to_a_root,
)

SERVERS = ["embedded", pytest.param("real", marks=pytest.mark.servers)]
HOST = "localhost"


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every Python verifies strictly by default here, as Python 3.13 does."""
    verify_strictly(monkeypatch)


@pytest.fixture(params=KINDS)
def issued(request: pytest.FixtureRequest, tmp_path: Path) -> Issued:
    return issue(request.param, tmp_path, HOST)


@contextmanager
def eureka_of(kind: str, issued: Issued) -> Iterator[str]:
    """Run a Eureka with this certificate, and give its URL."""
    if kind == "embedded":
        with serving_tls(
            FullEureka(SetClock().now).handle, server_context(issued.certificate, issued.key)
        ) as url:
            yield f"{url}/eureka"
    else:
        from tests.servers.eureka import EurekaServer, ServerTls

        tls = ServerTls(
            certificate=issued.certificate,
            private_key=issued.key,
            ca_file=issued.ca_file,
            probe_verifies=False,
        )
        with EurekaServer(tls=tls) as server:
            yield server.url


@contextmanager
def kubernetes_of(kind: str, issued: Issued) -> Iterator[tuple[str, str]]:
    """Run a Kubernetes API with this certificate, and give its URL and a token."""
    if kind == "embedded":
        server = FullKubernetes(SystemClock().now)
        with serving_tls(server.handle, server_context(issued.certificate, issued.key)) as url:
            yield url, "any"
    else:
        from tests.servers.kube import ApiServer, Etcd

        files = (issued.certificate, issued.key, issued.ca_file)
        with Etcd() as etcd, ApiServer(etcd_url=etcd.url, certificate=files) as api:
            yield api.url.replace("127.0.0.1", HOST), api.admin_token


def cluster(folder: Path, url: str, token: str, ca_file: Path) -> KubernetesCluster:
    content = {
        "clusters": [
            {"name": "c", "cluster": {"server": url, "certificate-authority": str(ca_file)}}
        ],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "one",
    }
    (folder / "config").write_text(json.dumps(content))
    connection = ClientConnection(ConnectionSettings(kubeconfig=str(folder / "config")), {})
    return KubernetesCluster(connection, clock=SystemClock(), random=random.Random(0), tries=1)


def eureka(url: str, ca_file: Path) -> EurekaClient:
    options = ConnectionOptions(address=EurekaAddress.parse(url), ca_file=str(ca_file))
    return EurekaClient(options, clock=SystemClock(), random=random.Random(0))


@pytest.mark.parametrize("kind", SERVERS)
def test_eureka_with_such_a_certificate_is_called(kind: str, issued: Issued) -> None:
    """The default of urllib3 refuses it, and ours does not."""
    with eureka_of(kind, issued) as url:
        with pytest.raises(requests.exceptions.SSLError):
            requests.get(f"{url}/apps", verify=str(issued.ca_file), timeout=30)
        with eureka(url, issued.ca_file) as client:
            assert client.list_instances() == Complete(data=())


@pytest.mark.parametrize("kind", SERVERS)
def test_kubernetes_with_such_a_certificate_is_called(
    kind: str, issued: Issued, tmp_path: Path
) -> None:
    """The default of urllib3 refuses it, and ours does not."""
    with kubernetes_of(kind, issued) as (url, token):
        with pytest.raises(requests.exceptions.SSLError):
            requests.get(f"{url}/version", verify=str(issued.ca_file), timeout=30)
        assert isinstance(cluster(tmp_path, url, token, issued.ca_file).identity(), Complete)


@pytest.mark.parametrize("fault", ["authority", "name", "time"])
def test_chain_name_and_time_are_verified(fault: str, tmp_path: Path) -> None:
    """Nothing but the form is left out, for both servers. Only an unknown authority has to be
    given."""
    trusted, stranger = Authority(folder=tmp_path), Authority(folder=tmp_path, name="stranger")
    ca_file = stranger.ca_file if fault == "authority" else trusted.ca_file
    certificate, key = trusted.issue(
        "elsewhere.test" if fault == "name" else HOST, expired=fault == "time"
    )
    with serving_tls(FullEureka(SetClock().now).handle, server_context(certificate, key)) as url:
        with eureka(f"{url}/eureka", ca_file) as client:
            found = client.list_instances()
        other = cluster(tmp_path, url, "t", ca_file).identity()
    for source in (found, other):
        assert isinstance(source, Unknown)
        assert ("give that authority's certificate" in source.message) is (fault == "authority")
        assert ("is for another host name" in source.message) is (fault == "name")
        assert ("has expired" in source.message) is (fault == "time")


def test_a_certificate_that_is_refused_for_another_reason_asks_for_no_authority(
    tmp_path: Path,
) -> None:
    """Its authority is known; the sentence has OpenSSL's reason."""
    issued = issue(FOR_CLIENTS, tmp_path, HOST)
    begin, end = (
        "the server's certificate is refused (",
        " certificate purpose): get another one for it",
    )
    with serving_tls(
        FullEureka(SetClock().now).handle, server_context(issued.certificate, issued.key)
    ) as url:
        with eureka(f"{url}/eureka", issued.ca_file) as client:
            found = client.list_instances()
        other = cluster(tmp_path, url, "t", issued.ca_file).identity()
    for source in (found, other):
        assert isinstance(source, Unknown)
        assert begin in source.message
        assert end in source.message
        assert "authority" not in source.message


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("pinned", PINNED)
def test_a_ca_file_needs_no_root(
    kind: str, pinned: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CA file may hold an authority without its root, or the server's own certificate, on each
    Python."""
    verify_up_to_a_root(monkeypatch)
    issued = issue(pinned, tmp_path, HOST)
    with eureka_of(kind, issued) as url:
        with pytest.raises(requests.exceptions.SSLError):
            requests.get(f"{url}/apps", verify=str(issued.ca_file), timeout=30)
        with eureka(url, issued.ca_file) as client:
            assert client.list_instances() == Complete(data=())
    with kubernetes_of(kind, issued) as (url, token):
        assert isinstance(cluster(tmp_path, url, token, issued.ca_file).identity(), Complete)


@pytest.mark.parametrize("python", [verify_strictly, verify_up_to_a_root])
def test_each_python_verifies_alike(
    python: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chain may end at an authority that is not its root, and forms are not judged."""
    from urllib3 import PoolManager

    from eurekube_sync.adapters.tls import verify_as_kubectl

    python(monkeypatch)
    manager = PoolManager()
    verify_as_kubectl(manager)
    seen: list[int] = []

    class Watched(manager.pool_classes_by_scheme["https"].ConnectionCls):  # type: ignore[misc]
        def _new_conn(self) -> None:
            seen.append(self.ssl_context.verify_flags)
            raise OSError("enough")

    with pytest.raises(OSError, match="enough"):
        Watched("localhost", 1).connect()
    assert seen == [ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VERIFY_X509_TRUSTED_FIRST]
