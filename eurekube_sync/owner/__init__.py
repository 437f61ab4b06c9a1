"""What the `owner` commands do: a file per command, which reads from top to bottom.

    list Eureka -> (ask the cluster) -> moves -> watch whether somebody renews -> list again -> add, confirm, cancel

Each ends in an `OwnerReport`, or raises. A refusal is an error, raised before anything was changed. A dry run ends
before the watch.
"""
