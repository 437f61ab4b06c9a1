"""Single calls, and what an answer means: what is transient, what a refusal, and what new credentials may end.

Knows paths and bodies only to name them in a message.
"""

from __future__ import annotations

import msgspec

from eurekube_sync.adapters.kubernetes.connection import Answer, Call, Connection
from eurekube_sync.adapters.no_answer import UNREADABLE
from eurekube_sync.adapters.tries import NO_ANSWER, AnswerTime, Came, Tries
from eurekube_sync.model.errors import (
    ClusterCredentialsLate,
    ClusterDenied,
    ClusterError,
    ClusterRejected,
    ClusterUnavailable,
    ConfigurationError,
)
from eurekube_sync.model.foreign_text import LOOKED_AT, excerpt

MERGE_PATCH = "application/merge-patch+json"
_TRANSIENT = frozenset({429, 500, 502, 503, 504})


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
    def __init__(self, connection: Connection, tries: Tries) -> None:
        self._connection = connection
        self._tries = tries

    def send(self, call: Call) -> Answer:
        """The answer, whatever its status, but for 401 and the transient ones.

        Raises ClusterUnavailable after the last try or when no time is left, ClusterDenied on a 401 that new
        credentials do not end.
        """

        def once(within: AnswerTime) -> Came[Answer]:
            try:
                answer = self._send(call, within)
                if answer.status == 401:
                    self._renew(within)
                    answer = self._send(call, within)
            except ClusterCredentialsLate:
                raise
            except ClusterUnavailable as error:
                self._tries.count(NO_ANSWER)
                return error, ""
            if answer.status == 401:
                raise ClusterDenied(f"the Kubernetes API does not know who we are (401 to {call}): log in again")
            if answer.status not in _TRANSIENT:
                return answer, None
            overloaded = f"the Kubernetes API answered {answer.status} to {call}: {said(answer)}"
            return ClusterUnavailable(overloaded), answer.retry_after

        server = self._connection.server
        return self._tries.call(once, lambda why: ClusterUnavailable(f"{call} to the Kubernetes API at {server} {why}"))

    def expect(self, call: Call, *statuses: int) -> Answer:
        """Raises what another status than these means."""
        answer = self.send(call)
        if answer.status not in statuses:
            raise refusal(call, answer)
        return answer

    def _send(self, call: Call, within: AnswerTime) -> Answer:
        answer = self._connection.send(call, within)
        self._tries.count(str(answer.status))
        return answer

    def _renew(self, within: AnswerTime) -> None:
        try:
            self._connection.renew(within)
        except ConfigurationError as error:
            raise ClusterDenied(f"the Kubernetes API refused us (401), and {error}") from error


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
    most, text = (300, status.message) if status else (120, answer.body[: 5 * LOOKED_AT].decode(errors="replace"))
    return excerpt(text, most=most, secrets=answer.secrets) or "no message"


def is_page(answer: Answer) -> bool:
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
