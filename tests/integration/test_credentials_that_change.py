"""The program with a Eureka that is an OAuth2 resource server and asks for a client certificate.
Tokens and certificates are replaced while a daemon runs."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from tests.certificates import Authority
from tests.integration.program import Program
from tests.integration.test_login import lists_since, running
from tests.servers.eureka import EurekaServer, ServerTls
from tests.servers.tokens import TokenIssuer
from tests.servers.world import KubernetesWorld
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

NAMESPACE = "tokens"
ADDRESS = "10.9.1.1"
SYNCERS = f"/apis/eurekube.io/v1/namespaces/{NAMESPACE}/eurekasyncers"
SYNCER = {
    "apiVersion": "eurekube.io/v1",
    "kind": "EurekaSyncer",
    "metadata": {"name": "tokens", "namespace": NAMESPACE},
    "spec": {"selector": {"app": "tokens"}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """The mounted files of the program, and who issues what they hold."""

    folder: Path
    issuer: TokenIssuer
    authority: Authority

    @property
    def token_file(self) -> Path:
        return self.folder / "token"

    @property
    def certificate(self) -> Path:
        return self.folder / "tls.crt"

    @property
    def key(self) -> Path:
        return self.folder / "tls.key"

    def give_token(self, token: str) -> str:
        """Mount a token."""
        self.token_file.write_text(f"{token}\n")
        return token

    def give_certificate(self, authority: Authority) -> None:
        """Mount a client certificate of an authority."""
        certificate, key = authority.issue("sync@example.test")
        shutil.copy(certificate, self.certificate)
        shutil.copy(key, self.key)


def demands(secrets: Secrets, clients: Authority) -> ServerTls:
    """TLS of a server that lets in clients with certificates of an authority."""
    certificate, private_key = secrets.authority.issue("localhost")
    return ServerTls(
        certificate=certificate,
        private_key=private_key,
        ca_file=secrets.authority.ca_file,
        client_ca_file=clients.ca_file,
        probe_certificate=clients.issue("probe@example.test"),
    )


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Secrets:
    """Files with a valid certificate."""
    folder = tmp_path_factory.mktemp("secrets")
    authority = Authority(folder=folder)
    made = Secrets(folder=folder, issuer=TokenIssuer(folder=folder), authority=authority)
    made.give_certificate(authority)
    return made


@pytest.fixture(scope="module")
def eureka(secrets: Secrets) -> Iterator[EurekaServer]:
    """A Eureka that wants a token and a client certificate."""
    tls = demands(secrets, secrets.authority)
    with EurekaServer(tokens=secrets.issuer, tls=tls, access_log=True) as server:
        yield server


@pytest.fixture
def let_in(program: Program, eureka: EurekaServer, secrets: Secrets) -> Program:
    """The program with its token and certificate."""
    secrets.give_token(secrets.issuer.token())
    program.options += (
        f"--eureka-url={eureka.url}",
        f"--eureka-token-file={secrets.token_file}",
        f"--eureka-tls=ca={secrets.authority.ca_file},cert={secrets.certificate},key={secrets.key}",
    )
    return program


@pytest.fixture
def syncer(kubernetes_world: KubernetesWorld) -> None:
    """The Service and the syncer `tokens`, with one ready pod."""
    world = kubernetes_world
    with contextlib.suppress(requests.HTTPError):
        world.create_node("tokens-node")
    with contextlib.suppress(requests.HTTPError):
        world.create_namespace(NAMESPACE)
        ports = [{"name": "http", "port": 80, "targetPort": "http"}]
        world.create_service(NAMESPACE, "tokens", ports=ports)
        world.create_pod(
            NAMESPACE,
            "tokens-1",
            ips=[ADDRESS],
            labels={"app": "tokens"},
            node="tokens-node",
            ports={"http": 8080},
        )
    world.wait_for_slices(NAMESPACE, "tokens", {ADDRESS: "Ready"})
    world.request("POST", SYNCERS, SYNCER)


def status(eureka: EurekaServer, owner: str) -> str | None:
    """The instance's status by an uncached read; None if there is none."""
    with eureka.session() as session:
        id_ = f"{owner}:{NAMESPACE}:tokens:{ADDRESS}:8080"
        answer = session.get(f"{eureka.url}/apps/TOKENS/{id_}", timeout=10)
    assert answer.status_code in (200, 404)
    return str(answer.json()["instance"]["status"]) if answer.ok else None


def test_a_token_that_expires_is_replaced_while_a_daemon_runs(
    let_in: Program, eureka: EurekaServer, secrets: Secrets, syncer: None
) -> None:
    """With the expired token nothing changes, and the report says so. The pass after the file has a
    new one uses it. No output has a token."""
    let_in.good()
    assert status(eureka, let_in.owner) == "UP"
    started = time.time()
    with running(let_in, "--interval=2s", "--daemon", "-v") as daemon:
        wait_until(lambda: 200 in lists_since(eureka, started), "the daemon has made no pass")
        expired = secrets.give_token(secrets.issuer.token(seconds=-120))
        ended = time.time()
        wait_until(lambda: 401 in lists_since(eureka, ended), "the token was not read again")
        assert status(eureka, let_in.owner) == "UP"
        renewed = secrets.give_token(secrets.issuer.token())
        written = time.time()
        wait_until(lambda: 200 in lists_since(eureka, written), "the new token was not read")
        assert daemon.poll() is None
    assert status(eureka, let_in.owner) == "UP"
    said = let_in.seen[-1]
    assert "Eureka refuses this token: it may have expired" in said
    assert "--eureka-token-file: reloaded" in said
    assert expired not in "".join(let_in.seen)
    assert renewed not in "".join(let_in.seen)


def test_a_token_without_the_scope_for_writes_is_named(
    let_in: Program, eureka: EurekaServer, secrets: Secrets, syncer: None
) -> None:
    """It is not CSRF protection, of which Spring Security exempts calls with a token."""
    secrets.give_token(secrets.issuer.token(scope="eureka.read"))
    done = let_in.run()
    assert (done.returncode, status(eureka, let_in.owner)) == (21, None)
    assert "the token lacks a scope for writes" in done.stdout
    assert "CSRF" not in done.stdout
    secrets.give_token(secrets.issuer.token())
    let_in.good()
    assert status(eureka, let_in.owner) == "UP"


def test_a_client_certificate_is_replaced_while_a_daemon_runs(
    let_in: Program, eureka: EurekaServer, secrets: Secrets, syncer: None
) -> None:
    """The server comes back empty and takes certificates of another authority only. The files get
    such a one, first the certificate and then the key, and all is registered again."""
    let_in.good()
    started = time.time()
    other = Authority(folder=secrets.folder, name="other")
    certificate, key = other.issue("sync@example.test")
    with running(let_in, "--interval=2s", "--daemon", "-v") as daemon:
        wait_until(lambda: 200 in lists_since(eureka, started), "the daemon has made no pass")
        try:
            shutil.copy(certificate, secrets.certificate)
            eureka.restart(tls=demands(secrets, other))
            restarted = time.time()
            shutil.copy(key, secrets.key)
            wait_until(
                lambda: status(eureka, let_in.owner) == "UP",
                "nothing is registered with the new certificate",
            )
            assert daemon.poll() is None
            assert 200 in lists_since(eureka, restarted)
        finally:
            secrets.give_certificate(secrets.authority)
            eureka.restart(tls=demands(secrets, secrets.authority))
