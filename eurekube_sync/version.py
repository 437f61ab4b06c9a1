"""The version, in one place: the wheel, `--version` and the User-Agent read it here."""

__version__ = "0.1.0"
