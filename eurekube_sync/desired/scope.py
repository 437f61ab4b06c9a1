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
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from eurekube_sync.desired import import_spec
from eurekube_sync.desired.claims import Claim, Serving, Wanted, every
from eurekube_sync.desired.selector import Expression
from eurekube_sync.desired.spec import class_of, selected_namespace
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.imports import ImportObject
from eurekube_sync.model.kubernetes import Namespace, SyncerObject, SyncerRef
from eurekube_sync.model.sources import Cause, Listed, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import one_or_more, some_of

ANY = "*"


class Policy(StrEnum):
    """What an installation may do."""

    SYNC = "sync"  # register, update and cancel
    UPSERT_ONLY = "upsert-only"  # register and update


class Scope(Struct, frozen=True, kw_only=True):
    """The syncers that an installation serves, and what it may do; by default all to every syncer
    without a class."""

    namespaces: frozenset[str] | None = None  # None: all
    selector: tuple[Expression, ...] = ()  # on the labels of the syncers
    syncer_class: str | None = None  # of `spec.syncerClass`; None: syncers that name no class
    allowed: frozenset[tuple[str, str]] = frozenset()
    """Pairs of a syncer's namespace and another one where it may select Services; `*` is any."""
    granted_only: bool = False  # a syncer is served only if its Namespace grants what it registers
    policy: Policy = Policy.SYNC
    elsewhere: frozenset[SyncerRef] = frozenset()
    """Listed syncers that are outside of this scope, by label or class."""

    @property
    def options(self) -> tuple[str, ...]:
        """The options that give another command this scope."""
        options: list[str] = []
        for name in sorted(self.namespaces or ()):
            options += ["-n", name]
        if self.selector:
            selector = ",".join(map(str, self.selector))
            options += ["--selector", selector]
        if self.syncer_class:
            options += ["--syncer-class", self.syncer_class]
        for source, target in sorted(self.allowed):
            options += ["--allow-namespace", f"{source}:{target}"]
        if self.granted_only:
            options.append("--require-app-grant")
        if self.policy is not Policy.SYNC:
            options += ["--policy", self.policy.value]
        return tuple(options)

    def covers(self, syncer: SyncerRef) -> bool:
        """Whether a syncer with this name is in scope, by all that is known; also one that does not
        exist."""
        return self._has(syncer.namespace) and syncer not in self.elsewhere

    def takes(self, syncer: SyncerObject) -> bool:
        """Whether this syncer is in scope."""
        if class_of(syncer) != self.syncer_class:
            return False
        return self._selects(syncer.labels) and self.covers(syncer.ref)

    def takes_import(self, import_: ImportObject) -> bool:
        """Whether this import is in scope."""
        if import_spec.class_of(import_) != self.syncer_class:
            return False
        return self._selects(import_.labels) and self._has(import_.namespace)

    def _has(self, namespace: str) -> bool:
        return self.namespaces is None or namespace in self.namespaces

    def _selects(self, labels: Mapping[str, str]) -> bool:
        return all(expression.matches(labels) for expression in self.selector)

    def knowing(self, syncers: Listed[SyncerObject]) -> Scope:
        """Return this scope with the labels and classes of the listed syncers."""
        outside: set[SyncerRef] = set()
        for syncer in every(syncers):
            if not self.takes(syncer):
                outside.add(syncer.ref)
        return replace(self, elsewhere=frozenset(outside))

    def may_select(self, syncer: SyncerObject) -> bool:
        """Whether the syncer may select Services in the namespace of its spec."""
        return self.may_reach(syncer.namespace, selected_namespace(syncer))

    def may_reach(self, own: str, other: str) -> bool:
        """Whether syncers of namespace `own` may select Services in `other`."""
        if own == other:
            return True
        for source, target in self.allowed:
            from_own = source in (ANY, own)
            if from_own and target in (ANY, other):
                return True
        return False

    def __str__(self) -> str:
        """Return selector and class, by which installations differ; empty if all are the
        default."""
        parts: list[str] = []
        if self.selector:
            selector = ", ".join(map(str, self.selector))
            parts.append(f"selector {selector}")
        if self.syncer_class:
            parts.append(f"class {self.syncer_class}")
        return "; ".join(parts)


ALLOWED_APPS = "eurekube.io/allowed-apps"
"""Annotation of a Namespace: names of apps and VIPs, separated by commas. `*` stands for any
characters."""
ALLOWED_HOSTS = "eurekube.io/allowed-hosts"
"""The same for host names, addresses and networks (`10.1.0.0/16`) that the cluster did not give to
the namespace."""

