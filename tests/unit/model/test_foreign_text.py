"""What a server says is shown without control characters, and without credentials."""

from __future__ import annotations

import base64
import json
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eurekube_sync.cli.output.rows import Row
from eurekube_sync.cli.output.table import console_for, rows_table
from eurekube_sync.model.errors import RegistryRejected
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.foreign_text import excerpt, header_secrets, json_printable, login_secrets, printable
from tests.unit.controller.test_reconcile import article
from tests.unit.worlds.build import REF, key

PASSWORD = 's3cr3t-pa55/w"0rd@x'
SECRETS = login_secrets("joe", PASSWORD)
BASIC = base64.b64encode(f"joe:{PASSWORD}".encode()).decode()
TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJqb2UifQ.c2lnbmF0dXJl"
UNSAFE = [*map(chr, range(0x20)), "\x7f", *map(chr, range(0x80, 0xA0)), "\u202e", "\u2028", "\u2066", "\u2069"]


@pytest.mark.parametrize("character", UNSAFE, ids=ascii)
def test_no_character_that_a_terminal_obeys_is_left(character: str) -> None:
    """Escape sequences, other controls, and what turns the direction of a text, are written out."""
    assert printable(f"a{character}b") in (f"a\\x{ord(character):02x}b", f"a\\u{ord(character):04x}b")


def test_other_text_stays_as_it_is() -> None:
    """Letters of any language, and markup, which nobody interprets."""
    text = "für 日本 [red]x[/red] \U0001f600 שלום"
    assert printable(text) == text
    assert excerpt(text, most=100) == text


@given(st.text())
def test_json_means_the_same_without_them(text: str) -> None:
    """In a JSON document they are escapes, and its line ends stay."""
    written = json_printable(json.dumps({"a": text}, indent=2, ensure_ascii=False))
    assert json.loads(written) == {"a": text}
    assert printable(written.replace("\n", "")) == written.replace("\n", "")


ECHOES = {
    "the header": f"you sent Authorization: Basic {BASIC}",
    "the value alone": BASIC,
    "the password": f"no such password: {PASSWORD}",
    "in JSON": json.dumps({"password": PASSWORD}),
    "in a URL": "http://joe:s3cr3t-pa55%2Fw%220rd%40x@eureka/eureka",
    "another's login": "http://ann:s3cr3t-of-hers@eureka/eureka",
    "another's header": "authorization=Basic YW5uOnMzY3IzdA== please",
    "a token": f'{{"authorization": "Bearer {TOKEN}"}}',
    "a token without the header": f"the claims of Bearer {TOKEN} are wrong",
    "between words": f"a\x1b[2J\n{PASSWORD}\r\n{BASIC}",
    "at the end of what is shown": "x" * 150 + PASSWORD + BASIC,
}


@pytest.mark.parametrize("name", ECHOES)
def test_no_credential_is_shown(name: str) -> None:
    """Whoever's it is, and in whatever form it is sent back."""
    shown = excerpt(ECHOES[name], most=160, secrets=SECRETS)
    assert "***" in shown
    for secret in ("s3cr3t", "w%220rd", BASIC, BASIC[:20], TOKEN, "YW5uOnMzY3IzdA"):
        assert secret not in shown


@pytest.mark.parametrize(
    "text",
    ["Basic authentication is required", "a Bearer token is missing", "the author izes", "see http://eureka/a@b"],
)
def test_prose_about_credentials_stays(text: str) -> None:
    """Only what looks like one is hidden."""
    assert excerpt(text, most=160, secrets=login_secrets("joe", "is")) == text


def test_a_short_password_is_hidden_where_it_stands_alone() -> None:
    """The letters of `test` are part of many words."""
    assert excerpt("latest: test", most=160, secrets=login_secrets("joe", "test")) == "latest: ***"


def test_a_long_text_is_cut() -> None:
    """Nobody reads a whole page."""
    assert excerpt("word " * 100, most=9) == "word word..."


def test_the_secrets_of_a_header_are_its_token_and_what_that_holds() -> None:
    """A bearer's token; of basic authentication the password too; and no login has none."""
    assert header_secrets(f"Bearer {TOKEN}") == (TOKEN,)
    assert set(header_secrets(f"Basic {BASIC}")) == {BASIC, PASSWORD}
    assert header_secrets("Basic ~") == ("~",)
    assert header_secrets("Basic /w==") == ("/w==",)
    assert login_secrets("joe", "") == ()


ODD = "evil\x1b[2J\u202e"


def test_the_name_of_an_instance_is_printable() -> None:
    """Anybody may register any name; calls go by the true one."""
    strange = InstanceKey("APP", ODD)
    assert str(strange) == r"APP/evil\x1b[2J\u202e"
    assert strange.id == ODD


@pytest.mark.parametrize("width", [200, 60, 20], ids=["columns", "groups", "stacked"])
def test_a_table_shows_no_escape_of_anybody(width: int) -> None:
    """In whatever layout: names, reasons and sentences."""
    row = Row(app=ODD, sign="+", id=ODD, status=ODD, why=ODD, syncer=ODD, style="green")
    stream = StringIO()
    console_for(stream, width=width).print(rows_table([row], [f"see to {ODD}"], "in sync"))
    assert printable(stream.getvalue().replace("\n", "")) == stream.getvalue().replace("\n", "")
    assert "evil" in stream.getvalue()


def test_a_condition_holds_no_escape_of_anybody() -> None:
    """Tenants and their terminals read those, and the events that repeat them."""
    world = article()
    world.registry.refuse[key(1)] = RegistryRejected(f"refused: {ODD}")
    world.run()
    status = world.cluster.syncers[REF].status
    assert status is not None
    texts = [
        *status.errors,
        *(one.message for one in status.conditions),
        *(one.message for one in world.cluster.events),
    ]
    assert any(r"\x1b" in text for text in texts)
    assert all(printable(text) == text for text in texts)
