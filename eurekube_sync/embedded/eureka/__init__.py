"""A small Eureka registry for `demo`, fast tests and simulation; `tests/contract` holds it to the real server."""

from eurekube_sync.embedded.eureka.server import EmbeddedEureka

__all__ = ["EmbeddedEureka"]
