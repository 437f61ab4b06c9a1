"""The brake: too many removals wait, are renewed, and are reported. It counts what callers would
lose: a cancel of an UP instance, or UP to DOWN (a failed node controller turns all pods unready
while they serve). See `braking`."""
