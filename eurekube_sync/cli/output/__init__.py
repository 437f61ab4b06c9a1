"""The report of a pass, for a person or a machine. `table` is the one place that imports rich."""
