"""The installed command as a process, between two embedded servers that count its calls."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from eurekube_sync.cli.commands import demo as story
from eurekube_sync.cli.commands.demo import SYNCER
from eurekube_sync.embedded.http import Handler, LoopbackServer, Request, Response
from tests import planted
from tests.embedded.playground import TestedPlayground

BINARY = Path(sys.executable).with_name("eurekube-sync")
IDS = ("demo:rating:rating:10.0.0.1:8080", "demo:rating:rating:10.0.0.2:8080")
SYNCERS = "/apis/eurekube.io/v1/namespaces/rating/eurekasyncers"
LONG_SECONDS = 300.0
"""A process that still runs then never ends, even on the busiest machine."""
PIPE_BYTES = 1 << 20
"""The output that a process may write before somebody reads it. With a full pipe it would block."""
PLANTED_SYNCER = {
    **SYNCER,
    "spec": {**SYNCER["spec"], "metadata": {"user.password": planted.METADATA_PASSWORD}},
}
WEB_PAGE = Response(
    status=200, body=b"<html><body>please log in</body></html>", content_type="text/html"
)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A process that ended, and its calls."""

    code: int
    out: str
    err: str
    eureka: Counter[str] = field(default_factory=Counter)
    kubernetes: Counter[str] = field(default_factory=Counter)

    @property
    def sentences(self) -> list[str]:
        """The messages for a person: the report's `!` lines, and errors on stderr."""
        marked = [
            line.removeprefix("! ") for line in self.out.splitlines() if line.startswith("! ")
        ]
        return marked + [
            line
            for line in self.err.splitlines()
            if line.startswith(("Error: ", "Internal error: "))
        ]

    @property
    def sentence(self) -> str:
        """The only message."""
        assert len(self.sentences) == 1, self.out + self.err
        assert "Traceback" not in self.out + self.err, self.err
        return self.sentences[0]


