"""The soaks: what happens, for how long, and what must hold. Each gives a table of its figures.

Times of a real server: it evicts every 60 s (`eviction-interval-timer-in-ms`) what was not renewed
for twice its lease, and only while the renewals of the last whole minute are more than 85 % of two
for each instance. Its list is 30 s old.
"""

from __future__ import annotations

import platform
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import sqrt
from pathlib import Path
from statistics import mean

import pytest

from tests.servers.eureka import EurekaServer
from tests.soak.daemon import Daemon
from tests.soak.strangers import Strangers
from tests.soak.watch import Key, Watch

EVICTION_SECONDS = 60
LIST_SECONDS = 30
_LATE_SECONDS = 20
"""How much later than it must something may be seen, on a machine that others use as well."""
_FIRST_PASS_SECONDS = 400
"""Until all is registered and listed, on a busy machine, by a server that hashes a password at each
call."""
_COMING_BACK_SECONDS = 180
"""Until a daemon has made its first renewals."""
_ON_TIME_SECONDS = 1.0
"""A pass that comes so much later than it should shows that the machine is too busy."""
_MISSED_EVICTIONS = 5
_LOOK_SECONDS = 5.0
_UNDER_WAY_SECONDS = 20
"""A call of a killed daemon may reach the server so much later."""
_POLL_SECONDS = 2.0
_AFTERWARDS_SECONDS = 15
_SETTLE_SECONDS = 60
"""The first renewals of a daemon come earlier, to spread them; they are not judged."""
RENEWAL_SECONDS = 30
"""Between two renewals of one instance."""
INTERVAL_SECONDS = 10
"""Between two passes of a daemon under soak."""
PASSES_A_PERIOD = RENEWAL_SECONDS // INTERVAL_SECONDS
"""A daemon that looks every 10 s renews a third of its instances in each pass."""

_PLURALS = {
    "batch": "batches",
    "cancel": "cancels",
    "read": "reads",
    "register": "registrations",
    "renew": "renewals",
}
_KINDS = {"POST": "register", "DELETE": "cancel", "PUT": "renew", "GET": "read"}

Figures = dict[str, str]


def soak(
    server: EurekaServer,
    daemon: Daemon,
    keys: Sequence[Key],
    *,
    minutes: float,
    strangers: int,
    stranger_lease: int,
    falling_silent: int,
    leeway: float = 5,
    options: Sequence[str] = (),
) -> Figures:
    """A daemon beside strangers, of which some fall silent: ours are registered once, renewed in
    time, never gone, and the silent ones are evicted while we run.

    `leeway`: by how many seconds a renewal may come earlier or later than 30 s after the one
    before, and more where the machine was too busy for a pass every 10 s.
    """
    begun = time.time()
    latest = 2 * stranger_lease + EVICTION_SECONDS + LIST_SECONDS + _LATE_SECONDS
    silent_after = min(minutes * 60 / 3, minutes * 60 - latest)
    assert silent_after >= 0, (
        f"too short: it takes up to {latest} s until a silent stranger is gone"
    )

    def longest_wait() -> float:
        """For an eviction, since the strangers fell silent, and as long as one look takes. Late
        renewals are missing in a minute's count, and self-preservation leaves out an eviction for
        each such minute."""
        missed = _MISSED_EVICTIONS if _late(server, settled) >= _ON_TIME_SECONDS else 0
        return latest + longest_look + missed * EVICTION_SECONDS

    with (
        Strangers(server, count=strangers, duration=stranger_lease) as others,
        Watch(server, round_seconds=15) as watch,
    ):
        daemon.start("--daemon", f"--interval={INTERVAL_SECONDS}s", *options)
        try:
            wait_until_listed(server, daemon, keys, others)
            watch.expect(keys)
            settled = time.time()
            silent: list[Key] = []
            silenced = settled
            gone: dict[Key, float] = {}
            longest_look, now = 0.0, settled
            while now < settled + minutes * 60 or (
                len(gone) < len(silent) and now < silenced + longest_wait()
            ):
                looked, now = now, time.time()
                longest_look = max(longest_look, now - looked)
                assert daemon.running, daemon.said()
                if not silent and now >= settled + silent_after:
                    silent, silenced = others.stop_renewing(falling_silent), now
                standing = listed(server)
                assert standing >= {*keys, *others.keys[len(silent) :]}, (
                    "an instance that is renewed is not listed"
                )
                gone |= dict.fromkeys({*silent} - standing - gone.keys(), now)
                time.sleep(_LOOK_SECONDS)
            cpu, memory, lasted = (
                daemon.cpu_seconds(),
                daemon.peak_megabytes(),
                time.time() - settled,
            )
            assert daemon.terminate() == 0, daemon.said()
        finally:
            daemon.kill()
        watch.check()
        assert not others.refused, others.refused[:3]
    took = [gone.get(key, float("inf")) - others.renewed[key] for key in silent]
    assert took, "nobody fell silent"
    assert 2 * stranger_lease <= min(took), "evicted too early"
    assert max(took) <= longest_wait() + longest_look, (
        f"not evicted within {longest_wait():.0f} s: {took}"
    )
    calls = ours(server, since=begun)
    registered_once(watch, keys, calls)
    return {
        **_registry(server, ours=len(keys), others=strangers),
        "soaked": f"{lasted / 60:.1f} minutes",
        "registered, cancelled": "each once, none",
        "our calls": _told(calls),
        **_rhythm(
            _renewals(server, watch, keys),
            since=settled + _SETTLE_SECONDS,
            leeway=leeway,
            late=_late(server, settled),
        ),
        "their renewals": f"{others.renewals}, none refused",
        "uncached reads of ours": f"{watch.rounds} rounds of {len(keys)}, all UP",
        f"{len(silent)} of theirs not renewed": f"out of the list after {max(took):.0f} s, leases "
        f"{stranger_lease} s",
        "the daemon": f"{cpu:.1f} s of processor ({100 * cpu / (time.time() - begun):.1f} %), "
        f"{memory:.0f} MB at most",
    }


