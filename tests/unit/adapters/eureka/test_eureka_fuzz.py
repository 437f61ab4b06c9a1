"""Eureka's answers with damaged bytes: each is read by the rules, or is unusable with one sentence.
No other error occurs."""

from __future__ import annotations

import contextlib
import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eurekube_sync.adapters.eureka import replication, wire
from eurekube_sync.embedded.http import Response
from eurekube_sync.model.errors import RegistryUnusable
from eurekube_sync.model.sources import Cause, Complete, Unknown
from tests.unit.adapters.eureka.test_eureka_calls import connect
from tests.unit.adapters.eureka.test_eureka_wire import OURS, THEIRS, changed, listing

pytestmark = pytest.mark.fuzz

GOOD = json.dumps(
    {
        "applications": {
            "apps__hashcode": "UP_4_",
            "application": [
                {
                    "name": "RATING",
                    "instance": [OURS, THEIRS, changed(THEIRS, instanceId="dc-host:rating:8081")],
                },
                {
                    "name": "REVIEWS",
                    "instance": changed(THEIRS, app="REVIEWS", instanceId="dc-host:reviews:8080"),
                },
            ],
        }
    }
).encode()
FROM = GOOD.index(b'"application"')
"""The position after the hash code, which counts the instances."""
ONE = json.dumps({"instance": THEIRS}).encode()
DIGITS = b"9" * 5000
NESTED = b"[" * 5000 + b"]" * 5000
STRAY = (
    b"\xff",
    b"\xc3(",
    b"\xed\xa0\x80",
    b'\\ud800"',
    b"\\",
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b"null",
    b"\x00",
)


def damaged(body: bytes, first: int) -> st.SearchStrategy[bytes]:
    """Replace any part of the body from there on by a few other bytes."""
    pieces = st.binary(max_size=6) | st.sampled_from((*STRAY, DIGITS, NESTED, b"1e999"))

    def damage(at: int, length: int, piece: bytes) -> bytes:
        return body[:at] + piece + body[at + length :]

    return st.builds(
        damage,
        st.integers(first, len(body)),
        st.integers(0, 12) | st.integers(0, len(body)),
        pieces,
    )


@given(damaged(GOOD, FROM))
@example(GOOD.replace(b'"lastRenewalTimestamp": 1', b'"lastRenewalTimestamp": ' + NESTED))
@example(GOOD.replace(b"REVIEWS", b"R\xffVIEWS"))
def test_no_damage_makes_a_list_shorter(body: bytes) -> None:
    """The instances are as many as the hash code counts. Otherwise the list is unusable."""
    try:
        decoded = wire.decode_list(body)
    except RegistryUnusable:
        return
    assert len(decoded.instances) >= 4


@given(damaged(GOOD, 0))
@example(GOOD.replace(b"UP_4_", b"UP_" + DIGITS + b"_"))
def test_a_list_never_raises(body: bytes) -> None:
    """The client gives Complete, or Unknown with one sentence."""
    source = connect(Response(status=200, body=body))[0].list_instances()
    assert isinstance(source, Complete | Unknown)
    if isinstance(source, Unknown):
        assert source.cause is Cause.UNUSABLE
        assert "\n" not in source.message


