"""Rights as data: what roles grant, what a call needs, and a ServiceAccount that has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from eurekube_sync.embedded.http import Request
from tests.deployment.rendered import Json, of_kind
from tests.integration.hand_made import make_namespace
from tests.servers.world import KubernetesWorld

SERVICE_ACCOUNT = "system:serviceaccount:eurekube-sync:eurekube-sync"
"""The user that the shipped CronJob is."""
PATHS = {
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}
_CALL = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/v1(?:beta1)?(?:/namespaces/[^/]+)?/(?P<resource>[^/]+)(?P<name>/[^/]+)?(?P<part>/[^/]+)?"
)
_VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}


class Right(NamedTuple):
    """One verb on one resource, which may be a subresource."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


def rights_of(found: Sequence[Json]) -> set[Right]:
    """All that the roles among these documents grant."""
    return {
        Right(group, resource, verb)
        for role in of_kind(found, "Role", "ClusterRole")
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def right_for(call: Request) -> Right:
    """The right that a call needs."""
    found = _CALL.fullmatch(call.path)
    assert found is not None, call.path
    verb = _VERBS.get(call.method) or ("get" if found["name"] else "list")
    return Right(found["group"] or "", found["resource"] + (found["part"] or ""), verb)


def lacking(found: Sequence[Json], right: Right) -> list[Json]:
    """The documents, but one right is not granted."""
    return [_lacking(document, right) if "rules" in document else document for document in found]


def _lacking(role: Json, right: Right) -> Json:
    rules: list[Json] = []
    for rule in role["rules"]:
        if right.group not in rule["apiGroups"] or right.resource not in rule["resources"]:
            rules.append(rule)
            continue
        others = [resource for resource in rule["resources"] if resource != right.resource]
        verbs = [verb for verb in rule["verbs"] if verb != right.verb]
        if others:
            rules.append({**rule, "resources": others})
        if verbs:
            rules.append({**rule, "resources": [right.resource], "verbs": verbs})
    return {**role, "rules": rules}


@contextmanager
def granted(world: KubernetesWorld, found: Sequence[Json]) -> Iterator[str]:
    """The ServiceAccount of these documents with the rights in them; gives its own token."""
    own = of_kind(found, *PATHS)
    account = of_kind(own, "ServiceAccount")[0]["metadata"]
    user = f"system:serviceaccount:{account['namespace']}:{account['name']}"
    make_namespace(world, account["namespace"])
    paths = [
        PATHS[document["kind"]].format(document["metadata"].get("namespace")) for document in own
    ]
    for path, document in zip(paths, own, strict=True):
        world.request("POST", path, document)
    world.wait_for_rules(user, own)
    try:
        yield world.mint_token(account["namespace"], account["name"])
    finally:
        for path, document in zip(paths, own, strict=True):
            world.request("DELETE", f"{path}/{document['metadata']['name']}")
        world.wait_for_rules(user, own, granted=False)
