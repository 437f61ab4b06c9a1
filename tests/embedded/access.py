"""Who may do what: bearer tokens, and denials by verb and resource as RBAC words them.

Everything is allowed unless a test or a demonstration says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eurekube_sync.embedded.kubernetes import errors
from eurekube_sync.embedded.kubernetes.resources import Resource

ANONYMOUS = "system:anonymous"


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """One permission that is missing; an empty field stands for every value."""

    resource: str = ""
    """`services`, or with a subresource `eurekasyncers/status`."""
    verb: str = ""
    namespace: str | None = None
    """None: everywhere. A cluster-wide call is refused by it too when its own namespace is
    empty."""


@dataclass(slots=True, kw_only=True)
class Access:
    """The switches of authentication and authorization; may be changed between two calls."""

    tokens: dict[str, str] = field(default_factory=dict)
    """Bearer token to user name. Empty: nobody is asked for a token."""
    denials: set[Denial] = field(default_factory=set)

    def user(self, headers: Mapping[str, str]) -> str:
        """The caller's name; a wrong token is a 401, none at all is the anonymous user."""
        if not self.tokens:
            return "admin"
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if not scheme:
            return ANONYMOUS
        name = self.tokens.get(token.strip()) if scheme.lower() == "bearer" else None
        if name is None:
            raise errors.ApiError(401, "Unauthorized", "Unauthorized")
        return name

    def allows(self, user: str, verb: str, resource: str, namespace: str) -> bool:
        """Whether a call would be let through."""
        if user == ANONYMOUS:
            return False
        return not any(
            denial.resource in ("", resource)
            and denial.verb in ("", verb)
            and (denial.namespace is None or denial.namespace == namespace)
            for denial in self.denials
        )

    def check(
        self, user: str, verb: str, group: str, resource: str, namespace: str, name: str
    ) -> None:
        """Refuse with RBAC's own words."""
        if self.allows(user, verb, resource, namespace):
            return
        where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
        why = f'User "{user}" cannot {verb} resource "{resource}" in API group "{group}" {where}'
        raise errors.forbidden(
            Resource(group=group, plural=resource.partition("/")[0], kind=""), name, why
        )
