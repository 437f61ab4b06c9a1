"""What is said of an app, an address or an instance id that no claim names: whose it is, or what is near."""

from __future__ import annotations

from dataclasses import replace

from eurekube_sync.controller.look import Look
from eurekube_sync.desired.claims import NotServed
from eurekube_sync.desired.spec import selected_namespace
from eurekube_sync.explain.answers import in_eureka, is_meant, not_registered, nothing_link, unread_answer
from eurekube_sync.explain.links import Explanation, Mark, Outcome, Part, Why, breaks
from eurekube_sync.explain.near import near_names
from eurekube_sync.explain.what import What
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.ownership import CLUSTER, OWNER, syncer_of
from eurekube_sync.model.sources import Complete, Unknown


def explain_unclaimed(what: What, look: Look) -> Explanation:
    """Unknown where not all that syncers may want could be listed."""
    instances = look.listed.data if isinstance(look.listed, Complete) else ()
    theirs = [one for one in instances if is_meant(what, one)]
    if theirs:
        return _in_eureka_alone(what, theirs[0], look)
    if unread := _services_unread(look):
        return unread_answer(what, f"the Services could not be looked at: {unread.message}")
    apps = {one.key.app for one in instances}
    apps |= {
        app
        for report in look.reports
        for claim in (report.desired.claims.values() if report.desired else ())
        for app in getattr(claim, "apps", ())
    }
    near = near_names(str(what), apps)
    text = f"nothing here is {what}: no syncer wants it, and Eureka lists none"
    if isinstance(look.listed, Unknown):
        text = f"no syncer wants {what}; what Eureka holds could not be looked at: {look.listed.message}"
    link = nothing_link(text, near, " ".join(("eurekube-sync status -a", *look.asked.options)))
    named = [_named_by(one, look) for one in near]
    unknown = isinstance(look.listed, Unknown)
    link = replace(
        link,
        mark=Mark.UNKNOWN if unknown else Mark.BROKEN,
        details=(*link.details, *(one for one in named if one)),
        cause=f"nothing is registered as {what}",
    )
    if unknown:
        sentence = f"Unknown whether it is registered: {text}"
        return Explanation(about=str(what), links=(link,), outcome=Outcome.UNKNOWN, sentence=sentence, fix=link.fix)
    return not_registered(what, (link,), link)


def _in_eureka_alone(what: What, one: ObservedInstance, look: Look) -> Explanation:
    """It is registered, and no syncer that was looked at has to do with it: whose it is, by its marks."""
    ref, owner = syncer_of(one), one.metadata.get(OWNER, "")
    cluster = look.identity.data if isinstance(look.identity, Complete) else one.metadata.get(CLUSTER)
    there = list(in_eureka(what, look))
    if ref is not None and owner in ("", look.owner) and one.metadata.get(CLUSTER) == cluster:
        if not look.asked.covers(ref):
            text = f"EurekaSyncer {ref} registers it, but is outside of the given scope"
            fix = f"eurekube-sync explain {ref} -n {ref.namespace}"
            return unread_answer(what, text, *there, fix=fix)
        text = f"there is no EurekaSyncer {ref} any more, so it is an orphan"
        cause, fix = "its syncer is gone, and a pass is to cancel it", "eurekube-sync orphans"
    else:
        cluster_too = "" if one.metadata.get(CLUSTER) in (None, cluster) else " of another cluster"
        whose = f"owner {owner}{cluster_too} registered it" if owner else "it has no mark of eurekube-sync"
        text, cause, fix = f"no EurekaSyncer registers it: {whose}", "no EurekaSyncer registers it", ""
    link = breaks(Part.SYNCER, Why.NO_SYNCER, text, cause=cause, fix=fix)
    return not_registered(what, (link, *there), link)


def _services_unread(look: Look) -> Unknown | None:
    """Why it is not known what some syncer wants; None where it is known of all."""
    for report in look.reports:
        for claim in report.desired.claims.values() if report.desired and report.view else ():
            if isinstance(claim, NotServed) and claim.unknown and report.view:
                namespace = selected_namespace(claim.syncer)
                sources = (report.view.services.of(namespace), report.view.slices.of(namespace))
                if found := next((one for one in sources if isinstance(one, Unknown)), None):
                    return found
    return None


def _named_by(app: str, look: Look) -> str:
    for report in look.reports:
        for ref, claim in report.desired.claims.items() if report.desired else ():
            if app in getattr(claim, "apps", ()):
                return f"EurekaSyncer {ref} registers as {app}"
    return ""
