"""Text of a server: it is shown without control characters and without credentials."""

from __future__ import annotations

import base64
import json
import sys
from io import StringIO
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eurekube_sync.cli.output.table import Row, console_for, rows_table
from eurekube_sync.model.errors import RegistryRejected
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.sanitize import (
    excerpt,
    header_secrets,
    json_printable,
    login_secrets,
    printable,
    sounds_secret,
)
from tests.unit.controller.test_reconcile import article
from tests.unit.worlds.build import REF, key

PASSWORD = 's3cr3t-pa55/w"0rd@x'
SECRETS = login_secrets("joe", PASSWORD)
BASIC = base64.b64encode(f"joe:{PASSWORD}".encode()).decode()
TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJqb2UifQ.c2lnbmF0dXJl"
UNSAFE = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of Unicode: controls, formats, surrogates, separators of lines and of paragraphs."""


def test_no_character_that_a_terminal_obeys_is_left() -> None:
    """Invisible characters and those that change the direction of a text are removed too. No other
    character is changed."""
    every = [chr(code) for code in range(sys.maxunicode + 1)]
    known = [
        one for one in every if category(one) != "Cn"
    ]  # an older Python does not know all of them
    assert [one for one in known if printable(one) != one] == [
        one for one in known if category(one) in UNSAFE
    ]


@pytest.mark.parametrize(
    ("character", "shown"),
    [
        ("\x1b", r"\x1b"),
        ("\xad", r"\xad"),
        ("\u200b", r"\u200b"),
        ("\ufeff", r"\ufeff"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_such_a_character_is_written_out(character: str, shown: str) -> None:
    """Python and other tools write it like this."""
    assert printable(f"a{character}b") == excerpt(f"a{character}b", most=100) == f"a{shown}b"


def test_other_text_stays_as_it_is() -> None:
    """Letters of any language stay. So does markup, which no output interprets."""
    text = "für 日本 [red]x[/red] \U0001f600 שלום"
    assert printable(text) == text
    assert excerpt(text, most=100) == text


@given(st.text())
def test_json_means_the_same_without_them(text: str) -> None:
    """In a JSON document they become escapes, and its line ends stay."""
    written = json_printable(json.dumps({"a": text}, indent=2, ensure_ascii=False))
    assert json.loads(written) == {"a": text}
    assert printable(written.replace("\n", "")) == written.replace("\n", "")


@pytest.mark.parametrize(
    "name",
    [
        "user.password", "USER_PASSWORD", "dbPassWord", "passwd", "pass-phrase", "passcode", "passkey", "pass",
        "db.pass", "dbpass", "dbPass1", "pwd", "dbPwd", "clientsecret", "token", "accessToken", "credentials",
        "aws-creds", "Authorization", "auth", "db-auth", "OAuth", "authKey", "api.key", "APIKey", "private_key",
        "accessKey", "AWS_ACCESS_KEY_ID", "storageAccountKey", "signing-key", "jwt", "userJwt", "cookie", "sig",
        "urlSig", "signature", "session", "sessionId", "spring.session", "session-key", "bearer", "connectionString",
        "connection-string", "sentry.dsn",
    ],
)  # fmt: skip
def test_names_of_secrets_are_recognized(name: str) -> None:
    """Their words may be joined in any way."""
    assert sounds_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "passed", "compass", "bypass", "encompass", "surpass", "passive", "passengers", "pass-through", "overpass",
        "author", "authority", "co-author", "monkey", "key", "keys", "public.key", "primary-key", "hockey", "version",
        "design", "sign", "signal", "assigned", "sigma", "sessions", "session.timeout", "sessionAffinity", "possession",
        "connection", "connectionTimeout", "zone", "sort", "secure", "second", "credit", "sacred", "cook",
    ],
)  # fmt: skip
def test_names_that_only_look_like_a_secret(name: str) -> None:
    """A person can then see what changed."""
    assert not sounds_secret(name)


ECHOES = {
    "the header": f"you sent Authorization: Basic {BASIC}",
    "the value alone": BASIC,
    "the password": f"no such password: {PASSWORD}",
    "in JSON": json.dumps({"password": PASSWORD}),
    "in a URL": "http://joe:s3cr3t-pa55%2Fw%220rd%40x@eureka/eureka",
    "another's login": "http://ann:s3cr3t-of-hers@eureka/eureka",
    "one with an @": "http://ann:@s3cr3t-of-hers@eureka/eureka",
    "another's header": "authorization=Basic YW5uOnMzY3IzdA== please",
    "a header without a scheme": "authorization: s3cr3t-key-of-hers",
    "a token": f'{{"authorization": "Bearer {TOKEN}"}}',
    "a token without the header": f"the claims of Bearer {TOKEN} are wrong",
    "between words": f"a\x1b[2J\n{PASSWORD}\r\n{BASIC}",
    "at the end of what is shown": "x" * 150 + PASSWORD + BASIC,
}


@pytest.mark.parametrize("name", ECHOES)
def test_no_credential_is_shown(name: str) -> None:
    """The credential may be anybody's, in any form in which a server returns it."""
    shown = excerpt(ECHOES[name], most=160, secrets=SECRETS)
    assert "***" in shown
    for secret in ("s3cr3t", "w%220rd", BASIC, BASIC[:20], TOKEN, "YW5uOnMzY3IzdA"):
        assert secret not in shown


