"""Values, interfaces and errors that every folder may import."""
