"""No accepted spec breaks the XML of the registry: Prometheus and older clients read `/apps` in no
other form.

Random specs, hostile ones among them, go through the program's own parsing and claims; what these
accept is registered, and a namespace-aware parser (`xml.etree`, which is expat) reads it back from
the real server.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeAlias
from xml.etree import ElementTree

import pytest
import requests
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.desired.claims import Serving
from eurekube_sync.model.eureka import Instance, InstanceKey, LeaseTimes
from eurekube_sync.model.struct import replace
from tests.contract.eureka_subject import EurekaSubject, real
from tests.contract.otherwise import Otherwise
from tests.unit.worlds import build
from tests.waiting import wait_until

DIRTY_TIMESTAMP = 1_795_248_000_785
Registered: TypeAlias = dict[InstanceKey, dict[str, str]]
Reader: TypeAlias = Callable[[bytes], Registered]

_SEPARATORS = st.sampled_from(
    ("", ".", "-", "_", "__", ":", "/", " ", "$", "@", "\u00e9", "\u0301", "\x00")
)
_WORDS = st.sampled_from(
    (
        "a",
        "Z",
        "0",
        "zone",
        "class",
        "@class",
        "xml",
        "XML",
        "xmlns",
        "instance",
        "metadata",
        "entry",
        "null",
        "id",
    )
)
KEYS = st.one_of(
    st.lists(st.one_of(_WORDS, _SEPARATORS), min_size=1, max_size=5).map("".join),
    st.from_regex(r"[A-Za-z_][A-Za-z0-9._-]{0,12}", fullmatch=True),
    st.text(max_size=6),
)
_TROUBLE = (
    "<", ">", "&", "]]>", "<!--", "-->", "<![CDATA[", "&#0;", "&amp;", "&x;", "<?xml?>", "\"'", " ", "\t", "\n", "\r",
    "\x00", "\x1b", "\x7f", "\x85", "\u00a0", "\u2028", "\u202e", "\ufeff", "\ufdd0", "\ufffd", "\ufffe", "\uffff",
    "\ud800", "\U0001f642", "\U0001fffe", "\U0010ffff", "e\u0301", "\u4f60", "null", "true", "1e5", "{}", "\\u0000",
)  # fmt: skip
VALUES = st.one_of(
    st.lists(st.sampled_from(_TROUBLE), max_size=8).map("".join),
    st.text(st.characters(exclude_categories=()), max_size=30),
    st.text(st.characters(exclude_categories=("Cc", "Cs", "Cn")), max_size=30),
    st.integers(0, 1100).map("\u20ac".__mul__),
)
NAMES = st.one_of(
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}[A-Za-z0-9]", fullmatch=True),
    st.text(st.sampled_from("aZ0._-:/,%&<é\x00 "), max_size=8),
)
VIPS = st.one_of(NAMES, st.lists(NAMES, max_size=3).map(",".join))


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    """What a syncer's spec may hold, as it comes from a cluster whose CRD checks nothing."""
    optional = {
        "metadata": st.dictionaries(KEYS, VALUES, max_size=4),
        "appName": NAMES,
        "vipAddress": VIPS,
        "secureVipAddress": VIPS,
        "notReady": st.just("Down"),
    }
    chosen = draw(st.sets(st.sampled_from(sorted(optional))))
    return {field: draw(optional[field]) for field in sorted(chosen)}


_numbers = itertools.count()


def accepted(spec: Mapping[str, Any]) -> Instance | None:
    """The instance that the program makes of it, at an address of its own; None when it refuses the
    spec."""
    high, low = divmod(next(_numbers), 250)
    endpoint = build.endpoint(1, address=f"10.1.{high}.{low + 1}", ready=True)
    claims = build.desired(
        [build.syncer(**spec)], [build.service()], [build.piece(endpoint)]
    ).claims
    (claim,) = claims.values()
    if not isinstance(claim, Serving):
        return None
    (wanted,) = claim.wanted.values()
    return replace(
        wanted.instance, lease=LeaseTimes(renewal=30, duration=3600)
    )  # a busy machine takes its time


def read_xml(body: bytes) -> Registered:
    """The metadata of each instance, with each `__` of a name as `_`, as Eureka's clients read it;
    every name in the document has to be a plain one, without a namespace."""
    root = ElementTree.fromstring(body)
    found = {}
    for instance in root.iter("instance"):
        app, id_ = (instance.findtext(name) for name in ("app", "instanceId"))
        metadata = instance.find("metadata")
        assert app is not None
        assert id_ is not None
        assert metadata is not None
        assert not [child.tag for child in metadata if "{" in child.tag or len(child)]
        assert len({child.tag for child in metadata}) == len(metadata)
        entries = {child.tag.replace("__", "_"): child.text or "" for child in metadata}
        found[InstanceKey(app, id_)] = entries
    return found


