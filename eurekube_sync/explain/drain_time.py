"""Whether pods serve for as long as callers may still call them: `preStop` and the grace period of each workload.

A pod that terminates is cancelled by the next pass. Callers go on with their caches for 95 s after that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import yaml

from eurekube_sync.controller.look import Look
from eurekube_sync.desired.claims import Serving
from eurekube_sync.desired.spec import selected_namespace
from eurekube_sync.explain.links import Check, Finding, Grade
from eurekube_sync.explain.registry import CALLERS_SECONDS
from eurekube_sync.explain.subject import endpoints_of
from eurekube_sync.model.kubernetes import PodDetail, SyncerRef
from eurekube_sync.model.sources import Unknown
from eurekube_sync.model.wording import counted

_SHUTDOWN = 30
"""Seconds that an app gets after its `preStop`, as Kubernetes gives by default."""


def drain_time(look: Look, interval: float) -> Iterator[Finding]:
    """A line for each workload behind a syncer. `interval` is that of the passes, in seconds."""
    needed = round(interval) + CALLERS_SECONDS
    left: set[str] = set()
    for ref, claim in sorted(look.report.desired.claims.items()) if look.report.desired else ():
        by_pod = isinstance(claim, Serving) and (claim.syncer.spec.get("mode") or "pod") == "pod"
        if not isinstance(claim, Serving) or not by_pod or not claim.wanted:
            continue
        namespace = selected_namespace(claim.syncer)
        pods = look.pods.get(namespace)
        if pods is None:
            left.add(namespace)
        elif isinstance(pods, Unknown):
            text = f"{ref}: its pods could not be looked at: {pods.message}"
            yield Finding(Check.DRAIN_TIME, Grade.WARNING, text, f"grant list on pods in {namespace}")
        else:
            names = {one.pod.name for one in endpoints_of(look.report, namespace, claim.services) if one.pod}
            behind = sorted((one for one in pods.data if one.name in names and not one.terminating), key=workload)
            for name, some in groupby(behind, workload):
                yield of_workload(ref, namespace, name, list(some), needed)
    if left:
        text = f"the pods of {counted(len(left), 'more namespace')} were not looked at"
        fix = f"look at them by name: eurekube-sync check -n {min(left)}"
        yield Finding(Check.DRAIN_TIME, Grade.WARNING, text, fix)


def workload(pod: PodDetail) -> str:
    """What a person edits: `Deployment rating`, `StatefulSet db`, or the bare pod. A ReplicaSet's name is that of its
    Deployment and a hash."""
    kind, _, name = pod.controller.partition(" ")
    if kind == "ReplicaSet":
        return f"Deployment {name.rpartition('-')[0] or name}"
    return pod.controller or f"pod {pod.name}"


def of_workload(ref: SyncerRef, namespace: str, name: str, pods: Sequence[PodDetail], needed: int) -> Finding:
    """`namespace` is that of its pods. `needed` seconds have to pass between the beginning of the end and the end of
    serving."""
    worst = min(pods, key=_sleeps)
    sleeps, grace = _sleeps(worst), worst.grace
    about = f"{ref}: {name} ({counted(len(pods), 'pod')})"
    serves = f"{about} goes on serving for {sleeps:g} s after it begins to terminate"
    if sleeps >= needed and grace > sleeps:
        return Finding(Check.DRAIN_TIME, Grade.OK, serves)
    if None in worst.pre_stops and not sleeps and grace >= needed + _SHUTDOWN:
        killed = f"is killed after {grace:g} s, and callers may call it for {needed} s"
        return Finding(Check.DRAIN_TIME, Grade.OK, f"{about} has a preStop whose time cannot be read; it {killed}")
    text = f"{serves}, but callers may call it for {needed} s"
    if sleeps >= needed:
        text = f"{about} has a preStop of {sleeps:g} s, but is killed after {grace:g} s"
    spec: dict[str, Any] = {
        "terminationGracePeriodSeconds": needed + _SHUTDOWN,
        "containers": [
            {"name": container, "lifecycle": {"preStop": {"sleep": {"seconds": needed}}}}
            for container in worst.containers[:1] or ("app",)
        ],
    }
    fix = "create the pod again with these lines"
    if worst.controller:
        kind, _, short = name.partition(" ")
        spec = {"template": {"spec": spec}}
        fix = f"add these lines: kubectl edit {kind.lower()} {short} -n {namespace}"
    manifest = str(yaml.safe_dump({"spec": spec}, sort_keys=False)).rstrip()
    return Finding(Check.DRAIN_TIME, Grade.WARNING, text, fix, manifest)


def _sleeps(pod: PodDetail) -> float:
    """How long its longest `preStop` sleeps, in seconds."""
    return max((one for one in pod.pre_stops if one is not None), default=0.0)
