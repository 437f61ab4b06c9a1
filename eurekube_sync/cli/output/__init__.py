"""The reports of passes and commands, and the standard streams."""
