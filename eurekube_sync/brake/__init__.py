"""The brake: removals that are too many wait, are renewed, and are reported.

It counts removals, what callers would lose: a cancel of an UP instance, or UP to DOWN (a lost node controller turns
all pods unready while they serve). `limits` has the numbers, `braking` the order of the brakes, `weigh` what is counted
and the tests, `confirm` what waits for a second pass, `holds` the values that a pass tells.
"""

from eurekube_sync.brake.braking import Braked, apply_brake, to_look_up
from eurekube_sync.brake.holds import (
    Brake,
    BrakeLimits,
    Held,
    Hold,
    HoldReason,
    condition_message,
    held_of,
    hold_back,
)

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
