"""Client certificates, and plain HTTP at a TLS port: how a server refuses, and what our client
makes of it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown
from tests.certificates import Authority, server_context, serving_tls
from tests.contract.eureka_subject import SetClock
from tests.embedded.eureka import FullEureka


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The one that server and clients trust."""
    return Authority(folder=tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Another one."""
    return Authority(folder=tmp_path_factory.mktemp("tls"))


@pytest.fixture(
    scope="module", params=["embedded", pytest.param("real", marks=pytest.mark.servers)]
)
def url(request: pytest.FixtureRequest, authority: Authority) -> Iterator[str]:
    """A server that takes only callers with a certificate of the authority."""
    certificate, key = authority.issue("localhost")
    if request.param == "embedded":
        server = FullEureka(SetClock().now)
        with serving_tls(
            server.handle, server_context(certificate, key, clients=authority.ca_file)
        ) as served:
            yield f"{served}/eureka"
    else:
        from tests.servers.eureka import EurekaServer, ServerTls

        tls = ServerTls(
            certificate=certificate,
            private_key=key,
            ca_file=authority.ca_file,
            client_ca_file=authority.ca_file,
            probe_certificate=authority.issue("probe@example.test"),
        )
        with EurekaServer(tls=tls) as running:
            yield running.url


def listed(
    url: str, authority: Authority, client: Authority | None = None
) -> Source[tuple[ObservedInstance, ...]]:
    """What a list says to a caller that trusts the authority, with a certificate of another one or
    none."""
    certificate, key = client.issue("sync@example.test") if client else (None, None)
    options = ConnectionOptions(
        address=EurekaAddress.parse(url),
        ca_file=str(authority.ca_file),
        client_certificate=(str(certificate), str(key)) if client else None,
        retries=0,
    )
    with EurekaClient(options, clock=SystemClock(), random=random.Random(0)) as connected:
        return connected.list_instances()


def test_a_certificate_of_the_trusted_authority_is_accepted(url: str, authority: Authority) -> None:
    """Both sides trust each other."""
    assert listed(url, authority, authority) == Complete(data=())


def test_without_a_certificate_the_refusal_asks_for_one(url: str, authority: Authority) -> None:
    """The end of the handshake becomes a sentence that speaks of a client certificate."""
    source = listed(url, authority)
    assert isinstance(source, Unknown)
    assert source.cause in (
        Cause.DENIED,
        Cause.UNAVAILABLE,
    )  # the end of the connection may overtake the alert
    assert "client certificate" in source.message


def test_a_certificate_of_another_authority_is_refused_the_same_way(
    url: str, authority: Authority, stranger: Authority
) -> None:
    """One of an authority that the server does not trust is as good as none."""
    source = listed(url, authority, stranger)
    assert isinstance(source, Unknown)
    assert "client certificate" in source.message


def test_a_certificate_for_another_host_name_is_refused_by_us(
    url: str, authority: Authority
) -> None:
    """The certificate is for `localhost`; its address will not do."""
    source = listed(url.replace("localhost", "127.0.0.1"), authority, authority)
    assert isinstance(source, Unknown)
    assert "is for another host name" in source.message


def test_plain_http_to_a_tls_port_is_reported(url: str, authority: Authority) -> None:
    """Tomcat says so in a 400; a server that hangs up is at least not taken for an empty
    registry."""
    source = listed(url.replace("https:", "http:"), authority)
    assert isinstance(source, Unknown)
    assert (
        "begin the URL with https://" in source.message
        or "check that Eureka runs" in source.message
    )
