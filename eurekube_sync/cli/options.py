"""Options that several commands share, and the one way to declare an option: each has its environment variable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from eurekube_sync.cli.values import Duration, Namespaces, Owner

ENVIRONMENT_PREFIX = "EUREKUBE_SYNC_"

F = TypeVar("F", bound=Callable[..., Any])


def option(*names: str, **settings: Any) -> Callable[[F], F]:
    """A click option that can also be set as `EUREKUBE_SYNC_` and its long name, and says so in `--help`."""
    long_name = next(name for name in names if name.startswith("--")).split("/")[0].removeprefix("--")
    settings.setdefault("envvar", ENVIRONMENT_PREFIX + long_name.upper().replace("-", "_"))
    settings.setdefault("show_envvar", True)
    settings.setdefault("show_default", True)
    return click.option(*names, **settings)


def connection_options(command: F) -> F:
    """Where Eureka and the cluster are, and who we are."""
    for decorate in reversed(
        (
            option(
                "--owner",
                type=Owner(),
                required=True,
                help="Name of this installation, part of each instance id; another one for each cluster.",
            ),
            option(
                "--eureka-url",
                metavar="URL",
                required=True,
                help="Eureka's address with its path, such as http://eureka.example.com:8761/eureka",
            ),
            option(
                "--eureka-username", metavar="NAME", default=None, help="Login of Eureka; the password is a variable."
            ),
            option(
                "--kubeconfig",
                type=click.Path(),
                default=None,
                envvar=[ENVIRONMENT_PREFIX + "KUBECONFIG", "KUBECONFIG"],
                help="Default: the pod's own service account, else ~/.kube/config.",
            ),
            option("--context", default=None, help="A context of the kubeconfig instead of its current one."),
            option(
                "--namespace",
                "-n",
                "namespaces",
                type=Namespaces(),
                multiple=True,
                help="Serve only syncers of this namespace; may be repeated. Default: all.",
            ),
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
            option("--renewal-interval", type=Duration(), default="30s", help="Time between two renewals of a lease."),
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
    """Where the brake takes hold."""
    for decorate in reversed(
        (
            option("--brake-percent", type=click.FloatRange(0, 100), default=30.0, help="Hold above this, and ..."),
            option("--brake-count", type=click.IntRange(0), default=10, help="... above this many instances."),
            option("--brake-ceiling", type=click.IntRange(0), default=500, help="Hold above this many in any case."),
            option(
                "--brake-apps-percent",
                type=click.FloatRange(0, 100),
                default=5.0,
                help="Hold when more of the apps lose their last UP instance, or ...",
            ),
            option("--brake-apps", type=click.IntRange(0), default=1, help="... this many, whichever is more."),
            option(
                "--approve",
                metavar="PLAN_ID",
                default=None,
                help="Release held removals: this very set of them, as a dry run or a held pass named it.",
            ),
        )
    ):
        command = decorate(command)
    return command
