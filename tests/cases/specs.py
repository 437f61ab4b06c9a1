"""Random specs for property tests: valid ones, made from the CRD, and such with something wrong in
them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from hypothesis import strategies as st

_LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
_NAME = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,8}[A-Za-z0-9])?", fullmatch=True)
_KEY = st.from_regex(
    r"([a-z0-9]{1,4}([.][a-z]{1,3})?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,6}[A-Za-z0-9])?", fullmatch=True
)
_METADATA_KEY = st.from_regex(r"[A-Za-z][A-Za-z0-9.-]{0,6}", fullmatch=True)
_PORT = st.one_of(st.integers(1, 65535), st.sampled_from(["http", "https", "1-a"]))
_PERCENT = st.integers(0, 100).map(lambda number: f"{number}%")
_TEXT = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff"), max_size=12
)
_SURROGATES: tuple[Literal["Cs"]] = ("Cs",)
_ANY_TEXT = st.text(st.characters(exclude_categories=_SURROGATES), max_size=6)
_PATH = st.from_regex(r"/[!-~]{0,6}", fullmatch=True)

_EXPRESSION = st.one_of(
    st.fixed_dictionaries(
        {
            "key": _KEY,
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(_NAME, min_size=1, max_size=3),
        }
    ),
    st.fixed_dictionaries({"key": _KEY, "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
)
_SELECTOR = st.fixed_dictionaries(
    {"app": _NAME},
    optional={
        "namespace": _LABEL,
        "matchLabels": st.dictionaries(_KEY, _NAME, min_size=1, max_size=3),
        "matchExpressions": st.lists(_EXPRESSION, min_size=1, max_size=3),
        "service": _LABEL,
    },
)
_SOURCE = st.sampled_from(["podLabel", "podAnnotation", "serviceLabel", "serviceAnnotation"])
_FROM = st.builds(
    lambda key, source, name: {"key": key, source: name}, _METADATA_KEY, _SOURCE, _KEY
)
_VALID = st.fixed_dictionaries(
    {"selector": _SELECTOR},
    optional={
        "syncerClass": _LABEL,
        "mode": st.sampled_from(["pod", "service"]),
        "appName": _NAME,
        "vipAddress": st.lists(_NAME, min_size=1, max_size=3).map(",".join),
        "port": _PORT,
        "securePort": _PORT,
        "metadata": st.dictionaries(_METADATA_KEY, _TEXT, max_size=3),
        "metadataFrom": st.lists(_FROM, max_size=3),
        "zone": st.fixed_dictionaries(
            {"fromEndpoint": st.booleans()},
            optional={"map": st.dictionaries(_LABEL, _NAME, max_size=2)},
        ),
        "paths": st.fixed_dictionaries(
            {}, optional={"home": _PATH, "managementPort": st.integers(1, 65535)}
        ),
        "hostName": st.builds(
            str.__add__,
            st.sampled_from(["ip", "podName", "nodeName"]),
            st.sampled_from(["", ".a.b", "-a"]),
        ),
        "addressFamily": st.sampled_from(["IPv4", "IPv6"]),
        "service": st.one_of(
            st.just({}),
            st.fixed_dictionaries({"hostname": _LABEL}),
            st.fixed_dictionaries({"address": st.sampled_from(["Auto", "NodePort"])}),
        ),
        "notReady": st.sampled_from(["Down", "Cancel"]),
        "terminating": st.sampled_from(["Cancel", "KeepWhileServing"]),
        "limit": st.one_of(
            st.integers(0, 1000), _PERCENT, st.fixed_dictionaries({"share": _PERCENT})
        ),
        "policy": st.sampled_from(["Sync", "UpsertOnly", "CreateOnly"]),
        "suspend": st.booleans(),
        "readinessGate": st.booleans(),
    },
)
_ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    _ANY_TEXT,
    st.sampled_from(
        [
            [],
            {},
            [1],
            {"a": "b"},
            "eurekube.x",
            "class",
            "zone",
            "1",
            "20%",
            "a\n",
            " ",
            "\x7f",
            "a/b",
        ]
    ),
)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """All containers of a value with each of their keys."""
    inner = (
        list(value.items())
        if isinstance(value, dict)
        else list(enumerate(value))
        if isinstance(value, list)
        else []
    )
    return [(value, key) for key, _ in inner] + [
        place for _, item in inner for place in _places(item)
    ]


def _put(where: Any, key: Any, odd: Any) -> None:
    where[key] = odd


def _drop(where: Any, key: Any, _: Any) -> None:
    del where[key]


def _rename(where: Any, key: Any, odd: Any) -> None:
    if isinstance(where, dict):
        where[str(odd)[:20]] = where.pop(key)


def _double(where: Any, key: Any, odd: Any) -> None:
    if isinstance(where, list):
        where.append(where[key])
    else:
        where[f"{key}x"] = odd


_MUTATIONS: tuple[Callable[[Any, Any, Any], None], ...] = (_put, _put, _drop, _rename, _double)


@st.composite
def specs(draw: st.DrawFn) -> Any:
    """A spec: about a third as it should be, the others with one to three changes anywhere."""
    spec = draw(_VALID)
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2, 3]))):
        places = _places(spec)
        if places:
            where, key = places[draw(st.integers(0, len(places) - 1))]
            draw(st.sampled_from(_MUTATIONS))(where, key, draw(_ODD))
    return spec
