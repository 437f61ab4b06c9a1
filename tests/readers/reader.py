"""Owns what a reader of Eureka is for the tests: a process, and the instances that it would call.

A process may hold several readers, each with a name. Most of them print what they find; Prometheus
is asked over HTTP.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import requests
import yaml

from tests.servers.process import Server
from tests.servers.toolchains import prometheus

from . import programs
from .cases import Apps, Seen

_SEEN = "SEEN "
_TIMEOUT_SECONDS = 10.0
_REFRESH_SECONDS = 30
_JOBS = {"Prometheus": "eureka", "Prometheus, no relabelling": "plain"}
_LABEL = "__meta_eureka_app_instance_"


class Reader(Server):
    """A process with readers in it."""

    readers: ClassVar[Mapping[str, str]]
    """By the name of each, which is one of `cases.READERS`, the package that it comes from."""

    def __init__(self, eureka_url: str, apps: Sequence[str], *, fast: bool) -> None:
        """`fast` refreshes every second instead of as often as the reader does by itself."""
        super().__init__()
        self.eureka_url = eureka_url
        self.apps = tuple(apps)
        self.fast = fast

    @abstractmethod
    def seen(self, reader: str) -> Apps:
        """Return what one of the readers would call now. An app that it knows nothing of may be
        left out."""


class _Printing(Reader):
    """A program of ours that prints a line of JSON whenever its readers find something else."""

    def seen(self, reader: str) -> Apps:
        apps = json.loads(self._last_line() or "{}").get(reader, {})
        return {app: tuple(Seen(**instance) for instance in apps[app]) for app in apps}

    def _is_ready(self) -> bool:
        return bool(self._last_line())

    def _last_line(self) -> str:
        last = ""
        for line in self.log_file.read_text(errors="replace").splitlines():
            if line.startswith(_SEEN) and line.endswith("}"):
                last = line.removeprefix(_SEEN)
        return last


class _Script(_Printing):
    """A program that takes address, apps and seconds as arguments."""

    program: ClassVar[Callable[[], list[str]]]

    def _command(self) -> list[str]:
        seconds = 1 if self.fast else _REFRESH_SECONDS
        arguments = (self.eureka_url, ",".join(self.apps), str(seconds))
        return [*type(self).program(), *arguments]


class PyEurekaClient(_Script):
    """py-eureka-client, called as its documentation does, and with `prefer_https`."""

    name = "py-eureka-client"
    readers: ClassVar[Mapping[str, str]] = {
        "py-eureka-client": "py-eureka-client",
        "py-eureka-client, prefer_https": "py-eureka-client",
    }
    program = staticmethod(programs.py_eureka_client)


class EurekaJsClient(_Script):
    """eureka-js-client."""

    name = "eureka-js-client"
    readers: ClassVar[Mapping[str, str]] = {"eureka-js-client": "eureka-js-client"}
    program = staticmethod(programs.eureka_js_client)


class Fargo(_Script):
    """fargo, for Go."""

    name = "fargo"
    readers: ClassVar[Mapping[str, str]] = {"fargo": "github.com/hudl/fargo"}
    program = staticmethod(programs.fargo)


class _Spring(_Printing):
    """A Spring application, whose properties are its configuration."""

    program: ClassVar[Callable[[], list[str]]]
    fast_options: ClassVar[tuple[str, ...]]

    def _command(self) -> list[str]:
        properties = {
            "reader.apps": ",".join(self.apps),
            "server.address": self.host,
            "server.port": str(self.port),
            "spring.application.name": "reader",
            "spring.main.banner-mode": "off",
            "eureka.client.service-url.defaultZone": f"{self.eureka_url}/",
            "eureka.client.register-with-eureka": "false",
        }
        options = [f"--{key}={value}" for key, value in properties.items()]
        if self.fast:
            options += self.fast_options
        return [*type(self).program(), *options]


class SpringToday(_Spring):
    """Spring Cloud 2025.1 and Spring Boot Admin 4."""

    name = "spring-today"
    readers: ClassVar[Mapping[str, str]] = {
        "Spring Cloud LoadBalancer": "today/spring-cloud-loadbalancer",
        "Spring Cloud Gateway": "today/spring-cloud-gateway-server-webflux",
        "Spring Boot Admin": "today/spring-boot-admin-server",
    }
    program = staticmethod(programs.spring_today)
    fast_options = (
        "--eureka.client.registry-fetch-interval-seconds=1",
        "--spring.cloud.loadbalancer.cache.ttl=1s",
    )


class SpringHoxton(_Spring):
    """Ribbon and Feign of Spring Cloud Hoxton."""

    name = "spring-hoxton"
    readers: ClassVar[Mapping[str, str]] = {
        "Ribbon": "hoxton/spring-cloud-netflix-ribbon",
        "Feign": "hoxton/spring-cloud-openfeign-core",
    }
    program = staticmethod(programs.spring_hoxton)
    fast_options = (
        "--eureka.client.registry-fetch-interval-seconds=1",
        "--ribbon.ServerListRefreshInterval=1000",
    )


class Prometheus(Reader):
    """Prometheus' own discovery, with the relabelling of docs/readers.md and without."""

    name = "prometheus"
    readers: ClassVar[Mapping[str, str]] = dict.fromkeys(_JOBS, "prometheus")

    def seen(self, reader: str) -> Apps:
        answer = requests.get(
            f"http://{self.host}:{self.port}/api/v1/targets",
            params={"state": "active"},
            timeout=_TIMEOUT_SECONDS,
        )
        apps: dict[str, list[Seen]] = {}
        for target in answer.json()["data"]["activeTargets"]:
            if target["scrapePool"] == _JOBS[reader]:
                app = target["discoveredLabels"][f"{_LABEL.removesuffix('instance_')}name"]
                apps.setdefault(app.lower(), []).append(_target(target))
        return apps

    def _command(self) -> list[str]:
        jobs = yaml.safe_load(page_snippet())["scrape_configs"]
        (job,) = jobs
        discovery = {"server": self.eureka_url}
        if self.fast:
            discovery["refresh_interval"] = "1s"
        plain = {"job_name": "plain", "eureka_sd_configs": [discovery]}
        config = self.directory / "prometheus.yml"
        config.write_text(
            yaml.safe_dump({"scrape_configs": [{**job, "eureka_sd_configs": [discovery]}, plain]})
        )
        return [
            str(prometheus()),
            f"--config.file={config}",
            f"--storage.tsdb.path={self.directory / 'data'}",
            f"--web.listen-address={self.host}:{self.port}",
        ]

    def _is_ready(self) -> bool:
        address = f"http://{self.host}:{self.port}/-/ready"
        return requests.get(address, timeout=_TIMEOUT_SECONDS).ok


PAGE = Path(__file__).parents[2] / "docs" / "readers.md"


def page_snippet() -> str:
    """Return the page's configuration of Prometheus."""
    return PAGE.read_text().partition("```yaml\n")[2].partition("```")[0]


def _target(target: Mapping[str, Any]) -> Seen:
    url = urlsplit(target["scrapeUrl"])
    labels = target["discoveredLabels"]
    prefix = f"{_LABEL}metadata_"
    metadata = {
        name.removeprefix(prefix): value
        for name, value in labels.items()
        if name.startswith(prefix)
    }
    secure = url.scheme == "https"
    return Seen(
        host=url.hostname or "",
        port=url.port or (443 if secure else 80),
        secure=secure,
        metadata=metadata,
        status=labels[f"{_LABEL}status"],
    )


PROCESSES: tuple[type[Reader], ...] = (
    SpringToday,
    SpringHoxton,
    Prometheus,
    PyEurekaClient,
    EurekaJsClient,
    Fargo,
)
