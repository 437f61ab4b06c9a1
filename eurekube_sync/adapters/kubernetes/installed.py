"""Reads the installations of eurekube-sync in a cluster: the Deployments and CronJobs that the chart
and the kustomization make, with the settings of their pods. Secrets are never read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

import msgspec
from msgspec import Struct, field

from eurekube_sync.adapters.kubernetes import objects
from eurekube_sync.adapters.kubernetes.calls import CORE, Calls, Kind, unusable
from eurekube_sync.adapters.kubernetes.connection import Connection
from eurekube_sync.adapters.tries import Tries
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import SourceUnknown
from eurekube_sync.model.ports import Clock, Random
from eurekube_sync.model.sources import Cause, Complete, Server, Source, Unknown

PROGRAM = "eurekube-sync"
LABEL = f"app.kubernetes.io/name={PROGRAM}"  # of all that the chart and the kustomization make
HIDDEN = "\0hidden"
"""Stands in an argument for a value that is not read. No argument has this character."""
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)")
_ANSWER_SECONDS = 10.0
_TRIES = 2


class Workload(Struct, frozen=True, kw_only=True):
    """A Deployment or CronJob that runs the program."""

    kind: str
    namespace: str
    name: str
    works: bool = True  # neither suspended nor scaled to 0
    arguments: tuple[str, ...] = ()  # after the program's name; `HIDDEN` for what is not read
    variables: Mapping[str, str | None] = field(default_factory=dict)  # None: it is not read
    secrets: tuple[str, ...] = ()  # Secrets all of whose keys are variables
    unread: Unknown | None = None  # why a ConfigMap with settings could not be read

    @property
    def ref(self) -> str:
        return f"{self.namespace}/{self.name}"


class _KeyRef(objects.Wire):
    key: str
    name: str = ""


class _FieldRef(objects.Wire):
    field_path: str


class _ValueFrom(objects.Wire):
    config_map_key_ref: _KeyRef | None = None
    field_ref: _FieldRef | None = None


class _Variable(objects.Wire):
    name: str
    value: str | None = None
    value_from: _ValueFrom | None = None


class _SourceRef(objects.Wire):
    name: str = ""
    optional: bool | None = None


class _VariableSource(objects.Wire):
    prefix: str | None = None
    config_map_ref: _SourceRef | None = None
    secret_ref: _SourceRef | None = None


class _Container(objects.Wire):
    name: str
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[_Variable] | None = None
    env_from: list[_VariableSource] | None = None

    def arguments(self) -> list[str]:
        """Return what follows the program's name."""
        words = [*(self.command or ()), *(self.args or ())]
        if words and words[0].rpartition("/")[2] == PROGRAM:
            return words[1:]
        return words


class _PodSpec(objects.Wire):
    containers: list[_Container] | None = None

    def container(self) -> _Container:
        """Return our container: an injector may have added others."""
        containers = self.containers or []
        for container in containers:
            if container.name == PROGRAM:
                return container
        return containers[0] if containers else _Container(name="")


class _Template(objects.Wire):
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)


class _TemplateSpec(objects.Wire):
    template: _Template = msgspec.field(default_factory=_Template)


class _DeploymentSpec(_TemplateSpec):
    replicas: int | None = None


class _JobTemplate(objects.Wire):
    spec: _TemplateSpec = msgspec.field(default_factory=_TemplateSpec)


class _CronJobSpec(objects.Wire):
    job_template: _JobTemplate = msgspec.field(default_factory=_JobTemplate)
    suspend: bool | None = None


class _Found(Struct, frozen=True):
    workload: Workload  # without settings
    container: _Container


class DeploymentItem(objects.Item):
    spec: _DeploymentSpec = msgspec.field(default_factory=_DeploymentSpec)

    def read(self) -> _Found:
        workload = Workload(
            kind="Deployment",
            namespace=self.metadata.namespace,
            name=self.metadata.name,
            works=self.spec.replicas != 0,
        )
        return _Found(workload, self.spec.template.spec.container())


class CronJobItem(objects.Item):
    spec: _CronJobSpec = msgspec.field(default_factory=_CronJobSpec)

    def read(self) -> _Found:
        workload = Workload(
            kind="CronJob",
            namespace=self.metadata.namespace,
            name=self.metadata.name,
            works=not self.spec.suspend,
        )
        return _Found(workload, self.spec.job_template.spec.template.spec.container())


class _ConfigMap(objects.Item):
    data: dict[str, str] | None = None


_CONFIG_MAP = msgspec.json.Decoder(_ConfigMap)
_KINDS: Sequence[Kind[_Found]] = (
    Kind(
        "/apis/apps/v1",
        "deployments",
        "DeploymentList",
        msgspec.json.Decoder(DeploymentItem),
        labels=LABEL,
    ),
    Kind(
        "/apis/batch/v1", "cronjobs", "CronJobList", msgspec.json.Decoder(CronJobItem), labels=LABEL
    ),
)


