"""The `owner` commands and `orphans`. An `owner` command lists Eureka, asks the cluster, finds the moves, watches
whether somebody renews the instances, lists again, and then adds, confirms and cancels. A dry run ends before the
watch. A refusal is raised before anything is changed."""
