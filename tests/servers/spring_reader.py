"""Owns a caller as there are in data centres: a Spring application that finds apps by Eureka and
calls them in turn.

It is made of the client and the load balancer of Spring Cloud, with their own caches, from the jars
of the Eureka server, and retries nothing. Addresses of pods are reached through an HTTP proxy, for
no machine has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .eureka_build import eureka
from .java_classes import compiled
from .process import Server

_SOURCE = Path(__file__).parent / "java" / "reader" / "SpringReader.java"
_CALL = "CALL "


@dataclass(frozen=True, slots=True)
class Calls:
    """What became of the calls of an app."""

    answered: int
    failed: tuple[str, ...]
    by: Counter[str]
    """How many were answered by whom."""


class SpringReader(Server):
    """Calls from its start to its end, some ten times a second."""

    name = "spring-reader"

    def __init__(self, eureka_url: str, apps: Sequence[str], *, proxy_port: int) -> None:
        """`proxy_port`: where pods are reached."""
        self._program = eureka()
        jars = sorted((self._program.folder / "server").glob("*.jar"))
        classes = compiled(self.name, _SOURCE, jars, release=17)
        self._class_path = ":".join(str(part) for part in (classes, *jars))
        super().__init__()
        self._eureka_url = eureka_url
        self._apps = apps
        self._proxy_port = proxy_port

    def calls(self, app: str, *, since: int = 0) -> Calls:
        """Of one app, but for the first `since` calls."""
        lines = self.log_file.read_text(errors="replace").splitlines()
        mine = [
            line.removeprefix(f"{_CALL}{app} ")
            for line in lines
            if line.startswith(f"{_CALL}{app} ")
        ][since:]
        good = [line.removeprefix("ok ") for line in mine if line.startswith("ok ")]
        failed = tuple(line for line in mine if not line.startswith("ok "))
        return Calls(len(good), failed, Counter(good))

    def number(self, app: str) -> int:
        """How many calls of an app were made."""
        found = self.calls(app)
        return found.answered + len(found.failed)

    def _command(self) -> list[str]:
        jvm = [
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-Dhttp.proxyHost=127.0.0.1",
            f"-Dhttp.proxyPort={self._proxy_port}",
            "-Dhttp.nonProxyHosts=localhost|127.*",
            "-Dhttp.keepAlive=false",  # a call that fails is not made again on another connection
        ]
        settings = {
            "reader.apps": ",".join(self._apps),
            "spring.application.name": "reader",
            "spring.main.banner-mode": "off",
            "spring.cloud.loadbalancer.retry.enabled": "false",
            "eureka.client.service-url.defaultZone": f"{self._eureka_url}/",
            # Of the server's jars; a client alone calls with Spring's own
            "eureka.client.jersey.enabled": "false",
            "eureka.client.register-with-eureka": "false",
            "eureka.client.fetch-registry": "true",
        }
        options = [f"--{key}={value}" for key, value in settings.items()]
        return [
            str(self._program.java),
            *jvm,
            "-cp",
            self._class_path,
            "reader.SpringReader",
            *options,
        ]

    def _is_ready(self) -> bool:
        return _CALL in self.log_file.read_text(errors="replace")
