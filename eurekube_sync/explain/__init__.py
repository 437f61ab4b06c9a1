"""Explains why something is registered, or is not, from the decisions of a dry pass. Pure."""
