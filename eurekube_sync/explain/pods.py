"""The link of the pods: which are endpoints, which are not ready, and what their kubelet says of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from eurekube_sync.controller.look import Look
from eurekube_sync.desired.claims import Serving
from eurekube_sync.desired.verdicts import Leaving, OverLimit, Taken, Wanted
from eurekube_sync.explain.links import Link, Part, Why, breaks, holds
from eurekube_sync.explain.near import near_labels, written
from eurekube_sync.explain.subject import Subject, endpoints_of, is_pod
from eurekube_sync.model.details import PodDetail
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.wording import counted, one_or_more, span

_MOST = 5
"""Lines about single pods."""


def pod_links(subject: Subject, look: Look) -> Iterator[Link]:
    """Of pods, or why there are none."""
    claim = subject.claim
    if not isinstance(claim, Serving):
        return
    unready = {key: why for key, why in claim.unready.items() if key in subject.verdicts}
    terminating = [key for key, one in subject.verdicts.items() if isinstance(one, Leaving) and one.terminating]
    left = len(subject.verdicts) - len(terminating)
    if unready:
        yield _unready(subject, look, sorted(unready.values()), left)
    elif not left and not terminating and not claim.incomplete:
        yield _none(subject, claim, look)
    elif not left and terminating:
        yield breaks(
            Part.PODS,
            Why.TERMINATING,
            f"{counted(len(terminating), 'endpoint')} terminate, and there is no other",
            cause=one_or_more(len(terminating), "its pod terminates", "its pods terminate"),
            fix=f"kubectl get pods -n {subject.namespace}",
        )
    elif left:
        ready = sum(isinstance(one, Wanted | OverLimit | Taken) for one in subject.verdicts.values()) or left
        yield holds(Part.PODS, f"{counted(ready, 'pod')} {one_or_more(ready, 'is', 'are')} ready")


def _unready(subject: Subject, look: Look, whys: Sequence[str], left: int) -> Link:
    names = [name for why in whys if (name := _pod_name(why))]
    said = [_said(name, subject, look) for name in names[:_MOST]]
    if len(whys) == 1:
        text, details = f"{whys[0]}{f': {said[0]}' if said and said[0] else ''}", []
    else:
        text = f"{len(whys)} of {counted(left, 'endpoint')} are not ready"
        details = [
            f"pod {name}{f': {why}' if why else ' is not ready'}" for name, why in zip(names, said, strict=False)
        ]
        details += [f"and {len(names) - _MOST} more"] if len(names) > _MOST else []
    if not any(subject.listed(look)):
        details.append("a pod is registered only after it was ready once; after that, spec.notReady decides")
    some = f"{len(whys)} of its {left} pods {one_or_more(len(whys), 'is', 'are')} not ready"
    return breaks(
        Part.PODS,
        "NotReady",
        text,
        details=tuple(details),
        cause="its pod is not ready" if left == 1 else some,
        fix=f"kubectl describe pod {names[0]} -n {subject.namespace}" if names else "",
    )


def _pod_name(why: str) -> str:
    """`pod orders-a is not ready` names it; of a bare endpoint there is none."""
    words = why.split()
    return words[1] if words[:1] == ["pod"] and len(words) > 1 else ""


def _said(name: str, subject: Subject, look: Look) -> str:
    """What a pod's conditions say; empty where they say nothing."""
    pods = look.pods.get(subject.namespace)
    if isinstance(pods, Unknown):
        return f"the reason could not be read: {pods.message}"
    found = next((one for one in pods.data if one.name == name), None) if isinstance(pods, Complete) else None
    return why_not_ready(found, look.at) if found else ""


def why_not_ready(pod: PodDetail, now: float) -> str:
    """What its conditions say, with for how long; empty where they say nothing. `now` in Unix seconds."""
    ready = pod.condition("Ready")
    scheduled = pod.condition("PodScheduled")
    if scheduled is not None and not scheduled.true:
        return _with_since(f"not scheduled: {scheduled.message or scheduled.reason}", scheduled.since, now)
    gates = [one.type for one in pod.conditions if not one.true and "/" in one.type]
    said = "; ".join(pod.waiting) or (ready.message or ready.reason if ready else "")
    said = said or (f"readiness gate {', '.join(gates)} is not open" if gates else "")
    parts = [pod.phase if pod.phase not in ("", "Running") else "", said]
    return _with_since(", ".join(filter(None, parts)), ready.since if ready else None, now)


def _with_since(text: str, since: float | None, now: float) -> str:
    return (
        text
        if since is None
        else f"{text}{' ' if text else 'for '}{'(' if text else ''}{span(now - since)}{')' if text else ''}"
    )


def _none(subject: Subject, claim: Serving, look: Look) -> Link:
    """No endpoint at all: no pod is selected, or none of them has an address."""
    number = len(subject.services)
    names = f"{one_or_more(number, 'Service', 'Services')} {', '.join(subject.services[:3])}"
    there = list(endpoints_of(subject.report, subject.namespace, subject.services))
    if any(not subject.pod or is_pod(one, subject.pod) for one in there):
        return _of_another_port(subject, claim, names)
    text = f"{names} {one_or_more(number, 'has', 'have')} no endpoints"
    details, fix = _nothing_selected(subject, look)
    if subject.pod:
        text = f"pod {subject.pod} is in no EndpointSlice of {names}"
        fix = f"kubectl describe pod {subject.pod} -n {subject.namespace}"
    return breaks(Part.PODS, "NoEndpoints", text, details=tuple(details), cause=text, fix=fix)


def _of_another_port(subject: Subject, claim: Serving, names: str) -> Link:
    """It has endpoints, and none of them comes to an instance."""
    port = claim.syncer.spec.get("port") or claim.syncer.spec.get("securePort")
    text = f"{names} {one_or_more(len(subject.services), 'does', 'do')} not have the port that its syncer registers"
    text += f", {port}" if port else ""
    return breaks(Part.PORT, "NoSuchPort", text, cause=text, fix=subject.edit)


def _nothing_selected(subject: Subject, look: Look) -> tuple[list[str], str]:
    pods, selectors = look.pods.get(subject.namespace), look.selectors.get(subject.namespace)
    for source in (selectors, pods):
        if isinstance(source, Unknown):
            return [f"the reason could not be read: {source.message}"], ""
    if not isinstance(pods, Complete) or not isinstance(selectors, Complete):
        return [], ""
    details: list[str] = []
    fix = ""
    meant = [pod for pod in pods.data if subject.pod in ("", pod.name)]
    for one in (each for each in selectors.data if each.name in subject.services and each.selector):
        selected = [pod for pod in meant if one.selector.items() <= pod.labels.items()]
        if selected:
            details += [
                f"pod {pod.name}: {why_not_ready(pod, look.at) or 'no EndpointSlice lists it'}"
                for pod in selected[:_MOST]
            ]
            fix = fix or f"kubectl describe pod {selected[0].name} -n {subject.namespace}"
            continue
        details.append(
            f"Service {one.name} selects {written(one.selector)}: no pod has it{_nearest(one.selector, pods.data)}"
        )
        fix = fix or f"kubectl edit service {one.name} -n {subject.namespace}"
    return details, fix


def _nearest(selector: Mapping[str, str], pods: Iterable[PodDetail]) -> str:
    near = near_labels(selector, [(one.name, one.labels) for one in pods])
    found = [f"{one.label} ({counted(len(one.names), 'pod')})" for one in near]
    return f"; nearest: {', '.join(found)}" if found else ""
