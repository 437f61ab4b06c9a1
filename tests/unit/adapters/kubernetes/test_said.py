"""The sentences for the Kubernetes API's errors: each is short, holds no credential, and is safe to
print in a terminal."""

from __future__ import annotations

import base64
import json
import logging
import random
import warnings
from pathlib import Path
from typing import Any

import pytest

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.connection import Call, ClientConnection, ConnectionSettings
from eurekube_sync.adapters.tries import AnswerTime
from eurekube_sync.embedded.http import LoopbackServer, Request, Response
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import ClusterUnavailable, ConfigurationError
from eurekube_sync.model.sources import Complete, Unknown
from tests.certificates import Authority, server_context, serving_tls
from tests.embedded.kubernetes import FullKubernetes
from tests.unit.adapters.kubernetes.world import World, answer

TOKEN = "t0ken-of-mine"


def connected(
    folder: Path,
    server: str,
    token: str = TOKEN,
    *,
    user: dict[str, Any] | None = None,
    **cluster: Any,
) -> KubernetesCluster:
    """A client of that server, with a fixed token or as another user, and one try."""
    content = {
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user or {"token": token}}],
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "one",
    }
    path = folder / "config"
    path.write_text(json.dumps(content))
    clock = SystemClock()
    connection = ClientConnection(ConnectionSettings(kubeconfig=str(path)), {})
    return KubernetesCluster(connection, clock=clock, random=random.Random(0), tries=1)


def message(cluster: KubernetesCluster) -> str:
    """Return why the cluster's identity is unknown."""
    found = cluster.identity()
    assert isinstance(found, Unknown)
    return found.message


@pytest.mark.parametrize("status", [400, 403, 500])
@pytest.mark.parametrize("kind", ["Status", "text"])
def test_a_token_that_the_api_repeats_is_not_shown(status: int, kind: str) -> None:
    """Control characters of a terminal are not shown either."""
    world = World(tokens={TOKEN: "admin"})

    def echo(request: Request, number: int) -> Response:
        text = f"\x1b[2Jyou are {request.headers['authorization']}, or {TOKEN}"
        return answer(status, {"kind": "Status", "message": text} if kind == "Status" else text)

    world.fault = echo
    told = message(world.cluster)
    assert "you are Bearer ***, or ***" in told
    assert TOKEN not in told
    assert "\x1b" not in told


@pytest.mark.loopback
@pytest.mark.parametrize("end", ["\n", "\r\n", " "])
def test_a_token_with_a_line_end_is_sent_without_it(end: str, tmp_path: Path) -> None:
    """Editors add a line end. kubectl removes it, too."""
    sent: list[str] = []

    def heard(request: Request) -> Response:
        sent.append(request.headers["authorization"])
        return Response(status=404)

    with LoopbackServer(heard) as server:
        message(connected(tmp_path, server.url, TOKEN + end))
    assert sent == [f"Bearer {TOKEN}"]


@pytest.mark.loopback
@pytest.mark.parametrize("between", ["\n", "\x00", "\u2013"])
def test_a_token_that_cannot_be_sent_is_reported_and_not_shown(
    between: str, tmp_path: Path
) -> None:
    """An unexpected error would end the pass without renewals, and its traceback would show the
    token."""
    with LoopbackServer(lambda request: Response(status=200)) as server:
        told = message(connected(tmp_path, server.url, f"{TOKEN}{between}rest"))
    assert told == "the credentials for the Kubernetes API hold a character that no header may have"


@pytest.mark.loopback
def test_a_port_without_tls_is_reported_as_for_eureka(tmp_path: Path) -> None:
    """The sentence is our own, not OpenSSL's."""
    with LoopbackServer(lambda request: Response(status=200)) as server:
        told = message(connected(tmp_path, server.url.replace("http:", "https:")))
    assert told.endswith(
        ": this port does not speak TLS; begin the URL with http://, or correct it"
    )


@pytest.mark.loopback
def test_a_port_with_tls_is_reported_as_for_eureka(tmp_path: Path) -> None:
    """Such a port answers plain HTTP with a TLS alert, or closes the connection."""
    with serving_tls(
        lambda request: Response(status=200), server_context(*_issued(tmp_path))
    ) as url:
        told = message(connected(tmp_path, url.replace("https:", "http:")))
    assert told.endswith(
        (": the connection was reset", ": this port speaks TLS; begin the URL with https://")
    )


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("server", "why"),
    [
        ("http://127.0.0.1:1", "the connection was refused"),
        ("https://127.0.0.1:1", "the connection was refused"),
    ],
)
def test_a_server_that_does_not_answer_is_reported_as_for_eureka(
    tmp_path: Path, server: str, why: str
) -> None:
    """The sentence has no error numbers of the operating system."""
    told = message(connected(tmp_path, server))
    assert (
        told
        == f"no answer from the Kubernetes API at {server} to GET /api/v1/namespaces/kube-system: "
        f"{why}"
    )


def _issued(folder: Path) -> tuple[Path, Path]:
    return Authority(folder=folder).issue("localhost")


@pytest.mark.loopback
def test_an_unknown_authority_asks_for_its_certificate(tmp_path: Path) -> None:
    """The sentence is the same as for Eureka."""
    with serving_tls(
        lambda request: Response(status=200), server_context(*_issued(tmp_path))
    ) as url:
        told = message(connected(tmp_path, url))
    assert (
        "comes from an authority that is not trusted: give that authority's certificate as CA file"
        in told
    )


