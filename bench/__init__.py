"""What the program costs; [docs/performance.md](../docs/performance.md) has what a run found."""