def read_json(body: bytes) -> Registered:
    """The same from the JSON form."""
    applications = json.loads(body)["applications"]["application"]
    instances = [instance for application in applications for instance in application["instance"]]
    return {InstanceKey(one["app"], one["instanceId"]): one["metadata"] for one in instances}


def whole_list(
    eureka: EurekaSubject, accept: str, read: Reader, keys: Collection[InstanceKey]
) -> Registered:
    """`/apps` with all of these, however busy the machine is.

    A tick makes one list after another (ResponseCacheImpl.getCacheUpdateTask), and this one is
    long: it may lack the last when the tick's own is there already."""
    found: Registered = {}

    def complete() -> bool:
        nonlocal found
        eureka.to_next_tick()
        found = read(eureka.get("/apps", Accept=accept).content)
        return found.keys() >= set(keys)

    wait_until(complete, lambda: f"{accept} lacks {sorted(set(keys) - found.keys())}")
    return found


@pytest.fixture
def eureka(eureka_fast: Any) -> EurekaSubject:
    """A server with fast timings."""
    return real(eureka_fast.url, stock=False)


@pytest.fixture
def client(eureka: EurekaSubject) -> Iterator[EurekaClient]:
    """Our own client."""
    address = EurekaAddress.parse(eureka.url(""))
    with EurekaClient(
        ConnectionOptions(address=address), clock=SystemClock(), random=random.Random(0)
    ) as connected:
        yield connected


