"""What a shell completes beside commands and options: contexts, namespaces and syncers.

It never fails and says nothing: a person who presses Tab waits for a word, and two seconds at most.
"""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import click

from eurekube_sync.model.errors import EurekubeError
from eurekube_sync.model.foreign_text import printable
from eurekube_sync.model.kubernetes import SyncerRef

Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[str]]
_SECONDS = 2.0
"""The longest wait for the cluster."""


def _quietly(words: Callable[[dict[str, Any]], Iterable[str]]) -> Complete:
    """The words that begin with what was typed; of a list with commas its last part. None that a terminal would
    obey."""

    def complete(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
        before, comma, last = typed.rpartition(",") if "," in str(parameter.type.name) else ("", "", typed)
        logging.disable()
        try:
            found = sorted(word for word in set(words(context.params)) if printable(word) == word)
        except (EurekubeError, OSError):
            return []
        finally:
            logging.disable(logging.NOTSET)
        return [f"{before}{comma}{word}" for word in found if word.startswith(last)]

    return complete


def _contexts(given: dict[str, Any]) -> Sequence[str]:
    from eurekube_sync.adapters.kubernetes.kubeconfig import DEFAULT_PATH, context_names

    return context_names(given.get("kubeconfig") or os.environ.get("KUBECONFIG") or DEFAULT_PATH)


def _syncers(given: dict[str, Any]) -> list[SyncerRef]:
    """All that can be listed."""
    from eurekube_sync.adapters.clock import SystemClock
    from eurekube_sync.adapters.kubernetes import ConnectionSettings, KubernetesCluster, connect
    from eurekube_sync.desired.claims import every

    settings = ConnectionSettings(
        kubeconfig=given.get("kubeconfig") or "",
        context=given.get("context") or "",
        connect_seconds=_SECONDS,
        read_seconds=_SECONDS,
        start_seconds=2 * _SECONDS,  # the client is imported in it
    )
    cluster = KubernetesCluster(
        connect(settings), clock=SystemClock(), random=random.Random(), tries=1, answer_seconds=_SECONDS
    )
    return [one.ref for one in every(cluster.list_syncers(None))]


complete_contexts = _quietly(_contexts)
complete_namespaces = _quietly(lambda given: (ref.namespace for ref in _syncers(given)))
"""Those that have a syncer: a scope without any is empty."""
complete_syncers = _quietly(lambda given: map(str, _syncers(given)))
