"""Whether our renewals come often enough for Eureka's self-preservation.

A server evicts only while the renewals of the last minute are more than 85 % of those it expects, two a minute for
each instance (`AbstractInstanceRegistry.updateRenewsPerMinThreshold`, `isLeaseExpirationEnabled`). Who renews less
often than every 30 s blocks evictions for everybody.
"""

from __future__ import annotations

from eurekube_sync.model.ownership import OWNER
from eurekube_sync.model.values import dataclass
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
        return self.others * 60 / EXPECTED_INTERVAL + self.ours * 60 / self.interval

    @property
    def blocks_eviction(self) -> bool:
        """Whether our interval alone keeps the server in self-preservation: nobody is ever evicted."""
        return self.interval > EXPECTED_INTERVAL and self.ours > 0 and self.renewals <= self.threshold

    @property
    def warning(self) -> str:
        """What a person should do about it."""
        return (
            f"self-preservation: with passes every {self.interval:g}s Eureka gets {counted(self.renewals, 'renewal')} "
            f"a minute, not above its threshold of {self.threshold}. So it evicts nobody. Use --interval 30s or less."
        )


def headroom(observed: Observed, interval: float) -> Headroom:
    """The headroom of a complete list; ours is all that bears our owner's name, of whichever scope."""
    owner = observed.ownership.owner
    elsewhere = sum(instance.metadata.get(OWNER) == owner for instance in observed.others.values())
    return Headroom(ours=len(observed.ours) + elsewhere, others=len(observed.others) - elsewhere, interval=interval)


def interval_of(pass_interval: float, *, slack: float) -> float:
    """Seconds between two renewals of a lease, when passes come every `pass_interval` and each renews what is due."""
    wait = EXPECTED_INTERVAL - slack
    return pass_interval * max(1, -(-wait // pass_interval))
