"""Eureka restarts and comes back empty, while a pod calls an app of the data centre.

The instances live on. So no call may fail, and no slice may change.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.datapath.imported import ImportedService
from tests.datapath.instances import register, wait_for_list
from tests.datapath.naive import write_what_is_listed
from tests.integration.program import Program
from tests.servers.caller import Calls, PodCaller
from tests.servers.data_path import DataPath
from tests.servers.eureka import EurekaServer
from tests.servers.namespaces import WebServer

pytestmark = pytest.mark.servers

SERVERS = [
    f"{address}:{port}" for address in ("10.9.0.1", "10.9.0.2") for port in range(8101, 8106)
]


@pytest.fixture
def servers(data_path: DataPath) -> Iterator[None]:
    """Ten servers of the app `review`, with five port numbers."""
    with contextlib.ExitStack() as running:
        for server in SERVERS:
            running.enter_context(WebServer(data_path.data_centre, server))
        yield


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What callers and kube-proxy saw of a restart."""

    calls: Calls
    slices_changed: bool


def calls_through_a_restart(
    data_path: DataPath,
    eureka: EurekaServer,
    review: ImportedService,
    caller: PodCaller,
    one_pass: Callable[[], object],
    *,
    calls: int,
) -> Outcome:
    """Restart Eureka while the pod calls `review`, at least `calls` times.

    `one_pass` is a pass of what makes the slices. Eureka is down, then it is back with no instance,
    with 30 %, with 70 % and with all of them. On each of these states follow a pass, kube-proxy,
    and a fifth of the calls.
    """

    def pass_and_calls() -> None:
        one_pass()
        data_path.wait_for_kube_proxy()
        caller.next(calls // 5)

    register(eureka, "REVIEW", SERVERS)
    wait_for_list(eureka, "REVIEW", SERVERS)
    one_pass()
    caller.wait_for_answers_of(SERVERS)
    begin = caller.so_far()
    versions = review.versions()
    eureka.stop()
    pass_and_calls()
    eureka.start()
    pass_and_calls()
    for number in (3, 7, 10):
        register(eureka, "REVIEW", SERVERS[:number])
        wait_for_list(eureka, "REVIEW", SERVERS[:number])
        pass_and_calls()
    return Outcome(calls=caller.all(since=begin), slices_changed=review.versions() != versions)


def test_a_naive_importer_is_caught(
    data_path: DataPath,
    eureka: EurekaServer,
    review: ImportedService,
    caller: PodCaller,
    servers: None,
) -> None:
    """One that writes what Eureka lists loses calls, and changes slices. So the test of an importer
    that does not can fail."""

    def naive_pass() -> None:
        write_what_is_listed(eureka, review)

    review.create()
    outcome = calls_through_a_restart(data_path, eureka, review, caller, naive_pass, calls=50)
    assert outcome.slices_changed
    kinds = {failure.split()[1] for failure in outcome.calls.failed}
    assert "ConnectionRefusedError" in kinds


def test_the_program_loses_no_call(
    data_path: DataPath,
    eureka: EurekaServer,
    program: Program,
    review: ImportedService,
    caller: PodCaller,
    servers: None,
) -> None:
    """None of 10,000 calls fails, and no slice is written."""
    review.import_app()
    outcome = calls_through_a_restart(data_path, eureka, review, caller, program.run, calls=10_000)
    assert outcome.calls.failed == ()
    assert outcome.calls.answered >= 10_000
    assert not outcome.slices_changed
