"""The embedded Eureka behind Spring Security."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from eurekube_sync.embedded.eureka import EmbeddedEureka
from eurekube_sync.embedded.http import Request, Response


class GuardedEureka(EmbeddedEureka):
    """Asks for `credentials` unless they are None. `refuse_writes` is what the CSRF protection does to a client. Both
    may be changed while it runs."""

    def __init__(
        self,
        now: Callable[[], float],
        *,
        credentials: tuple[str, str] | None = None,
        refuse_writes: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(now, **options)
        self.credentials = credentials
        self.refuse_writes = refuse_writes

    def refusal(self, request: Request) -> Response | None:
        """A 401, or the 403 of a write."""
        if self.refuse_writes and request.method != "GET":
            # `CsrfFilter` answers 403 before it looks at a login; the error page asks for one again, and that is a 401.
            return self.error(request, 403) if self.credentials is None else _ask_for_login()
        if self.credentials is not None:
            expected = "Basic " + base64.b64encode(":".join(self.credentials).encode()).decode()
            if request.headers.get("authorization") != expected:
                return _ask_for_login()
        return None


def _ask_for_login() -> Response:
    return Response(status=401, headers={"WWW-Authenticate": 'Basic realm="Realm"'})
