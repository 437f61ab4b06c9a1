"""Spring Security's CSRF protection, which refuses every write of a Eureka client, and what our
client makes of it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
import requests

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.embedded.http import LoopbackServer
from eurekube_sync.model.errors import RegistryDenied
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.sources import Complete
from tests.contract.eureka_subject import JSON, SetClock, instance_body
from tests.embedded.eureka import FullEureka

LOGIN = ("sync", "secret")
KEY = InstanceKey("SHOP", "prod:shop:shop:10.0.0.1:8080")


@pytest.fixture(
    scope="module", params=["embedded", pytest.param("real", marks=pytest.mark.servers)]
)
def protected_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server with a login whose CSRF protection was left on."""
    if request.param == "embedded":
        server = FullEureka(SetClock().now, credentials=LOGIN, refuse_writes=True)
        with LoopbackServer(server.handle) as loopback:
            yield f"{loopback.url}/eureka"
    else:
        from tests.servers.eureka import EurekaServer

        with EurekaServer(
            basic_auth=LOGIN, extra_properties={"eureka-under-test.csrf": "on"}
        ) as running:
            yield running.url


@pytest.mark.parametrize("auth", [LOGIN, ("sync", "wrong"), None], ids=["right", "wrong", "none"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_a_write_is_a_401_whatever_the_login(
    protected_url: str, method: str, auth: tuple[str, str] | None
) -> None:
    """`CsrfFilter` comes before the login, and its 403 becomes a 401 on the way to the error
    page."""
    path = f"/apps/{KEY.app}" if method == "POST" else f"/apps/{KEY.app}/{KEY.id}"
    body = {"instance": instance_body(KEY.app, KEY.id)} if method == "POST" else None
    answer = requests.request(
        method, protected_url + path, json=body, auth=auth, headers=JSON, timeout=60
    )
    assert (answer.status_code, answer.content) == (401, b"")


def test_reads_work_with_the_right_login(protected_url: str) -> None:
    """The list is a 200, an absent instance a 404; without the right login both are a 401."""
    for auth, expected in ((LOGIN, [200, 404]), (("sync", "wrong"), [401, 401])):
        paths = ("/apps", f"/apps/{KEY.app}/{KEY.id}")
        answers = [
            requests.get(protected_url + path, auth=auth, headers=JSON, timeout=60)
            for path in paths
        ]
        assert [answer.status_code for answer in answers] == expected


def test_our_client_distinguishes_csrf_protection_from_a_wrong_password(protected_url: str) -> None:
    """With the right login it speaks of CSRF protection and its fix, with a wrong one of the
    login."""
    for password, words in (
        (LOGIN[1], "CSRF protection refuses writes"),
        ("wrong", "refuses this user or password"),
    ):
        address = EurekaAddress.parse(protected_url.replace("://", f"://{LOGIN[0]}:{password}@"))
        options = ConnectionOptions(address=address)
        with EurekaClient(options, clock=SystemClock(), random=random.Random(0)) as client:
            assert isinstance(client.list_instances(), Complete) == (password == LOGIN[1])
            with pytest.raises(RegistryDenied, match=words):
                client.renew(KEY)