@pytest.mark.loopback
def test_a_certificate_that_is_not_verified_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The warning is our own. urllib3 would warn at each call, with the path of a module."""
    kubernetes = FullKubernetes(SystemClock().now)
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.WARNING):
        warnings.simplefilter("always")
        with serving_tls(kubernetes.handle, server_context(*_issued(tmp_path))) as url:
            unverified: dict[str, Any] = {"insecure-skip-tls-verify": True}
            cluster = connected(tmp_path, url, **unverified)
            assert isinstance(cluster.identity(), Complete)
            assert isinstance(cluster.list_services(None).elsewhere, Complete)
    assert not [one for one in caught if "Unverified" in str(one.message)]
    (told,) = [record.message for record in caplog.records]
    assert told.startswith(
        "the Kubernetes API's certificate is not verified (insecure-skip-tls-verify)"
    )


def test_a_fixed_token_blames_no_program(tmp_path: Path) -> None:
    """The time of the stage is over. The sentence blames no credentials program, because there is
    none."""
    connected(tmp_path, "http://127.0.0.1:1")
    connection = ClientConnection(ConnectionSettings(kubeconfig=str(tmp_path / "config")), {})
    clock = SystemClock()
    limit = TimeLimit(clock)
    limit.end = clock.monotonic()
    with pytest.raises(ClusterUnavailable) as caught:
        connection.send(Call(method="GET", path="/"), AnswerTime(clock, 30, limit))
    assert str(caught.value) == "no time was left for it"


def test_a_folder_is_no_kubeconfig(tmp_path: Path) -> None:
    """The folder exists, so the error does not say that the file is missing."""
    with pytest.raises(
        ConfigurationError, match=r"the kubeconfig \S+ is a folder: give the file in it"
    ):
        ClientConnection(ConnectionSettings(kubeconfig=str(tmp_path)), {})


@pytest.mark.parametrize(
    "value", ["2026-13-45", "0x_", "!!int ''", "!!timestamp now", f"!!bool {TOKEN}"]
)
def test_a_value_that_looks_like_a_date_or_number_is_reported(tmp_path: Path, value: str) -> None:
    """PyYAML fails at each value in another way. Its errors may quote the value, which may be a
    token."""
    path = tmp_path / "config"
    path.write_text(f"current-context: {value}")
    with pytest.raises(ConfigurationError) as caught:
        ClientConnection(ConnectionSettings(kubeconfig=str(path)), {})
    assert (
        str(caught.value)
        == f"the kubeconfig {path} is not YAML: a value looks like a date or number; quote it"
    )


@pytest.mark.loopback
@pytest.mark.parametrize("given", ["program", "files", "data"])
def test_a_client_certificate_is_used(tmp_path: Path, given: str) -> None:
    """A program may print one, with or without a token. Paths in a kubeconfig are relative to its
    folder."""
    authority = Authority(folder=tmp_path)
    certificate, key = authority.issue("sync@example.test")
    pems = {"client-certificate": certificate, "client-key": key}
    user: dict[str, Any] = {name: path.name for name, path in pems.items()}
    if given == "data":
        user = {
            f"{name}-data": base64.b64encode(path.read_bytes()).decode()
            for name, path in pems.items()
        }
    if given == "program":
        version = "client.authentication.k8s.io/v1"
        status = {
            "clientCertificateData": certificate.read_text(),
            "clientKeyData": key.read_text(),
        }
        (tmp_path / "printed").write_text(
            json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
        )
        (tmp_path / "login").write_text(f"#!/bin/sh\ncat {tmp_path / 'printed'}\n")
        (tmp_path / "login").chmod(0o700)
        user = {"exec": {"apiVersion": version, "command": "./login"}}
    kubernetes = FullKubernetes(SystemClock().now)
    context = server_context(*authority.issue("localhost"), clients=authority.ca_file)
    with serving_tls(kubernetes.handle, context) as url:
        trusted: dict[str, Any] = {"certificate-authority": authority.ca_file.name}
        assert isinstance(connected(tmp_path, url, user=user, **trusted).identity(), Complete)


@pytest.mark.loopback
def test_a_program_is_told_what_the_kubeconfig_says(tmp_path: Path) -> None:
    """It gets its variables and arguments, and with `provideClusterInfo` the cluster, as client-go
    gives it."""
    authority = Authority(folder=tmp_path)
    version = "client.authentication.k8s.io/v1beta1"
    script = (
        f'echo "$1 $NAME" > {tmp_path}/told; echo "$KUBERNETES_EXEC_INFO" >> {tmp_path}/told; false'
    )
    plugin = {
        "apiVersion": version,
        "command": "sh",
        "args": ["-c", script, "sh", 7],
        "env": [{"name": "NAME", "value": "value"}],
        "provideClusterInfo": True,
    }
    extensions = [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}]
    cluster: dict[str, Any] = {
        "certificate-authority": str(authority.ca_file),
        "extensions": extensions,
    }
    assert "ended with exit code 1" in message(
        connected(tmp_path, "https://k.test", user={"exec": plugin}, **cluster)
    )
    words, document = (tmp_path / "told").read_text().splitlines()
    assert words == "7 value"
    assert json.loads(document) == {
        "apiVersion": version,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://k.test",
                "certificate-authority-data": base64.b64encode(
                    authority.ca_file.read_bytes()
                ).decode(),
                "config": {"audience": "a"},
            },
        },
    }
