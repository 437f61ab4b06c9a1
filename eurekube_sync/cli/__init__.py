"""The command line: options in, exit code out. Only this folder imports click."""
