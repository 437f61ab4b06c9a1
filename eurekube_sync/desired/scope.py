"""The scope of an installation, and the grants of a Namespace: the names of apps and VIPs, and
hosts.

Labels and class are known only from the syncer, so all syncers are listed, and those outside of the
scope are filtered out. Only then is a syncer that is missing from the list deleted, and not merely
out of scope. Grants are annotations, because users who may write syncers and Services in a
namespace cannot write its annotations.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from difflib import get_close_matches
from functools import lru_cache
from itertools import chain
from typing import TypeAlias

from eurekube_sync.desired.claims import Claim, Serving, Wanted, every
from eurekube_sync.desired.selector import Expression
from eurekube_sync.desired.spec import class_of, selected_namespace
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import SyncerObject, SyncerRef
from eurekube_sync.model.sources import Listed
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import one_or_more, some_of

ANY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The syncers that an installation serves; by default every syncer without a class."""

    namespaces: frozenset[str] | None = None  # None: all
    selector: tuple[Expression, ...] = ()  # on the labels of the syncers
    syncer_class: str | None = None  # of `spec.syncerClass`; None: syncers that name no class
    allowed: frozenset[tuple[str, str]] = frozenset()
    """Pairs of a syncer's namespace and another one where it may select Services; `*` is any."""
    granted_only: bool = False  # a syncer is served only if its Namespace grants what it registers
    elsewhere: frozenset[SyncerRef] = field(default=frozenset(), repr=False)
    """Listed syncers that are outside of this scope, by label or class."""

    @property
    def options(self) -> tuple[str, ...]:
        """The options that give another command this scope."""
        selector = ",".join(map(str, self.selector))
        found: list[tuple[str, ...]] = [("-n", name) for name in sorted(self.namespaces or ())]
        named = (("--selector", selector), ("--syncer-class", self.syncer_class))
        found += [(option, str(value)) for option, value in named if value]
        found += [
            ("--allow-namespace", f"{source}:{target}") for source, target in sorted(self.allowed)
        ]
        found += [("--require-app-grant",)] if self.granted_only else []
        return tuple(chain.from_iterable(found))

    def covers(self, syncer: SyncerRef) -> bool:
        """Whether a syncer with this name is in scope, by all that is known; also one that does not
        exist."""
        return (
            self.namespaces is None or syncer.namespace in self.namespaces
        ) and syncer not in self.elsewhere

    def takes(self, syncer: SyncerObject) -> bool:
        """Whether this syncer is in scope."""
        return (
            class_of(syncer) == self.syncer_class
            and all(expression.matches(syncer.labels) for expression in self.selector)
            and self.covers(syncer.ref)
        )

    def knowing(self, syncers: Listed[SyncerObject]) -> Scope:
        """Return this scope with the labels and classes of the listed syncers."""
        return replace(
            self, elsewhere=frozenset(one.ref for one in every(syncers) if not self.takes(one))
        )

    def may_select(self, syncer: SyncerObject) -> bool:
        """Whether the syncer may select Services in the namespace of its spec."""
        return self.may_reach(syncer.namespace, selected_namespace(syncer))

    def may_reach(self, own: str, other: str) -> bool:
        """Whether syncers of namespace `own` may select Services in `other`."""
        return own == other or any(
            source in (ANY, own) and target in (ANY, other) for source, target in self.allowed
        )

    def __str__(self) -> str:
        """Return selector and class, by which installations differ; empty if all are the
        default."""
        parts = (
            [f"selector {', '.join(str(one) for one in self.selector)}"] if self.selector else []
        )
        parts += [f"class {self.syncer_class}"] if self.syncer_class else []
        return "; ".join(parts)


ALLOWED_APPS = "eurekube.io/allowed-apps"
"""Annotation of a Namespace: names of apps and VIPs, separated by commas. `*` stands for any
characters."""
ALLOWED_HOSTS = "eurekube.io/allowed-hosts"
"""The same for host names, addresses and networks (`10.1.0.0/16`) that the cluster did not give to
the namespace."""

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_NO_MACHINE = [
    ipaddress.ip_network(text)
    for text in ("0.0.0.0/8", "255.255.255.255/32", "::/128", "fd00:ec2::254/128")
]
"""The last one is the IPv6 address of the metadata service of AWS."""
_ENDS_IN_IPV4 = [
    ipaddress.ip_network(text) for text in ("::/96", "64:ff9b::/96")
]  # RFC 4291 2.5.5.1 and RFC 6052 2.1
_LOCAL_NAME = re.compile(r"local(host|domain)[46]?|ip6-(localhost|loopback)|[0-9]+|0x[0-9a-f]*")
"""The last label of a name of the caller itself, or of an address in a short form: 127.1,
0x7f000001."""
_NUMERIC = re.compile(
    r"[0-9.*]+|[0-9a-f:.*]*:[0-9a-f:.*]*", re.IGNORECASE
)  # a pattern of addresses
_ANY, _WITHIN_LABEL = ".", "[^.]"