class Installations:
    """Finds installations, and reads their settings."""

    def __init__(self, connection: Connection, *, clock: Clock, random: Random) -> None:
        limited = Tries(clock, random, TimeLimit(clock), _ANSWER_SECONDS, most=_TRIES)
        self._calls = Calls(connection, limited)

    def find(self, namespaces: Iterable[str]) -> tuple[tuple[Workload, ...], Unknown | None]:
        """Return all installations of the cluster, or if they may not be listed, those of these
        namespaces; and why others may be hidden."""
        workloads: list[Workload] = []
        hidden: Unknown | None = None
        for kind in _KINDS:
            listed = self._calls.list_all(kind, None)
            sources = [*listed.by_namespace.values(), listed.elsewhere]
            if _denied(listed.elsewhere):
                hidden = hidden or listed.elsewhere
                names = list(dict.fromkeys(namespaces))
                sources = [self._calls.list_all(kind, [name]).of(name) for name in names]
            for source in sources:
                if isinstance(source, Unknown):
                    hidden = hidden or source
                    continue
                for found in source.data:
                    workloads.append(self._with_settings(found))
        return tuple(workloads), hidden

    def named(self, namespace: str, name: str) -> Workload | None:
        """Return the Deployment or CronJob of this name, also without our label. Raises
        SourceUnknown if it cannot be read."""
        for kind in _KINDS:
            absent = unusable(f"there is no {kind.plural} {namespace}/{name}")
            path = f"{kind.path(namespace)}/{name}"
            read = self._calls.read_object(path, kind.items.decode, f"{path}", absent=absent)
            if read is absent:
                continue
            if isinstance(read, Unknown):
                raise SourceUnknown(Server.KUBERNETES, read)
            found = read.data.read()
            assert found is not None  # none of these kinds is skipped
            return self._with_settings(found)
        return None

    def _with_settings(self, found: _Found) -> Workload:
        """Read the settings as the kubelet gives them to the container: a later source replaces an
        earlier one, and `env` replaces `envFrom`."""
        place = found.workload.namespace
        variables: dict[str, str | None] = {}
        secrets: list[str] = []
        unread: Unknown | None = None
        for source in found.container.env_from or ():
            if source.secret_ref is not None:
                secrets.append(source.secret_ref.name)
            if source.config_map_ref is None:
                continue
            data = self._config_map(place, source.config_map_ref.name)
            if isinstance(data, Unknown):
                if not (data.cause is Cause.NOT_READ and source.config_map_ref.optional):
                    unread = unread or data
                continue
            for key, value in data.data.items():
                variables[f"{source.prefix or ''}{key}"] = value
        for variable in found.container.env or ():
            variables[variable.name] = self._value(variable, place, variables)
        arguments: list[str] = []
        for word in found.container.arguments():
            expanded = _expanded(word, variables)
            arguments.append(HIDDEN if expanded is None else expanded)
        return Workload(
            kind=found.workload.kind,
            namespace=place,
            name=found.workload.name,
            works=found.workload.works,
            arguments=tuple(arguments),
            variables=variables,
            secrets=tuple(secrets),
            unread=unread,
        )

    def _value(
        self, variable: _Variable, namespace: str, before: Mapping[str, str | None]
    ) -> str | None:
        origin = variable.value_from
        if origin is None:
            return _expanded(variable.value or "", before)
        if origin.field_ref is not None and origin.field_ref.field_path == "metadata.namespace":
            return namespace
        if origin.config_map_key_ref is not None:
            data = self._config_map(namespace, origin.config_map_key_ref.name)
            if isinstance(data, Complete):
                return data.data.get(origin.config_map_key_ref.key)
        return None

    def _config_map(self, namespace: str, name: str) -> Source[Mapping[str, str]]:
        what = f"the ConfigMap {namespace}/{name}"
        absent = Unknown(cause=Cause.NOT_READ, message=f"there is no {what[4:]}")
        path = f"{CORE}/namespaces/{namespace}/configmaps/{name}"
        return self._calls.read_object(path, _data, what, absent=absent)


def _data(body: bytes) -> Mapping[str, str]:
    return _CONFIG_MAP.decode(body).data or {}


def _denied(source: Source[Any]) -> TypeGuard[Unknown]:
    return isinstance(source, Unknown) and source.cause is Cause.DENIED


def _expanded(text: str, variables: Mapping[str, str | None]) -> str | None:
    """Expand `$(NAME)` as the kubelet does; None if it needs a value that is not read. A name that
    is not defined stays as it is."""
    hidden = False

    def value(reference: re.Match[str]) -> str:
        nonlocal hidden
        name = reference[1]
        if name is None:
            return "$"
        known = variables.get(name, reference[0])
        hidden = hidden or known is None
        return known or ""

    expanded = _REFERENCE.sub(value, text)
    return None if hidden else expanded
