"""What our renewals do to Eureka's self-preservation: how many renewals it counts on, how many it gets, our part in it.

A server evicts only while the renewals of the last minute are more than 85 % of those it expects, two a minute for
each instance (`AbstractInstanceRegistry.updateRenewsPerMinThreshold`, `isLeaseExpirationEnabled`). Who renews less
often than every 30 s blocks evictions for everybody; who renews more often hides that others are gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eurekube_sync.model.ownership import OWNER
from eurekube_sync.model.wording import counted
from eurekube_sync.observe.eureka import Observed

EXPECTED_INTERVAL = 30.0
"""Seconds: `expectedClientRenewalIntervalSeconds`."""
THRESHOLD = 0.85
"""`renewalPercentThreshold`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """A registry of `ours` and `others` while all live, and ours are renewed every `interval` seconds.

    A server that is alone counts one client more than it holds (`openForTraffic`); that is left out.
    """

    ours: int
    others: int
    interval: float

    @property
    def expected(self) -> float:
        """Renewals a minute that the server counts on."""
        return (self.ours + self.others) * 60 / EXPECTED_INTERVAL

    @property
    def threshold(self) -> int:
        """Renewals a minute at or below which nobody is evicted."""
        return int(self.expected * THRESHOLD)

    @property
    def renewals(self) -> float:
        """Renewals a minute that it gets: two of each of the others, and ours."""
        return self._of_others + self.ours * 60 / self.interval

    @property
    def share(self) -> float:
        """Our part of the registry, 0 to 1."""
        return self.ours / (self.ours + self.others) if self.ours else 0.0

    @property
    def rate(self) -> float:
        """Our renewals against those that the server expects of us: 1 is neutral."""
        return EXPECTED_INTERVAL / self.interval

    @property
    def blocks_eviction(self) -> bool:
        """Whether our interval alone keeps the server in self-preservation: nobody is ever evicted."""
        return self.rate < 1 and self.ours > 0 and self.renewals <= self.threshold

    @property
    def masks_failures(self) -> bool:
        """Whether we renew so often that self-preservation would set in later than it should when others fail."""
        return self.rate > 1 and self.ours > 0 and self.others > 0

    @property
    def stop_protects(self) -> bool:
        """Whether the server would go into self-preservation if we stopped: we hold about 15 % or more."""
        return self.ours > 0 and self._of_others <= self.threshold

    @property
    def at_risk(self) -> bool:
        """Whether our interval harms others."""
        return self.blocks_eviction or self.masks_failures

    @property
    def _of_others(self) -> float:
        return self.others * 60 / EXPECTED_INTERVAL


def headroom(observed: Observed, interval: float) -> Headroom:
    """The headroom of a complete list; ours is all that bears our owner's name, of whichever scope."""
    owner = observed.ownership.owner
    elsewhere = sum(instance.metadata.get(OWNER) == owner for instance in observed.others.values())
    return Headroom(ours=len(observed.ours) + elsewhere, others=len(observed.others) - elsewhere, interval=interval)


def interval_of(*, renewal_interval: float, slack: float, pass_interval: float) -> float:
    """Seconds between two renewals of a lease, when passes come every `pass_interval` and each renews what is due."""
    wait = renewal_interval - slack
    return pass_interval * max(1, -(-wait // pass_interval))


def sentences(found: Headroom) -> Iterator[str]:
    """What a person should know of it."""
    if found.blocks_eviction:
        yield (
            f"self-preservation: renewed every {found.interval:g}s, our {found.share:.0%} of the registry keep Eureka "
            f"at {counted(found.renewals, 'renewal')} a minute, not above its threshold of {found.threshold}: nobody "
            f"is ever evicted. Renew every {EXPECTED_INTERVAL:g}s."
        )
    if found.masks_failures:
        yield (
            f"self-preservation: renewed every {found.interval:g}s, our instances send {found.rate:g} times the "
            f"renewals that Eureka expects of them, which hides failures of others. Renew every "
            f"{EXPECTED_INTERVAL:g}s."
        )
    if found.stop_protects:
        all_of_them = counted(found.ours + found.others, "instance")
        yield (
            f"self-preservation: we hold {found.share:.0%} of Eureka's {all_of_them}, so if we "
            "stop, the server evicts nobody until we are back"
        )
