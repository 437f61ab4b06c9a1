"""Owns real nginx servers: one between the program and Eureka, and one that leads calls into a
cluster. Knows of Eureka and Kubernetes only addresses."""

from __future__ import annotations

import os
import pwd
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import requests

from .namespaces import NetworkNamespace
from .process import LOOPBACK, Server
from .toolchains import nginx

_TIMEOUT_SECONDS = 60.0
_CONFIGURATION = """
daemon off;
user {user};
worker_processes 1;
pid {directory}/nginx.pid;
error_log {directory}/error.log;
events {{ worker_connections 256; }}
http {{
    types {{ text/html html; }}
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    proxy_cache_path {directory}/cache keys_zone=lists:1m;
    {servers}
}}
"""
_BEFORE_EUREKA = """
    server {{
        listen {host}:{port};
        location = /ready {{ return 204; }}
        location = /page.html {{ internal; root {directory}; }}
        location / {{
            proxy_pass http://{upstream};
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            {rules}
        }}
    }}
"""
_READY = """
    server {{
        listen {host}:{port};
        location = /ready {{ return 204; }}
    }}
"""
_HOST = """
    server {{
        listen {listens};
        server_name "{host}";
        location / {{ proxy_pass http://{upstream}; }}
    }}
"""
_OTHER_HOSTS = """
    server {{
        listen {listens} default_server;
        server_name _;
        return 404;
    }}
"""


class _NginxServer(Server, ABC):
    """An nginx with the servers of its configuration, one of which says at `/ready` that it is."""

    name: ClassVar[str] = "nginx"
    start_seconds: ClassVar[float] = 60.0

    def __init__(self) -> None:
        self._program = nginx()
        super().__init__()

    @abstractmethod
    def _servers(self) -> str:
        """Return the servers of its configuration."""

    def _command(self) -> list[str]:
        text = _CONFIGURATION.format(
            user=pwd.getpwuid(os.getuid()).pw_name,
            directory=self.directory,
            servers=self._servers(),
        )
        file = self.directory / "nginx.conf"
        file.write_text(text)
        (self.directory / "page.html").write_text("<html>no such page</html>")
        return [
            str(self._program),
            "-p",
            str(self.directory),
            "-c",
            str(file),
            "-e",
            str(self.directory / "error.log"),
        ]

    def _is_ready(self) -> bool:
        return requests.get(f"http://{self.host}:{self.port}/ready", timeout=_TIMEOUT_SECONDS).ok


class Nginx(_NginxServer):
    """An nginx that passes everything to `upstream`, `host:port`, under the `rules` of its
    location."""

    def __init__(self, upstream: str, rules: str = "") -> None:
        self._upstream = upstream
        self._rules = rules
        super().__init__()

    @property
    def url(self) -> str:
        """Its address, as a Eureka's."""
        return f"http://{self.host}:{self.port}/eureka"

    def _servers(self) -> str:
        return _BEFORE_EUREKA.format(
            host=LOOPBACK,
            port=self.port,
            directory=self.directory,
            upstream=self._upstream,
            rules=self._rules,
        )


class Entrance(_NginxServer):
    """An nginx on a node, as the proxy of Ingresses and Gateways: the calls for a host lead to a
    Service, and all others are a 404."""

    def __init__(self, node: NetworkNamespace, services: Mapping[str, Mapping[str, str]]) -> None:
        """`services` has a Service, `address:port`, for each host, for each `address:port` at which
        callers come."""
        super().__init__()
        self._node = node
        self._services = services

    def _command(self) -> list[str]:
        return self._node.command(*super()._command())

    def _servers(self) -> str:
        servers = [_READY.format(host=LOOPBACK, port=self.port)]
        for listens, of_host in self._services.items():
            servers.append(_OTHER_HOSTS.format(listens=listens))
            for host, upstream in of_host.items():
                servers.append(_HOST.format(listens=listens, host=host, upstream=upstream))
        return "".join(servers)

    def _is_ready(self) -> bool:
        return self._node.inside(super()._is_ready)
