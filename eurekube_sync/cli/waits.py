"""Which answer the program waits for just now, in words: for the line that a person at a terminal sees.

It stands between the pass and the adapters, and changes no call.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, TypeVar, cast

P = TypeVar("P")

_WORDS = {
    "identity": "the Kubernetes API: which cluster it is",
    "crd_live": "the Kubernetes API: the CRD",
    "list_syncers": "the Kubernetes API: the list of EurekaSyncers",
    "list_services": "the Kubernetes API: the list of Services",
    "list_slices": "the Kubernetes API: the list of EndpointSlices",
    "list_pods": "the Kubernetes API: the list of Pods",
    "list_pod_drains": "the Kubernetes API: the list of Pods",
    "list_readiness": "the Kubernetes API: the list of Pods",
    "list_namespaces": "the Kubernetes API: the list of Namespaces",
    "list_nodes": "the Kubernetes API: the list of Nodes",
    "list_node_drains": "the Kubernetes API: the list of Nodes",
    "write_status": "the Kubernetes API: writing statuses",
    "list_instances": "Eureka: its list of instances",
    "list_elsewhere": "Eureka: the lists of its peers",
    "read_instance": "Eureka: reading instances again",
    "read_everywhere": "Eureka: reading instances again",
    "register": "Eureka: registering instances",
    "renew": "Eureka: renewing instances",
    "cancel": "Eureka: cancelling instances",
}
"""By the method of a port; others are not worth a word."""


class Waits:
    """May be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: Counter[str] = Counter()

    def __str__(self) -> str:
        with self._lock:
            open_ = +self._open
        if not open_:
            return "waiting for an answer"
        (words, calls), *_ = open_.most_common(1)
        return f"waiting for {words}{f' ({calls} calls)' if calls > 1 else ''}"

    def seen(self) -> AbstractContextManager[None]:
        """Shows them while it is entered, at a terminal."""
        if not sys.stderr.isatty():
            return nullcontext()
        from eurekube_sync.cli.output.progress import waiting

        return waiting(self)

    def of(self, port: P) -> P:
        """The same port, whose calls are noted while they last."""
        return cast(P, _Noted(port, self._noted))

    def _noted(self, words: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def noted(*args: Any, **named: Any) -> Any:
            with self._lock:
                self._open[words] += 1
            try:
                return call(*args, **named)
            finally:
                with self._lock:
                    self._open[words] -= 1

        return noted


class _Noted:
    def __init__(self, port: object, noted: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> None:
        self._port = port
        self._noted = noted

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        return self._noted(_WORDS[name], found) if name in _WORDS else found
