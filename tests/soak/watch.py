"""Owns looking: a thread that reads instances past every cache, all the time, and remembers what it
did not find."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, NamedTuple, Self

import requests

from tests.servers.eureka import EurekaServer

_READ_SECONDS = 30.0


class Key(NamedTuple):
    """App name and id of an instance."""

    app: str
    id: str


class Watch:
    """Reads each expected instance at the servers, in turn, round after round; a context manager.

    An instance is lost when it is UP on none of them, which is also so while none of them answers.
    What a peer that is down held counts as not there.
    """

    def __init__(self, *servers: EurekaServer, round_seconds: float = 0.0) -> None:
        """`round_seconds`: spread the reads of one round over so long; 0 reads as fast as it
        can."""
        self._servers = servers
        self._round_seconds = round_seconds
        self._lock = threading.Lock()
        self._expected: frozenset[Key] = frozenset()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.lost: dict[Key, str] = {}
        """What was seen the first time that an instance was lost."""
        self.reads = 0
        self.rounds = 0
        self.longest_round = 0.0
        """Seconds."""
        self.renewals: dict[Key, list[float]] = {}
        """When the lease was renewed, seconds since 1970, as each server in turn told; each renewal
        once, if rounds are shorter than the time between two."""

        self._registrations: dict[Key, set[tuple[str, int]]] = {}

    def registered_again(self, key: Key) -> int:
        """How often it was registered anew on one and the same server while it was watched."""
        seen = self._registrations.get(key, set())
        return len(seen) - len({url for url, _ in seen})

    def expect(self, keys: Iterable[Key]) -> None:
        """From now on these have to be UP, and those that were expected before."""
        with self._lock:
            self._expected |= frozenset(keys)

    def forget(self, keys: Iterable[Key]) -> None:
        """These may go."""
        with self._lock:
            self._expected -= frozenset(keys)

    def check(self) -> None:
        """Raises AssertionError when one was lost, or when nothing was looked at since the last
        `check`."""
        reads, self.reads = self.reads, 0
        assert reads >= len(self._expected), f"only {reads} reads"
        assert not self.lost, "\n".join(self.lost.values())

    def _run(self) -> None:
        sessions = [(server, server.session()) for server in self._servers]
        while not self._ended.is_set():
            expected = sorted(self._expected)
            begun = time.monotonic()
            for number, key in enumerate(expected):
                if self._ended.wait(
                    max(
                        0.0, begun + number * self._round_seconds / len(expected) - time.monotonic()
                    )
                ):
                    return
                if key in self._expected:
                    self._look(key, sessions)
            if expected:
                self.rounds += 1
                self.longest_round = max(self.longest_round, time.monotonic() - begun)
            else:
                self._ended.wait(0.05)

    def _look(self, key: Key, sessions: list[tuple[EurekaServer, requests.Session]]) -> None:
        seen = []
        for server, session in sessions:
            told = self._status(server, session, key)
            if told == "UP":
                break
            seen.append(f"{server.url}: {told}")
        else:
            with self._lock:
                if key in self._expected:
                    self.lost.setdefault(
                        key, f"round {self.rounds}: {key.id} was UP nowhere: {', '.join(seen)}"
                    )
        self.reads += 1

    def _status(self, server: EurekaServer, session: requests.Session, key: Key) -> str:
        try:
            answer = session.get(f"{server.url}/apps/{key.app}/{key.id}", timeout=_READ_SECONDS)
        except requests.RequestException as error:
            return type(error).__name__
        if answer.status_code != 200:
            return str(answer.status_code)
        instance: dict[str, Any] = answer.json()["instance"]
        lease = instance["leaseInfo"]
        self._registrations.setdefault(key, set()).add((server.url, lease["registrationTimestamp"]))
        renewed = (
            lease["lastRenewalTimestamp"] / 1000 - lease["durationInSecs"]
        )  # told as renewal plus duration
        known = self.renewals.setdefault(key, [])
        if not known or renewed > known[-1]:
            known.append(renewed)
        return str(instance["status"])

    def __enter__(self) -> Self:
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
