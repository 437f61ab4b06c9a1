"""What the passes of the installation say of themselves: in the lock, and in the conditions of the
syncers. A person's machine may reach a server that they do not reach, or the other way round.

| the passes say | the last good pass | the lock was renewed | what is said of the passes            |
|----------------|--------------------|----------------------|---------------------------------------|
| stopped        | minutes old, none  | any                  | how to start the installation         |
| a failure      | before it          | any                  | since when none was good, their words |
| nothing        | minutes old        | a moment ago         | they run, and since when none is good |
| nothing        | minutes old        | minutes ago, unknown | nothing: see that they run (`RUNS`)   |
| any            | after the failure  | any                  | nothing                               |
"""

from __future__ import annotations

from eurekube_sync.controller.look import Look
from eurekube_sync.explain.links import RUNS
from eurekube_sync.model.kubernetes import FailedPass, GoodPass, LockRecord
from eurekube_sync.model.problems import Problem
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete
from eurekube_sync.model.text import span

SILENT = 150.0  # seconds without a renewal, or without a good pass: five renewals


def _run(lock: LockRecord, now: float) -> bool:
    """Say whether there is a sign that passes run, although the last good one may be long ago."""
    last_sign = lock.renewed or 0.0
    if lock.failed is not None:
        last_sign = max(last_sign, lock.failed.at)
    return now - last_sign <= SILENT


def is_recent(good: GoodPass | None, now: float) -> bool:
    """Say whether the last good pass is known and not long ago."""
    return good is not None and now - good.at <= SILENT


def see_to_passes(look: Look) -> str:
    """Return what to do where no pass did its work: see why none is good, or that they run."""
    if look.deployed.start:
        return f"start the installation: {look.deployed.start}"
    if look.lock is not None and not _run(look.lock, look.at):
        return RUNS
    if failing(look) is None:
        return RUNS
    if look.deployed.logs:
        return f"see why no pass is good: {look.deployed.logs}"
    return "see the log of its passes"


def failing(look: Look) -> Problem | None:
    """Return why the passes of the installation are not good, in their own words; None if they are,
    if none runs, or if the row of a syncer says it."""
    lock = look.lock
    good = look.last_good
    recent = is_recent(good, look.at)
    not_good = "no pass was good yet"
    if good is not None:
        not_good = f"no pass was good for {span(look.at - good.at)}"

    if look.deployed.start and not recent:
        text = f"{not_good}. The installation is stopped. To start it: {look.deployed.start}"
        return Problem(reason=Reason.NO_INSTALLATION, subject="", text=text)

    failed = _failed_after_good(look)
    if failed is not None:
        if failed.reason == Reason.LAST_INSTANCE_LOST:
            return None  # the row of its syncer says it
        ago = span(look.at - failed.at)
        said = f"The last one, {ago} ago, said: {failed.result}"
        return _problem(failed.reason, [not_good, said], look)

    if look.unread_by_passes:
        first = look.unread_by_passes[0]
        lasted = span(look.at - first.last_transition)
        texts = [f"For {lasted} passes say: {first.message}"]
        if good is not None:
            texts.insert(0, not_good)
        return _problem(first.reason, texts, look)

    if lock is None or good is None or recent:
        return None
    if _run(lock, look.at):
        return _problem(Reason.WRITE_FAILED, [not_good, "Passes run all the same"], look)
    return None


def _failed_after_good(look: Look) -> FailedPass | None:
    """Return the last pass that was not good, as the lock has it; None if a good one followed. A
    good pass takes it out of the lock, but one of an older version leaves it there."""
    failed = look.lock.failed if look.lock is not None else None
    good = look.last_good
    if failed is not None and good is not None and failed.at < good.at:
        return None
    return failed


def _problem(reason: str, texts: list[str], look: Look) -> Problem:
    """Add what this machine sees, and where to read on."""
    known = Reason.WRITE_FAILED
    if reason in list(Reason):  # a pass of another version may have others
        known = Reason(reason)
    unread = {condition.reason for condition in look.unread_by_passes}
    if Reason.REGISTRY_UNKNOWN in unread and isinstance(look.listed, Complete):
        texts.append("This machine can read Eureka")
    if look.deployed.logs:
        texts.append(f"To see more: {look.deployed.logs}")
    return Problem(reason=known, subject="", text=". ".join(texts))


def reached_by_passes(look: Look) -> str:
    """Say that the passes can read Eureka, and this machine cannot; empty if that is not so."""
    good = look.last_good
    if good is None or not is_recent(good, look.at):
        return ""
    if isinstance(look.listed, Complete) or failing(look) is not None:
        return ""
    ago = span(look.at - good.at)
    return f"The installation can: its last good pass was {ago} ago"
