"""Where the program's address of a Kubernetes API leads: to its own cluster, or for a while to
another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .world import World


class Address:
    """The address of the cluster that the program was started for."""

    def __init__(self) -> None:
        self.elsewhere: World | None = None
        """The cluster that it leads to now or after some more calls; None for the own one."""
        self._skip = self._calls = 0

    def lead(self, other: World, *, skip: int, calls: int) -> None:
        """Leads to another cluster, after `skip` more calls, for a number of `calls`."""
        self.elsewhere, self._skip, self._calls = other, skip, calls

    def lead_home(self) -> None:
        """Leads to the own cluster again."""
        self.elsewhere = None

    def answers(self) -> World | None:
        """Gives the other cluster that answers the current call; None for the own one."""
        found = self.elsewhere
        if found is None or self._skip:
            self._skip = max(0, self._skip - 1)
            return None
        self._calls -= 1
        if self._calls <= 0:
            self.lead_home()
        return found
