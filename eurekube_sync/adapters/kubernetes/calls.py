"""Single calls, tried again where that may help: full jitter, bounded, in the time of the `Clock` port.

Owns what is transient and what a refusal means. Knows paths and bodies only to name them in a message.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from eurekube_sync.adapters.answer_time import AnswerTime
from eurekube_sync.adapters.kubernetes.connection import Answer, Call, Connection
from eurekube_sync.adapters.kubernetes.wire import UNREADABLE
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import (
    ClusterCredentialsLate,
    ClusterDenied,
    ClusterError,
    ClusterRejected,
    ClusterUnavailable,
    ConfigurationError,
)
from eurekube_sync.model.foreign_text import excerpt
from eurekube_sync.model.ports import Clock, Random

_TRANSIENT = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How often and how long apart; a wait is random between nothing and its bound ("full jitter")."""

    tries: int = 4
    first_seconds: float = 0.25
    longest_seconds: float = 4.0
    longest_retry_after: float = 10.0
    """A server may ask for more; a pass has a deadline, and the next one comes."""


class _Cause(msgspec.Struct):
    reason: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] | None = None


class _Status(msgspec.Struct):
    kind: str = ""
    reason: str = ""
    message: str = ""
    details: _Details | None = None


_STATUS = msgspec.json.Decoder(_Status)


class Calls:
    """Sends calls through a connection. May be used from several threads."""

    def __init__(
        self,
        connection: Connection,
        *,
        clock: Clock,
        random: Random,
        backoff: Backoff,
        limit: TimeLimit,
        answer_seconds: float,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._random = random
        self._backoff = backoff
        self._limit = limit
        self._answer_seconds = answer_seconds

    def send(self, call: Call) -> Answer:
        """The answer, whatever its status, but for 401 and the transient ones.

        Raises ClusterUnavailable after the last try or when no time is left, ClusterDenied on a 401 that new
        credentials do not end.
        """
        renewed = False
        tried = 0
        failure = ClusterUnavailable(f"{call} was not tried: no time was left for it")
        while self._limit.left() > 0:
            wait = 0.0
            within = AnswerTime(self._clock, self._answer_seconds, self._limit)
            try:
                answer = self._connection.send(call, within)
            except ClusterCredentialsLate:
                raise
            except ClusterUnavailable as error:
                if within.over:
                    raise self._too_late(call, within) from error
                failure = error
            else:
                if answer.status == 401 and not renewed:
                    renewed = True
                    self._renew(within)
                    continue
                if answer.status == 401:
                    raise ClusterDenied(f"the Kubernetes API does not know who we are (401 to {call}): log in again")
                if answer.status not in _TRANSIENT:
                    return answer
                failure = ClusterUnavailable(f"the Kubernetes API answered {answer.status} to {call}: {said(answer)}")
                wait = self._asked_for(answer)
            tried += 1
            bound = min(self._backoff.longest_seconds, self._backoff.first_seconds * 2 ** (tried - 1))
            wait += self._random.random() * bound
            if tried >= self._backoff.tries or wait >= self._limit.left() or self._clock.stopping():
                break
            self._clock.sleep(wait)
            if self._clock.stopping():
                break
        raise failure

    def _too_late(self, call: Call, within: AnswerTime) -> ClusterUnavailable:
        silent = f"the Kubernetes API at {self._connection.server} did not answer {call}"
        if not within.within_limit:
            return ClusterUnavailable(f"{silent} in the time that was left")
        return ClusterUnavailable(f"{silent} whole in {self._answer_seconds:g} s: it is too slow")

    def _renew(self, within: AnswerTime) -> None:
        try:
            self._connection.renew(within)
        except ConfigurationError as error:
            raise ClusterDenied(f"the Kubernetes API refused us (401), and {error}") from error

    def _asked_for(self, answer: Answer) -> float:
        """Seconds of Retry-After, which the API gives as a number."""
        text = answer.retry_after.strip()
        is_number = text.isascii() and text.isdigit()
        return min(float(text), self._backoff.longest_retry_after) if is_number else 0.0


def refusal(call: Call, answer: Answer) -> ClusterError:
    """The error for an answer that is not what was asked for."""
    if answer.status == 403:
        return ClusterDenied(f"the Kubernetes API forbids {call}: {said(answer)}")
    return ClusterRejected(f"the Kubernetes API answered {answer.status} to {call}: {said(answer)}")


def said(answer: Answer) -> str:
    """The message of a Status, else the beginning of the body; never all of it, and no credential."""
    status = _status(answer)
    if status is None and is_page(answer):
        return "a web page: a login or a proxy answers in its place"
    most, text = (300, status.message) if status else (120, answer.body[:4096].decode(errors="replace"))
    return excerpt(text, most=most, secrets=answer.secrets) or "no message"


def is_page(answer: Answer) -> bool:
    """Whether it is a web page."""
    return answer.body[:120].lstrip().lower().startswith((b"<!doctype", b"<html"))


def has_cause(answer: Answer, reason: str) -> bool:
    """Whether a Status names this cause, such as NamespaceTerminating."""
    status = _status(answer)
    causes = (status.details.causes if status and status.details else None) or ()
    return any(cause.reason == reason for cause in causes)


def _status(answer: Answer) -> _Status | None:
    try:
        status = _STATUS.decode(answer.body)
    except UNREADABLE:
        return None
    return status if status.kind == "Status" else None
