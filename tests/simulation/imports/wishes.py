"""What people ask for: imports, and Services and slices beside them or in their way."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.simulation.events import Event
from tests.simulation.releases import APPROVE
from tests.simulation.world import GRANTED_IMPORTS, definition

from .oracle import IMPORTS, controller_of, is_of_an_import, ref_of

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

_GROUP = "apis/eurekube.io/v1/eurekaimports"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CRD = f"{_CRDS}/eurekaimports.eurekube.io"
_PLAN_ID = re.compile(r"--approve ([0-9a-f]{12})")
NOBODY = "192.0.2.66"
"""An address outside of all networks, which a person writes."""


def import_path(namespace: str, name: str) -> str:
    return f"/apis/eurekube.io/v1/namespaces/{namespace}/eurekaimports/{name}".rstrip("/")


def _manifest(
    namespace: str, name: str, spec: Mapping[str, Any], labels: Mapping[str, str]
) -> Mapping[str, Any]:
    return {
        "apiVersion": "eurekube.io/v1",
        "kind": "EurekaImport",
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "spec": spec,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportApplied(Event):
    """A person creates an import, or changes its spec."""

    namespace: str
    name: str
    app: str = ""
    vip: str = ""
    service: str = ""
    adopt: bool = False
    port: int = 0
    zones: tuple[str, ...] = ()
    suspend: bool = False
    team: str = "one"

    def happen(self, stage: Stage) -> str:
        service: dict[str, Any] = {}
        if self.service:
            service["name"] = self.service
        if self.adopt:
            service["adopt"] = True
        if self.port:
            service["port"] = self.port
        spec: dict[str, Any] = {
            "app": self.app or None,
            "vipAddress": self.vip or None,
            "service": service or None,
            "select": {"zones": list(self.zones)} if self.zones else None,
            "suspend": self.suspend or None,
        }
        manifest = _manifest(self.namespace, self.name, spec, {"team": self.team})
        done = stage.world.apply(_GROUP, manifest)
        asks = {key: value for key, value in spec.items() if value is not None}
        return f"import {self.namespace}/{self.name} {asks} is {done}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportDeleted(Event):
    """A person deletes an import."""

    namespace: str
    name: str

    def happen(self, stage: Stage) -> str:
        there = stage.world.delete(import_path(self.namespace, self.name))
        return f"a person deletes import {self.namespace}/{self.name}" if there else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportAbandoned(Event):
    """A person annotates an import, so that its deletion waits for nothing."""

    namespace: str
    name: str

    def happen(self, stage: Stage) -> str:
        path = import_path(self.namespace, self.name)
        there = stage.world.annotate(path, {"eurekube.io/abandon": "true"})
        return f"a person abandons import {self.namespace}/{self.name}" if there else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointsReleased(Event):
    """A person releases the removals of all imports by annotations, or those of the plan id that a
    condition names."""

    by_plan: bool = False

    def happen(self, stage: Stage) -> str:
        imports = sorted(stage.judge.imports.oracle.imports.values(), key=lambda i: i.ref)
        if self.by_plan:
            said = [import_.messages.get("RemovalHeld", "") for import_ in imports]
            ids = [match[1] for message in said if (match := _PLAN_ID.search(message))]
            return stage.run_approving(ids[0]) if ids else ""
        until = datetime.fromtimestamp(int(stage.clock.now() + 900), UTC)
        told = until.strftime("%Y-%m-%dT%H:%M:%SZ")
        for import_ in imports:
            stage.world.annotate(import_path(*import_.ref), {APPROVE: told})
        return f"a person releases the removals of {len(imports)} imports" if imports else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantChanges(Event):
    """A person takes the grants of imports away from a namespace, or gives them back."""

    namespace: str
    granted: bool

    def happen(self, stage: Stage) -> str:
        if not stage.story.installation.granted:
            return ""
        value = "*" if self.granted else None
        path = f"/api/v1/namespaces/{self.namespace}"
        there = stage.world.annotate(path, {GRANTED_IMPORTS: value})
        return f"imports of {self.namespace} are {value or 'not'} granted" if there else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignService(Event):
    """A person makes a Service without a selector, and a slice of its endpoints by hand; or deletes
    both."""

    namespace: str
    name: str
    address: str = NOBODY
    gone: bool = False

    def happen(self, stage: Stage) -> str:
        world = stage.world
        services = f"/api/v1/namespaces/{self.namespace}/services"
        slices = f"/apis/discovery.k8s.io/v1/namespaces/{self.namespace}/endpointslices"
        name = f"{self.name}-by-hand"
        if self.gone:
            there = self._is_foreign(stage) and world.delete(f"{services}/{self.name}")
            world.delete(f"{slices}/{name}")
            return f"Service {self.namespace}/{self.name} of somebody else is gone" if there else ""
        ports = [{"name": "http", "port": 80}]
        metadata = {"namespace": self.namespace, "name": self.name}
        body = {"metadata": metadata, "spec": {"ports": ports}}
        status, _ = world.kubernetes.call("POST", services, body)
        if status >= 300:
            return ""
        piece = {
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": self.name}},
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080}],
            "endpoints": [{"addresses": [self.address]}],
        }
        world.kubernetes.call("POST", slices, piece)
        made = f"Service {self.namespace}/{self.name} and a slice of {self.address}"
        return f"somebody else makes {made}"

    def _is_foreign(self, stage: Stage) -> bool:
        service = stage.judge.imports.oracle.services.get((self.namespace, self.name))
        return service is not None and controller_of(service)[0] == ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OurServiceChanges(Event):
    """A person deletes the Service of an import, writes other ports, or gives it the label by which
    a syncer selects Services."""

    which: int
    how: str
    """`deleted`, `ports` or `label`."""
    app: str = "rating"

    def happen(self, stage: Stage) -> str:
        services = stage.judge.imports.oracle.services.values()
        ours = sorted(ref_of(s) for s in services if controller_of(s)[0] == "EurekaImport")
        if not ours:
            return ""
        namespace, name = ours[self.which % len(ours)]
        path = f"/api/v1/namespaces/{namespace}/services/{name}"
        if self.how == "deleted":
            there = stage.world.delete(path)
        else:
            ports = {"spec": {"ports": [{"name": "web", "port": 8081}]}}
            label = {"metadata": {"labels": {"app": self.app}}}
            body = ports if self.how == "ports" else label
            there = stage.world.kubernetes.call("PATCH", path, body)[0] < 300
        return f"a person changes Service {namespace}/{name} ({self.how})" if there else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OurSliceChanges(Event):
    """A person deletes or edits a slice of an import."""

    which: int
    how: str
    """`deleted`, `added`, `emptied`, `service`, `port` or `manager`."""

    def happen(self, stage: Stage) -> str:
        slices = stage.judge.imports.oracle.slices.values()
        ours = sorted(ref_of(piece) for piece in slices if self._may_change(stage, piece))
        if not ours:
            return ""
        namespace, name = ours[self.which % len(ours)]
        path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices/{name}"
        if self.how == "deleted":
            there = stage.world.delete(path)
        else:
            piece = stage.judge.imports.oracle.slices[namespace, name]
            body = self._edit(piece)
            there = stage.world.kubernetes.call("PATCH", path, body)[0] < 300
        return f"a person changes slice {namespace}/{name} ({self.how})" if there else ""

    def _may_change(self, stage: Stage, piece: Mapping[str, Any]) -> bool:
        """Whether the edit is one of a slice that stays an import's, or of one beside no pods: a
        person's own slice of a Service with pods is registered by their syncer."""
        if not is_of_an_import(piece):
            return False
        service = piece["metadata"]["labels"]["kubernetes.io/service-name"]
        made = stage.judge.imports.oracle.services.get((ref_of(piece)[0], service))
        by_import = made is not None and controller_of(made)[0] == "EurekaImport"
        return by_import or self.how != "manager"

    def _edit(self, piece: Mapping[str, Any]) -> Mapping[str, Any]:
        endpoints = list(piece.get("endpoints") or ())
        match self.how:
            case "added":
                return {"endpoints": [*endpoints, {"addresses": [NOBODY]}]}
            case "emptied":
                return {"endpoints": endpoints[1:]}
            case "service":
                return {"metadata": {"labels": {"kubernetes.io/service-name": "theirs"}}}
            case "port":
                return {"ports": [{"name": "web", "port": 8080}]}
        manager = "endpointslice.kubernetes.io/managed-by"
        return {"metadata": {"labels": {manager: "a.person"}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportCrdDeleted(Event):
    """Somebody deletes the CRD of imports; later it is installed again, and then the imports."""

    lasts: float
    empty_for: float

    @property
    def over(self) -> float:
        return self.at + self.lasts + self.empty_for

    def happen(self, stage: Stage) -> str:
        if not stage.world.delete(_CRD):
            return ""
        stage.clock.at(stage.clock.time + self.lasts, lambda: self._restored(stage))
        return "somebody deletes the CRD of imports"

    def _restored(self, stage: Stage) -> None:
        world = stage.world
        lost = world.objects(IMPORTS)
        for import_ in lost:
            path = import_path(*ref_of(import_))
            world.kubernetes.call("PATCH", path, {"metadata": {"finalizers": None}})
        world.kubernetes.call("POST", _CRDS, definition("eurekaimport"))
        stage.happened("the CRD of imports is installed again, without imports")
        stage.clock.at(stage.clock.time + self.empty_for, lambda: self._filled(stage, lost))

    def _filled(self, stage: Stage, lost: list[dict[str, Any]]) -> None:
        for import_ in lost:
            namespace, name = ref_of(import_)
            labels = import_["metadata"].get("labels", {})
            manifest = _manifest(namespace, name, import_["spec"], labels)
            stage.world.kubernetes.call("POST", import_path(namespace, ""), manifest)
        stage.happened(f"{len(lost)} imports are created again")
