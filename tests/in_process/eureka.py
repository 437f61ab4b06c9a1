"""Calls of a server's function in place of a socket: an adapter for fast tests, and a lean session
for the simulation.

They are here, not in the tests, because no other package may import `requests`, and because the
simulation then runs the same retrying, error and decoding code as a deployment. Nothing imports
this unless it is asked for.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict
from urllib3 import HTTPResponse

from eurekube_sync.embedded.http import Handler, Request


class InProcessAdapter(HTTPAdapter):
    """Hands each request to `handler`. A fault may be injected as a `TimeoutError` or
    `ConnectionError` it raises."""

    def __init__(self, handler: Handler) -> None:
        super().__init__()
        self._handler = handler

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: float | tuple[float, float] | tuple[float, None] | None = None,
        verify: bool | str = True,
        cert: bytes | str | tuple[bytes | str, bytes | str] | None = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """Call the handler; its exceptions become those of the network."""
        parts = urlsplit(request.url or "")
        body = request.body or b""
        try:
            response = self._handler(
                Request(
                    method=request.method or "GET",
                    path=parts.path or "/",
                    query=dict(parse_qsl(parts.query, keep_blank_values=True)),
                    headers={name.lower(): value for name, value in request.headers.items()},
                    body=body.encode() if isinstance(body, str) else body,
                )
            )
        except TimeoutError as error:
            raise requests.exceptions.ReadTimeout(error, request=request) from error
        except ConnectionError as error:
            raise requests.exceptions.ConnectionError(error, request=request) from error
        headers = {"Content-Type": response.content_type} if response.body else {}
        answer = HTTPResponse(
            body=io.BytesIO(response.body),
            headers=headers | dict(response.headers) | {"Content-Length": str(len(response.body))},
            status=response.status,
            preload_content=False,
            decode_content=False,
            request_method=request.method,
        )
        return self.build_response(request, answer)


class InProcessSession(requests.Session):
    """As `InProcessAdapter`, without what a session does to each call on its way to a socket: half
    of the time that a simulated pass takes. Cookies, logins, proxies, redirects and compression are
    none of it.
    """

    def __init__(self, handler: Handler) -> None:
        super().__init__()
        self._handler = handler

    def request(
        self, method: str | bytes, url: str | bytes, *args: Any, **kwargs: Any
    ) -> requests.Response:
        """Call the handler; its exceptions become those of the network."""
        parts = urlsplit(str(url))
        headers = {**self.headers, **(kwargs.get("headers") or {})}
        try:
            response = self._handler(
                Request(
                    method=str(method),
                    path=parts.path or "/",
                    query=dict(parse_qsl(parts.query, keep_blank_values=True)),
                    headers={
                        name.lower(): str(value)
                        for name, value in headers.items()
                        if name != "Accept-Encoding"
                    },
                    body=kwargs.get("data") or b"",
                )
            )
        except TimeoutError as error:
            raise requests.exceptions.ReadTimeout(error) from error
        except ConnectionError as error:
            raise requests.exceptions.ConnectionError(error) from error
        answer = requests.Response()
        answer.status_code = response.status
        answer.headers = CaseInsensitiveDict(response.headers)
        if response.body:
            answer.headers["Content-Type"] = response.content_type
        answer.raw = io.BytesIO(response.body)
        return answer