def outage(
    server: EurekaServer,
    daemon: Daemon,
    keys: Sequence[Key],
    *,
    lease: int,
    seconds: float,
    options: Sequence[str] = (),
) -> Figures:
    """The daemon is killed for so long and started again: nothing of ours lapses, and nothing is
    registered again.

    The server is one without self-preservation, which would keep the instances of a killed daemon
    by itself; a stranger that falls silent with it shows that.
    """
    with (
        Strangers(server, count=1, every=1, duration=max(1, int(seconds / 6))) as other,
        Watch(server, round_seconds=lease / 20) as watch,
    ):
        daemon.start("--daemon", *options)
        try:
            wait_until_listed(server, daemon, keys, other)
            watch.expect(keys)
            wait_until(
                lambda: watch.rounds >= 2, daemon.said, seconds=_COMING_BACK_SECONDS + lease / 10
            )
            daemon.kill()
            killed = time.time()
            (silent,) = other.stop_renewing(1)
            time.sleep(seconds)
            assert silent not in listed(server), "this server evicts nobody"
            last = max(watch.renewals[key][-1] for key in keys)
            assert last <= killed + _UNDER_WAY_SECONDS, "somebody else renews ours"
            started = time.time()
            daemon.start("--daemon", *options)
            wait_until(
                lambda: all(watch.renewals[key][-1] > started for key in keys),
                daemon.said,
                seconds=_COMING_BACK_SECONDS + lease / 10,
            )
            time.sleep(_AFTERWARDS_SECONDS)
            assert daemon.terminate() == 0, daemon.said()
        finally:
            daemon.kill()
        watch.check()
    after = ours(server, since=started)
    assert after["register"] == after["cancel"] == 0, after
    never_again(watch, keys)
    left = 2 * lease - max(watch_gap(watch.renewals[key], killed) for key in keys)
    return {
        **_registry(server, ours=len(keys), others=1),
        "the daemon was killed for": f"{started - killed:.0f} s, leases {lease} s",
        "the longest between two renewals": f"{2 * lease - left:.0f} s of the {2 * lease} s that "
        "a renewed lease lasts",
        "another owner's, not renewed": "was evicted",
        "registered again, cancelled": "none, none",
        "our calls once it was back": _told(after),
        "uncached reads of ours": f"{watch.rounds} rounds of {len(keys)}, all UP",
    }


