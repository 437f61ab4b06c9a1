"""Plays one story before all readers at once: the program registers apps, then an instance comes and
goes, comes and turns DOWN. Says what each reader found, and how long after Eureka."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from eurekube_sync.embedded.eureka import EmbeddedEureka
from eurekube_sync.embedded.kubernetes.server import EmbeddedKubernetes
from eurekube_sync.embedded.playground import Playground
from eurekube_sync.manifests.crd import load_crd
from eurekube_sync.manifests.validation import refusal
from tests.servers.cache import BuildError
from tests.servers.eureka import EurekaServer
from tests.servers.process import ServerError

from .cases import (
    APPS,
    CANCELLED,
    CASES,
    CHANGES,
    DOWN,
    EUREKAS_CACHE,
    FULL,
    HTTP,
    NAMESPACE,
    READERS,
    REGISTERED,
    SECOND,
    Apps,
    Seen,
    longest,
)
from .reader import PROCESSES, Reader

OWNER = "readers"
_POLL_SECONDS = 0.1
_PASS_SECONDS = 120.0
_READ_SECONDS = 30.0
_DELAY_SECONDS = 5.0
"""Of a busy machine, in addition to the intervals."""
_SECOND_POD = f"{FULL.name}-2"
_SECOND_ID = f"{OWNER}:{NAMESPACE}:{FULL.name}:{SECOND}:{HTTP}"


@dataclass(kw_only=True)
class Found:
    """What one reader found."""

    apps: Apps = field(default_factory=dict)
    """Before the changes."""
    after: dict[str, float] = field(default_factory=dict)
    """By change, the seconds from Eureka's own state to the reader's; the longest of all rounds,
    and infinite if it did not follow once."""
    shows_down: bool = False
    """Whether a DOWN instance is shown as such. Otherwise it is left out."""
    trouble: str = ""
    """Why the reader did not start."""


def play(eureka: EurekaServer, folder: Path, *, fast: bool, rounds: int = 1) -> Mapping[str, Found]:
    """Return what each reader found. `fast`: each reader refreshes every second, and `eureka` has
    to be a fast one."""
    with ExitStack() as stack:
        stage = stack.enter_context(_staged(eureka, folder, fast=fast))
        stage.run_program()
        _start_readers(stage, stack)
        stage.wait_for_apps()
        for _ in range(rounds):
            stage.change_the_second_instance()
        return stage.found


def troubles(found: Mapping[str, Found]) -> list[str]:
    """Return a line for each thing that a reader does not do as the cases say, at its own
    intervals."""
    lines = []
    for reader in READERS:
        if found[reader].trouble:
            lines.append(f"{reader}: {found[reader].trouble}")
            continue
        for case in CASES:
            seen, expected = case.seen(found[reader].apps), case.expected_of(reader)
            if seen != expected:
                lines.append(f"{reader}, {case.name}: {seen}, not {expected}")
        for change in CHANGES:
            after = found[reader].after[change]
            if after > longest(reader) + _DELAY_SECONDS:
                lines.append(f"{reader}, {change}: it follows after {after:.0f} s")
    return lines


@contextmanager
def _staged(eureka: EurekaServer, folder: Path, *, fast: bool) -> Iterator[_Stage]:
    """Put the apps and their syncers into an embedded Kubernetes API."""
    kubernetes = EmbeddedKubernetes(time.time, definitions=[load_crd()], validate=refusal)
    with Playground(kubernetes, EmbeddedEureka(time.time)) as playground:
        playground.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        )
        for app in APPS:
            playground.create(app.service())
            playground.create_pod(NAMESPACE, f"{app.name}-1", app.address, {"app": app.name})
            playground.create(app.syncer())
        yield _Stage(eureka=eureka, playground=playground, folder=folder, fast=fast)


def _start_readers(stage: _Stage, stack: ExitStack) -> None:
    """Start them together. One that does not start is no trouble of the others."""
    names = [app.name for app in APPS]
    with ThreadPoolExecutor(len(PROCESSES)) as pool:
        made = [process(stage.eureka.url, names, fast=stage.fast) for process in PROCESSES]
        for reader in made:
            stack.callback(reader.close)
        starts = [pool.submit(reader.start) for reader in made]
        for reader, start in zip(made, starts, strict=True):
            try:
                start.result()
            except (BuildError, ServerError) as error:
                for name in reader.readers:
                    stage.found[name] = Found(trouble=str(error))
            else:
                for name in reader.readers:
                    stage.found[name] = Found()
                    stage.readers[name] = reader


@dataclass(kw_only=True)
class _Stage:
    eureka: EurekaServer
    playground: Playground
    folder: Path
    fast: bool
    readers: dict[str, Reader] = field(default_factory=dict)
    """By the name of each reader that runs."""
    found: dict[str, Found] = field(default_factory=dict)

    @property
    def _patience(self) -> float:
        """Seconds that a reader may take: Eureka's caches and its own, twice."""
        return 60.0 if self.fast else 240.0

    def run_program(self) -> None:
        """Make a pass of the program. AssertionError if it does not end with 0."""
        cache = ("--registry-cache=3s",) if self.fast else ()
        ended = subprocess.run(
            [Path(sys.executable).with_name("eurekube-sync"), "run", *cache],
            cwd=self.folder,
            env={
                **{
                    name: value
                    for name, value in os.environ.items()
                    if not name.startswith("EUREKUBE_SYNC_")
                },
                "EUREKUBE_SYNC_OWNER": OWNER,
                "EUREKUBE_SYNC_EUREKA_URL": self.eureka.url,
                "KUBECONFIG": str(self.playground.kubeconfig),
            },
            capture_output=True,
            text=True,
            timeout=_PASS_SECONDS,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr

    def wait_for_apps(self) -> None:
        """Wait until each reader has found all that it finds, and keep it."""

        def complete(reader: str) -> bool:
            apps = self._apps(reader)
            self.found[reader].apps = apps
            missing = [case for case in CASES if case.expected_of(reader) and not case.seen(apps)]
            return not missing

        self._times_until(complete)

    def change_the_second_instance(self) -> None:
        """Let it come and go, come and turn DOWN; note when each reader has followed."""
        self._create()
        self._follow(REGISTERED, "UP", _is_up)
        self._delete()
        self._follow(CANCELLED, None, _is_gone)
        self._create()
        self._follow(REGISTERED, "UP", _is_up)
        self.playground.set_ready(NAMESPACE, _SECOND_POD, ready=False)
        self._follow(DOWN, "DOWN", _is_down)
        for name in self.readers:
            self.found[name].shows_down = _second(self._apps(name)) is not None
        self._delete()
        self.run_program()
        self._times_until(lambda name: _is_gone(self._apps(name)))

    def _create(self) -> None:
        self.playground.create_pod(NAMESPACE, _SECOND_POD, SECOND, {"app": FULL.name})

    def _delete(self) -> None:
        self.playground.delete("Pod", NAMESPACE, _SECOND_POD)

    def _follow(self, change: str, status: str | None, reached: Callable[[Apps], bool]) -> None:
        """Have the program write a change to Eureka, and wait for the readers. The time begins when
        Eureka itself has the status; None is for an instance that it does not have."""
        if not self.fast:  # else each change comes as another one was just seen by all
            time.sleep(random.uniform(0, EUREKAS_CACHE))
        with ThreadPoolExecutor(1) as pool:
            ended = pool.submit(self.run_program)
            while not ended.done() and self._status() != status:
                time.sleep(_POLL_SECONDS)
            since = time.monotonic()
            ended.result()
        assert self._status() == status
        times = self._times_until(lambda name: reached(self._apps(name)))
        for name in self.readers:
            after = self.found[name].after
            after[change] = max(times.get(name, inf) - since, after.get(change, 0.0))

    def _status(self) -> str | None:
        """Return the status of the second instance, by an uncached read."""
        answer = self.eureka.session().get(
            f"{self.eureka.url}/apps/{FULL.name.upper()}/{_SECOND_ID}", timeout=_READ_SECONDS
        )
        return str(answer.json()["instance"]["status"]) if answer.ok else None

    def _apps(self, name: str) -> Apps:
        return self.readers[name].seen(name)

    def _times_until(self, reached: Callable[[str], bool]) -> Mapping[str, float]:
        """Return when each reader had reached something, by `time.monotonic`, without those that
        had not in time."""
        at: dict[str, float] = {}
        deadline = time.monotonic() + self._patience
        while len(at) < len(self.readers) and time.monotonic() < deadline:
            for name in self.readers:
                if name not in at and reached(name):
                    at[name] = time.monotonic()
            time.sleep(_POLL_SECONDS)
        return at


def _second(apps: Apps) -> Seen | None:
    """Return the second instance, if a reader shows it."""
    for instance in apps.get(FULL.name, ()):
        if instance.host == SECOND:
            return instance
    return None


def _is_up(apps: Apps) -> bool:
    second = _second(apps)
    return second is not None and second.status in ("UP", None)


def _is_down(apps: Apps) -> bool:
    second = _second(apps)
    return second is None or second.status == "DOWN"


def _is_gone(apps: Apps) -> bool:
    return _second(apps) is None
