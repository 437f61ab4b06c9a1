"""Single calls, and what an answer means: what is transient, what a refusal, and what new credentials may end."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from eurekube_sync.adapters.kubernetes.connection import Answer, Call, Connection
from eurekube_sync.adapters.no_answer import UNREADABLE, reason
from eurekube_sync.adapters.tries import NO_ANSWER, AnswerTime, Came, Tries
from eurekube_sync.model import errors
from eurekube_sync.model.errors import ClusterDenied, ClusterError, ClusterRejected, ClusterUnavailable, unknown_from
from eurekube_sync.model.foreign_text import LOOKED_AT, excerpt
from eurekube_sync.model.sources import Cause, Unknown

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
_TRANSIENT = frozenset({429, 500, 502, 503, 504})

T = TypeVar("T")


class _Status(msgspec.Struct):
    kind: str = ""
    message: str = ""


class Calls:
    def __init__(self, connection: Connection, tries: Tries) -> None:
        self._connection = connection
        self._tries = tries

    def send(self, call: Call) -> Answer:
        """The answer, whatever its status, but for 401 and the transient ones. Raises ClusterUnavailable after the last
        try or when no time is left, ClusterDenied on a 401 that new credentials do not end."""

        def once(within: AnswerTime) -> Came[Answer]:
            try:
                answer = self._send(call, within)
                if answer.status == 401:
                    self._connection.renew(within)
                    answer = self._send(call, within)
            except errors.ConfigurationError as error:
                raise ClusterDenied(f"the Kubernetes API refused us (401), and {error}") from error
            except errors.ClusterCredentialsLate:
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

    def read_one(self, path: str) -> Answer | Unknown:
        """The answer to a GET, or why there is none. A 404 is an answer too, and a web page never is."""
        call = Call(method="GET", path=path)
        try:
            answer = self.send(call)
        except ClusterError as error:
            return unknown_from(error)
        return answer if answer.status in (200, 404) and not is_page(answer) else unknown_from(refusal(call, answer))

    def read_object(self, path: str, type_: type[T], what: str) -> T | Unknown | None:
        """One object, or why it could not be read; None for a 404."""
        answer = self.read_one(path)
        if isinstance(answer, Unknown):
            return answer
        try:
            return None if answer.status == 404 else msgspec.json.decode(answer.body, type=type_)
        except UNREADABLE as error:
            return Unknown(cause=Cause.UNUSABLE, message=f"{what} cannot be read: {reason(error)}")


def writing(method: str, path: str, body: Any, content_type: str = "application/json") -> Call:
    return Call(method=method, path=path, body=msgspec.json.encode(body), content_type=content_type)


def decoded(call: Call, answer: Answer, type_: type[T], what: str) -> T:
    """The object that was sent; raises ClusterRejected."""
    try:
        return msgspec.json.decode(answer.body, type=type_)
    except UNREADABLE as error:
        raise ClusterRejected(f"the answer to {call} is not {what}: {reason(error)}") from error


def refusal(call: Call, answer: Answer) -> ClusterError:
    """The error for an answer that is not what was asked for."""
    if answer.status == 403:
        return ClusterDenied(f"the Kubernetes API forbids {call}: {said(answer)}")
    return ClusterRejected(f"the Kubernetes API answered {answer.status} to {call}: {said(answer)}")


def said(answer: Answer) -> str:
    """The message of a Status, else the beginning of the body; never all of it, and no credential."""
    try:
        status = msgspec.json.decode(answer.body, type=_Status)
    except UNREADABLE:
        status = _Status()
    if status.kind == "Status":
        return excerpt(status.message, most=300, secrets=answer.secrets) or "no message"
    if is_page(answer):
        return "a web page: a login or a proxy answers in its place"
    text = answer.body[: 5 * LOOKED_AT].decode(errors="replace")
    return excerpt(text, most=120, secrets=answer.secrets) or "no message"


def is_page(answer: Answer) -> bool:
    return answer.body[:120].lstrip().lower().startswith((b"<!doctype", b"<html"))
