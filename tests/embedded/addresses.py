"""Which addresses the API takes for endpoints and external IPs, in the words of a real
kube-apiserver 1.36."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, TypeAlias

from eurekube_sync.embedded.kubernetes import errors

Fault: TypeAlias = tuple[str, str, str]
"""Field, reason and text."""

_NOT_AN_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_LEADING_ZERO = re.compile(r"(?<![\d])0+(?=\d)")
_LINK_LOCAL_MULTICAST = (ip_network("224.0.0.0/24"), ip_network("ff02::/16"))
_FAMILIES = {"IPv4": IPv4Address, "IPv6": IPv6Address}
_TYPES = ("FQDN", *_FAMILIES)


def check_slice(endpoint_slice: Mapping[str, Any], old: Mapping[str, Any] | None) -> None:
    """Refuse an EndpointSlice with an address that no endpoint may have, or that is of another
    family."""
    if faults := list(_slice_faults(endpoint_slice, old)):
        raise errors.invalid(
            "EndpointSlice", "discovery.k8s.io", endpoint_slice["metadata"]["name"], faults
        )


def check_endpoints(endpoints: Mapping[str, Any]) -> None:
    """The same of Endpoints."""
    faults = [
        (
            f"subsets[{number}].{kind}[{place}].ip",
            "FieldValueInvalid",
            f'Invalid value: "{entry["ip"]}": {text}',
        )
        for number, subset in enumerate(endpoints.get("subsets") or ())
        for kind in ("addresses", "notReadyAddresses")
        for place, entry in enumerate(subset.get(kind) or ())
        for text in _of_endpoints(entry["ip"])
    ]
    if faults:
        raise errors.invalid("Endpoints", "", endpoints["metadata"]["name"], faults)


def check_external(service: Mapping[str, Any]) -> None:
    """The same of a Service's external IPs."""
    faults = [
        (f"spec.externalIPs[{place}]", "FieldValueInvalid", f'Invalid value: "{address}": {text}')
        for place, address in enumerate(service["spec"].get("externalIPs") or ())
        if (text := fault_of(address))
    ]
    if faults:
        raise errors.invalid("Service", "", service["metadata"]["name"], faults)


def _slice_faults(
    endpoint_slice: Mapping[str, Any], old: Mapping[str, Any] | None
) -> Iterator[Fault]:
    kind = endpoint_slice.get("addressType") or ""
    if not kind:
        yield "addressType", "FieldValueRequired", "Required value"
    elif kind not in _TYPES:
        listed = ", ".join(f'"{name}"' for name in _TYPES)
        yield (
            "addressType",
            "FieldValueNotSupported",
            f'Unsupported value: "{kind}": supported values: {listed}',
        )
    elif old is not None and old.get("addressType") != kind:
        yield "addressType", "FieldValueInvalid", f'Invalid value: "{kind}": field is immutable'
    for number, endpoint in enumerate(endpoint_slice.get("endpoints") or ()):
        field = f"endpoints[{number}].addresses"
        addresses: Sequence[str] = endpoint.get("addresses") or ()
        if not addresses:
            yield field, "FieldValueRequired", "Required value: must contain at least 1 address"
        for place, address in enumerate(addresses if kind in _FAMILIES else ()):
            if not isinstance(_read(address), _FAMILIES[kind] | None):
                yield (
                    field,
                    "FieldValueInvalid",
                    f'Invalid value: "{address}": must be an {kind} address',
                )
            if text := fault_of(address) or _uncanonical(address):
                yield (
                    f"{field}[{place}]",
                    "FieldValueInvalid",
                    f'Invalid value: "{address}": {text}',
                )


def _of_endpoints(address: str) -> tuple[str, ...]:
    """The real server says it twice of what is no address at all."""
    text = fault_of(address)
    return (text, "must be a valid IP address") if text == _NOT_AN_IP else (text,) if text else ()


def _read(address: str) -> IPv4Address | IPv6Address | None:
    """None for what is no address, or one that is written in a way that is refused for itself."""
    try:
        found = ip_address(address)
    except ValueError:
        return None
    odd = isinstance(found, IPv6Address) and (found.scope_id or found.ipv4_mapped)
    return None if odd else found


@lru_cache(maxsize=4096)
def fault_of(address: str) -> str:
    """Why an address is refused, whatever its family; empty when it is not."""
    found = _read(address)
    if found is None:
        return _misspelt(address)
    if found.is_loopback:
        return "may not be in the loopback range (127.0.0.0/8, ::1/128)"
    if found.is_unspecified:
        return f"may not be unspecified ({found})"
    if found.is_link_local:
        return "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
    if any(found in network for network in _LINK_LOCAL_MULTICAST):
        return "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
    return ""


def _uncanonical(address: str) -> str:
    """Only slices refuse it: the other kinds are older than that rule."""
    found = _read(address)
    return (
        f'must be in canonical form ("{found}")'
        if found is not None and str(found) != address
        else ""
    )


def _misspelt(address: str) -> str:
    try:
        mapped = ip_address(address)
    except ValueError:
        plain = _read(_LEADING_ZERO.sub("", address))
        return "must not have leading 0s" if isinstance(plain, IPv4Address) else _NOT_AN_IP
    return "must not be an IPv4-mapped IPv6 address" if "%" not in str(mapped) else _NOT_AN_IP
