"""One pass, and pass after pass. Begin with `reconcile`."""