ALLOWED_IMPORTS = "eurekube.io/allowed-imports"
"""The same for the apps and VIPs that an import may call. To be called by a name and to call it are
two rights."""

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_NO_MACHINE = [
    ipaddress.ip_network("0.0.0.0/8"),
    ipaddress.ip_network("255.255.255.255/32"),
    ipaddress.ip_network("::/128"),
    ipaddress.ip_network("fd00:ec2::254/128"),  # the metadata service of AWS
]
_ENDS_IN_IPV4 = [
    ipaddress.ip_network("::/96"),  # RFC 4291 2.5.5.1
    ipaddress.ip_network("64:ff9b::/96"),  # RFC 6052 2.1
]
_LOCAL_NAME = re.compile(r"local(host|domain)[46]?|ip6-(localhost|loopback)|[0-9]+|0x[0-9a-f]*")
"""The last label of a name of the caller itself, or of an address in a short form: 127.1,
0x7f000001."""
_NUMERIC = re.compile(
    r"[0-9.*]+|[0-9a-f:.*]*:[0-9a-f:.*]*", re.IGNORECASE
)  # a pattern of addresses
_ANY, _WITHIN_LABEL = ".", "[^.]"


class _Grants(NamedTuple):
    """What the annotations of a Namespace grant, as patterns."""

    apps: Sequence[str]
    hosts: Sequence[str]

    def name(self, name: str) -> bool:
        """Whether they grant the name of an app or VIP."""
        return _any_matches(self.apps, name)

    def host(self, host: str) -> bool:
        return any(_covers(pattern, host) for pattern in self.hosts)


def _grants(annotations: Mapping[str, str]) -> _Grants:
    apps = annotations.get(ALLOWED_APPS, "")
    hosts = annotations.get(ALLOWED_HOSTS, "")
    return _Grants(_parts(apps), _parts(hosts))


def annotations_of(
    namespaces: Listed[Namespace], namespace: str, its_object: str
) -> Mapping[str, str] | Unknown:
    """Return the annotations of a Namespace that has `its_object`, such as "a syncer". Unknown if
    the Namespaces could not be read, or lack it."""
    read = namespaces.of(namespace)
    if isinstance(read, Unknown):
        return read
    if not read.data:
        why = (
            f"Namespace {namespace} was not found, although it has {its_object}: its grants are "
            "unknown"
        )
        return Unknown(cause=Cause.UNUSABLE, message=why)
    return read.data[0].annotations


def import_refusal(kind: str, name: str, namespace: str, annotations: Mapping[str, str]) -> str:
    """Return why a Namespace with these annotations grants no import of an app or VIP; empty if it
    does."""
    granted = annotations.get(ALLOWED_IMPORTS, "")
    if _any_matches(_parts(granted), name):
        return ""
    return _not_granted([f"{kind} {name}"], ALLOWED_IMPORTS, namespace, annotations)


def refusal(claim: Serving, annotations: Mapping[str, str]) -> str | None:
    """Return why a Namespace with these annotations does not grant the claim, or None if it
    does."""
    grants = _grants(annotations)
    reached: dict[str, None] = {}  # each host once
    for wanted in claim.wanted.values():
        for host in _reached_at(wanted):
            reached[host] = None
    hosts: list[str] = []
    for host in reached:
        if of_one_machine(host):  # no grant permits it
            return f"{host} is a different machine for each caller, so it is never registered"
        if not grants.host(host):
            hosts.append(f"host {host}")
    names: list[str] = []
    for kind, name in _names(claim):
        if not grants.name(name):
            names.append(f"{kind} {name}")
    namespace = claim.syncer.namespace
    refusals: list[str] = []
    if names:
        refusals.append(_not_granted(names, ALLOWED_APPS, namespace, annotations))
    if hosts:
        refusals.append(_not_granted(hosts, ALLOWED_HOSTS, namespace, annotations))
    return "; ".join(refusals) or None


def _not_granted(
    lacking: Sequence[str], annotation: str, namespace: str, annotations: Mapping[str, str]
) -> str:
    number = len(lacking)
    are = one_or_more(number, "is", "are")
    them = one_or_more(number, "it", "them")
    hint = ""
    # A person may have mistyped the key.
    for likely in get_close_matches(annotation, annotations, n=1, cutoff=0.9):
        if likely not in (ALLOWED_APPS, ALLOWED_HOSTS, ALLOWED_IMPORTS):
            hint = f" (the Namespace has the annotation {likely}, which does nothing)"
    what = some_of(lacking)
    return (
        f"{what} {are} not granted to namespace {namespace}: the operator may add {them} to the "
        f"annotation {annotation} of the Namespace{hint}"
    )


