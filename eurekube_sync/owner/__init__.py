"""What the `owner` commands and `orphans` do: list Eureka, ask the cluster, find the moves, watch who renews, list
again; then add, confirm, cancel. A dry run ends before the watch. A refusal is raised before anything was changed."""
