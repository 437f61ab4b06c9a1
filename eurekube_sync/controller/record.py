"""What a record tells of a pass's decisions, and a record without secrets. Pure.

Equal secrets get equal names, so that a pass that is planned again from its record plans the
same."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.spec import ZONE
from eurekube_sync.model.actions import Action, Removal
from eurekube_sync.model.ownership import OWNER
from eurekube_sync.model.sanitize import sounds_secret

_OURS = "eurekube."  # the prefix of our marks in metadata, and of our annotations
_LOGIN_IN_URL = re.compile(rb"(?<=://)[^/\s\"\\]+(?=@)")
_SYNCERS = "/eurekasyncers"
_IMPORTS = "/eurekaimports"
_PODS = "/pods"
_DEFINITIONS = "/customresourcedefinitions/"
_CONTAINERS = ("containers", "initContainers")
_OF_POD_SPECS = ("readinessGates", "hostNetwork", *_CONTAINERS)
_OF_POD_STATUSES = ("conditions", "phase", "podIPs", "hostIP", "hostIPs")

Object: TypeAlias = dict[str, Any]  # JSON


def decisions(report: PassReport) -> list[tuple[str, str, str, str]]:
    """Return each change that was planned and each removal that was held before anything was
    carried out: kind of action, app, instance id, and why."""
    plan = report.plan
    held = report.held
    # After failed adds the brake is applied again, which may change both.
    if report.basis is not None:
        plan = report.basis.braked.plan
        held = report.basis.braked.held
    actions: list[Action | Removal] = list(plan.changes)
    if held is not None:
        actions += held.removals
    decided: list[tuple[str, str, str, str]] = []
    for action in actions:
        kind = type(action).__name__.lower()
        decided.append((kind, action.key.app, action.key.id, action.why))
    if report.imports is not None:
        for change in report.imports.plan.changes:
            kind = type(change).__name__.lower()
            decided.append((kind, str(change.import_), str(change.socket), change.why))
    return decided


def without_logins(text: bytes) -> bytes:
    """Return the text with the logins in URLs hidden."""
    return _LOGIN_IN_URL.sub(b"hidden", text)


class Hiding:
    """Take the secrets out of what one pass read. The methods change the data in place.

    Secret are values of metadata and annotations whose key sounds like a secret, and annotations
    that become such metadata. Annotations that no plan reads are left out, and so is others'
    metadata. A value that a label has is not hidden, because selectors are compared with it."""

    def __init__(
        self,
        objects: Mapping[str, Iterable[Any]],
        instances: Iterable[Object],
        owners: Iterable[str],
    ) -> None:
        """`objects` are Kubernetes' by the path of their list. `instances` are Eureka's, of any
        owner."""
        self._objects: list[tuple[str, Object]] = []
        for path, items in objects.items():
            for item in items:
                if isinstance(item, dict):
                    self._objects.append((path, item))
        self._instances = list(instances)
        self._owners = frozenset(owners)
        self._selected: set[str] = set()
        for key in self._selected_keys():
            if not sounds_secret(key):
                self._selected.add(key)
        self._used: set[str] = set()
        secret_sources: set[str] = set()
        for source in self._sources():
            names = {str(name) for name in source.values()}
            self._used |= names
            metadata_key = str(source.get("key"))
            if sounds_secret(metadata_key):
                secret_sources |= names
        secrets = self._secrets(secret_sources) - self._labels()
        self._names: dict[str, str] = {}
        for number, secret in enumerate(sorted(secrets)):
            self._names[secret] = f"hidden-{number}"

    def _secrets(self, secret_sources: Collection[str]) -> set[str]:
        """Return each value of a key that sounds secret, or that metadata takes from such a key."""
        secrets: set[str] = set()
        for texts in self._texts():
            for key, value in texts.items():
                if key.startswith(_OURS) or not isinstance(value, str) or not value:
                    continue
                if key in secret_sources or sounds_secret(key):
                    secrets.add(value)
        return secrets

    def _labels(self) -> set[str]:
        """Return the values of all labels, which are shown: selectors need them."""
        labels: set[str] = set()
        for _, item in self._objects:
            for value in _part(item, "metadata", "labels").values():
                labels.add(str(value))
        return labels

    def read(self) -> None:
        """Take them out of the objects and the instances."""
        for path, item in self._objects:
            metadata = _part(item, "metadata")
            metadata.pop("managedFields", None)
            annotations = _part(metadata, "annotations")
            for key in list(annotations):
                if not (key.startswith(_OURS) or key in self._used):
                    del annotations[key]
            self._hide(annotations)
            if path.endswith(_SYNCERS):
                self._hide(_part(item, "spec", "metadata"))
            if _DEFINITIONS in path:
                item.pop("spec", None)  # the schema, which no pass reads
            if path.endswith(_PODS):
                _keep_only(item, "spec", *_OF_POD_SPECS)
                for kind in _CONTAINERS:
                    _keep_only_ports(_part(item, "spec"), kind)
                _keep_only(item, "status", *_OF_POD_STATUSES)
        for instance in self._instances:
            metadata = _part(instance, "metadata")
            if metadata.get(OWNER) in self._owners:
                self._hide(metadata)
                continue
            for key in list(metadata):
                if not (key.startswith(_OURS) or key in self._selected):
                    del metadata[key]
            for url in ("homePageUrl", "statusPageUrl", "healthCheckUrl"):
                instance.pop(url, None)

    def report(self, told: Any) -> None:
        """Take them out of the changes of metadata that a report lists."""
        if isinstance(told, dict):
            if str(told.get("field", "")).startswith("metadata."):
                self._hide(told)
            for child in told.values():
                self.report(child)
        elif isinstance(told, list):
            for child in told:
                self.report(child)

    def _hide(self, texts: Object) -> None:
        for key, value in texts.items():
            if isinstance(value, str) and not key.startswith(_OURS):
                texts[key] = self._names.get(value, value)

    def _sources(self) -> Iterator[Object]:
        """Yield each `metadataFrom` of the syncers."""
        for path, item in self._objects:
            if not path.endswith(_SYNCERS):
                continue
            sources = _part(item, "spec").get("metadataFrom")
            if not isinstance(sources, list):
                continue
            for source in sources:
                if isinstance(source, dict):
                    yield source

    def _selected_keys(self) -> Iterator[str]:
        """Yield the keys of metadata by which imports choose instances."""
        for path, item in self._objects:
            if path.endswith(_IMPORTS):
                yield ZONE
                yield from map(str, _part(item, "spec", "select", "metadata"))

    def _texts(self) -> Iterator[Object]:
        """Yield all metadata and annotations that may have secrets."""
        for path, item in self._objects:
            yield _part(item, "metadata", "annotations")
            if path.endswith(_SYNCERS):
                yield _part(item, "spec", "metadata")
        for instance in self._instances:
            metadata = _part(instance, "metadata")
            if metadata.get(OWNER) in self._owners:
                yield metadata


def _keep_only(item: Object, part: str, *fields: str) -> None:
    """Keep these fields of a part of the object, as far as it has them."""
    if part not in item:
        return
    whole = _part(item, part)
    kept: Object = {}
    for field in fields:
        if field in whole:
            kept[field] = whole[field]
    item[part] = kept


def _keep_only_ports(spec: Object, kind: str) -> None:
    """Keep the ports of containers of one kind. Their variables may be secrets."""
    containers = spec.get(kind)
    if not isinstance(containers, list):
        spec.pop(kind, None)
        return
    kept: list[Object] = []
    for container in containers:
        ports = _part(container).get("ports")
        if ports is None:
            kept.append({})
        else:
            kept.append({"ports": ports})
    spec[kind] = kept


def _part(value: Any, *keys: str) -> Object:
    """Return the object under nested keys; an empty one if there is none."""
    for key in keys:
        if not isinstance(value, dict):
            return {}
        value = value.get(key)
    if not isinstance(value, dict):
        return {}
    return value
