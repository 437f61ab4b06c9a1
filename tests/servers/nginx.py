"""Owns a real nginx between the program and Eureka, and Debian's package of it.

The package is unpacked and not installed. Knows nothing of Eureka but its address.
"""

from __future__ import annotations

import os
import pwd
import shutil
from pathlib import Path
from typing import ClassVar

import requests

from .cache import BuildError, cached, run_logged
from .process import LOOPBACK, Server

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


def nginx() -> Path:
    """The program of the machine, or Debian's. Raises BuildError where there is neither it nor
    apt-get."""
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if found:
        return Path(found)
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise BuildError("nginx is missing: put it on the PATH")

    def build(folder: Path) -> None:
        run_logged("nginx", ["apt-get", "download", "nginx"], directory=folder)
        (package,) = folder.glob("*.deb")
        run_logged("nginx", ["dpkg-deb", "--extract", package, folder / "unpacked"])
        (folder / "unpacked" / "usr" / "sbin" / "nginx").rename(folder / "nginx")
        shutil.rmtree(folder / "unpacked")
        package.unlink()

    return cached("nginx-debian", [], build) / "nginx"


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