@pytest.mark.servers
def test_each_accepted_instance_can_be_read_back_as_xml(
    eureka: EurekaSubject, client: EurekaClient
) -> None:
    """Each accepted instance is read back alone at once, and at the end all of them in `/apps`,
    metadata and all."""
    registered: dict[InstanceKey, Instance] = {}

    @settings(
        max_examples=300,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(specs())
    @example(
        {
            "metadata": {
                "a": " \u00a0 <&\"'>]]> \u4f60 \U0001f642 ",
                "b.c-D": "",
                "xml": "&#0;",
                "xmlns": "x",
            }
        }
    )
    @example({"metadata": {"Zone": "\u202e\u2028\ufeff\ufffd\ufdd0\U0010ffff", "zone": "e\u0301"}})
    @example({"appName": "A_b.c-D", "vipAddress": "a_b,c:1", "secureVipAddress": "d"})
    def feed(spec: dict[str, Any]) -> None:
        instance = accepted(spec)
        if instance is None:
            return
        client.register(instance, dirty_timestamp=DIRTY_TIMESTAMP)
        registered[instance.key] = instance
        answer = eureka.get(f"/apps/{instance.key.app}/{instance.key.id}", Accept="application/xml")
        assert answer.headers["Content-Type"].startswith("application/xml")
        assert read_xml(answer.content) == {instance.key: instance.metadata}

    try:
        feed()
        expected = {key: dict(instance.metadata) for key, instance in registered.items()}
        for accept, read in (("application/xml", read_xml), ("application/json", read_json)):
            found = whole_list(eureka, accept, read, expected.keys())
            assert {key: metadata for key, metadata in found.items() if key in expected} == expected
        assert len(expected) >= 20
    finally:
        for key in registered:
            client.cancel(key)


AS_IT_IS = (
    "xml",
    "XML",
    "xml-a",
    "xmlns",
    "xmlns.a",
    "entry",
    "metadata",
    "a..b",
    "a-",
    "\u00e9",
    "\ud55c",
    "a\u00b7",
)
UNDERSCORES = ("a_b", "_", "_a", "a_", "a__b", "A_B.c-_")
"""In XML each `_` is written twice. Eureka reads it back so, and so do its own clients: on each line
from Netflix 1.10 and Edgware to 2025.1."""
MEANT_OTHERWISE = ("class", "instanceId")
OTHER_NAMES = {
    "a b": "a_.0020b",
    "1a": "_.0031a",
    ".a": "_.002ea",
    "-a": "_.002da",
    "a/b": "a_.002fb",
    "a@b": "a_.0040b",
    "#text": "_.0023text",
    "@a": "_.0040a",
    "a$b": "a_-b",
    "$": "_-",
}
"""What XML makes of a key that JSON shows as it is: two readers of one registry find two keys."""
OTHER_NAMES |= {"xml:lang": "{http://www.w3.org/XML/1998/namespace}lang", "@class": "other"}
BREAKING = ("k:v", "xmlns:a", "")
"""What no namespace-aware parser reads, and with it all of `/apps`."""


@pytest.mark.servers
@pytest.mark.parametrize("key", [*AS_IT_IS, *MEANT_OTHERWISE])
def test_a_plain_metadata_key_is_the_same_in_xml(eureka: EurekaSubject, key: str) -> None:
    """It is read in JSON and in XML as it was registered."""
    in_json, body = registered_with(eureka, key)
    assert in_json == {key: "v", "other": "w"}
    assert names_in(body) == {key, "other"}
    assert may_ask_for(key) == (key in AS_IT_IS and key.isascii())


@pytest.mark.servers
@pytest.mark.parametrize("key", UNDERSCORES)
def test_a_metadata_key_with_underscores_is_read_back_by_eureka(
    eureka: EurekaSubject, key: str
) -> None:
    """JSON has it unchanged. What XML shows is the same key again when it is sent back."""
    in_json, body = registered_with(eureka, key)
    assert in_json == {key: "v", "other": "w"}
    assert names_in(body) == {key.replace("_", "__"), "other"}
    of_xml = {"Content-Type": "application/xml"}
    answer = requests.post(eureka.url("/apps/KEYS"), data=body, headers=of_xml, timeout=30)
    assert answer.status_code == 204
    try:
        assert eureka.instance("KEYS", "keys-0")["metadata"] == in_json
    finally:
        eureka.delete("/apps/KEYS/keys-0")
    assert may_ask_for(key)


@pytest.mark.servers
@pytest.mark.parametrize("key", OTHER_NAMES)
def test_a_metadata_key_that_xml_escapes_is_refused(eureka: EurekaSubject, key: str) -> None:
    """The real server escapes it, so no syncer may ask for it."""
    in_json, body = registered_with(eureka, key)
    assert in_json == ({"other": "w"} if key == "@class" else {key: "v", "other": "w"})
    if Otherwise.UNESCAPED_XML in eureka.otherwise and "_." in OTHER_NAMES[key]:
        with pytest.raises(ElementTree.ParseError):
            names_in(body)
    else:
        assert names_in(body) == {OTHER_NAMES[key], "other"}
    assert not may_ask_for(key)


@pytest.mark.servers
@pytest.mark.parametrize("key", BREAKING)
def test_a_metadata_key_that_breaks_the_xml_is_refused(eureka: EurekaSubject, key: str) -> None:
    """No syncer may ask for it."""
    in_json, body = registered_with(eureka, key)
    assert in_json == {key: "v", "other": "w"}
    with pytest.raises(ElementTree.ParseError):
        ElementTree.fromstring(body)
    assert not may_ask_for(key)


def may_ask_for(key: str) -> bool:
    """Whether a syncer with this key is served."""
    return accepted({"metadata": {key: "v"}}) is not None


def names_in(body: bytes) -> set[str]:
    """The metadata's names in XML."""
    metadata = ElementTree.fromstring(body).find("metadata")
    assert metadata is not None
    return {child.tag for child in metadata}


def registered_with(eureka: EurekaSubject, key: str) -> tuple[Any, bytes]:
    """The metadata in JSON, and the instance in XML, of one that has this key beside another."""
    instance = {
        "instanceId": "keys-0",
        "app": "KEYS",
        "hostName": "keys",
        "ipAddr": "10.9.9.9",
        "status": "UP",
        "dataCenterInfo": {
            "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
            "name": "MyOwn",
        },
        "metadata": {key: "v", "other": "w"},
    }
    assert eureka.post("KEYS", instance).status_code == 204
    try:
        in_json = eureka.instance("KEYS", "keys-0")["metadata"]
        body = eureka.get("/apps/KEYS/keys-0", Accept="application/xml").content
    finally:
        eureka.delete("/apps/KEYS/keys-0")
    return in_json, body


@pytest.mark.parametrize(
    "spec",
    [
        {"metadata": {"k:v": "x"}},
        {"metadata": {"": "x"}},
        {"metadata": {"a b": "x"}},
        {"metadata": {"1a": "x"}},
        {"metadata": {"-a": "x"}},
        {"metadata": {"\u00e9": "x"}},
        {"metadata": {"class": "x"}},
        {"metadata": {"instanceId": "x"}},
        {"metadata": {"@class": "x"}},
        {"metadata": {"xmlns:a": "x"}},
        {"metadata": {"xml:lang": "x"}},
        {"metadataFrom": [{"key": "k:v", "serviceLabel": "x"}]},
        {"metadata": {"a": "bell \x07"}},
        {"metadata": {"a": "\ufffe"}},
        {"metadata": {"a": "\ud800"}},
        {"appName": "a:b"},
        {"appName": "<a>"},
        {"vipAddress": "a,,b"},
        {"vipAddress": "a\x00"},
    ],
    ids=repr,
)
def test_a_spec_with_values_that_break_or_change_in_xml_is_refused(spec: dict[str, Any]) -> None:
    """Such a syncer is not served, and its sentence names the field; nothing of it is sent."""
    claims = build.desired(
        [build.syncer(**spec)], [build.service()], [build.piece(build.endpoint())]
    ).claims
    (claim,) = claims.values()
    assert not isinstance(claim, Serving)
    assert next(iter(spec)) in getattr(claim, "message", "")
