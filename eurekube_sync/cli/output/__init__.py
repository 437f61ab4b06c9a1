"""What a pass tells a person or a machine. `table` is the one place that imports rich."""