def cronjob(server: EurekaServer, daemon: Daemon, keys: Sequence[Key], *, runs: int) -> Figures:
    """A process a minute with two passes, as the shipped CronJob: one registers all, the others
    renew alone."""
    begun = time.time()
    with Watch(server, round_seconds=10) as watch:
        for run in range(runs):
            started = time.time()
            daemon.start("--passes=2", "--interval=30s")
            try:
                assert daemon.wait(300) == 0, daemon.said()
            finally:
                daemon.kill()
            if run == 0:
                watch.expect(keys)
            else:
                calls = ours(server, since=started)
                assert calls["register"] == calls["cancel"] == 0, calls
                assert calls["batch"] or calls["renew"] == 2 * len(keys), calls
            if run < runs - 1:
                time.sleep(max(0.0, started + 60 - time.time()))
        watch.check()
    calls = ours(server, since=begun)
    registered_once(watch, keys, calls)
    return {
        **_registry(server, ours=len(keys), others=0),
        "runs of two passes, one a minute": str(runs),
        "registered, cancelled": "each once, none",
        "our calls": _told(calls),
        "uncached reads of ours": f"{watch.rounds} rounds of {len(keys)}, all UP",
    }


def table(title: str, figures: Figures) -> str:
    """The figures, for a terminal and for a page."""
    width = max(map(len, figures))
    return "\n".join(
        [title, *(f"  {name:{width}}  {value}" for name, value in figures.items()), ""]
    )


def show(capsys: pytest.CaptureFixture[str], title: str, figures: Figures) -> None:
    """Writes the table to the terminal, whatever pytest captures."""
    with capsys.disabled():
        sys.stdout.write(f"\n{table(title, figures)}\n")


def listed(server: EurekaServer) -> set[Key]:
    """All that is UP in the list of all, as old as the server's cache."""
    with server.session() as session:
        answer = session.get(f"{server.url}/apps", timeout=60)
    answer.raise_for_status()
    apps = answer.json()["applications"]["application"]
    return {
        Key(app["name"], i["instanceId"])
        for app in apps
        for i in app["instance"]
        if i["status"] == "UP"
    }


def ours(server: EurekaServer, *, since: float) -> Counter[str]:
    """The program's calls by kind; what is in a batch does not show."""
    calls = [
        call
        for call in server.calls()
        if call.agent.startswith("eurekube-sync/") and call.at >= since
    ]
    return Counter(
        "batch" if "/peerreplication/" in call.path else _KINDS[call.method] for call in calls
    )


def registered_once(watch: Watch, keys: Sequence[Key], calls: Counter[str]) -> None:
    """AssertionError when one was registered twice, as server and access log tell, or one was
    cancelled."""
    never_again(watch, keys)
    assert calls["register"] == (0 if calls["batch"] else len(keys)), calls
    assert calls["cancel"] == 0, calls


def never_again(watch: Watch, keys: Sequence[Key]) -> None:
    """AssertionError when one was registered anew while it was watched, in whichever way."""
    again = [key.id for key in keys if watch.registered_again(key)]
    assert not again, f"registered again: {again[:3]} of {len(again)}"


def wait_until_listed(
    server: EurekaServer, daemon: Daemon, keys: Sequence[Key], others: Strangers
) -> None:
    """Waits until all stand, and then until the list has them, which another write helps: a list
    that was made while instances came can lack some until the next write, or for 180 s
    (`responseCacheAutoExpirationInSeconds`)."""
    with server.session() as session:
        last = f"{server.url}/apps/{keys[-1].app}/{keys[-1].id}"
        wait_until(
            lambda: session.get(last, timeout=60).ok, daemon.said, seconds=_FIRST_PASS_SECONDS
        )
    deadline = time.monotonic() + _FIRST_PASS_SECONDS
    while not listed(server) >= {*keys, *others.keys}:
        assert time.monotonic() < deadline, daemon.said()
        others.register(others.keys[-1])
        time.sleep(LIST_SECONDS + _POLL_SECONDS if server.stock_timings else _POLL_SECONDS)


