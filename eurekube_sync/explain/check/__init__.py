"""Whether an installation can work, and what would fail: one finding for each thing that was looked at."""
