"""Owns a caller as there are in data centres: a Spring application that calls apps by Feign, under
the names that they have in Eureka.

It is made of Spring Cloud's OpenFeign, load balancer and Eureka client, with their own caches, and
retries nothing. Addresses of pods are reached through an HTTP proxy where no network has them.

To raise a version, change `java/reader/pom.xml` and run, with Maven on PATH:

    python -m tests.servers.spring_reader
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .cache import BuildError
from .caller import Caller
from .eureka_jars import resolved_by_maven, write_lock
from .eureka_lines import JAVA_SOURCES
from .java_classes import class_path
from .namespaces import NetworkNamespace
from .toolchains import java

_SOURCES = JAVA_SOURCES / "reader"
_LOCK = _SOURCES / "jars.lock"
_JAR_SET = "reader"


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
        source = _SOURCES / "SpringReader.java"
        self._class_path = class_path(_LOCK, _JAR_SET, source, release=17)
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
            "eureka.client.register-with-eureka": "false",
            "eureka.client.fetch-registry": "true",
        }
        if self._refreshed:
            settings["eureka.client.registry-fetch-interval-seconds"] = "1"
            settings["spring.cloud.loadbalancer.cache.ttl"] = "1s"
        options = [f"--{key}={value}" for key, value in settings.items()]
        command = [
            str(java()),
            *jvm,
            "-cp",
            self._class_path,
            "reader.SpringReader",
            *options,
        ]
        return command if self._namespace is None else self._namespace.command(*command)


if __name__ == "__main__":
    try:
        write_lock(_LOCK, resolved_by_maven(_SOURCES / "pom.xml", jar_set=_JAR_SET))
    except BuildError as problem:
        sys.exit(str(problem))
