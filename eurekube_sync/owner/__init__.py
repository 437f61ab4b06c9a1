"""The commands `purge` and `orphans`."""
