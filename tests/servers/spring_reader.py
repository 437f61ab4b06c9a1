"""Owns a caller as there are in data centres: a Spring application that finds apps by Eureka and
calls them in turn.

It is made of the client and the load balancer of Spring Cloud, with their own caches, from the jars
of the Eureka server, and retries nothing. Addresses of pods are reached through an HTTP proxy where
no network has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .caller import Caller
from .eureka_build import eureka
from .java_classes import compiled
from .namespaces import NetworkNamespace

_SOURCE = Path(__file__).parent / "java" / "reader" / "SpringReader.java"


class SpringReader(Caller):
    """Calls from its start to its end, some ten times a second."""

    name = "spring-reader"

    def __init__(
        self,
        eureka_url: str,
        apps: Sequence[str],
        *,
        proxy_port: int | None = None,
        namespace: NetworkNamespace | None = None,
        refreshed: bool = False,
    ) -> None:
        """`proxy_port`: where pods are reached; None: at their own addresses. `namespace` is the
        network that it runs in; None: the machine's. `refreshed`: its copies of Eureka's list are a
        second old at most, instead of half a minute."""
        self._program = eureka()
        jars = sorted((self._program.folder / "server").glob("*.jar"))
        classes = compiled(self.name, _SOURCE, jars, release=17)
        self._class_path = ":".join(str(part) for part in (classes, *jars))
        super().__init__()
        self._eureka_url = eureka_url
        self._apps = apps
        self._proxy_port = proxy_port
        self._namespace = namespace
        self._refreshed = refreshed

    def _command(self) -> list[str]:
        jvm = [
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-Dhttp.keepAlive=false",  # a call that fails is not made again on another connection
        ]
        if self._proxy_port is not None:
            jvm += [
                "-Dhttp.proxyHost=127.0.0.1",
                f"-Dhttp.proxyPort={self._proxy_port}",
                "-Dhttp.nonProxyHosts=localhost|127.*",
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
        if self._refreshed:
            settings["eureka.client.registry-fetch-interval-seconds"] = "1"
            settings["spring.cloud.loadbalancer.cache.ttl"] = "1s"
        options = [f"--{key}={value}" for key, value in settings.items()]
        command = [
            str(self._program.java),
            *jvm,
            "-cp",
            self._class_path,
            "reader.SpringReader",
            *options,
        ]
        return command if self._namespace is None else self._namespace.command(*command)
