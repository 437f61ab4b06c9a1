"""Eureka over HTTP: `client` calls one server, `peers` one of several, and `batches` all of them at
once."""
