"""The results of `explain` and `check`: the links of an explanation, and the findings of a
check."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from eurekube_sync.model.docs import help_on
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Unknown

CALLERS_SECONDS = 95
"""How long callers may use old lists: 30 s of the server's cache, 30 s of the client's, 35 s of the
load balancer's (docs/eureka.md)."""
RUNS = "see that eurekube-sync runs: kubectl get cronjobs,jobs,deployments -A | grep eurekube"


class Mark(StrEnum):
    OK = "ok"
    BROKEN = "broken"  # the link prevents a registration
    UNKNOWN = "unknown"  # the link could not be checked
    NOTE = "note"  # the link prevents no registration, and is worth knowing


class Part(StrEnum):
    """The subjects of links, in the order of the chain."""

    SYNCER = "syncer"
    IMPORT = "import"
    SPEC = "spec"
    SERVED = "served"  # by an installation: class and scope
    SERVICES = "services"
    PORT = "port"
    ENDPOINTS = "endpoints"
    PODS = "pods"
    LIMIT = "limit"
    DRAIN = "drain"
    SUSPEND = "suspend"
    RIVALS = "rivals"  # other syncers with the same address
    DUPLICATE = "duplicate"  # the pod registers itself
    BRAKE = "brake"
    OWNER = "owner"
    EUREKA = "eureka"
    INSTANCES = "instances"  # of an import, in Eureka
    SLICES = "slices"  # of an import
    CALLERS = "callers"
    STATUS = "status"  # of the syncer, as the last pass wrote it
    LAST_PASS = "lastPass"


class Link(Struct, frozen=True):
    """One requirement of a registration."""

    part: Part
    mark: Mark
    text: str  # one sentence without its full stop
    # A `Reason`, or that of a status of another version; empty for a requirement that is met
    reason: str = ""
    details: tuple[str, ...] = ()  # more lines, such as similar names
    # Of a broken link, in few words for the last line, such as `its pod is not ready`
    cause: str = ""
    fix: str = ""  # what to do, preferably a command
    otherwise: str = ""  # the other way out, where a person has to choose
    since: float | None = None  # since when it is broken, in Unix seconds; None if unknown

    @property
    def broken(self) -> bool:
        return self.mark is Mark.BROKEN


def met(part: Part, text: str, *details: str) -> Link:
    """Make a link of a requirement that is met."""
    return Link(part, Mark.OK, text, details=details)


def noted(part: Part, text: str, *details: str) -> Link:
    """Make a link that prevents no registration."""
    return Link(part, Mark.NOTE, text, details=details)


def unseen(
    part: Part, text: str, *details: str, reason: Reason = Reason.NOT_LOOKED_AT, fix: str = ""
) -> Link:
    """Make a link that could not be checked."""
    return Link(part, Mark.UNKNOWN, text, reason, details, fix=fix)


def not_read(
    part: Part, what: str, source: Unknown, *, reason: Reason = Reason.NOT_LOOKED_AT
) -> Link:
    """Make a link that could not be checked, because a source could not be read."""
    return unseen(part, f"{what} could not be looked at: {source.message}", reason=reason)


def breaks(
    part: Part,
    reason: Reason,
    text: str,
    *details: str,
    cause: str = "",
    fix: str = "",
    if_: bool = True,
) -> Link:
    """Make a broken link, or a note if `if_` is false."""
    if not if_:
        return noted(part, text, *details)
    return Link(part, Mark.BROKEN, text, reason, details, cause or text, fix)


def out_of_scope(class_: str | None, fix: str = "") -> Link:
    """Make the link of a syncer or import of this class that the given scope does not take."""
    served = "it, and the scope given here excludes it"
    if class_:
        served = f"class {class_}"
    text = f"no installation seems to serve {served}"
    return breaks(Part.SERVED, Reason.NO_INSTALLATION, text, fix=fix)


def first_broken(links: Iterable[Link]) -> Link | None:
    for link in links:
        if link.broken:
            return link
    return None


def until_broken(links: Iterable[Link]) -> list[Link]:
    """Return the links up to the first broken one: what follows depends on it."""
    made = []
    for link in links:
        made.append(link)
        if link.broken:
            break
    return made


class Outcome(StrEnum):
    """The result of all links, the worst first."""

    NOT_REGISTERED = "notRegistered"
    PARTLY = "partlyRegistered"
    UNKNOWN = "unknown"
    REGISTERED = "registered"


class Explanation(Struct, frozen=True, kw_only=True):
    """The explanation of one syncer, or of something that no syncer selects."""

    about: str  # such as `svc/s5/orders`
    links: tuple[Link, ...]
    outcome: Outcome
    syncer: str = ""  # its `namespace/name`; empty if there is none
    sentence: str = ""  # the last line
    fix: str = ""  # what to do; empty for nothing
    otherwise: str = ""  # the other way out, where a person has to choose
    up: int | None = None  # instances UP now; None if unknown
    of: int = 0  # endpoints that could be registered
    apps: tuple[str, ...] = ()
    # The smallest syncer that would help; empty for none
    manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def broken(self) -> Link | None:
        return first_broken(self.links)

    @property
    def reason(self) -> str:
        """The reason of its first broken link; empty if there is none."""
        if self.broken:
            return self.broken.reason
        return ""

    @property
    def docs(self) -> str:
        """The address of the help for the reason; empty for none, or for one of another version."""
        if self.reason in list(Reason):
            return help_on(self.reason)
        return ""


