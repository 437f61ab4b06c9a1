"""Runs the contract suite and the story on old servers, and keeps what came of it:
docs/compatibility.md."""
