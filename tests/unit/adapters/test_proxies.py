"""A proxy that fails: the sentence names it, and the option or variable that has it, and no
login."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.connection import ClientConnection, ConnectionSettings
from eurekube_sync.adapters.no_answer import proxy_named
from eurekube_sync.model.sources import Unknown
from tests.certificates import Authority, server_context
from tests.connect_proxy import ConnectProxy
from tests.odd_authorities import KINDS, issue, verify_strictly

pytestmark = pytest.mark.loopback

LOGIN = "joe:pr0xy-passw0rd"
VARIABLES = (
    "https_proxy",
    "HTTPS_PROXY",
    "http_proxy",
    "HTTP_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
)


def of_kubernetes(folder: Path, server: str, **cluster: str) -> str:
    """Return why the cluster's identity is unknown."""
    content = {
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "one",
    }
    (folder / "config").write_text(json.dumps(content))
    connection = ClientConnection(ConnectionSettings(kubeconfig=str(folder / "config")), {})
    found = KubernetesCluster(
        connection, clock=SystemClock(), random=random.Random(0), tries=1
    ).identity()
    assert isinstance(found, Unknown)
    return found.message


@pytest.fixture
def closed() -> str:
    """The address of a proxy that does not run, with a login."""
    return f"http://{LOGIN}@127.0.0.1:1"


@pytest.fixture(autouse=True)
def no_proxy_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


REFUSED = "could not be reached: the connection was refused"


@pytest.mark.parametrize(
    ("variable", "scheme"),
    [("HTTPS_PROXY", "https"), ("https_proxy", "https"), ("HTTP_PROXY", "http")],
)
def test_the_proxy_of_kubernetes_is_named(
    closed: str, variable: str, scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in the environment, or in the kubeconfig, which wins."""
    monkeypatch.setenv(variable, closed)
    told = of_kubernetes(tmp_path, f"{scheme}://kubernetes.test")
    assert told.endswith(f": the proxy http://127.0.0.1:1 of {variable} {REFUSED}")
    told = of_kubernetes(
        tmp_path, f"{scheme}://kubernetes.test", **{"proxy-url": closed.replace(":1", ":2")}
    )
    assert told.endswith(f": the proxy http://127.0.0.1:2 of proxy-url in the kubeconfig {REFUSED}")


def test_a_proxy_that_is_not_used_is_not_blamed(
    closed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", closed)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert of_kubernetes(tmp_path, "http://127.0.0.1:1").endswith(": the connection was refused")


@pytest.mark.parametrize(
    ("status", "sentence"),
    [(407, "asks for a login; put it into the proxy's URL"), (403, "refuses the call (403)")],
)
def test_a_proxy_that_refuses_is_named(status: int, sentence: str, tmp_path: Path) -> None:
    """No login is shown."""
    with ConnectProxy(status=status) as proxy:
        url = proxy.url.replace("//", f"//{LOGIN}@")
        told = of_kubernetes(tmp_path, "https://kubernetes.test", **{"proxy-url": url})
    assert f"the proxy {proxy.url} of proxy-url in the kubeconfig {sentence}" in told
    assert "pr0xy" not in told


def test_a_proxy_whose_certificate_is_not_trusted_is_named(tmp_path: Path) -> None:
    """The proxy's certificate is to blame, and not the server's."""
    authority = Authority(folder=tmp_path)
    with ConnectProxy(context=server_context(*authority.issue("localhost"))) as proxy:
        told = of_kubernetes(tmp_path, "https://kubernetes.test", **{"proxy-url": proxy.url})
    assert (
        f"the proxy {proxy.url} of proxy-url in the kubeconfig could not be reached: the proxy's "
        "certificate comes from" in told
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_certificate_of_a_proxy_is_verified_as_that_of_a_server(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate that strict verification refuses is accepted of a proxy, too: the proxy is
    asked."""
    verify_strictly(monkeypatch)
    issued = issue(kind, tmp_path, "localhost")
    with ConnectProxy(status=403, context=server_context(issued.certificate, issued.key)) as proxy:
        cluster = {"proxy-url": proxy.url, "certificate-authority": str(issued.ca_file)}
        assert "refuses the call (403)" in of_kubernetes(
            tmp_path, "https://kubernetes.test", **cluster
        )


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://joe:secret@proxy:3128/", "the proxy http://proxy:3128 of X"),
        ("https://joe:se@cret@[::1]:3128", "the proxy https://[::1]:3128 of X"),
        ("joe:secret@proxy:3128", "the proxy http://proxy:3128 of X"),
        ("http://joe:secret@proxy:port", "the proxy of X"),
        ("http://joe:secret[@proxy:1", "the proxy of X"),
        ("http://pro\x1bxy:1", "the proxy http://pro\\x1bxy:1 of X"),
    ],
)
def test_a_proxy_is_named_without_its_login(url: str, words: str) -> None:
    assert proxy_named(url, "X") == words
