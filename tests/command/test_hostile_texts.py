"""Every command, between servers whose names and messages have control characters, direction marks
and markup.

No output has such text unchanged: no table, log, JSON, YAML or Markdown, and no condition.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec
import pytest

from eurekube_sync.embedded.http import Handler, Request, Response
from tests.command.program import SYNCERS, Program, rating
from tests.command.terminal import ESCAPE, at_terminal

MARKUP = "[bold red]x[/bold red][link=http://evil/]<img src=x>"
EVIL = f"evil\x1b[2J\x1b]0;title\x07\x9b31m\x7f\u202e\u200f\u2066\u2028\u200b\u2060\ufeff\U000e0041\r\n\t{MARKUP}"
NAMES = ("rating-2", "node-1")
"""The names of a pod and of its node in the cluster. The hostile text is added to each."""


def of_kubernetes(request: Request, handler: Handler) -> Response:
    """Hostile names, versions, error causes and annotations."""
    if request.path == "/version":
        return Response(status=200, body=msgspec.json.encode({"gitVersion": EVIL, "major": EVIL}))
    answer = handler(request)
    if request.method != "GET" or answer.status != 200:
        return answer
    text = answer.body.decode()
    for name in NAMES:
        text = text.replace(f'"{name}"', json.dumps(name + EVIL))
    return Response(status=200, body=text.encode(), content_type="application/json")


def of_eureka(request: Request, handler: Handler) -> Response:
    """Hostile apps, ids, hosts, statuses and metadata of others, and a hostile refusal. One
    instance has an address of ours."""
    if request.method in ("POST", "PUT"):
        return Response(status=400, body=EVIL.encode())
    if request.path == "/eureka/status":
        return Response(status=200, body=f"<a><b>{MARKUP.replace('<', '')}</b></a>".encode())
    if request.method == "GET" and request.path == "/eureka/apps":
        return Response(
            status=200, body=msgspec.json.encode(registry()), content_type="application/json"
        )
    return handler(request)


def registry() -> dict[str, Any]:
    """A registry with an instance at a pod's address, an orphan of ours, and an unreadable
    instance."""
    port = {"$": 8080, "@enabled": "true"}
    one = {
        "instanceId": f"a{EVIL}",
        "app": f"RATING{EVIL}",
        "hostName": EVIL,
        "ipAddr": "10.0.0.1",
        "status": "UP",
        "overriddenStatus": "UNKNOWN",
        "vipAddress": EVIL,
        "port": port,
        "securePort": {"$": 443, "@enabled": "false"},
        "leaseInfo": {"renewalIntervalInSecs": 30, "durationInSecs": 90},
        "metadata": {"zone": EVIL, EVIL: EVIL},
    }
    marks = {
        "eurekube.owner": "demo",
        "eurekube.syncer": f"rating/{EVIL}",
        "eurekube.pod": f"{EVIL}/{EVIL}",
    }
    orphan = {**one, "instanceId": f"demo:rating:{EVIL}", "metadata": marks}
    odd = {**one, "instanceId": f"odd{EVIL}", "status": EVIL, "port": EVIL, "ipAddr": EVIL}
    apps = [{"name": f"RATING{EVIL}", "instance": [one, orphan, odd]}]
    return {"applications": {"apps__hashcode": "UP_3_", "application": apps}}


COMMANDS = {
    "a dry run": ("run", "--dry-run"),
    "a dry run in JSON": ("run", "--dry-run", "-o", "json"),
    "a dry run in YAML": ("run", "--dry-run", "-o", "yaml"),
    "a dry run in Markdown": ("run", "--dry-run", "-o", "markdown"),
    "a run": ("run", "-v", "--log-format", "json"),
    "status": ("status", "-a"),
    "explain a syncer": ("explain", "esync/rating/rating"),
    "explain a pod in JSON": ("explain", "pod/rating/rating-1", "-o", "json"),
    "explain an address": ("explain", "10.0.0.1"),
    "explain what is not there": ("explain", f"evil{MARKUP}\x1b[2J\u200b"),
    "check": ("check",),
    "orphans": ("orphans",),
    "keepalive": ("keepalive", "-v"),
    "purge": ("purge", "--dry-run"),
    "version": ("version",),
    "validate": ("validate", "evil.yaml"),
    "validate in JSON": ("validate", "evil.yaml", "-o", "json"),
    "a dry run of a file": ("run", "--dry-run", "--from", "evil.json"),
    "replay": ("replay", "records", "10.0.0.1"),
    "replay in JSON": ("replay", "records", "-o", "json"),
    "an option": ("run", f"--evil{MARKUP}\x1b[2J\u200b"),
    "a value": ("run", "--namespace", f"evil{MARKUP}\x1b[2J\u202e\u200b"),
}
AT_A_TERMINAL = ("a dry run", "explain an address", "check", "orphans")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """Both hostile servers, a recorded pass, and hostile files."""
    folder = tmp_path_factory.mktemp("hostile")
    with rating(folder) as program, between(program):
        spec = {"selector": {"app": EVIL}, EVIL: EVIL, "appName": EVIL}
        meta = {"name": EVIL, "namespace": "rating", "labels": {EVIL: EVIL}}
        one = {
            "apiVersion": "eurekube.io/v1",
            "kind": "EurekaSyncer",
            "metadata": meta,
            "spec": spec,
        }
        (folder / "evil.yaml").write_text(json.dumps(one))
        (folder / "evil.json").write_text(
            json.dumps({"kind": "List", "apiVersion": "v1", "items": [one]})
        )
        assert program.run("--record", "records").code != 0
        yield program


@contextmanager
def between(program: Program) -> Iterator[None]:
    """The program can only reach the hostile servers."""
    with ExitStack() as stack:
        stack.enter_context(program.eureka_behind(of_eureka))
        config = stack.enter_context(program.kubernetes_behind(of_kubernetes))
        program.playground.kubeconfig.write_text(config.read_text())
        yield


def harmless(text: str) -> str:
    """Return the text. Raise AssertionError with the first character that a terminal obeys."""
    for character in re.sub(
        r"\n|(?<=@)\u200b|(?<=:)\u200b(?=//)|(?<=www)\u200b", "", text
    ):  # Markdown splits mentions and links with these
        assert unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"), (
            ascii(character) + text
        )
    return text


@pytest.mark.parametrize("name", COMMANDS)
def test_no_output_contains_text_that_a_terminal_obeys(hostile: Program, name: str) -> None:
    """Markup is text too: its words are shown, and Markdown escapes it."""
    ended = hostile.command(*COMMANDS[name])
    said = harmless(ended.out) + harmless(ended.err)
    assert "Traceback" not in said
    assert "evil" in said, "the test shows nothing"
    if COMMANDS[name][-2:] == ("-o", "json"):
        json.loads(ended.out)


@pytest.mark.parametrize("name", AT_A_TERMINAL)
def test_a_terminal_gets_no_control_sequences_but_the_programs_colours(
    hostile: Program, name: str
) -> None:
    """The colours are the program's own. Markup of others stays text."""
    _, shown = at_terminal(hostile, *COMMANDS[name], columns=500)
    plain = harmless(re.sub(r"\r|\x1b\[(\?25[hl]|[0-9]*[AK])", "", ESCAPE.sub("", shown)))
    assert "evil" in plain
    assert plain.count("[bold red]") == plain.count("[/bold red]")


def test_no_condition_and_no_event_contains_text_that_a_terminal_obeys(hostile: Program) -> None:
    """This covers everything that a pass wrote to Kubernetes for people."""
    kubernetes = hostile.playground.kubernetes
    _, syncer = kubernetes.call("GET", f"{SYNCERS}/rating")
    _, events = kubernetes.call("GET", "/api/v1/namespaces/rating/events")
    for written in (syncer["status"], events):
        messages = list(told(written))
        assert any("evil" in text for text in messages)
        for text in messages:
            harmless(text)


def told(data: Any, key: str = "") -> Iterator[str]:
    """Each message, note, reason or error in the data."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from told(value, name)
    elif isinstance(data, list):
        for value in data:
            yield from told(value, key)
    elif isinstance(data, str) and key in ("message", "note", "reason", "errors"):
        yield data
