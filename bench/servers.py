"""The servers that are measured against: real ones, or the embedded ones in a process of their own
for development.

Each is reached through a relay that counts bytes. To a real Kubernetes API the program speaks as in
a pod, with the token of a service account; to the embedded one with a kubeconfig. The floor and the
plain loop have a Eureka of their own, so that each of the three finds there what it wrote.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from bench.child import processor_seconds
from bench.objects import Objects
from bench.relay import Relay
from eurekube_sync.embedded.http import LoopbackServer, Request, Response
from eurekube_sync.manifests.crd import load_crds

CACHE_SECONDS = 1.0


class Emptied(Protocol):
    """A Eureka that can lose its memory."""

    @property
    def url(self) -> str:
        """Its address for clients."""

    @property
    def pid(self) -> int | None:
        """Its process, while it runs."""

    def empty(self) -> None:
        """As after a restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """All that a benchmark of one size needs."""

    eureka: Emptied
    others: Emptied
    """Of the floor and the plain loop."""
    objects: Objects
    kubernetes_url: str
    token: str
    ca_file: Path | None
    pod: Sequence[str]
    """What stands before a command that is to find itself in a pod."""
    kubernetes_options: Sequence[str]
    """Of the program, to find the Kubernetes API."""
    to_eureka: Relay
    to_kubernetes: Relay
    pids: Callable[[], Sequence[int | None]]
    """Of the Kubernetes API and its store."""

    def kubernetes_seconds(self) -> float:
        """Processor time of the Kubernetes API and its store so far."""
        return sum(processor_seconds(pid) for pid in self.pids() if pid is not None)

    @property
    def eureka_url(self) -> str:
        """Through the relay."""
        return f"http://localhost:{self.to_eureka.port}/eureka"


@contextmanager
def real(instances: int) -> Iterator[Servers]:
    """kube-apiserver on etcd, and two Spring Eureka servers, all new."""
    from tests.servers.eureka import EurekaServer
    from tests.servers.kube import ApiServer, Etcd

    class Real(EurekaServer):
        def empty(self) -> None:
            """It keeps nothing."""
            self.restart()

    with ExitStack() as running:
        etcd = running.enter_context(Etcd())
        api = running.enter_context(ApiServer(etcd_url=etcd.url))
        java = (
            "-Xmx2g",
            "-XX:+UseParallelGC",
            "-XX:-UsePerfData",
        )  # with its optimising compiler, as in production
        ours, others = (running.enter_context(Real(jvm_options=java)) for _ in range(2))
        objects = Objects(api.url, instances, token=api.admin_token, ca_file=api.ca_file)
        yield running.enter_context(
            _reached(
                ours,
                others,
                objects,
                api.url,
                api.admin_token,
                api.ca_file,
                lambda: (etcd.pid, api.pid),
            )
        )


@contextmanager
def embedded(instances: int) -> Iterator[Servers]:
    """The embedded servers: slower than real ones, and there in a second."""
    with ExitStack() as running:
        kubernetes, ours, others = (
            running.enter_context(_process(name)) for name in ("kubernetes", "eureka", "eureka")
        )
        objects = Objects(kubernetes.url, instances)
        yield running.enter_context(
            _reached(ours, others, objects, kubernetes.url, "", None, lambda: (kubernetes.pid,))
        )


@contextmanager
def _reached(
    ours: Emptied,
    others: Emptied,
    objects: Objects,
    url: str,
    token: str,
    ca_file: Path | None,
    pids: Callable[[], Sequence[int | None]],
) -> Iterator[Servers]:
    where, registry = urlsplit(url), urlsplit(ours.url)
    assert where.hostname
    assert where.port
    assert registry.hostname
    assert registry.port
    with (
        Relay(where.hostname, where.port) as to_kubernetes,
        Relay(registry.hostname, registry.port) as to_eureka,
        tempfile.TemporaryDirectory() as folder,
    ):
        kubeconfig = Path(folder) / "kubeconfig"
        if ca_file is None:
            write_kubeconfig(kubeconfig, f"{where.scheme}://127.0.0.1:{to_kubernetes.port}")
        else:
            _write_account(Path(folder), token, ca_file)
        yield Servers(
            eureka=ours,
            others=others,
            objects=objects,
            kubernetes_url=url,
            token=token,
            ca_file=ca_file,
            pod=() if ca_file is None else _pod(folder, to_kubernetes.port),
            kubernetes_options=("--kubeconfig", str(kubeconfig)) if ca_file is None else (),
            to_eureka=to_eureka,
            to_kubernetes=to_kubernetes,
            pids=pids,
        )


def _write_account(folder: Path, token: str, ca_file: Path) -> None:
    (folder / "token").write_text(token)
    (folder / "ca.crt").write_bytes(ca_file.read_bytes())
    (folder / "namespace").write_text("default")


def _pod(account: str, port: int) -> Sequence[str]:
    """Mounts of its own, so that the account stands where every pod has it."""
    own = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    mount = 'mount -t tmpfs t /run && mkdir -p "$0" && mount --bind "$1" "$0" && shift && exec "$@"'
    server = ["env", "KUBERNETES_SERVICE_HOST=127.0.0.1", f"KUBERNETES_SERVICE_PORT={port}"]
    return [
        *own,
        "sh",
        "-c",
        mount,
        "/var/run/secrets/kubernetes.io/serviceaccount",
        account,
        *server,
    ]


def write_kubeconfig(path: Path, url: str) -> None:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bench", "cluster": {"server": url}}],
        "users": [{"name": "bench", "user": {}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "current-context": "bench",
    }
    path.write_text(json.dumps(content))


class _Process:
    """An embedded server in a process of its own."""

    def __init__(self, name: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(name, other))
        self._process.start()
        self.url: str = self._pipe.recv()
        self.pid = self._process.pid

    def empty(self) -> None:
        """It forgets all."""
        self._pipe.send("empty")
        self._pipe.recv()

    def end(self) -> None:
        """For good."""
        self._pipe.send("end")
        self._process.join()


@contextmanager
def _process(name: str) -> Iterator[_Process]:
    process = _Process(name)
    try:
        yield process
    finally:
        process.end()


def _serve(name: str, pipe: Pipe) -> None:
    from tests.embedded.eureka import FullEureka
    from tests.embedded.kubernetes import FullKubernetes

    def made() -> FullEureka | FullKubernetes:
        if name == "kubernetes":
            return FullKubernetes(time.time, definitions=list(load_crds()))
        return FullEureka(time.time, response_cache_seconds=CACHE_SECONDS)

    holds = [made()]

    def handle(request: Request) -> Response:
        return holds[0].handle(request)

    with LoopbackServer(handle) as server:
        pipe.send(f"{server.url}/eureka" if name == "eureka" else server.url)
        while pipe.recv() == "empty":
            holds[0] = made()
            pipe.send("empty")
