"""A real nginx between our client and a real Eureka: its own error pages, its refusals, its
cache."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest
import requests

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.cli.output.report import sentences
from eurekube_sync.explain.check import servers
from eurekube_sync.explain.links import Check, Grade
from eurekube_sync.model.errors import RegistryDenied, RegistryUnusable
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, LeaseTimes, Port
from eurekube_sync.model.kubernetes import Endpoint
from eurekube_sync.model.sources import Complete
from eurekube_sync.observe.eureka import OwnWrites
from tests.servers.eureka import EurekaServer
from tests.servers.nginx import Nginx
from tests.unit.worlds.build import endpoint, key, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld

pytestmark = pytest.mark.servers
PAGE = "proxy_intercept_errors on; error_page 404 /page.html;"
PAGES = "proxy_intercept_errors on; error_page 400 404 /page.html;"
WITHOUT_BATCHES = 'proxy_intercept_errors on; error_page 404 /page.html; if ($uri ~ "/peerreplication/") { return 404; }'
CACHED = "proxy_cache lists; proxy_cache_valid any 1h;"
LISTS_CACHED = """
    set $skip 1; if ($uri = /eureka/apps) { set $skip 0; }
    proxy_cache lists; proxy_cache_key $uri; proxy_cache_valid 200 1h; proxy_cache_bypass $skip; proxy_no_cache $skip;
"""
"""It leaves out the query of a list's address."""
ONLY_READS = "limit_except GET { deny all; }"
_numbers = count(1)


@contextmanager
def behind(eureka: EurekaServer, rules: str) -> Iterator[EurekaClient]:
    """Our client, behind an nginx with these rules."""
    with Nginx(f"localhost:{eureka.port}", rules) as nginx, connected(nginx.url) as client:
        yield client


@contextmanager
def connected(url: str) -> Iterator[EurekaClient]:
    options = ConnectionOptions(address=EurekaAddress.parse(url))
    with EurekaClient(options, clock=SystemClock(), random=random.Random(0)) as client:
        yield client


@pytest.fixture
def wanted() -> Instance:
    app = f"PROXIED{next(_numbers)}"
    return Instance(
        key=InstanceKey(app, f"prod:shop:{app.lower()}:10.0.0.1:8080"),
        host_name="10.0.0.1",
        ip_addr="10.0.0.1",
        port=Port(8080, True),
        secure_port=Port(443, False),
        vip_address=app.lower(),
        secure_vip_address=app.lower(),
        status=InstanceStatus.UP,
        lease=LeaseTimes(30, 300),
        metadata={"eurekube.owner": "prod"},
    )


@pytest.mark.parametrize("rules", [PAGE, PAGES], ids=["404", "400-and-404"])
def test_behind_a_proxys_own_404_page_an_instance_comes_and_goes(
    eureka_fast: EurekaServer, wanted: Instance, rules: str
) -> None:
    """A batch of one item shows absence. `check` finds nothing wrong."""
    with Nginx(f"localhost:{eureka_fast.port}", rules) as nginx, connected(nginx.url) as client:
        page = requests.get(f"{nginx.url}/apps/NOBODY/nobody", timeout=30)
        assert (page.status_code, page.headers["Content-Type"]) == (404, "text/html")
        assert client.read_instance(wanted.key) is None
        assert not client.renew(wanted.key)
        client.register(wanted, dirty_timestamp=int(time.time() * 1000))
        assert client.renew(wanted.key)
        assert client.read_instance(wanted.key) is not None
        assert client.cancel(wanted.key)
        assert not client.cancel(wanted.key)
        found = list(servers({"eureka": client}, time.time()))
    assert [one for one in found if one.grade is Grade.FAILED] == []


def test_a_page_is_no_absence_where_no_batch_gets_through(
    eureka_fast: EurekaServer, wanted: Instance
) -> None:
    """Nothing shows that the id is free. The sentence names nginx and its setting."""
    with behind(eureka_fast, WITHOUT_BATCHES) as client:
        for call in (client.read_instance, client.renew, client.cancel):
            with pytest.raises(
                RegistryUnusable, match=r"404 by a proxy \(nginx.*proxy_intercept_errors"
            ):
                call(wanted.key)


def test_a_proxy_that_lets_only_reads_pass_is_named(
    eureka_fast: EurekaServer, wanted: Instance
) -> None:
    """Its 403 is a page. It says nothing about CSRF protection."""
    with behind(eureka_fast, ONLY_READS) as client:
        assert isinstance(client.list_instances(), Complete)
        with pytest.raises(
            RegistryDenied,
            match=r"403 by a proxy \(nginx.*\), not by Eureka: let it pass PUT, POST",
        ):
            client.renew(wanted.key)
        found = [
            one for one in servers({"eureka": client}, time.time()) if one.grade is Grade.FAILED
        ]
    assert [one.check for one in found] == [Check.EUREKA_WRITE]
    assert "CSRF" not in found[0].text + found[0].fix


@pytest.mark.parametrize(
    ("rules", "old"), [(CACHED, False), (LISTS_CACHED, True)], ids=["by-address", "by-path"]
)
def test_behind_a_cache_a_pod_that_is_not_ready_goes_down(
    eureka_fast: EurekaServer, rules: str, old: bool
) -> None:
    """nginx keeps each answer for an hour. Each of our reads has an address of its own. Where the
    cache leaves out the query, the list is old, and the report says so."""
    with behind(eureka_fast, rules) as client:
        world = FakeWorld()
        world.clock.time = time.time()
        world.own_writes = OwnWrites(seconds=45)
        world.registry = client  # type: ignore[assignment]
        world.cluster.apply(service(), piece(endpoint(1), endpoint(2)), syncer())
        world.run()

        def next_pass(*endpoints: Endpoint) -> list[str]:
            time.sleep(1.5)  # the server makes its list anew each second
            world.later(60)
            world.cluster.apply(piece(*endpoints))
            return sentences(world.run())

        for _ in range(2):
            next_pass(endpoint(1), endpoint(2, ready=False))
            next_pass(endpoint(1), endpoint(2))
        said = next_pass(endpoint(1), endpoint(2, ready=False))
        with connected(eureka_fast.url) as direct:
            found = [direct.read_instance(key(number)) for number in (1, 2)]
            assert [one and one.status for one in found] == [InstanceStatus.UP, InstanceStatus.DOWN]
            assert (
                any(
                    "Eureka's list does not show what was registered before" in text
                    for text in said
                )
                is old
            )
            for number in (1, 2):
                direct.cancel(key(number))
