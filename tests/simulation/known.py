"""Seeds whose stories are known to break a promise, and why: bugs that are to be mended, or promises read too strictly.

They are played and told like all others; only what is not named here makes a run fail.
"""

from __future__ import annotations

KNOWN: dict[int, str] = {}
"""By seed."""
