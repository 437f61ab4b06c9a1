"""What a Namespace lets its syncers register: names of apps and VIPs, and what they are reached at. Pure.

Who may write syncers and Services in a namespace cannot write its annotations, so an operator decides. Eureka's clients
look up names without regard to case, and so do these rules.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import TypeAlias

from eurekube_sync.desired.claims import Claim, Serving, Wanted
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.wording import one_or_more

ALLOWED_APPS = "eurekube.io/allowed-apps"
"""Annotation of a Namespace: names of apps and VIPs with commas between. `*` stands for any characters."""
ALLOWED_HOSTS = "eurekube.io/allowed-hosts"
"""The same of host names, addresses and networks (`10.1.0.0/16`) that the cluster did not give."""

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_TOLD = 3
"""How many names a sentence has."""
_NO_MACHINE = [
    ipaddress.ip_network(text) for text in ("0.0.0.0/8", "255.255.255.255/32", "::/128", "fd00:ec2::254/128")
]
"""The last has what 169.254.169.254 has, in a network that is private otherwise."""
_ENDS_IN_IPV4 = [ipaddress.ip_network(text) for text in ("::/96", "64:ff9b::/96")]
"""RFC 4291 2.5.5.1 and RFC 6052 2.1."""
_LOCAL_NAME = re.compile(r"local(host|domain)[46]?|ip6-(localhost|loopback)|[0-9]+|0x[0-9a-f]*")
"""The last label of a name of the caller itself, or of a short way to write an address: 127.1, 0x7f000001."""
_NUMERIC = re.compile(r"[0-9.*]+|[0-9a-f:.*]*:[0-9a-f:.*]*", re.IGNORECASE)
"""A pattern of addresses."""
_ANY, _WITHIN_LABEL = ".", "[^.]"


def refusal(claim: Serving, annotations: Mapping[str, str]) -> str | None:
    """Why a syncer may not be served in a Namespace with these annotations, in a sentence; None when it may."""
    apps, hosts = (_parts(annotations.get(name, "")) for name in (ALLOWED_APPS, ALLOWED_HOSTS))
    reached = dict.fromkeys(host for one in claim.wanted.values() for host in _reached_at(one))
    for host in reached:
        if _of_one_machine(host):
            return f"{host} leads each caller to a different machine, so it is never registered"
    names = [f"{kind} {name}" for kind, name in _names(claim) if not any(_matches(one, name) for one in apps)]
    strange = [f"host {host}" for host in reached if not any(_covers(one, host) for one in hosts)]
    asked = [(found, key) for found, key in ((names, ALLOWED_APPS), (strange, ALLOWED_HOSTS)) if found]
    return "; ".join(_not_granted(found, key, claim.syncer.namespace, annotations) for found, key in asked) or None


def _not_granted(found: Sequence[str], annotation: str, namespace: str, annotations: Mapping[str, str]) -> str:
    told = ", ".join(found[:_TOLD]) + (f" and {len(found) - _TOLD} more" if len(found) > _TOLD else "")
    are, them = one_or_more(len(found), "is", "are"), one_or_more(len(found), "it", "them")
    sentence = f"{told} {are} not granted to namespace {namespace}: the operator may add {them} to the annotation "
    likely = next(iter(get_close_matches(annotation, annotations, cutoff=0.9)), annotation)
    hint = f" (it has {likely}, which is not read)" if likely not in (ALLOWED_APPS, ALLOWED_HOSTS) else ""
    return f"{sentence}{annotation} of the Namespace{hint}"


def no_longer_granted(claim: Claim | None, registered: ObservedInstance) -> bool:
    """Whether what is registered has a name or host that its syncer may not register, so that nothing may keep it as it
    is. What the syncer wants now is granted."""
    if not isinstance(claim, Serving) or claim.granted_by is None:
        return False
    apps, hosts = (_parts(claim.granted_by.get(name, "")) for name in (ALLOWED_APPS, ALLOWED_HOSTS))
    there, wanted = registered.instance, claim.wanted_at(registered.key)
    own = {there.ip_addr, *((wanted.instance.host_name,) if wanted else ())}
    names = [name for vip in (there.vip_address, there.secure_vip_address) for name in _parts(vip)]
    return not all(any(_matches(pattern, name) for pattern in apps) for name in names) or not (
        there.host_name.strip("[]") in own or any(_covers(pattern, there.host_name) for pattern in hosts)
    )


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part for part in (one.strip() for one in text.split(",")) if part)


def _names(claim: Serving) -> Sequence[tuple[str, str]]:
    """All under which callers would find an instance of it, each once with what it is."""
    found = [("app", name) for name in claim.apps]
    instances = [one.instance for one in claim.wanted.values()]
    plain = dict.fromkeys([claim.vip_address, *(one.vip_address for one in instances)])
    secure = dict.fromkeys(one.secure_vip_address for one in instances)
    found += [("VIP address", name) for vip in plain for name in _parts(vip)]
    found += [("secure VIP address", name) for vip in secure for name in _parts(vip)]
    first: dict[str, tuple[str, str]] = {}
    for kind, name in found:
        first.setdefault(name.lower(), (kind, name))
    return list(first.values())


def _reached_at(one: Wanted) -> Iterator[str]:
    """What is to be granted: a name that somebody chose, and an address that the cluster did not give. What means one
    machine alone is none of a pod, whatever a slice says."""
    address, name = one.instance.ip_addr, one.instance.host_name
    if not one.allotted or _of_one_machine(address):
        yield address
    if name.strip("[]") != address:
        yield name


def _of_one_machine(host: str) -> bool:
    """Whether it leads each caller to another machine, such as itself, or to none: whatever way it is written."""
    address = _address(host)
    if address is None:
        return _LOCAL_NAME.fullmatch(host.lower().rstrip(".").rpartition(".")[2]) is not None
    leads_to: list[_Address | None] = [address]
    if isinstance(address, ipaddress.IPv6Address):  # which may lead to an IPv4 address
        last = (
            ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if any(address in one for one in _ENDS_IN_IPV4) else None
        )
        leads_to += [address.ipv4_mapped, address.sixtofour, last]
    return any(
        one.is_link_local or one.is_loopback or one.is_multicast or any(one in network for network in _NO_MACHINE)
        for one in leads_to
        if one is not None
    )


def _address(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _covers(pattern: str, host: str) -> bool:
    """A name ends in whose it is, so a star within a name crosses no dot. Numbers grant addresses alone."""
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
    """A star is any number of characters `inner`; of any characters at the front."""
    first, *rest = (re.escape(part) for part in re.split(r"\*+", pattern))
    star = _ANY if not first else inner
    text = first
    for part in rest[:-1]:
        # Once found, a part is not looked for again: that would take a long time on a long name.
        text += f"{star}*{part}" if star != inner else f"(?>{star}*?{part})"
        star = inner
    return re.compile(text + "".join(f"{star}*{part}" for part in rest[-1:]), re.IGNORECASE)