def wait_until(reached: Callable[[], bool], tell: Callable[[], str], *, seconds: float) -> None:
    """Polls until something is so; AssertionError, with what `tell` gives, when it takes longer."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, f"not reached within {seconds:g} s:\n{tell()}"
        time.sleep(_POLL_SECONDS)


def watch_gap(renewals: Sequence[float], moment: float) -> float:
    """Seconds between the renewals before and after a moment."""
    return next(
        later - earlier for earlier, later in pairwise(renewals) if earlier <= moment < later
    )


def _told(calls: Counter[str]) -> str:
    return ", ".join(f"{number} {_PLURALS[kind]}" for kind, number in sorted(calls.items()))


def _renewals(server: EurekaServer, watch: Watch, keys: Sequence[Key]) -> dict[Key, list[float]]:
    """When each was renewed: by the access log, or where batches hide it, by what reads told of
    each lease."""
    logged: dict[str, list[float]] = {}
    for call in server.calls():
        if call.method == "PUT" and call.status == 200:
            logged.setdefault(call.path, []).append(call.at)
    if any(f"/eureka/apps/{key.app}/{key.id}" in logged for key in keys):
        return {key: logged[f"/eureka/apps/{key.app}/{key.id}"] for key in keys}
    assert watch.longest_round < RENEWAL_SECONDS - 5, (
        f"a round of reads took {watch.longest_round:.0f} s: it may miss renewals"
    )
    return {key: watch.renewals[key] for key in keys}


def _late(server: EurekaServer, since: float) -> float:
    """By how many seconds a pass came later than an interval after the one before, at most: each
    begins with a list."""
    lists = [
        call.at
        for call in server.calls()
        if call.at >= since
        and call.path == "/eureka/apps"
        and call.agent.startswith("eurekube-sync/")
    ]
    return max([0.0, *(later - earlier - INTERVAL_SECONDS for earlier, later in pairwise(lists))])


def _rhythm(
    renewals: Mapping[Key, Sequence[float]], *, since: float, leeway: float, late: float
) -> Figures:
    """How the leases were renewed; AssertionError when not as they should. What passes could not do
    that came `late`, by so many seconds, is not expected of them."""
    settled = {key: [at for at in times if at >= since] for key, times in renewals.items()}
    gaps = [later - earlier for times in settled.values() for earlier, later in pairwise(times)]
    assert len(gaps) >= len(settled), "too short to see two renewals of each"
    passes = f"a pass came late by {late:.1f} s"
    assert min(gaps) >= RENEWAL_SECONDS - leeway - late, (
        f"renewed after {min(gaps):.1f} s; {passes}"
    )
    assert max(gaps) <= RENEWAL_SECONDS + leeway + late, (
        f"renewed after {max(gaps):.1f} s; {passes}"
    )
    assert abs(mean(gaps) - RENEWAL_SECONDS) < 1 + late, (
        f"renewed every {mean(gaps):.1f} s; {passes}"
    )
    seconds = Counter(int(at) for times in settled.values() for at in times)
    share = max(seconds.values()) / len(settled)
    # Which pass renews an instance follows from its id; chance adds no more than three standard
    # deviations.
    part = 1 / PASSES_A_PERIOD
    most = part + 3 * sqrt(part * (1 - part) / len(settled))
    if (
        late < _ON_TIME_SECONDS
    ):  # else one pass renews what is due for two, and those that were renewed together stay together
        assert share <= most, (
            f"{share:.0%} of our instances renewed in one second, more than {most:.0%}"
        )
    return {
        "between two renewals of one": f"{min(gaps):.1f} to {max(gaps):.1f} s, {mean(gaps):.1f} s "
        "on average",
        "renewed in one second": f"at most {share:.0%} of our instances",
    }


def _registry(server: EurekaServer, *, ours: int, others: int) -> Figures:
    login = ", ".join(
        name for name, on in (("basic auth", server.basic_auth), ("TLS", server.tls)) if on
    )
    return {
        "machine": f"{_processor()}, Python {platform.python_version()}",
        "Eureka": f"{'stock' if server.stock_timings else 'fast'} "
        f"timings{f', {login}' if login else ''}",
        "instances": f"{ours} of ours, {others} of another owner",
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.machine()
