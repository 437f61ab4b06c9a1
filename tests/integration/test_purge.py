"""`purge` and a new owner name on a real Eureka: renewals are noticed, and callers see no gap."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from eurekube_sync.controller.exit_codes import ExitCode
from tests.command.program import IDS, LONG_SECONDS, Ended, Program, rating
from tests.integration.program import Registry
from tests.servers.eureka import EurekaServer
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

PODS = 20
SILENT = 95  # seconds: an installation that renewed nothing for so long has ended


@pytest.fixture
def registry(eureka: EurekaServer) -> Iterator[Registry]:
    """The instances in the registry, which is empty before and after."""
    found = Registry(url=eureka.url)
    empty(found)
    yield found
    empty(found)


def empty(registry: Registry) -> None:
    """Cancel every listed instance, until the list is empty."""

    def is_empty() -> bool:
        apps = applications(registry.url)
        for app in apps:
            for instance in app["instance"]:
                requests.delete(
                    f"{registry.url}/apps/{app['name']}/{instance['instanceId']}", timeout=30
                )
        return not apps

    registry.wait_for_list(is_empty, lambda: f"still listed: {applications(registry.url)}")


@pytest.fixture
def program(eureka: EurekaServer, registry: Registry, tmp_path: Path) -> Iterator[Program]:
    """Two pods and their syncer. Nothing is registered yet."""
    with rating(tmp_path) as found:
        found.eureka_url = eureka.url
        yield found


def applications(url: str) -> list[dict[str, Any]]:
    """The list of all, as old as the server's cache."""
    answer = requests.get(f"{url}/apps", headers={"Accept": "application/json"}, timeout=30)
    found: list[dict[str, Any]] = answer.json()["applications"]["application"]
    return found


def purge(program: Program, *arguments: str) -> Ended:
    """Run `purge`."""
    return program.command("purge", *arguments, stdin="")


def moved(program: Program) -> Ended:
    """Run a pass under a new name. As often as it is refused, because the old installation renewed
    lately, it is tried again."""
    ended = program.run("--owner", "next", "--former-owner", "demo", "-o", "json")
    begun = time.monotonic()
    while ended.code == ExitCode.OWNER_CLASH:
        assert time.monotonic() - begun < SILENT + 30, ended.out + ended.err
        time.sleep(5)
        ended = program.run("--owner", "next", "--former-owner", "demo", "-o", "json")
    return ended


class Reader:
    """A caller that reads all the time, cached lists and uncached. An instance that has left the
    old id must be under the new one. `missing` has those that it did not find."""

    def __init__(self, registry: Registry, addresses: set[str]) -> None:
        self._url = registry.url
        self._registry = registry
        self._addresses = addresses
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._read_lists),
            threading.Thread(target=self._read_each),
        ]
        self.looks = 0
        self.owners: dict[str, set[str]] = {}
        """The owners of the instances in each list, when it was last read."""
        self.missing: list[set[str]] = []

    def _read_each(self) -> None:
        while not self._over.is_set():
            for address in self._addresses:
                id_ = f"rating:rating:{address}:8080"
                if not any(
                    self._registry.status("RATING", f"{owner}:{id_}") == "UP"
                    for owner in ("demo", "next")
                ):
                    self.missing.append({address})

    def _read_lists(self) -> None:
        while not self._over.is_set():
            for path in ("/apps", "/vips/rating"):
                answer = requests.get(
                    f"{self._url}{path}", headers={"Accept": "application/json"}, timeout=30
                )
                apps = answer.json()["applications"]["application"]
                found = {
                    one["ipAddr"]
                    for app in apps
                    for one in app["instance"]
                    if one["status"] == "UP"
                }
                self.owners[path] = {
                    one["instanceId"].partition(":")[0] for app in apps for one in app["instance"]
                }
                self.looks += 1
                if not self._addresses <= found:
                    self.missing.append(self._addresses - found)

    def __enter__(self) -> Reader:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


def test_a_new_owner_name_under_a_reader_leaves_no_instance_out(
    eureka: EurekaServer, registry: Registry, tmp_path: Path
) -> None:
    """There are twenty instances, and two lists are read all the time. Afterwards the new owner is
    in sync."""
    with rating(tmp_path, pods=PODS) as program:
        program.eureka_url = eureka.url
        assert program.run().code == ExitCode.OK
        addresses = {f"10.0.0.{number}" for number in range(1, PODS + 1)}
        url = eureka.url
        registry.list_follows(
            "RATING", [f"demo:rating:rating:{address}:8080" for address in addresses]
        )
        with Reader(registry, addresses) as reader:
            ended = moved(program)
            answer = json.loads(ended.out)
            assert ended.code == ExitCode.OK, answer["messages"]
            assert answer["summary"] == f"{PODS} registered, {PODS} cancelled, 0 renewed"
            wait_until(
                lambda: list(reader.owners.values()) == [{"next"}, {"next"}],
                lambda: f"the lists show instances of {reader.owners}",
            )
        assert reader.looks > 20
        assert not reader.missing
        instances = [one for app in applications(url) for one in app["instance"]]
        assert {one["instanceId"].partition(":")[0] for one in instances} == {"next"}
        assert len(instances) == PODS
        assert program.run("--owner", "next").out.splitlines()[-1] == f"in sync, {PODS} renewed"


