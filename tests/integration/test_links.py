"""Links of a real Eureka lead to the app: those of its dashboard, and those that Spring Boot Admin
makes from an instance."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import requests

from eurekube_sync.embedded.http import LoopbackServer, Response
from tests.integration.hand_made import make_app, make_namespace, make_syncer, remove_app
from tests.integration.program import Program, Registry
from tests.servers.eureka import EurekaServer
from tests.servers.world import KubernetesWorld

pytestmark = pytest.mark.servers

NAMESPACE = "links"


def answering(name: str) -> LoopbackServer:
    """A server that answers with its name and the path."""
    return LoopbackServer(
        lambda request: Response(status=200, body=f"{name} {request.path}".encode())
    )


@pytest.fixture
def world(kubernetes_world: KubernetesWorld) -> Iterator[KubernetesWorld]:
    """A Service with a ready endpoint."""
    make_namespace(kubernetes_world, NAMESPACE)
    make_app(kubernetes_world, NAMESPACE, "rating", ["10.24.0.1"])
    yield kubernetes_world
    remove_app(kubernetes_world, NAMESPACE, "rating")


def test_every_link_leads_to_the_app(
    program: Program, registry: Registry, eureka: EurekaServer, world: KubernetesWorld
) -> None:
    """The app and its actuator listen on two ports. Callers reach both by a host name."""
    with answering("app") as app, answering("actuator") as actuator:
        port, management = (urlsplit(server.url).port for server in (app, actuator))
        make_syncer(
            world, NAMESPACE, "rating", "rating", mode="service", port=port, service={"hostname": "localhost"},
            paths={
                "home": "/shop", "status": "/actuator/info", "health": "/actuator/health", "managementPort": management,
            },
        )  # fmt: skip
        program.good()
        id_ = f"{program.owner}:{NAMESPACE}:rating:localhost:{port}"
        instance = registry.instance("RATING", id_)
        assert instance is not None

        page = requests.get(eureka.url.removesuffix("/eureka") + "/", timeout=60).text
        links = re.findall(rf'<a href="([^"]*)"[^>]*>{re.escape(id_)}</a>', page)
        assert [said(html.unescape(link)) for link in links] == ["actuator /actuator/info"]

        assert said(instance["homePageUrl"]) == "app /shop"
        assert said(instance["healthCheckUrl"]) == "actuator /actuator/health"
        # Its DefaultServiceInstanceConverter does this with the host name and the metadata
        # `management.port`.
        admin = f"http://{instance['hostName']}:{instance['metadata']['management.port']}/actuator"
        assert said(f"{admin}/loggers") == "actuator /actuator/loggers"


def said(url: str) -> str:
    """The text at the link's target."""
    return requests.get(url, timeout=60).text
