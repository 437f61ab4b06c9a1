"""A connection without sockets: calls go straight to an embedded server's `handle`, for simulation
and tests."""

from __future__ import annotations

from eurekube_sync.adapters.kubernetes.connection import Answer, Call
from eurekube_sync.adapters.tries import AnswerTime
from eurekube_sync.embedded.http import Handler, Request
from eurekube_sync.model.errors import ClusterUnavailable
from eurekube_sync.model.sanitize import header_secrets


class InProcessConnection:
    """Calls `handle`. An OSError from it (ConnectionError, TimeoutError) is a call that got no
    answer."""

    def __init__(self, handle: Handler, *, token: str = "") -> None:
        self._handle = handle
        self._headers = {"authorization": f"Bearer {token}"} if token else {}

    @property
    def server(self) -> str:
        return "this process"

    def send(self, call: Call, within: AnswerTime) -> Answer:
        headers = {**self._headers, "accept": call.accept}
        if call.body is not None:
            headers["content-type"] = call.content_type
        request = Request(
            method=call.method,
            path=call.path,
            query=dict(call.query),
            headers=headers,
            body=call.body or b"",
        )
        try:
            response = self._handle(request)
        except OSError as error:
            text = str(error) or type(error).__name__
            raise ClusterUnavailable(
                f"no answer from the Kubernetes API to {call}: {text}"
            ) from error
        secrets = header_secrets(self._headers["authorization"]) if self._headers else ()
        return Answer(
            status=response.status,
            body=response.body,
            retry_after=response.headers.get("Retry-After", ""),
            date=response.headers.get("Date", ""),
            secrets=secrets,
        )

    def renew(self, within: AnswerTime) -> None:
        """There is nothing to read anew."""
