"""Options that several commands share, a file per group. A command gets each group as one frozen value, parsed once;
what its options may be each alone and not together is refused there, with one sentence."""
