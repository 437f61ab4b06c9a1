"""What nearly every command is given: whose instances, both servers, which syncers, and how a pass is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from eurekube_sync.brake import BrakeLimits
from eurekube_sync.cli.connect import Connection
from eurekube_sync.cli.options.brake import brake_options
from eurekube_sync.cli.options.calls import Calls, call_options
from eurekube_sync.cli.options.declare import group
from eurekube_sync.cli.options.eureka import EurekaAccess, eureka_options, optional_eureka_options
from eurekube_sync.cli.options.kubernetes import KubernetesAccess, kubernetes_options
from eurekube_sync.cli.options.lock import LockChoice, lock_option
from eurekube_sync.cli.options.owner import named_owner, optional_owner_option, owner_option
from eurekube_sync.cli.options.passes import Leases, Passes
from eurekube_sync.cli.options.scope import look_for_drains_option, scope_options
from eurekube_sync.controller.one_pass import PassSettings
from eurekube_sync.desired.drain import Kind
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """One installation, or the part of it that a command needs."""

    owner: str = ""
    """Empty where a command may do without."""
    eureka: EurekaAccess
    kubernetes: KubernetesAccess = field(default_factory=KubernetesAccess)
    scope: Scope = field(default_factory=Scope)
    calls: Calls
    drains: frozenset[Kind] = frozenset()
    """Kinds beside Services whose drain annotations are looked for."""
    lock: LockChoice = "off"
    brake: BrakeLimits = field(default_factory=BrakeLimits)

    def settings(self, **more: Any) -> PassSettings:
        """Of a pass over it, with `more` of its fields."""
        return PassSettings(
            **{"owner": self.owner, "scope": self.scope, "brake": self.brake, "drains": self.drains, **more},
            named=named_owner(self.owner),
        )

    def connection(self, *, dry_run: bool = True, **more: Any) -> Connection:
        """To its servers, with `more` of its fields."""
        return Connection(eureka=self.eureka, kubernetes=self.kubernetes, calls=self.calls, dry_run=dry_run, **more)

    def writing(self, eureka_batch: str, passes: Passes, leases: Leases, **more: Any) -> Connection:
        """To its servers, for passes that renew leases, with `more` of its fields."""
        return self.connection(
            eureka_batch=eureka_batch,
            dry_run=passes.dry_run,
            renewal_slack=passes.renewal_slack,
            lease_duration=leases.duration,
            registry_cache=leases.registry_cache,
            **more,
        )


def installation_options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Declares these options; the command gets an `Installation`, named `installation`."""
    return group("installation", Installation, *options)


_PLACES = (kubernetes_options, scope_options, call_options)
written = (owner_option, eureka_options, *_PLACES)
"""Of a command that has to know whose instances, and where Eureka is."""
looked_at = (optional_owner_option, optional_eureka_options, *_PLACES, lock_option)
"""Of a command that finds the owner, and can do without Eureka."""
look_options = installation_options(*looked_at, look_for_drains_option, brake_options)
"""Of a command that says what a dry pass found."""