@pytest.mark.parametrize(
    "text",
    [
        "Basic authentication is required",
        "a Bearer token is missing",
        "the author izes",
        "see http://eureka/a@b",
    ],
)
def test_prose_about_credentials_stays(text: str) -> None:
    """Only text that looks like a credential is hidden."""
    assert excerpt(text, most=160, secrets=login_secrets("joe", "is")) == text


def test_a_short_password_is_hidden_where_it_is_a_whole_word() -> None:
    """The letters of `test` are part of many words."""
    assert excerpt("latest: test", most=160, secrets=login_secrets("joe", "test")) == "latest: ***"


@pytest.mark.parametrize("secret", [PASSWORD, BASIC])
@pytest.mark.parametrize("most", [1, 5, 12])
def test_no_half_of_a_credential_is_shown(secret: str, most: int) -> None:
    """A page may have much white space, and a login just beyond the part that is read."""
    shown = excerpt(
        f"no login:{' ' * (4096 - 9 - most)}{secret} is wrong", most=160, secrets=SECRETS
    )
    assert shown == "no login:"


def test_a_long_text_is_cut() -> None:
    assert excerpt("word " * 100, most=9) == "word word..."


def test_a_servers_sentence_becomes_a_clause() -> None:
    """It stands in a sentence of ours, which has its own end."""
    assert excerpt("0/3 nodes are available.\n", most=100) == "0/3 nodes are available"
    assert excerpt("Is it up? Wait.", most=100) == "Is it up? Wait"
    assert excerpt("10.0.0.7: no route", most=100) == "10.0.0.7: no route"


def test_the_secrets_of_a_header_are_its_token_and_what_that_holds() -> None:
    """They are a bearer's token, and the password of basic authentication. Without a login there
    are none."""
    assert header_secrets(f"Bearer {TOKEN}") == (TOKEN,)
    assert set(header_secrets(f"Basic {BASIC}")) == {BASIC, PASSWORD}
    assert header_secrets("Basic ~") == ("~",)
    assert header_secrets("Basic /w==") == ("/w==",)
    assert login_secrets("joe", "") == ()


ODD = "evil\x1b[2J\u202e"


def test_the_name_of_an_instance_is_printable() -> None:
    """Anybody may register any name. Calls use the real one."""
    strange = InstanceKey("APP", ODD)
    assert str(strange) == r"APP/evil\x1b[2J\u202e"
    assert strange.id == ODD


@pytest.mark.parametrize("width", [200, 60, 20], ids=["columns", "groups", "stacked"])
def test_a_table_shows_no_escape_of_anybody(width: int) -> None:
    """This covers names, reasons, sentences and the last line, which may have somebody's owner
    mark, in any layout."""
    row = Row(app=ODD, sign="+", id=ODD, status=ODD, why=ODD, syncer=ODD)
    stream = StringIO()
    console_for(stream, width=width).print(
        rows_table([row], [f"see to {ODD}"], f"the owner is: {ODD}")
    )
    assert printable(stream.getvalue().replace("\n", "")) == stream.getvalue().replace("\n", "")
    assert "evil" in stream.getvalue()


def test_a_condition_contains_no_escape_sequence() -> None:
    """Tenants read the condition at their terminals, and events repeat it."""
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
