"""Owns instances of another owner that keep themselves alive, as a data centre's do: ours must not
be felt by them."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any, Self

import requests

from tests.servers.eureka import EurekaServer
from tests.soak.watch import Key

_CALL_SECONDS = 30.0
_PER_APP = 20


class Strangers:
    """Registers itself on one server and renews each instance in its turn, evenly spread; a context
    manager."""

    def __init__(
        self,
        server: EurekaServer,
        *,
        count: int,
        every: float = 30.0,
        duration: int = 90,
        owner: str = "elsewhere",
    ) -> None:
        """`every` seconds between two renewals of one, `duration` of their leases in seconds."""
        self._server = server
        self._every = every
        self._duration = duration
        self._owner = owner
        self.keys = [Key(f"{owner}-{n // _PER_APP}".upper(), f"{owner}:{n}") for n in range(count)]
        self._stopped: frozenset[Key] = frozenset()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.renewed: dict[Key, float] = {}
        """When each was last renewed, seconds since 1970."""
        self.renewals = 0
        self.refused: list[str] = []
        """Renewals that did not work."""

    def stop_renewing(self, count: int) -> list[Key]:
        """The first so many fall silent; gives their keys."""
        self._stopped = frozenset(self.keys[:count])
        return self.keys[:count]

    def register(self, key: Key) -> None:
        """Registers one of its own, as it is, and renews it."""
        body = {"instance": self._body(key, self.keys.index(key))}
        with self._session() as session:
            session.post(
                f"{self._server.url}/apps/{key.app}", json=body, timeout=_CALL_SECONDS
            ).raise_for_status()
            self._renew(session, key)

    def _run(self) -> None:
        session = self._session()
        begun = time.monotonic()
        turn = 0
        while True:
            for key in self.keys:
                turn += 1
                if self._ended.wait(
                    max(0.0, begun + turn * self._every / len(self.keys) - time.monotonic())
                ):
                    return
                if key not in self._stopped:
                    self._renew(session, key)

    def _renew(self, session: requests.Session, key: Key) -> None:
        try:
            status = session.put(
                f"{self._server.url}/apps/{key.app}/{key.id}", timeout=_CALL_SECONDS
            ).status_code
        except requests.RequestException as error:
            self.refused.append(f"{key.id}: {type(error).__name__}")
            return
        if status != 200:
            self.refused.append(f"{key.id}: {status}")
        self.renewed[key] = time.time()
        self.renewals += 1

    def _session(self) -> requests.Session:
        session = self._server.session()
        session.headers["User-Agent"] = "stranger"
        return session

    def _body(self, key: Key, number: int) -> dict[str, Any]:
        address = f"192.0.{2 + number // 250}.{number % 250 + 1}"
        return {
            "instanceId": key.id,
            "hostName": address,
            "ipAddr": address,
            "app": key.app,
            "vipAddress": key.app.lower(),
            "status": "UP",
            "port": {"$": 8080, "@enabled": "true"},
            "leaseInfo": {
                "renewalIntervalInSecs": int(self._every),
                "durationInSecs": self._duration,
            },
            "dataCenterInfo": {
                "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
                "name": "MyOwn",
            },
            "metadata": {
                "eurekube.owner": self._owner,
                "eurekube.cluster": "elsewhere",
                "eurekube.syncer": "a/b",
            },
        }

    def __enter__(self) -> Self:
        for key in self.keys:
            self.register(key)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()
