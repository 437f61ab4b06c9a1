"""Owns network namespaces, the cables between them, and what listens in them.

A namespace has no name on the machine. A process that sleeps in it holds it. When that process
ends, the kernel removes the namespace with its cables, routes, rules and mounts. So two runs never
meet, and a run that is killed leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import socketserver
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar, Self, TypeVar

from .process import Server, ServerError

_Result = TypeVar("_Result")
_CLONE_NEWNET = 0x40000000  # of <sched.h>; os.setns exists from Python 3.12 on
_PIECE_BYTES = 65_536
_COMMAND_SECONDS = 60.0


class NetworkNamespace(Server):
    """A network with nothing in it but its own loopback, and mounts that nobody else sees."""

    name: ClassVar[str] = "namespace"
    start_seconds: ClassVar[float] = 60.0

    def command(self, *words: str | Path) -> list[str]:
        """Return the command line that runs a program in it, by the same process id."""
        entering = ["nsenter", f"--target={self.pid}", "--net", "--mount", "--"]
        return [*entering, *(str(word) for word in words)]

    def run(self, *words: str | Path) -> str:
        """Return what a program prints that is run in it. Raises ServerError with all that it said
        if it fails."""
        done = subprocess.run(
            self.command(*words),
            capture_output=True,
            text=True,
            check=False,
            timeout=_COMMAND_SECONDS,
        )
        if done.returncode != 0:
            raise ServerError(f"{' '.join(map(str, words))}: {done.stderr}{done.stdout}".strip())
        return done.stdout

    def inside(self, act: Callable[[], _Result]) -> _Result:
        """Return what `act` returns, called by a thread in the namespace. A socket that it makes
        stays there, whoever uses it later."""

        def entered() -> _Result:
            self._enter()
            return act()

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(entered).result()

    def _enter(self) -> None:
        """Move this thread alone into the network. Raises OSError."""
        descriptor = os.open(f"/proc/{self.pid}/ns/net", os.O_RDONLY)
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.setns(descriptor, _CLONE_NEWNET) != 0:
                number = ctypes.get_errno()
                raise OSError(number, f"setns: {os.strerror(number)}")
        finally:
            os.close(descriptor)

    def _command(self) -> list[str]:
        script = "ip link set lo up && exec sleep infinity"
        return ["unshare", "--net", "--mount", "sh", "-c", script]

    def _is_ready(self) -> bool:
        # The process becomes `sleep` when all is made
        return Path(f"/proc/{self.pid}/comm").read_text() == "sleep\n"


def connect(
    first: NetworkNamespace, first_end: str, second: NetworkNamespace, second_end: str
) -> None:
    """Lay a cable between two namespaces. An end is its device and its address with the length of
    the network's prefix: `to-node 10.8.0.10/24`. Raises ServerError."""
    first_device, first_address = first_end.split()
    second_device, second_address = second_end.split()
    peer = ["peer", "name", second_device, "netns", str(second.pid)]
    first.run("ip", "link", "add", first_device, "type", "veth", *peer)
    ends = ((first, first_device, first_address), (second, second_device, second_address))
    for namespace, device, address in ends:
        namespace.run("ip", "address", "add", address, "dev", device)
        namespace.run("ip", "link", "set", device, "up")


class _Listener(socketserver.ThreadingTCPServer):
    """Listens in a namespace, and answers from threads of ours; a context manager."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore callers that hang up."""


class _Forwarding(socketserver.BaseRequestHandler):
    server: Forwarder

    def handle(self) -> None:
        with socket.create_connection(self.server.target) as target:
            back = threading.Thread(target=_copy, args=(target, self.request), daemon=True)
            back.start()
            _copy(self.request, target)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy until one of them ends, and pass the end on."""
    with contextlib.suppress(OSError):
        while piece := source.recv(_PIECE_BYTES):
            target.sendall(piece)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


class Forwarder(_Listener):
    """A port on the loopback of a namespace that leads to the same port of the machine's."""

    def __init__(self, namespace: NetworkNamespace, port: int) -> None:
        self.target = ("127.0.0.1", port)
        namespace.inside(lambda: super(Forwarder, self).__init__(self.target, _Forwarding))


class _Answering(socketserver.StreamRequestHandler):
    server: WebServer

    def handle(self) -> None:
        while self.rfile.readline().strip():
            pass
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(self.server.name)}\r\nConnection: close"
        self.wfile.write(f"{head}\r\n\r\n{self.server.name}".encode())


class WebServer(_Listener):
    """Answers each call with its name, which is where it listens: `address:port`."""

    def __init__(self, namespace: NetworkNamespace, name: str) -> None:
        self.name = name
        address, port = name.split(":")
        namespace.inside(lambda: super(WebServer, self).__init__((address, int(port)), _Answering))