@given(damaged(ONE, 0))
@example(b'{"instance":' * 5000)
def test_one_damaged_instance_is_read_or_unusable(body: bytes) -> None:
    """The uncached read raises no other error."""
    with contextlib.suppress(RegistryUnusable):
        wire.decode_instance(body)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"ipAddr": "10.0.0.1"', b'"ipAddr": "10.0.\xff"'),
        (b'"ipAddr": "10.0.0.1"', b'"ipAddr": ' + DIGITS),
        (b'"$": 8080', b'"$": "' + DIGITS + b'"'),
        (b'"zone": "a"', b'"zone": "\xc3("'),
        (b'"zone": "a"', b'"zone": 1e999'),
        (b'"zone": "a"', b'"zone": ' + DIGITS),
        (b'"app": "RATING"', b'"app": "R\xff"'),
    ],
    ids=lambda part: part[:30].decode(errors="replace"),
)
def test_a_damaged_text_of_others_hides_nothing(before: bytes, after: bytes) -> None:
    """Another owner's instance has a stray byte or an endless number. It is reported, and both
    instances are listed."""
    theirs = json.dumps(THEIRS).encode()
    assert before in theirs
    ours = json.dumps(OURS).encode()
    body = listing(OURS, THEIRS, hash_code="UP_2_").replace(theirs, theirs.replace(before, after))
    decoded = wire.decode_list(body)
    assert [seen.key.id for seen in decoded.instances] == [OURS["instanceId"], THEIRS["instanceId"]]
    assert decoded.malformed == ("RATING/dc-host:rating:8080",)
    with pytest.raises(RegistryUnusable, match="could be ours"):
        wire.decode_list(listing(OURS).replace(ours, ours.replace(b'"10.0.0.1"', b'"\xff"')))


@pytest.mark.parametrize("damage", [b"\xff", b'"' + NESTED, b""])
def test_a_sentence_stays_the_same_while_the_list_grows(damage: bytes) -> None:
    """A sentence holds no size and no position. So a condition does not change with each pass."""
    told = set()
    for others in (1, 20):
        body = listing(OURS, *([THEIRS] * others))[:-40] + damage
        with pytest.raises(RegistryUnusable) as caught:
            wire.decode_list(body)
        told.add(str(caught.value))
    assert len(told) == 1
    assert not re.search(r"\d{2}", told.pop())


def test_a_short_list_is_reported_without_numbers() -> None:
    """A list that holds fewer instances than it counts has a constant sentence, too."""
    told = set()
    for count in (5, 6):
        with pytest.raises(RegistryUnusable) as caught:
            wire.decode_list(listing(OURS, hash_code=f"UP_{count}_"))
        told.add(str(caught.value))
    assert len(told) == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"Location": "http://[x/"},
        {"Location": "\xb2"},
        {"Retry-After": "\xb2"},
        {"Retry-After": "9" * 400},
    ],
)
@pytest.mark.parametrize("status", [302, 503])
def test_a_head_that_makes_no_sense_raises_nothing(headers: dict[str, str], status: int) -> None:
    assert isinstance(
        connect(Response(status=status, headers=headers))[0].list_instances(), Unknown
    )


ANSWERS = json.dumps(
    {"responseList": [{"statusCode": 200, "responseEntity": None}, {"statusCode": 404}]}
).encode()
STATUS = b"""<com.netflix.eureka.util.StatusInfo><applicationStats>
<registered-replicas>http://a:8761/eureka/,</registered-replicas></applicationStats>
<instanceInfo><instanceId>a:8761</instanceId></instanceInfo></com.netflix.eureka.util.StatusInfo>"""
BOMB = (
    b'<!DOCTYPE a [<!ENTITY b "'
    + b"x" * 100
    + b'">'
    + b'<!ENTITY c "'
    + b"&b;" * 100
    + b'">]><a>&c;</a>'
)


@given(damaged(ANSWERS, 0))
def test_an_answer_to_a_batch_is_read_or_unusable(body: bytes) -> None:
    """A readable answer has as many codes as the batch has items."""
    with contextlib.suppress(RegistryUnusable):
        assert len(replication.decode_answers(body, items=2)) == 2


@given(damaged(STATUS, 0))
@example(BOMB)
@example(STATUS.replace(b"a:8761<", b"&lt;\x1b[2J<"))
def test_a_status_page_is_read_or_unusable(body: bytes) -> None:
    """Only the needed parts of the XML are read. Entities are not expanded."""
    with contextlib.suppress(RegistryUnusable):
        found = replication.decode_status(body)
        assert len("".join((found.instance_id, *found.replicas))) <= 10 * len(body)
