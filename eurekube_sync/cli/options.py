"""Options that several commands share, and the one way to declare an option: each has its environment variable."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from eurekube_sync.brake import BrakeLimits
from eurekube_sync.cli.values import Duration, NamespacePairs, Namespaces, Owner, Part, Percent, Selector, SyncerClass
from eurekube_sync.scope import Scope, Shard
from eurekube_sync.syncer import Expression

ENVIRONMENT_PREFIX = "EUREKUBE_SYNC_"

F = TypeVar("F", bound=Callable[..., Any])


def option(*names: str, **settings: Any) -> Callable[[F], F]:
    """A click option that can also be set as `EUREKUBE_SYNC_` and its long name, and says so in `--help`."""
    long_name = next(name for name in names if name.startswith("--")).split("/")[0].removeprefix("--")
    settings.setdefault("envvar", ENVIRONMENT_PREFIX + long_name.upper().replace("-", "_"))
    settings.setdefault("show_envvar", True)
    settings.setdefault("show_default", True)
    return click.option(*names, **settings)


def owner_option(command: F) -> F:
    """Who we are."""
    return option(
        "--owner",
        type=Owner(),
        required=True,
        help="Name of this installation, part of each instance id; another one for each cluster.",
    )(command)


def eureka_url_option(command: F) -> F:
    """Where Eureka is."""
    return option(
        "--eureka-url",
        metavar="URL",
        required=True,
        multiple=True,
        callback=lambda _context, _parameter, urls: ",".join(urls),
        help="Eureka's address with its path, such as http://eureka.example.com:8761/eureka; of several peers "
        "each one's, repeated or with commas between, the preferred one first.",
    )(command)


def eureka_options(command: F) -> F:
    """Who we are, and where Eureka is."""
    return owner_option(eureka_url_option(command))


def cluster_options(command: F) -> F:
    """Where the cluster is."""
    for decorate in reversed(
        (
            option(
                "--kubeconfig",
                type=click.Path(),
                default=None,
                envvar=[ENVIRONMENT_PREFIX + "KUBECONFIG", "KUBECONFIG"],
                help="Default: the pod's own service account, else ~/.kube/config.",
            ),
            option("--context", default=None, help="A context of the kubeconfig instead of its current one."),
            option(
                "--endpoints-source",
                type=click.Choice(["slices", "endpoints"]),
                default="slices",
                help="Where pods' addresses are read from: EndpointSlices, or in an old cluster Endpoints.",
            ),
        )
    ):
        command = decorate(command)
    return command


def name_scope_options(command: F) -> F:
    """Which syncers are ours, as far as their names tell."""
    for decorate in reversed(
        (
            option(
                "--namespace",
                "-n",
                "namespaces",
                type=Namespaces(),
                multiple=True,
                help="Serve only syncers of this namespace; may be repeated. Default: all.",
            ),
            option("--shard", type=Part(), default=None, help="Serve only this part of the syncers: 0/3, 1/3 or 2/3."),
        )
    ):
        command = decorate(command)
    return command


def scope_options(command: F) -> F:
    """Which syncers are ours, and how far they may reach; the command gets them as one `Scope`, named `scope`."""

    @wraps(command)
    def collected(
        *,
        namespaces: tuple[tuple[str, ...], ...],
        shard: Shard | None,
        selector: tuple[Expression, ...] | None,
        syncer_class: str | None,
        allowed: tuple[tuple[tuple[str, str], ...], ...],
        **given: Any,
    ) -> Any:
        scope = Scope(
            namespaces=frozenset(name for names in namespaces for name in names) or None,
            shard=shard,
            selector=selector or (),
            syncer_class=syncer_class,
            allowed=frozenset(pair for pairs in allowed for pair in pairs),
        )
        return command(scope=scope, **given)

    decorated: Any = collected
    for decorate in reversed(
        (
            name_scope_options,
            option("--selector", "-l", type=Selector(), default=None, help="Serve only syncers with these labels."),
            option(
                "--syncer-class",
                type=SyncerClass(),
                default=None,
                help="Serve only syncers with this spec.syncerClass. Default: only those without one.",
            ),
            option(
                "--allow-namespace",
                "allowed",
                type=NamespacePairs(),
                multiple=True,
                help="Let syncers of namespace FROM select Services of namespace TO; * is any; may be repeated.",
            ),
        )
    ):
        decorated = decorate(decorated)
    result: F = decorated
    return result


def batch_option(command: F) -> F:
    """Whether Eureka is written to in batches."""
    return option(
        "--eureka-batch",
        type=click.Choice(["auto", "on", "off"]),
        default="auto",
        help="Renew, register and cancel 250 instances in one call to each Eureka server: auto where the servers say "
        "that they replicate to none that --eureka-url does not name; on without asking them that.",
    )(command)


def call_options(command: F) -> F:
    """How many calls at a time, and how long each may take."""
    for decorate in reversed(
        (
            option(
                "--concurrency",
                type=click.IntRange(1, 256),
                default=16,
                help="Calls to Eureka or the cluster at the same time.",
            ),
            option("--call-timeout", type=Duration(least=0.1), default="10s", help="The longest wait for one answer."),
        )
    ):
        command = decorate(command)
    return command


def pass_options(command: F) -> F:
    """How many passes, how often, and whether they write."""
    for decorate in reversed(
        (
            option(
                "--passes", type=click.IntRange(1), default=1, help="How many passes; the exit code is the last one's."
            ),
            option("--daemon", is_flag=True, help="Pass after pass, until SIGTERM."),
            option(
                "--interval",
                type=Duration(least=1),
                default="30s",
                help="From the start of a pass to the start of the next.",
            ),
            option(
                "--pass-timeout",
                type=Duration(least=1),
                default="120s",
                help="A pass begins nothing new after this long.",
            ),
            option("--dry-run", is_flag=True, help="Show what a pass would do; write nothing anywhere."),
        )
    ):
        command = decorate(command)
    return command


def renewal_option(command: F) -> F:
    """How often a lease is renewed."""
    return option("--renewal-interval", type=Duration(), default="30s", help="Time between two renewals of a lease.")(
        command
    )


def report_options(command: F) -> F:
    """The form of report and logs."""
    for decorate in reversed(
        (
            option(
                "--output",
                "-o",
                type=click.Choice(["table", "json", "yaml"]),
                default="table",
                help="Form of the report.",
            ),
            option(
                "--log-format",
                type=click.Choice(["text", "json"]),
                default="text",
                help="Form of the logs, on stderr.",
            ),
            option("--verbose", "-v", is_flag=True, help="Log each call."),
        )
    ):
        command = decorate(command)
    return command


def lease_options(command: F) -> F:
    """How long an instance lives without us."""
    for decorate in reversed(
        (
            option(
                "--lease-duration",
                type=Duration(),
                default="300s",
                help="How long Eureka keeps an instance after its registration; twice that after a renewal.",
            ),
            renewal_option,
            option(
                "--registry-cache",
                type=Duration(),
                default="45s",
                help="How old Eureka's lists may be; a deleted syncer waits this long.",
            ),
        )
    ):
        command = decorate(command)
    return command


def brake_options(command: F) -> F:
    """Where the brake takes hold; the command gets them as one `BrakeLimits`, named `brake`."""

    @wraps(command)
    def collected(
        *,
        brake_percent: float,
        brake_count: int,
        brake_ceiling: int,
        brake_apps_percent: float,
        brake_apps: int,
        brake_confirm: float,
        **given: Any,
    ) -> Any:
        brake = BrakeLimits(
            loss_percent=brake_percent,
            loss_floor=brake_count,
            loss_ceiling=brake_ceiling,
            apps_percent=brake_apps_percent,
            apps_floor=brake_apps,
            confirm_after=brake_confirm,
        )
        return command(brake=brake, **given)

    decorated: Any = collected
    for decorate in reversed(
        (
            option("--brake-percent", type=Percent(), default=30.0, help="Hold above this, and ..."),
            option("--brake-count", type=click.IntRange(0), default=10, help="... above this many instances."),
            option("--brake-ceiling", type=click.IntRange(0), default=500, help="Hold above this many in any case."),
            option(
                "--brake-apps-percent",
                type=Percent(),
                default=5.0,
                help="Hold when more of the apps lose their last UP instance, or ...",
            ),
            option("--brake-apps", type=click.IntRange(0), default=1, help="... this many, whichever is more."),
            option(
                "--brake-confirm",
                type=Duration(),
                default="20s",
                help="An app that goes to nothing without evidence waits for a pass this much later; 0: for none.",
            ),
        )
    ):
        decorated = decorate(decorated)
    result: F = decorated
    return result


def approve_option(command: F) -> F:
    """What a person releases."""
    return option(
        "--approve",
        metavar="PLAN_ID|FILE",
        default=None,
        help="Release held removals: this very set of them, as a dry run or a held pass named it; or, of a "
        "dry run saved with -o json, what is still planned.",
    )(command)
