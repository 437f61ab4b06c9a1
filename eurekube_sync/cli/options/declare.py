"""How options are declared: their variables, their headings in `--help`, and groups that become one
value."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from inspect import signature
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource
from msgspec import Struct

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.model.sanitize import printable

ENVIRONMENT_PREFIX = "EUREKUBE_SYNC_"
_NO_OPTIONS = frozenset(
    f"{ENVIRONMENT_PREFIX}{name}" for name in ("DEBUG", "EUREKA_PASSWORD", "TEST_CACHE")
)
_OF_A_SERVICE = re.compile(r"(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_\w+)")
"""Variables that Kubernetes sets in every container for a Service called `eurekube-sync` or
`eurekube-sync-...`."""
_ALIKE = 0.8  # similarity by `difflib`; high, because all variables begin with the same 14 letters
_log = logging.getLogger(__name__)
F = TypeVar("F", bound=Callable[..., Any])


class Section(StrEnum):
    """The headings of `--help`, in their order."""

    WHERE = "Owner and servers"
    SCOPE = "Scope"
    COMMAND = "Options"
    PASSES = "Passes"
    BRAKE = "Brake"
    LOGIN = "Login and TLS"
    EUREKA = "Leases and batches"
    CALLS = "Calls"
    WATCHING = "Monitoring"
    REPORT = "Output and logs"


COMMON = (Section.LOGIN, Section.CALLS)
"""The headings of options that most commands have. `help options` shows these once for all."""


class Option(click.Option):
    """An option with a heading in `--help`."""

    def __init__(self, *args: Any, section: Section | None = None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.section = section

    @property
    def long_name(self) -> str:
        """The name without alternatives, such as `--namespace` for `-n`."""
        return max(self.opts, key=len)

    @property
    def variable(self) -> str:
        """The variable that this option has, or would have."""
        return variable_of(self.opts)


def option(*names: str, variable: bool = True, **settings: Any) -> Callable[[F], F]:
    """Declare an option. Its variable is `EUREKUBE_SYNC_` and its long name.

    `variable=False` is for an option such as `--yes`, which must not be set for every command of a
    shell.
    """
    if variable:
        settings.setdefault("envvar", variable_of(names))
    settings.setdefault("help", HELP.get(_long_name(names)))
    settings.setdefault("show_default", True)
    return click.option(*names, cls=Option, **settings)


def variable_of(names: Sequence[str]) -> str:
    long_name = _long_name(names).removeprefix("--")
    first, _, _ = long_name.partition("/")
    return ENVIRONMENT_PREFIX + first.upper().replace("-", "_")


def _long_name(names: Sequence[str]) -> str:
    return next(name for name in names if name.startswith("--"))


def check_present(name: str, hint: str | None = None) -> None:
    """Refuse the name of a file or folder that does not exist; `-` is standard input. `hint` names
    the argument."""
    if name == "-":
        return
    try:
        os.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        raise click.BadParameter(f"there is no file or folder {name}", param_hint=hint) from None
    except (OSError, ValueError):
        pass  # who reads it says why that fails


def on_command_line(parameter: str) -> bool:
    """Return whether the parameter was given on the command line, not by a variable or a
    default."""
    context = click.get_current_context(silent=True)
    if context is None:
        return False
    source = context.get_parameter_source(parameter)
    return source is ParameterSource.COMMANDLINE


def group(
    name: str,
    parse: Callable[..., object],
    *options: Callable[[Any], Any],
    section: Section | None = None,
) -> Callable[[F], F]:
    """Declare options that the command gets as one value called `name`, which `parse` makes from
    their values.

    The names of `parse`'s parameters are those of the options. `section` is for the options that
    have none. A `Command` makes the value with `one_value_a_group`.
    """

    def decorate(command: F) -> F:
        decorated: Any = command
        decorated.__dict__.setdefault("__click_values__", []).append((name, parse))
        for declare in reversed(options):
            decorated = declare(decorated)
            newest = decorated.__click_params__[-1]
            newest.section = newest.section or section
        return cast(F, decorated)

    return decorate


def one_value_a_group(command: click.Command, values: dict[str, Any]) -> None:
    """Replace the values of the options of each `group` by the value that its `parse` makes."""
    # A group that stands among the options of another one was declared after it.
    for name, parse in reversed(getattr(command.callback, "__click_values__", ())):
        of_group: dict[str, Any] = {}
        for parameter in _parameters(parse):
            if parameter in values:
                of_group[parameter] = values.pop(parameter)
        values[name] = parse(**of_group)


def _parameters(parse: Callable[..., object]) -> Iterable[str]:
    if isinstance(parse, type) and issubclass(parse, Struct):
        # Its signature would need the types of its fields, some of which only type checkers import.
        return parse.__struct_fields__
    return signature(parse).parameters


def warn_of_unknown(environ: Mapping[str, str]) -> None:
    """Log a warning for each unknown variable. Whoever sets `EUREKUBE_SYNC_DRYRUN=1` expects that
    `run` writes nothing.

    The other commands are loaded only if the running command does not know a variable.
    """
    context = click.get_current_context(silent=True)
    if context is None:
        return
    known = set(_NO_OPTIONS)
    for option in options_of(context.command):
        if option.envvar:
            known.add(option.variable)
    strange: list[str] = []
    for name, value in environ.items():
        ours = name.startswith(ENVIRONMENT_PREFIX)
        if ours and name not in known and not is_no_option(name, value):
            strange.append(name)
    if not strange:
        return
    without: dict[str, str] = {}
    for option in options_of(context.find_root().command, context):
        if option.envvar:
            known.add(option.variable)
        else:
            without[option.variable] = option.long_name
    for name in sorted(set(strange) - known):
        if name in without:
            _log.warning(
                "the variable %s has no effect: use %s on the command line", name, without[name]
            )
            continue
        hint = ""
        near = get_close_matches(name, known, n=1, cutoff=_ALIKE)
        if near:
            hint = f"; did you mean {near[0]}?"
        _log.warning("the variable %s is unknown and ignored%s", printable(name), hint)


def is_no_option(name: str, value: str) -> bool:
    """Say whether a variable with our prefix is of no option by design, or Kubernetes' own."""
    if name in _NO_OPTIONS or _OF_A_SERVICE.fullmatch(name.removeprefix(ENVIRONMENT_PREFIX)):
        return True
    return name.endswith("PORT") and "://" in value


