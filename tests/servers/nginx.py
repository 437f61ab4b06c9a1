"""Owns a real nginx between the program and Eureka. Knows nothing of Eureka but its address."""

from __future__ import annotations

import os
import pwd
from typing import ClassVar

import requests

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
}}
"""


class Nginx(Server):
    """An nginx that passes everything to `upstream`, `host:port`, under the `rules` of its
    location."""

    name: ClassVar[str] = "nginx"
    start_seconds: ClassVar[float] = 60.0

    def __init__(self, upstream: str, rules: str = "") -> None:
        self._program = nginx()
        self._upstream = upstream
        self._rules = rules
        super().__init__()

    @property
    def url(self) -> str:
        """Its address, as a Eureka's."""
        return f"http://{self.host}:{self.port}/eureka"

    def _command(self) -> list[str]:
        text = _CONFIGURATION.format(
            user=pwd.getpwuid(os.getuid()).pw_name,
            directory=self.directory,
            host=LOOPBACK,
            port=self.port,
            upstream=self._upstream,
            rules=self._rules,
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
