"""The demo's two servers with what only tests ask of them."""

from __future__ import annotations

from eurekube_sync.embedded.playground import Playground
from eurekube_sync.manifests import load_crd, refusal
from tests.embedded.eureka import GuardedEureka
from tests.embedded.kubernetes import FullKubernetes


class TestedPlayground(Playground):
    """Both servers on loopback."""

    kubernetes: FullKubernetes
    eureka: GuardedEureka

    def __init__(self, *, cache_seconds: float) -> None:
        super().__init__(
            load_crd(), validate=refusal, cache_seconds=cache_seconds, kubernetes=FullKubernetes, eureka=GuardedEureka
        )
