"""The brake: removals that are too many wait, are renewed, and are reported.

It counts removals, what callers would lose: a cancel of an UP instance, or UP to DOWN (a lost node controller turns
all pods unready while they serve). `limits` has the numbers, `braking` the order of the brakes, `weigh` what is counted
and the tests, `confirm` what waits for a second pass, `holds` the values that a pass tells.
"""

from eurekube_sync.brake.braking import Braked, apply_brake
from eurekube_sync.brake.holds import (
    Held,
    Hold,
    HoldReason,
    condition_message,
    held_of,
    hold_back,
)
from eurekube_sync.brake.limits import Brake, BrakeLimits
from eurekube_sync.brake.weigh import to_look_up

__all__ = [
    "Brake",
    "BrakeLimits",
    "Braked",
    "Held",
    "Hold",
    "HoldReason",
    "apply_brake",
    "condition_message",
    "held_of",
    "hold_back",
    "to_look_up",
]