@dataclass(kw_only=True)
class Program:
    """`eurekube-sync` and its world. Each `run` is a process of its own, outside the checkout."""

    playground: TestedPlayground
    folder: Path
    eureka_url: str = ""

    def environment(self, **variables: str | None) -> dict[str, str]:
        """The variables of a process: its servers and its owner, and no others of ours. None
        removes one."""
        url = self.eureka_url or self.playground.eureka_url
        logs_in = any("EUREKA_USERNAME" in name or "EUREKA_PASSWORD" in name for name in variables)
        given = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("EUREKUBE_SYNC_", "COLUMNS"))
            },
            "EUREKUBE_SYNC_OWNER": story.OWNER,
            "EUREKUBE_SYNC_EUREKA_URL": url if logs_in else planted.with_login(url),
            "EUREKUBE_SYNC_EUREKA_BATCH": "off",  # so that each call is for one instance
            "KUBECONFIG": str(self.playground.kubeconfig),
            "HOME": str(self.folder),
            **planted.PROXIES,
            **variables,
        }
        return {name: value for name, value in given.items() if value is not None}

    def start(
        self, *arguments: str | Path, stdout: Any = subprocess.PIPE, **variables: str | None
    ) -> subprocess.Popen[str]:
        """Start a process that goes on."""
        self.playground.calls.clear()
        return subprocess.Popen(
            [BINARY, *arguments],
            cwd=self.folder,
            env=self.environment(**variables),
            stdout=stdout,
            stderr=subprocess.PIPE,
            pipesize=PIPE_BYTES,
            text=True,
        )

    def end(self, process: subprocess.Popen[str], *, seconds: float = LONG_SECONDS) -> Ended:
        """Wait for its end."""
        out, err = process.communicate(timeout=seconds)
        calls = self.playground.calls
        return Ended(
            code=process.returncode,
            out=out,
            err=err,
            eureka=Counter(call.method for call in calls if call.path.startswith("/eureka")),
            kubernetes=Counter(call.method for call in calls if call.path.startswith("/api")),
        )

    def command(self, *arguments: str | Path, stdin: str = "", **variables: str | None) -> Ended:
        """Run a command to its end."""
        self.playground.calls.clear()
        process = subprocess.run(
            [BINARY, *arguments],
            cwd=self.folder,
            env=self.environment(**variables),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=LONG_SECONDS,
            check=False,
        )
        calls = self.playground.calls
        return Ended(
            code=process.returncode,
            out=process.stdout,
            err=process.stderr,
            eureka=Counter(call.method for call in calls if call.path.startswith("/eureka")),
            kubernetes=Counter(call.method for call in calls if call.path.startswith("/api")),
        )

    def run(self, *options: str | Path, **variables: str | None) -> Ended:
        """Run `eurekube-sync run` once."""
        return self.command("run", *options, stdin="", **variables)

    def kubeconfig(self, **changes: Any) -> Path:
        """A kubeconfig like the playground's, with other parts."""
        document = copy.deepcopy(yaml.safe_load(self.playground.kubeconfig.read_text()))
        path = self.folder / "changed-kubeconfig"
        path.write_text(yaml.safe_dump({**document, **changes}))
        return path

    def kubeconfig_of(self, server: str) -> Path:
        """A kubeconfig for another server."""
        return self.kubeconfig(clusters=[{"name": "embedded", "cluster": {"server": server}}])

    def status(self, id_: str = IDS[0], app: str = "RATING") -> str | None:
        """The status of an instance in Eureka, by an uncached read. None means that it is not
        there."""
        request = Request(
            method="GET", path=f"/eureka/apps/{app}/{id_}", headers={"accept": "application/json"}
        )
        answer = self.playground.eureka.handle(request)
        return (
            str(yaml.safe_load(answer.body)["instance"]["status"]) if answer.status == 200 else None
        )

    def conditions(self, syncer: str) -> dict[str, tuple[str, str]]:
        """Status and reason of each condition of a syncer."""
        _, document = self.playground.kubernetes.call("GET", f"{SYNCERS}/{syncer}")
        return {
            c["type"]: (c["status"], c["reason"])
            for c in document.get("status", {}).get("conditions", ())
        }

    def events(self, syncer: str) -> set[str]:
        """The reasons of all events of a syncer."""
        _, document = self.playground.kubernetes.call("GET", "/api/v1/namespaces/rating/events")
        return {
            item["reason"] for item in document["items"] if item["involvedObject"]["name"] == syncer
        }

    @contextmanager
    def eureka_behind(self, proxy: Callable[[Request, Handler], Response]) -> Iterator[None]:
        """Put a proxy between the program and Eureka. Calls are still counted."""

        def handle(request: Request) -> Response:
            self.playground.calls.append(request)
            return proxy(request, self.playground.eureka.handle)

        with LoopbackServer(handle) as server:
            self.eureka_url = f"{server.url}/eureka"
            try:
                yield
            finally:
                self.eureka_url = ""

    @contextmanager
    def kubernetes_behind(self, proxy: Callable[[Request, Handler], Response]) -> Iterator[Path]:
        """Put a proxy between the program and the Kubernetes API; gives a kubeconfig for it."""

        def handle(request: Request) -> Response:
            self.playground.calls.append(request)
            return proxy(request, self.playground.kubernetes.handle)

        with LoopbackServer(handle) as server:
            yield self.kubeconfig_of(server.url)


def lists_answered(answer: Response) -> Callable[[Request, Handler], Response]:
    """A registry with this answer to its list. Its other calls work."""

    def proxy(request: Request, registry: Handler) -> Response:
        is_list = request.method == "GET" and request.path == "/eureka/apps"
        return answer if is_list else registry(request)

    return proxy


@contextmanager
def empty(folder: Path) -> Iterator[Program]:
    """A world without our namespace."""
    with TestedPlayground(cache_seconds=0.05) as playground:
        yield Program(playground=playground, folder=folder)


@contextmanager
def rating(folder: Path, *, pods: int = 2) -> Iterator[Program]:
    """The demo's world: an instance of others, and `rating` with its syncer and this many pods."""
    with TestedPlayground(cache_seconds=0.05) as playground:
        story.prepare(playground)
        playground.create(PLANTED_SYNCER)
        for number in range(2, pods):
            playground.create_pod(
                "rating", f"rating-{number + 1}", f"10.0.0.{number + 1}", {"app": "rating"}
            )
        yield Program(playground=playground, folder=folder)


def syncer(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """A syncer of the namespace `rating`."""
    return {**SYNCER, "metadata": {"name": name, "namespace": "rating"}, "spec": dict(spec)}
