"""When leases were renewed, and when they run out."""

from __future__ import annotations

from eurekube_sync.embedded.eureka.instance import Listed


def duration(listed: Listed) -> float:
    """Seconds, as it was registered."""
    return listed[0].lease.duration if listed[0].lease else 90.0


def renewed(listed: Listed) -> float:
    """Unix seconds of the last renewal, or of the registration."""
    times = listed[1]
    renewed = times.renewed if times.renewed == times.registered else times.renewed - duration(listed) * 1000
    return renewed / 1000


def expiry(listed: Listed) -> float:
    """Unix seconds."""
    return listed[1].renewed / 1000 + duration(listed)