def refusal(claim: Serving, annotations: Mapping[str, str]) -> str | None:
    """Return why a Namespace with these annotations does not grant the claim, or None if it
    does."""
    apps, hosts = (_parts(annotations.get(name, "")) for name in (ALLOWED_APPS, ALLOWED_HOSTS))
    reached = dict.fromkeys(host for one in claim.wanted.values() for host in _reached_at(one))
    for host in reached:
        if _of_one_machine(host):
            return f"{host} is a different machine for each caller, so it is never registered"
    names = [
        f"{kind} {name}"
        for kind, name in _names(claim)
        if not any(_matches(one, name) for one in apps)
    ]
    strange = [f"host {host}" for host in reached if not any(_covers(one, host) for one in hosts)]
    asked = [
        (found, key) for found, key in ((names, ALLOWED_APPS), (strange, ALLOWED_HOSTS)) if found
    ]
    return (
        "; ".join(
            _not_granted(found, key, claim.syncer.namespace, annotations) for found, key in asked
        )
        or None
    )


def _not_granted(
    found: Sequence[str], annotation: str, namespace: str, annotations: Mapping[str, str]
) -> str:
    are, them = one_or_more(len(found), "is", "are"), one_or_more(len(found), "it", "them")
    likely = next(iter(get_close_matches(annotation, annotations, cutoff=0.9)), annotation)
    hint = (
        f" (the Namespace has the annotation {likely}, which does nothing)"
        if likely not in (ALLOWED_APPS, ALLOWED_HOSTS)
        else ""
    )
    add = f"the operator may add {them} to the annotation {annotation} of the Namespace{hint}"
    return f"{some_of(found)} {are} not granted to namespace {namespace}: {add}"


def no_longer_granted(claim: Claim | None, registered: ObservedInstance) -> bool:
    """Whether a registered instance has a name or host that its Namespace does not grant any more,
    so that it must be changed or removed."""
    if not isinstance(claim, Serving) or claim.granted_by is None:
        return False
    apps, hosts = (_parts(claim.granted_by.get(name, "")) for name in (ALLOWED_APPS, ALLOWED_HOSTS))
    there, wanted = registered.instance, claim.wanted_at(registered.key)
    own = {there.ip_addr, *((wanted.instance.host_name,) if wanted else ())}
    names = [name for vip in (there.vip_address, there.secure_vip_address) for name in _parts(vip)]
    return not all(any(_matches(pattern, name) for pattern in apps) for name in names) or not (
        there.host_name.strip("[]") in own
        or any(_covers(pattern, there.host_name) for pattern in hosts)
    )


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part for part in (one.strip() for one in text.split(",")) if part)


def _names(claim: Serving) -> Iterable[tuple[str, str]]:
    """Return each name by which callers find the instances, with its kind. Eureka's clients ignore
    case."""
    instances = [one.instance for one in claim.wanted.values()]
    plain = dict.fromkeys([claim.vip_address, *(one.vip_address for one in instances)])
    secure = dict.fromkeys(one.secure_vip_address for one in instances)
    found: dict[str, tuple[str, str]] = {}
    for kind, texts in (
        ("app", claim.apps),
        ("VIP address", plain),
        ("secure VIP address", secure),
    ):
        for name in (name for text in texts for name in _parts(text)):
            found.setdefault(name.lower(), (kind, name))
    return found.values()


def _reached_at(one: Wanted) -> Iterator[str]:
    """Yield the hosts that need a grant: a chosen host name, and an address that the cluster did
    not give. Addresses such as 127.0.0.1 are never a pod's, even if a slice has them."""
    address, name = one.instance.ip_addr, one.instance.host_name
    if not one.allotted or _of_one_machine(address):
        yield address
    if name.strip("[]") != address:
        yield name


def _of_one_machine(host: str) -> bool:
    """Whether the host is another machine for each caller, such as the caller itself, or none."""
    address = _address(host)
    if address is None:
        return _LOCAL_NAME.fullmatch(host.lower().rstrip(".").rpartition(".")[2]) is not None
    leads_to: list[_Address | None] = [address]
    if isinstance(address, ipaddress.IPv6Address):  # it may contain an IPv4 address
        leads_to += [address.ipv4_mapped, address.sixtofour]
    if any(address in network for network in _ENDS_IN_IPV4):
        leads_to.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return any(
        one.is_link_local
        or one.is_loopback
        or one.is_multicast
        or any(one in network for network in _NO_MACHINE)
        for one in leads_to
        if one is not None
    )


def _address(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _covers(pattern: str, host: str) -> bool:
    """Whether a pattern grants a host. A star within a name crosses no dot, because the end of a
    name says whose it is. Patterns of numbers grant only addresses."""
    if not pattern.strip("*"):
        return True
    address = _address(host)
    if address is None:
        return not _NUMERIC.fullmatch(pattern) and _matches(pattern, host, _WITHIN_LABEL)
    try:
        return address in ipaddress.ip_network(pattern, strict=False)
    except ValueError:
        return _NUMERIC.fullmatch(pattern) is not None and _matches(pattern, str(address))


def _matches(pattern: str, name: str, inner: str = _ANY) -> bool:
    return _compiled(pattern, inner).fullmatch(name) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str, inner: str) -> re.Pattern[str]:
    """Compile a pattern. A star stands for any characters at the front, and for characters `inner`
    elsewhere."""
    first, *rest = (re.escape(part) for part in re.split(r"\*+", pattern))
    star = _ANY if not first else inner
    text = first
    for part in rest[:-1]:
        # Atomic groups: without them a match could take very long on a long name.
        text += f"{star}*{part}" if star != inner else f"(?>{star}*?{part})"
        star = inner
    return re.compile(text + "".join(f"{star}*{part}" for part in rest[-1:]), re.IGNORECASE)
