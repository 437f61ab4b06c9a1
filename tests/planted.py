"""Secrets that the tests give to the program, and a search for them in all that it shows: a plugin
of pytest.

It searches the output of each process, what a test prints and logs, each record, and what is sent
to a server, such as statuses and events. A test fails if one is found, whatever it is about.
"""

from __future__ import annotations

import base64
import functools
import gzip
import io
import json
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from eurekube_sync.embedded.http import Request

_SHORTEST = 12
"""Characters: a shorter text may be there by chance."""
_secrets: dict[str, str] = {}
"""What each is, by each form that it may be shown in."""
_found: list[str] = []


def plant(what: str, secret: str) -> str:
    """The secret, which is searched for from now on."""
    if len(secret) >= _SHORTEST:
        encoded = base64.b64encode(secret.encode()).decode()
        for form in (secret, quote(secret, safe=""), json.dumps(secret)[1:-1], encoded):
            _secrets[form] = what
    return secret


USER = "planted-user"
EUREKA_PASSWORD = plant("the password of Eureka", "planted-5d1e0c-of-eureka")
LOGIN = plant("the login of Eureka", f"{USER}:{EUREKA_PASSWORD}")
KUBERNETES_TOKEN = plant("the token of the kubeconfig", "planted-77a2f4-of-the-kubeconfig")
CLIENT_KEY = plant("the client key of the kubeconfig", "planted-c3b9d8-of-the-client-key")
METADATA_PASSWORD = plant("the metadata user.password", "planted-e08b61-of-the-metadata")
_PROXY_PASSWORD = plant("the password of the proxy", "planted-91fd3a-of-the-proxy")
PROXIES = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), f"http://{USER}:{_PROXY_PASSWORD}@127.0.0.1:9"),
    "NO_PROXY": "127.0.0.1,localhost",
}
"""A proxy that is not used, because all servers of the tests are on this machine."""


def with_login(url: str) -> str:
    """The address of a Eureka that asks for none."""
    return url.replace("://", f"://{LOGIN}@", 1)


def search(text: str | bytes | None, where: str) -> None:
    """Remembers each secret that the text has; the test fails then."""
    if text:
        shown = text.decode(errors="replace") if isinstance(text, bytes) else text
        _found.extend(
            f"{what} is in {where}" for form, what in list(_secrets.items()) if form in shown
        )


def search_call(request: Request) -> None:
    """What is sent, but for its headers. Metadata is sent to Eureka, because that is what it is
    for."""
    body = request.body.decode(errors="replace")
    if not request.path.startswith("/api"):  # of Kubernetes
        body = body.replace(METADATA_PASSWORD, "")
    search(f"{request.path} {dict(request.query)} {body}", f"{request.method} {request.path}")


class _Lines(io.TextIOWrapper):
    """What a process says while it goes on."""

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # which iteration calls, too
        line = super().readline(size)
        search(line, "a line of a process that goes on")
        return line


def _search_processes() -> None:
    """Wherever a test starts one."""
    start, communicate = subprocess.Popen.__init__, subprocess.Popen.communicate

    @functools.wraps(start)
    def started(self: subprocess.Popen[Any], *given: Any, **more: Any) -> None:
        start(self, *given, **more)
        for name in ("stdout", "stderr"):
            stream = getattr(self, name)
            if isinstance(stream, io.TextIOWrapper):
                encoding, errors = stream.encoding, stream.errors
                setattr(self, name, _Lines(stream.detach(), encoding=encoding, errors=errors))

    @functools.wraps(communicate)
    def searched(self: subprocess.Popen[Any], *given: Any, **more: Any) -> tuple[Any, Any]:
        streams = communicate(self, *given, **more)
        arguments = (
            [str(one) for one in self.args]
            if isinstance(self.args, list | tuple)
            else [str(self.args)]
        )
        for text in streams:
            if text and "ExecCredential" in str(text):
                # A credential plugin gives the token to who started it: that is what it is for
                continue
            search(text, f"the output of {' '.join(Path(one).name for one in arguments[:3])}")
        if "--record" in arguments:
            for file in Path(arguments[arguments.index("--record") + 1]).glob("*.gz"):
                search(gzip.decompress(file.read_bytes()), "a record")
        return streams

    subprocess.Popen.__init__ = started  # type: ignore[method-assign]
    subprocess.Popen.communicate = searched  # type: ignore[method-assign]


def pytest_configure() -> None:
    """From the first process on."""
    _search_processes()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """After each setup, test and teardown."""
    report = yield
    for name, text in report.sections:
        search(text, name)
    if _found:
        report.outcome = "failed"
        report.longrepr = "; ".join(dict.fromkeys(_found))
        _found.clear()
    return report
