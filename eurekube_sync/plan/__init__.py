"""The difference between what should be registered and what is registered, as one sorted value.
Begin with `make`."""
