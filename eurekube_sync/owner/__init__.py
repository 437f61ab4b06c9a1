"""What the `owner` commands and `orphans` do: list Eureka -> (ask the cluster) -> moves -> watch whether somebody renews
-> list again -> add, confirm, cancel. A dry run ends before the watch. A refusal is raised before anything was changed.
"""