class Grade(StrEnum):
    OK = "ok"
    WARNING = "warning"  # it works but needs attention, or it could not be checked
    FAILED = "failed"  # a pass cannot do its work


class Check(StrEnum):
    """The subjects of findings, each with what may be wrong and what to do, as
    docs/troubleshooting.md says it."""

    meaning: str
    cure: str

    def __new__(cls, value: str, meaning: str, cure: str) -> Check:
        check = str.__new__(cls, value)
        check._value_ = value
        check.meaning, check.cure = meaning, cure
        return check

    KUBERNETES = (
        "Kubernetes",
        "The API gives no answer, or does not show the UID of the namespace `kube-system`, "
        "which identifies the cluster.",
        "Check `--kubeconfig` and `--context`, or grant `get` on that namespace.",
    )
    RIGHTS = (
        "Rights",
        "The account lacks a right.",
        "Grant it with the manifests in `cronjob/`. The line has the `kubectl auth can-i` command "
        "that asks again.",
    )
    CRD = (
        "Crd",
        "The CRD is missing, is being deleted, or is of another version than the program. An older "
        "one drops the fields that the line names.",
        "If it is missing or older, `eurekube-sync crd | kubectl apply --server-side -f -`. Then "
        "apply each object again that sets a dropped field: it was not stored. If it is newer, keep "
        "it.",
    )
    NAMESPACE = (
        "Namespace",
        "A namespace of `--namespace` does not exist.",
        "Correct the option, or create the namespace.",
    )
    EUREKA_READ = (
        "EurekaRead",
        "A server cannot be read; the line says why.",
        "Correct the URL or the [login](connection.md#login-and-tls). If the server has just "
        "started, wait some minutes.",
    )
    EUREKA_WRITE = (
        "EurekaWrite",
        "Reads work, but writes are refused, or do not reach Eureka. `check` renews an "
        "instance that cannot exist, and registers one without a host name, which Eureka "
        "refuses.",
        "If the line names CSRF protection, let the server's Spring Security ignore "
        "`/eureka/**`, and give the login the right to write; see [login and "
        "TLS](connection.md#login-and-tls). If the line names a proxy, let the proxy pass "
        "PUT, POST and DELETE; see [proxies](connection.md#a-proxy-before-eureka).",
    )
    REPLICAS = (
        "Replicas",
        "A server replicates to a server that `--eureka-url` does not name, or to the address "
        "that you give.",
        "Name every server in `--eureka-url`, with the URL that the servers use for each "
        "other, or set the host name of a server that does not know its own address; see "
        "[batches](connection.md#batches).",
    )
    SELF_PRESERVATION = (
        "SelfPreservation",
        "A server lists instances whose leases ended minutes ago, so callers get dead instances.",
        "Find out why renewals are missing. Self-preservation ends by itself when enough "
        "instances are renewed again.",
    )
    CLOCK = (
        "Clock",
        "A server's clock differs from ours by 10 s or more, so the older of two writes may "
        "win. From 60 s on, the check fails.",
        "Set the time of both machines from one source.",
    )
    OWNER = (
        "Owner",
        "Another cluster uses the same owner, or another owner serves the same syncers.",
        "As for [OwnerClash](#ownerclash).",
    )
    IMPORT_NETWORKS = (
        "ImportNetworks",
        "A network of `--import-networks` leads into the cluster: to ClusterIPs, to the API "
        "server, or to pods. Whoever may write an import could lead callers there.",
        "Name the networks of the data centre alone.",
    )
    LAST_PASS = (
        "LastPass",
        "The last good pass ended minutes ago, or its time is unknown, or the last pass was not "
        "good; the line has its words, such as the right that the account of the program lacks.",
        "See that the CronJob or the Deployment runs, and give the same `--lock` as `run`. If passes "
        "run, see to what they say, or read their log.",
    )
    POD_END = (
        "PodEnd",
        "A pod ends while callers may still call it.",
        "Add the printed lines to the pod's template, and give `check` the `--interval` of "
        "`run`; see [the other end](rollout.md#the-other-end-a-pod-that-terminates).",
    )


class Finding(Struct, frozen=True):
    """One line of a check."""

    check: Check
    grade: Grade
    text: str  # one sentence without its full stop
    fix: str = ""  # what to do; empty if all is well
    manifest: str = ""  # lines of YAML to add

    @property
    def docs(self) -> str:
        if self.grade is Grade.OK:
            return ""
        return help_on(self.check.value)


def passed(check: Check, text: str) -> Finding:
    return Finding(check, Grade.OK, text)


def warned(check: Check, text: str, fix: str = "", manifest: str = "") -> Finding:
    return Finding(check, Grade.WARNING, text, fix, manifest)


def failed(check: Check, text: str, fix: str) -> Finding:
    return Finding(check, Grade.FAILED, text, fix)
