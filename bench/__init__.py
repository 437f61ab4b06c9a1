"""Commands that measure; [README.md](README.md) has what they printed."""