def test_a_new_owner_name_is_refused_while_a_daemon_renews(
    program: Program, registry: Registry
) -> None:
    """The daemon's renewals are noticed by uncached reads, and nothing is changed."""
    daemon = program.start("run", "--daemon", "--interval", "1s", "--registry-cache", "2s")
    try:
        wait_until(
            lambda: [registry.status("RATING", id_) for id_ in IDS] == ["UP", "UP"],
            "the daemon has not registered both",
        )
        registry.list_follows("RATING", IDS)
        refused = program.run("--owner", "next", "--former-owner", "demo")
        assert refused.code == ExitCode.OWNER_CLASH, refused.out + refused.err
        assert "owner demo is still at work: it renewed 2 instances in the last 90 s" in refused.out
    finally:
        daemon.terminate()
        daemon.communicate(timeout=LONG_SECONDS)
    assert [registry.status("RATING", id_) for id_ in IDS] == ["UP", "UP"]


def test_a_purge_removes_our_instances_and_leaves_those_of_others(
    program: Program, registry: Registry
) -> None:
    """Uncached reads show this at once."""
    registry.register("BILLING", "dc-17:billing:8080", "192.0.2.17")
    assert program.run().code == ExitCode.OK
    registry.list_follows("RATING", IDS)
    ended = purge(program, "--yes")
    assert (ended.code, ended.eureka["DELETE"]) == (ExitCode.OK, 0), (
        "the calls go to the real server"
    )
    assert ended.out.splitlines()[-1] == "2 cancelled"
    assert [registry.status("RATING", id_) for id_ in IDS] == [None, None]
    assert registry.status("BILLING", "dc-17:billing:8080") == "UP"


# --- Two peers ------------------------------------------------------------------------------------


@pytest.fixture
def pair(eureka_peers: tuple[EurekaServer, EurekaServer]) -> tuple[EurekaServer, EurekaServer]:
    """They replicate to each other. Every test leaves both running, and without these instances."""
    return eureka_peers


@pytest.fixture
def peered(pair: tuple[EurekaServer, EurekaServer], tmp_path: Path) -> Iterator[Program]:
    """Two pods that `run` has registered on both peers."""
    with rating(tmp_path) as found:
        found.eureka_url = ",".join(server.url for server in pair)
        assert found.run().code == ExitCode.OK
        on_both(pair, dict.fromkeys(IDS, "UP"))
        yield found


def on_both(pair: tuple[EurekaServer, EurekaServer], expected: dict[str, str]) -> None:
    """Wait until each list shows exactly these instances of the app."""
    for server in pair:
        list_shows(server, expected)


def list_shows(server: EurekaServer, expected: dict[str, str]) -> None:
    """Wait until the list of one peer shows exactly these instances of the app."""

    def listed() -> dict[str, str]:
        apps = [app for app in applications(server.url) if app["name"] == "RATING"]
        return {one["instanceId"]: one["status"] for app in apps for one in app["instance"]}

    Registry(url=server.url).wait_for_list(
        lambda: listed() == expected, lambda: f"{server.url} lists {listed()}"
    )


def test_a_purge_takes_all_from_both_peers(
    peered: Program, pair: tuple[EurekaServer, EurekaServer]
) -> None:
    """This includes an instance on the second peer only, of which the first one does not know."""
    stray = "demo:rating:rating:10.0.0.9:8080"
    there = Registry(url=pair[1].url).instance("RATING", IDS[0])
    assert there is not None
    known = (
        "hostName",
        "ipAddr",
        "app",
        "status",
        "port",
        "vipAddress",
        "dataCenterInfo",
        "metadata",
    )
    body = {"instanceId": stray, **{name: there[name] for name in known}}
    unreplicated = {"x-netflix-discovery-replication": "true"}
    url = f"{pair[1].url}/apps/RATING"
    requests.post(url, json={"instance": body}, headers=unreplicated, timeout=30).raise_for_status()
    Registry(url=pair[1].url).list_follows("RATING", (*IDS, stray))
    ended = purge(peered, "--yes")
    assert (ended.code, ended.out.splitlines()[-1]) == (ExitCode.OK, "3 cancelled"), (
        ended.out + ended.err
    )
    first, second = (Registry(url=server.url) for server in pair)
    assert [first.status("RATING", id_) for id_ in (*IDS, stray)] == [None] * 3
    wait_until(  # replication brings recent registrations there in their order
        lambda: [second.status("RATING", id_) for id_ in (*IDS, stray)] == [None] * 3,
        "the second one still has some",
    )
    on_both(pair, {})


def test_a_new_owner_name_reaches_both_peers(
    peered: Program, pair: tuple[EurekaServer, EurekaServer]
) -> None:
    """Each instance is under the new id on both peers, and under the old one on neither."""
    ended = moved(peered)
    assert ended.code == ExitCode.OK, ended.out + ended.err
    renamed = [id_.replace("demo:", "next:", 1) for id_ in IDS]
    on_both(pair, dict.fromkeys(renamed, "UP"))
    assert peered.command("purge", "--yes", EUREKUBE_SYNC_OWNER="next").code == ExitCode.OK
    on_both(pair, {})


@pytest.mark.parametrize("away", [0, 1])
def test_a_purge_reports_a_peer_that_is_down(
    peered: Program, pair: tuple[EurekaServer, EurekaServer], away: int
) -> None:
    """It names the peer and exits with 30, and the other peer is purged. When the peer is back, it
    copies the other, and a purge is complete."""
    pair[away].kill()
    try:
        ended = purge(peered, "--yes")
        assert ended.code == ExitCode.INCOMPLETE, ended.out + ended.err
        assert ended.out.splitlines()[-1] == "2 cancelled"
        assert (
            f"{pair[away].url} could not be reached: the instances there stay until they expire"
            in ended.out
        )
        assert [Registry(url=pair[1 - away].url).status("RATING", id_) for id_ in IDS] == [
            None,
            None,
        ]
    finally:
        pair[away].start()
    on_both(pair, {})
    ended = purge(peered, "--yes")
    assert ended.code == ExitCode.OK, ended.out + ended.err
