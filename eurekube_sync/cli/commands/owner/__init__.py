"""`owner adopt`, `rename` and `purge`: who owns the instances, changed by a person; a file per command."""
