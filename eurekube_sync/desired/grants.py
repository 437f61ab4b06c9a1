"""What a Namespace lets its syncers register: names of apps and VIPs, and what they are reached at. Pure.

Who may write syncers and Services in a namespace cannot write its annotations, so an operator decides. Eureka's clients
look up names without regard to case, and so do these rules.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from eurekube_sync.desired.claims import Serving
from eurekube_sync.desired.verdicts import Wanted

ALLOWED_APPS = "eurekube.io/allowed-apps"
"""Annotation of a Namespace: names of apps and VIPs with commas between. `*` stands for any characters."""
ALLOWED_HOSTS = "eurekube.io/allowed-hosts"
"""The same of host names, addresses and networks (`10.1.0.0/16`) that the cluster did not give."""


def refusal(claim: Serving, annotations: Mapping[str, str]) -> str | None:
    """Why a syncer may not be served in a Namespace with these annotations, in a sentence; None when it may."""
    apps, hosts = (_parts(annotations.get(name, "")) for name in (ALLOWED_APPS, ALLOWED_HOSTS))
    namespace = claim.syncer.namespace
    for kind, name in _names(claim):
        if not any(_matches(pattern, name) for pattern in apps):
            return f"{kind} {name} is not granted to namespace {namespace}: {_asks(ALLOWED_APPS)}"
    for one in claim.wanted.values():
        for host in _reached_at(one):
            if _of_one_machine(host):
                return f"{host} is an address that means another machine to each caller, so it is never registered"
            if not any(_covers(pattern, host) for pattern in hosts):
                return f"{host} is not an address of a pod or Service, and not granted: {_asks(ALLOWED_HOSTS)}"
    return None


def _asks(annotation: str) -> str:
    return f"the operator may add it to the annotation {annotation} of the Namespace"


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part for part in (one.strip() for one in text.split(",")) if part)


def _names(claim: Serving) -> Iterator[tuple[str, str]]:
    """All under which callers would find an instance of it."""
    yield from (("app", name) for name in claim.apps)
    vips = [claim.vip_address]
    for one in claim.wanted.values():
        vips += [one.instance.vip_address, one.instance.secure_vip_address]
    for name in dict.fromkeys(name for vip in vips for name in _parts(vip)):
        yield "VIP address", name


def _reached_at(one: Wanted) -> Iterator[str]:
    """What is to be granted: a name that somebody chose, and an address that the cluster did not give. What means one
    machine alone is none of a pod, whatever a slice says."""
    address, name = one.instance.ip_addr, one.instance.host_name
    if not one.allotted or _of_one_machine(address):
        yield address
    if name.strip("[]") != address:
        yield name


def _of_one_machine(host: str) -> bool:
    """Whether it is link-local as 169.254.169.254 is, a loopback, or no address of a machine at all."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host.lower().rstrip(".").split(".")[-1] == "localhost"
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_link_local or address.is_loopback or address.is_unspecified or address.is_multicast


def _covers(pattern: str, host: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(pattern, strict=False)
    except ValueError:
        return _matches(pattern, host)


def _matches(pattern: str, name: str) -> bool:
    return _compiled(pattern).fullmatch(name) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    # Several stars beside each other would take a long time on a long name.
    return re.compile(".*".join(re.escape(part) for part in re.split(r"\*+", pattern)), re.IGNORECASE)
