"""Both ways to write to Eureka."""

from tests.unit.controller.conftest import both_ways

__all__ = ["both_ways"]
