"""Eureka over HTTP, the one package that imports `requests`: `client` calls one server, `peers` one of several, and
`batches` all of them at once."""