def options_of(command: click.Command, context: click.Context | None = None) -> list[Option]:
    """Return our own options of a command. Of a group with a context, return those of all its
    commands."""
    if context is None or not isinstance(command, click.Group):
        return [option for option in command.params if isinstance(option, Option)]
    options: list[Option] = []
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        if inner is not None:
            options += options_of(inner, context)
    return options


HELP: Mapping[str, str] = {
    "--allow-namespace": "Allow syncers in namespace FROM to select Services in namespace TO. "
    "* is any namespace. May be repeated.",
    "--approve": "Release the held removals with this plan id. If the plan has changed, nothing is "
    "released.",
    "--at": "With --from DIR: use the last pass that began at or before this time in UTC, such as "
    "03:12 or 2026-11-23T03:12:05Z. Default: the newest pass.",
    "--brake": "Hold removals above a percentage and a count: of all UP instances or those of one "
    "app (too-much), of the apps that lose their last UP instance (emptied), or that lose it "
    "because somebody deleted, drained or limited them (asked-for). confirm: seconds until the "
    "second pass that confirms a removal. What is not given keeps its default.",
    "--call-timeout": "Timeout of one call to Eureka or Kubernetes.",
    "--cluster": "UID of a cluster: renew only its instances. Default: all instances of the owner.",
    "--condition": "Show only syncers with this condition (RemovalHeld, Ready=False), reason "
    "(NoneUp) or STATE (NotReady).",
    "--context": "Name of the kubeconfig context. Default: the current context.",
    "--detailed-exitcode": f"With --dry-run: exit {ExitCode.CHANGES_PENDING} if there are changes.",
    "--drain-annotations": "Read the annotation eurekube.io/drain of Pods, in addition to that of "
    "Services.",
    "--eureka-batch": "Send up to 250 renewals or changes in one call. auto: only if --eureka-url "
    "names every peer of the servers. on: without that check.",
    "--eureka-password-file": "File with the password for Eureka. Reloaded when it changes.",
    "--eureka-tls": "PEM files for Eureka: ca has the certificate authorities (default: the public "
    "ones), cert a client certificate, key its key (default: in the file of cert).",
    "--eureka-token-file": "File with a bearer token for Eureka, instead of user and password. "
    "Reloaded when it changes.",
    "--eureka-url": "URL of Eureka, such as http://eureka.example.com:8761/eureka. For several "
    "peers repeat the option or separate them by commas, the preferred one first.",
    "--eureka-username": "User name for Eureka. The password is in --eureka-password-file or in "
    "EUREKUBE_SYNC_EUREKA_PASSWORD.",
    "--fail-on-held/--no-fail-on-held": f"Exit {ExitCode.REMOVAL_HELD} if removals are held.  "
    "[default: only for a single pass]",
    "--filename": "With --dry-run: plan as if the EurekaSyncers and EurekaImports in this file, "
    "folder or `-` (standard input) were applied. May be repeated.",
    "--former-cluster": "UID of a cluster that this one replaces. Its instances of the owner count "
    "as ours. Refused while they are still renewed. May be repeated.",
    "--former-owner": "Earlier name of this installation. Its instances are registered under their "
    "new ids, then cancelled under the old ones. Refused while they are still renewed. May be "
    "repeated.",
    "--from": "Read output of kubectl get (-o json or yaml) instead of the cluster, or a folder of "
    "run --record instead of both servers. For standard input give `-`. Namespaces without an object in "
    "the files are out of scope. May be repeated.",
    "--import-networks": "Networks of the data centre, such as 10.20.0.0/16: the only addresses to "
    "which an EurekaImport may lead callers in the cluster. Default: none, and imports are off.",
    "--installation": "Use the settings of this Deployment or CronJob in the cluster where no option "
    "or variable is given. auto: the only one with the labels of the chart. A run that is no dry "
    "run uses none unless it is named. off: none.",
    "--interval": "Time between the starts of two passes.",
    "--kubeconfig": "Path to the kubeconfig file. Default: the variable KUBECONFIG, else the pod's "
    "service account, else ~/.kube/config.",
    "--lease-duration": "How long Eureka keeps a new instance that is not renewed. After a renewal "
    "it is twice as long.",
    "--listen": "Address for metrics, health probes and a status page. There is no authentication.",
    "--lock": "Lease object by which only one of several replicas makes changes. auto: a Lease in "
    "the pod's own namespace. Outside a cluster, run uses no lock, and other commands read the "
    "Lease in the namespace eurekube-sync. A dry run, or a single pass with --approve, needs no "
    "lock.",
    "--metrics-to": "Write metrics after each pass: to a file, for the textfile collector of "
    "node_exporter, or to the URL of a Pushgateway.",
    "--namespace": "Only syncers in this namespace. May be repeated. Default: all namespaces.",
    "--owner": "Name of this installation, which marks its instances and is part of their ids. Use "
    "a different one in each cluster.",
    "--passes": "Number of passes. The exit code is that of the last one.",
    "--policy": "What run may change. sync: register, update and cancel instances. upsert-only: "
    "register and update instances, and cancel none.",
    "--record": "Folder for records of what each pass reads and decides, to use with --from. They "
    "have no secrets. Above MIB, 256 by default, the oldest are deleted.",
    "--registry-cache": "Maximum age of Eureka's cached lists. The finalizer of a deleted syncer "
    "stays at least that long.",
    "--require-app-grant": "Serve a syncer only if its Namespace allows its app and host names, "
    "with the annotations eurekube.io/allowed-apps and eurekube.io/allowed-hosts.",
    "--syncer-class": "Only syncers with this spec.syncerClass. Default: those without a class.",
}
"""The help of each option. Where commands need another text, it is given where the option is
declared."""
