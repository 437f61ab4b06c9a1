"""Seeds whose stories are known to break a promise, and why: bugs that are to be mended, or promises read too strictly.

They are played and told like all others; only what is not named here makes a run fail.
"""

from __future__ import annotations

KNOWN: dict[int, str] = {
    1779: "a finalizer stays after the last trouble though nothing of its syncer is left",
    802677: "a finalizer goes while one of two peers that did not answer still holds an instance",
    804426: "a limit of 0 is meant, and the promise takes it for a withdrawal",
}
"""By seed."""
