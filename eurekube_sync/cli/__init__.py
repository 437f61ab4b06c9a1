"""The command line: options in, exit code out. The one place that imports click."""
