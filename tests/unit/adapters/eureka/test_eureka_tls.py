"""TLS to Eureka on loopback: working connections, and one clear sentence for each kind of
failure."""

from __future__ import annotations

import random
import ssl
from pathlib import Path
from typing import Any

import pytest

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.embedded.http import LoopbackServer, Request, Response
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown
from tests.certificates import Authority, server_context, serving_tls

pytestmark = pytest.mark.loopback

EMPTY = b'{"applications":{"versions__delta":"1","apps__hashcode":"","application":[]}}'


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority that issues the server's certificates."""
    return Authority(folder=tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Another authority."""
    return Authority(folder=tmp_path_factory.mktemp("tls"))


def empty(request: Request) -> Response:
    """An empty registry."""
    return Response(status=200, body=EMPTY)


def listed(url: str, **options: Any) -> Source[Any]:
    """List the instances, without retries."""
    settings = ConnectionOptions(address=EurekaAddress.parse(f"{url}/eureka"), retries=0, **options)
    with EurekaClient(settings, clock=SystemClock(), random=random.Random(0)) as client:
        return client.list_instances()


def trouble(source: Source[Any]) -> tuple[Cause, str]:
    """Return the cause and the clause of a list that failed."""
    assert isinstance(source, Unknown)
    assert not source.message.endswith((".", "?"))
    assert "SSL" not in source.message
    return source.cause, source.message


def test_a_private_authority_is_trusted_by_its_file(authority: Authority) -> None:
    with serving_tls(empty, server_context(*authority.issue("localhost"))) as url:
        assert listed(url, ca_file=str(authority.ca_file)) == Complete(data=())


@pytest.mark.parametrize("given", ["none", "other"])
def test_an_unknown_authority_asks_for_the_ca_file(
    authority: Authority, stranger: Authority, given: str
) -> None:
    """The sentence asks for the CA file if there is none, or if it is another authority's."""
    options = {"ca_file": str(stranger.ca_file)} if given == "other" else {}
    with serving_tls(empty, server_context(*authority.issue("localhost"))) as url:
        cause, sentence = trouble(listed(url, **options))
    assert cause is Cause.UNAVAILABLE
    assert (
        "comes from an authority that is not trusted: give that authority's certificate as CA file"
        in sentence
    )


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_another_host_name_is_reported(authority: Authority, host: str) -> None:
    """The sentence asks for a URL with a name from the certificate."""
    with serving_tls(empty, server_context(*authority.issue("eureka.test"))) as url:
        cause, sentence = trouble(
            listed(url.replace("localhost", host), ca_file=str(authority.ca_file))
        )
    assert cause is Cause.UNAVAILABLE
    assert "is for another host name: put a name from the certificate into the URL" in sentence


def test_an_expired_certificate_is_reported(authority: Authority) -> None:
    """The sentence asks to renew it at the server."""
    with serving_tls(empty, server_context(*authority.issue("localhost", expired=True))) as url:
        cause, sentence = trouble(listed(url, ca_file=str(authority.ca_file)))
    assert cause is Cause.UNAVAILABLE
    assert "has expired: renew it at the server" in sentence


def test_https_to_a_plain_port_is_reported() -> None:
    """The sentence says that the URL must begin with http."""
    with LoopbackServer(empty) as server:
        cause, sentence = trouble(listed(server.url.replace("http:", "https:")))
    assert cause is Cause.UNUSABLE
    assert "this port does not speak TLS; begin the URL with http://" in sentence


def test_http_to_a_tls_port_that_hangs_up_is_reported(authority: Authority) -> None:
    """The server may answer with a TLS alert, or not at all."""
    with serving_tls(empty, server_context(*authority.issue("localhost"))) as url:
        cause, sentence = trouble(listed(url.replace("https:", "http:")))
    assert (
        "check that Eureka runs at this address" in sentence or "this port speaks TLS" in sentence
    )
    assert cause in (Cause.UNAVAILABLE, Cause.UNUSABLE)


@pytest.mark.parametrize(
    "body",
    [
        b"Bad Request\r\nThis combination of host and port requires TLS.\r\n",
        b"<html>The plain HTTP request was sent to HTTPS port</html>",
        b"Client sent an HTTP request to an HTTPS server.\n",
    ],
    ids=["Tomcat", "nginx", "Go"],
)
def test_http_to_a_tls_port_that_answers_is_reported(body: bytes) -> None:
    """Some servers answer plain HTTP with an error page. The sentence says that the URL must begin
    with https."""
    with LoopbackServer(
        lambda request: Response(status=400, body=body, content_type="text/plain")
    ) as server:
        cause, sentence = trouble(listed(server.url))
    assert cause is Cause.UNUSABLE
    assert "this port speaks TLS; begin the URL with https://" in sentence


@pytest.mark.parametrize(
    "newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"]
)
class TestClientCertificates:
    def context(self, authority: Authority, newest: ssl.TLSVersion) -> ssl.SSLContext:
        context = server_context(*authority.issue("localhost"), clients=authority.ca_file)
        context.maximum_version = newest
        return context

    def test_the_right_one_is_taken(self, authority: Authority, newest: ssl.TLSVersion) -> None:
        """Certificate and key may be in two files."""
        certificate, key = authority.issue("sync@example.test")
        with serving_tls(empty, self.context(authority, newest)) as url:
            own = (str(certificate), str(key))
            assert listed(url, ca_file=str(authority.ca_file), client_certificate=own) == Complete(
                data=()
            )

    @pytest.mark.parametrize("given", ["none", "other"])
    def test_a_missing_or_foreign_client_certificate_is_reported(
        self, authority: Authority, stranger: Authority, newest: ssl.TLSVersion, given: str
    ) -> None:
        """The sentence asks for a client certificate that the server trusts."""
        options: dict[str, Any] = {"ca_file": str(authority.ca_file)}
        if given == "other":
            certificate, key = stranger.issue("sync@example.test")
            options["client_certificate"] = (str(certificate), str(key))
        with serving_tls(empty, self.context(authority, newest)) as url:
            cause, sentence = trouble(listed(url, **options))
        assert "client certificate" in sentence
        assert cause in (Cause.DENIED, Cause.UNAVAILABLE)


def test_a_deleted_ca_file_is_reported_and_a_changed_one_is_read(
    authority: Authority, stranger: Authority, tmp_path: Path
) -> None:
    """The file is read for each new connection. While it is missing, lists fail. A corrected file
    works at once."""
    ca_file = tmp_path / "ca.pem"
    ca_file.write_bytes(stranger.ca_file.read_bytes())
    with serving_tls(empty, server_context(*authority.issue("localhost"))) as url:
        address = EurekaAddress.parse(f"{url}/eureka")
        settings = ConnectionOptions(address=address, retries=0, ca_file=str(ca_file))
        with EurekaClient(settings, clock=SystemClock(), random=random.Random(0)) as client:
            assert "not trusted" in trouble(client.list_instances())[1]
            ca_file.unlink()
            assert "cannot be read any more" in trouble(client.list_instances())[1]
            ca_file.write_bytes(authority.ca_file.read_bytes())
            assert client.list_instances() == Complete(data=())
