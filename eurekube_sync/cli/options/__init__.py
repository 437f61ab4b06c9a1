"""Groups of options that several commands share. A command gets each group as one frozen value,
already checked."""
