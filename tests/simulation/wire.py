"""Every outgoing call of one copy of the program, between the real adapter and the embedded
server."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

import msgspec

from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.model.deadline import TimeLimit

from .judge import STRIKES_AT_CALM, Judge
from .troubles import Call, Kind, Trouble, batched, kind_of
from .view import PassView
from .world import Key, World

if TYPE_CHECKING:
    from .clock import MachineClock

_PAGE = Response(
    status=200, body=b"<html><body>Welcome to the proxy</body></html>", content_type="text/html"
)
_UNAUTHORIZED = (
    b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}'
)
_KEPT = 6
"""Older answers that are kept of each list."""
_LISTS = frozenset({Call.SYNCERS, Call.SERVICES, Call.SLICES, Call.IMPORTS})


class Digest(Protocol):
    """A digest of every call of a story: time, server, method, path, query and body. An object of
    `hashlib`."""

    def update(self, data: bytes, /) -> None:
        """Adds one call."""


class Killed(BaseException):
    """Ends the program here, as SIGKILL would."""


@dataclass(slots=True)
class Troubles:
    """The troubles of a story, and how often each may still strike. All copies that they may strike
    share them."""

    waiting: tuple[Trouble, ...]
    skipped: dict[int, int] = field(default_factory=dict)
    struck: dict[int, int] = field(default_factory=dict)

    def strike(self, call: Call, peer: int | None, now: float) -> Trouble | None:
        """Gives the first trouble that waits for such a call."""
        for number, trouble in enumerate(self.waiting):
            here = trouble.peer is None or peer is None or trouble.peer == peer
            if call not in trouble.calls or not here or not trouble.at <= now < trouble.until:
                continue
            if self.skipped.get(number, 0) < trouble.skip:
                self.skipped[number] = self.skipped.get(number, 0) + 1
                continue
            if self.struck.get(number, 0) < trouble.strikes:
                self.struck[number] = self.struck.get(number, 0) + 1
                return trouble
        return None


class Wire:
    """Hands requests to the servers, unless a trouble strikes, and shows each to the judge."""

    def __init__(
        self,
        world: World,
        judge: Judge,
        troubles: Troubles | None,
        clock: MachineClock,
        limit: TimeLimit,
        chance: random.Random,
        *,
        name: str,
        call_seconds: float,
        tell: Callable[[str], None] | None,
        calls_so_far: Digest,
    ) -> None:
        self.view = PassView(begun=world.clock.time)
        self.calls = 0
        self._world = world
        self._judge = judge
        self._troubles = troubles
        self._clock = clock
        self._limit = limit
        self._chance = chance
        self._name = name
        self._call_seconds = call_seconds
        self._tell = tell
        self._calls_so_far = calls_so_far
        self.credentials = world.credentials
        self._answered: dict[str, deque[tuple[float, Response]]] = {}
        self._knows_whom_it_serves = False
        self._elsewhere: World | None = None
        """The other cluster that answered the last call."""

    def eureka(self, peer: int) -> Callable[[Request], Response]:
        """The handler for an adapter to this peer."""
        return lambda request: self._send(request, peer)

    def kubernetes(self, request: Request) -> Response:
        """The handler for a connection to the API server."""
        return self._send(request, None)

    def _send(self, request: Request, peer: int | None) -> Response:
        call = kind_of(request)
        self.calls += 1
        self._digest(request, peer)
        self._world.clock.advance(0.002 + 0.02 * self._chance.random() ** 4)
        if (
            peer is None
            and request.headers.get("authorization") != f"Bearer {self.credentials.valid}"
        ):
            return self._unknown_caller(request)
        trouble = (
            self._troubles.strike(call, peer, self._world.clock.time) if self._troubles else None
        )
        if trouble is None:
            response = self._effect(call, request, peer)
            self._note(call, request, response, as_of=None)
            self._say(request, peer, str(response.status))
            return response
        self.view.troubled = True
        self.view.failed.add(call)
        if not call.to_eureka or trouble.kind.of_the_program:
            self.view.troubled_cluster = True
        self._say(request, peer, trouble.kind.value)
        if trouble.kind in STRIKES_AT_CALM and (call.to_eureka or trouble.kind.of_the_program):
            self._judge.not_calm()
        response = self._struck(trouble, call, request, peer)
        if trouble.kind in STRIKES_AT_CALM and (call.to_eureka or trouble.kind.of_the_program):
            self._judge.not_calm()
        return response

    def _unknown_caller(self, request: Request) -> Response:
        """Answers a call with a token that ended. The pass is troubled unless it gets another."""
        if self.credentials.yielded is None:
            self.view.troubled = self.view.troubled_cluster = True
        self._judge.reached["a call with a token that ended"] += 1
        self._say(request, None, "401")
        return Response(status=401, body=_UNAUTHORIZED)

    def _struck(self, trouble: Trouble, call: Call, request: Request, peer: int | None) -> Response:
        match trouble.kind:
            case Kind.TIMEOUT_BEFORE:
                self._time_out()
            case Kind.LATE:
                self._later(trouble, call, request, peer)
                self._time_out()
            case Kind.REFUSED:
                raise ConnectionRefusedError("connection refused")
            case Kind.ERROR_503:
                return Response(status=503, body=b"no healthy upstream", content_type="text/plain")
            case Kind.FORBIDDEN:
                return _forbidden(peer)
            case Kind.EMPTY if request.method == "GET":
                return Response(status=200)
            case Kind.PAGE:
                return _PAGE
            case Kind.GONE_410:
                return Response(status=410, body=b'{"kind":"Status","code":410,"reason":"Expired"}')
            case Kind.ABSENT_404:
                return Response(status=404, body=b"404 page not found", content_type="text/plain")
            case Kind.OLDER:
                return self._older(call, request, peer)
            case Kind.KILL_BEFORE:
                raise Killed
            case Kind.SLOW if trouble.seconds >= min(self._call_seconds, self._limit.left()):
                self._effect(call, request, peer)
                self._time_out()
            case Kind.PAUSE_BEFORE | Kind.SLOW:
                self._world.clock.advance(trouble.seconds)
        response = self._effect(call, request, peer)
        match trouble.kind:
            case Kind.TIMEOUT_AFTER:
                self._time_out()
            case Kind.RESET_AFTER:
                raise ConnectionResetError("connection reset by peer")
            case Kind.ERROR_500_AFTER:
                return Response(status=500, body=b"{}")
            case Kind.CUT | Kind.EMPTY:
                if response.status == 404 and not request.path.endswith("/batch/"):
                    self._note(
                        call, request, response, as_of=None
                    )  # Eureka's 404 says all by its status
                half = len(response.body) // 2 if trouble.kind is Kind.CUT else 0
                return Response(
                    status=response.status,
                    body=response.body[:half],
                    content_type=response.content_type,
                )
            case Kind.KILL_AFTER:
                raise Killed
            case Kind.STOP:
                self._clock.stopped = True
        # The program knows what stood right after the call, and not what changed in its pause.
        self._note(call, request, response, as_of=None)
        if trouble.kind is Kind.PAUSE_AFTER:
            self._world.clock.advance(trouble.seconds)
        return response

    def _effect(self, call: Call, request: Request, peer: int | None) -> Response:
        self._judge.before()
        self._elsewhere = self._another_cluster(peer)
        if self._elsewhere is not None:
            return self._effect_elsewhere(self.view, request, self._elsewhere)
        response = self._world.answer(peer, request)
        self._judge.after(self.view, call, request, peer)
        if call in _LISTS and response.status == 200:
            self._answered.setdefault(_asked(request), deque(maxlen=_KEPT)).append(
                (self._world.clock.time, response)
            )
        return response

    def _another_cluster(self, peer: int | None) -> World | None:
        """Gives the other cluster that a call to Kubernetes goes to, if any. The first program
        follows its address once it has learned whom it serves."""
        follows = peer is None and self._troubles is not None and self._knows_whom_it_serves
        return self._world.address.answers() if follows else None

    def _effect_elsewhere(self, view: PassView, request: Request, other: World) -> Response:
        before = other.kubernetes.revision
        response = other.answer(None, request)
        view.troubled_cluster = True
        if request.method != "GET":
            self._judge.strays.judge_write(view, request, other, before)
        return response

    def _note(
        self, call: Call, request: Request, response: Response, *, as_of: float | None
    ) -> None:
        """Notes what the program learned from a complete answer of now."""
        when = self._world.clock.time
        if call in (Call.READ, Call.RENEW):
            for key in _looked_at(call, request, response):
                self._judge.saw(self.view, call, key, now=when, as_of=as_of)
        elif response.status == 200:
            if (
                not call.to_eureka
                and request.method == "GET"
                and "/eurekasyncers/" not in request.path
            ):
                self._judge.strays.answered(self.view, call, elsewhere=self._elsewhere is not None)
            self._knows_whom_it_serves = self._knows_whom_it_serves or call is Call.IDENTITY
            if self._elsewhere is None or call.to_eureka:
                self._judge.saw(self.view, call, None, now=when, as_of=as_of)
            if call is Call.PODS and self._elsewhere is None and "continue" not in request.query:
                self.view.pods_listed[_namespace_of(request)] = when

    def _older(self, call: Call, request: Request, peer: int | None) -> Response:
        known = self._answered.get(_asked(request))
        if not known:
            response = self._effect(call, request, peer)
            self._note(call, request, response, as_of=None)
            return response
        when, response = known[0]
        self._elsewhere = None
        self._note(call, request, response, as_of=when)
        return response

    def _later(self, trouble: Trouble, call: Call, request: Request, peer: int | None) -> None:
        view, elsewhere = self.view, self._another_cluster(peer)
        clock = self._world.clock

        def arrive() -> None:
            if elsewhere is not None:
                self._effect_elsewhere(view, request, elsewhere)
                return
            self._judge.before()
            self._world.answer(peer, request)
            self._judge.after(view, call, request, peer)

        if request.method != "GET":
            clock.at(clock.time + trouble.seconds, arrive)

    def _time_out(self) -> None:
        self._world.clock.advance(max(0.001, min(self._call_seconds, self._limit.left())))
        raise TimeoutError("timed out")

    def _digest(self, request: Request, peer: int | None) -> None:
        line = f"{self._world.clock.time!r} {peer} {request.method} {_asked(request)} "
        self._calls_so_far.update(line.encode() + request.body + b"\n")

    def _say(self, request: Request, peer: int | None, what: str) -> None:
        if self._tell is not None:
            server = "Kubernetes" if peer is None else f"Eureka {peer + 1}"
            self._tell(
                f"{self._name} -> {server}: {request.method} {unquote(request.path)}: {what}"
            )


def _looked_at(call: Call, request: Request, response: Response) -> list[Key]:
    """The instances that an uncached answer showed as registered, or as absent."""
    if request.path.endswith("/batch/"):
        if response.status != 200:
            return []
        codes = [one["statusCode"] for one in msgspec.json.decode(response.body)["responseList"]]
        items = zip(batched(request), codes, strict=False)
        return [Key(item["appName"], item["id"]) for item, code in items if code in (404, 409)]
    if response.status == 404 or (call is Call.READ and response.status == 200):
        app, id_ = request.path.split("/")[-2:]
        return [Key(unquote(app), unquote(id_))]
    return []


def _namespace_of(request: Request) -> str:
    """The namespace of a list; empty for all namespaces."""
    _, named, rest = request.path.partition("/namespaces/")
    return rest.split("/")[0] if named else ""


def _asked(request: Request) -> str:
    return f"{request.path}?{sorted(request.query.items())}"


def _forbidden(peer: int | None) -> Response:
    if peer is not None:
        return Response(status=403, body=b'{"status":403,"error":"Forbidden"}')
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "Forbidden",
        "code": 403,
    }
    return Response(status=403, body=msgspec.json.encode({**status, "message": "forbidden: RBAC"}))