def no_longer_granted(claim: Claim | None, registered: ObservedInstance) -> bool:
    """Whether a registered instance has a name or host that its Namespace does not grant any more,
    so that it must be changed or removed."""
    if not isinstance(claim, Serving) or claim.granted_by is None:
        return False  # no grant is needed, or there is none: a lost annotation must remove no app
    grants = _grants(claim.granted_by)
    there = registered.instance
    for vip in (there.vip_address, there.secure_vip_address):
        for name in _parts(vip):
            if not grants.name(name):
                return True
    wanted = claim.wanted_at(registered.key)
    judged = wanted.instance.host_name if wanted else there.ip_addr  # by `refusal`
    host = there.host_name.strip("[]")
    if host in (there.ip_addr, judged):
        return False
    return not grants.host(there.host_name)


def _parts(text: str) -> Sequence[str]:
    parts = [part.strip() for part in text.split(",")]
    return [part for part in parts if part]


def _names(claim: Serving) -> Iterable[tuple[str, str]]:
    """Return each name by which callers find the instances, with its kind. Eureka's clients ignore
    case."""
    vips = {claim.vip_address: None}  # each text once, in their order
    secure_vips: dict[str, None] = {}
    for wanted in claim.wanted.values():
        vips[wanted.instance.vip_address] = None
        secure_vips[wanted.instance.secure_vip_address] = None
    of_kinds = {"app": claim.apps, "VIP address": vips, "secure VIP address": secure_vips}
    names: dict[str, tuple[str, str]] = {}
    for kind, texts in of_kinds.items():
        for text in texts:
            for name in _parts(text):
                names.setdefault(name.lower(), (kind, name))
    return names.values()


def _reached_at(wanted: Wanted) -> Iterator[str]:
    """Yield the hosts that need a grant: a chosen host name, and an address that the cluster did
    not give. Addresses such as 127.0.0.1 are never a pod's, even if a slice has them."""
    instance = wanted.instance
    address = instance.ip_addr
    if not wanted.allotted or of_one_machine(address):
        yield address
    name = instance.host_name
    if name.strip("[]") != address:  # an IPv6 address is in brackets there
        yield name


def of_one_machine(host: str) -> bool:
    """Whether the host is another machine for each caller, such as the caller itself, or none."""
    address = parsed_address(host)
    if address is None:  # `127.1` is none for `ipaddress`, and one for many callers
        name = host.lower().rstrip(".")
        _, _, last_label = name.rpartition(".")
        return _LOCAL_NAME.fullmatch(last_label) is not None
    leads_to = [address]
    if isinstance(address, ipaddress.IPv6Address):  # it may contain an IPv4 address
        for inner in (address.ipv4_mapped, address.sixtofour):
            if inner is not None:
                leads_to.append(inner)
    if is_in(address, _ENDS_IN_IPV4):
        last_bits = int(address) & 0xFFFFFFFF
        leads_to.append(ipaddress.IPv4Address(last_bits))
    return any(_is_no_machine(target) for target in leads_to)


def _is_no_machine(address: Address) -> bool:
    """Whether the address is not that of one machine, the same for all callers."""
    if address.is_link_local or address.is_loopback or address.is_multicast:
        return True
    return is_in(address, _NO_MACHINE)


def is_in(
    address: Address, networks: Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network]
) -> bool:
    """Whether one of the networks has the address."""
    return any(address in network for network in networks)


def parsed_address(host: str) -> Address | None:
    """Return the IP address that a host is; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _covers(pattern: str, host: str) -> bool:
    """Whether a pattern grants a host. A star within a name crosses no dot, because the end of a
    name says whose it is. Patterns of numbers grant only addresses."""
    if not pattern.strip("*"):
        return True
    address = parsed_address(host)
    numeric = _NUMERIC.fullmatch(pattern) is not None
    if address is None:
        return not numeric and _matches(pattern, host, _WITHIN_LABEL)
    try:
        return address in ipaddress.ip_network(pattern, strict=False)
    except ValueError:  # it has a star, such as `10.1.*`
        return numeric and _matches(pattern, str(address))


def _any_matches(patterns: Iterable[str], name: str) -> bool:
    return any(_matches(pattern, name) for pattern in patterns)


def _matches(pattern: str, name: str, inner: str = _ANY) -> bool:
    return _compiled(pattern, inner).fullmatch(name) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str, inner: str) -> re.Pattern[str]:
    """Compile a pattern. A star stands for any characters at the front, and for characters `inner`
    elsewhere."""
    parts = re.split(r"\*+", pattern)
    first, *rest = map(re.escape, parts)
    star = inner if first else _ANY
    text = first
    for part in rest[:-1]:
        if star != inner:
            text += f"{star}*{part}"
        else:
            # Atomic groups: without them a match could take very long on a long name.
            text += f"(?>{star}*?{part})"
        star = inner
    for part in rest[-1:]:
        text += f"{star}*{part}"
    return re.compile(text, re.IGNORECASE)
