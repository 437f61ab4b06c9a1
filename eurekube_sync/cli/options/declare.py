"""How options are declared: their variables, their headings in `--help`, and groups that become one
value."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from inspect import signature
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.model.foreign_text import printable

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

    WHERE = "Who and where"
    SCOPE = "Which syncers"
    COMMAND = "What to do"
    PASSES = "Passes"
    BRAKE = "The brake"
    LOGIN = "Login to Eureka, and TLS"
    LEASES = "Leases"
    CALLS = "Calls"
    WATCHING = "Watching it"
    REPORT = "Report and logs"


class Option(click.Option):
    """An option with a heading in `--help`."""

    def __init__(self, *args: Any, section: Section | None = None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.section = section


def option(*names: str, variable: bool = True, **settings: Any) -> Callable[[F], F]:
    """Declare an option. Its variable is `EUREKUBE_SYNC_` and its long name.

    `variable=False` is for an option such as `--yes`, which must not be set for every command of a
    shell.
    """
    if variable:
        settings.setdefault("envvar", variable_of(names))
    settings.setdefault("help", HELP.get(next(name for name in names if name.startswith("--"))))
    return click.option(*names, cls=Option, show_default=True, **settings)


def variable_of(names: Sequence[str]) -> str:
    long_name = (
        next(name for name in names if name.startswith("--")).split("/")[0].removeprefix("--")
    )
    return ENVIRONMENT_PREFIX + long_name.upper().replace("-", "_")


def on_command_line(parameter: str) -> bool:
    """Return whether the parameter was given on the command line, not by a variable or a
    default."""
    context = click.get_current_context(silent=True)
    return (
        context is not None
        and context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE
    )


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
        taken = signature(parse).parameters.keys() & values
        values[name] = parse(**{parameter: values.pop(parameter) for parameter in taken})


def warn_of_unknown(environ: Mapping[str, str]) -> None:
    """Log a warning for each unknown variable. Whoever sets `EUREKUBE_SYNC_DRYRUN=1` expects that
    `run` writes nothing.

    The other commands are loaded only if the running command does not know a variable.
    """
    context = click.get_current_context(silent=True)
    if context is None:
        return
    known = _NO_OPTIONS | {
        variable_of(one.opts) for one in options_of(context.command) if one.envvar
    }
    ours = {name: value for name, value in environ.items() if name.startswith(ENVIRONMENT_PREFIX)}
    strange = {name for name in ours.keys() - known if not _of_a_service(name, ours[name])}
    if not strange:
        return
    options = options_of(context.find_root().command, context)
    known |= {variable_of(one.opts) for one in options if one.envvar}
    without = {variable_of(one.opts): max(one.opts, key=len) for one in options if not one.envvar}
    for name in sorted(strange - known):
        if name in without:
            _log.warning(
                "the variable %s does nothing: give %s on the command line", name, without[name]
            )
        else:
            near = get_close_matches(name, known, n=1, cutoff=_ALIKE)
            hint = f"; did you mean {near[0]}?" if near else ""
            _log.warning("the variable %s is not known and does nothing%s", printable(name), hint)


def _of_a_service(name: str, value: str) -> bool:
    found = _OF_A_SERVICE.fullmatch(name.removeprefix(ENVIRONMENT_PREFIX))
    return found is not None or (name.endswith("PORT") and "://" in value)


def options_of(command: click.Command, context: click.Context | None = None) -> list[Option]:
    """Return our own options of a command. Of a group with a context, return those of all its
    commands."""
    if context is None or not isinstance(command, click.Group):
        return [one for one in command.params if isinstance(one, Option)]
    inner = [command.get_command(context, name) for name in command.list_commands(context)]
    return [option for one in inner if one is not None for option in options_of(one, context)]


HELP: Mapping[str, str] = {
    "--eureka-batch": "Send up to 250 changes or renewals in one call to each Eureka server. "
    "auto: only if "
    "--eureka-url names every peer of these servers. on: without this check.",
    "--from": "With --dry-run: read the cluster from this output of kubectl get -o json or -o "
    "yaml. Write - for "
    "standard input. May be repeated. Only namespaces in the files are planned.",
    "--concurrency": "How many calls to Eureka or Kubernetes may run at the same time.",
    "--call-timeout": "The longest time to wait for one answer.",
    "--kubeconfig": "Path of the kubeconfig. Default: the variable KUBECONFIG, else the pod's "
    "service account, else "
    "~/.kube/config.",
    "--context": "Context of the kubeconfig. Default: its current one.",
    "--endpoints-source": "Where the addresses of pods are read from. endpoints is for a cluster "
    "whose EndpointSlices cannot be read.",
    "--eureka-url": "Address of Eureka with its path, such as "
    "http://eureka.example.com:8761/eureka. For several peers "
    "repeat the option, or put commas between the addresses. The preferred one comes first.",
    "--eureka-username": "User name for Eureka. The password is in a file or in "
    "EUREKUBE_SYNC_EUREKA_PASSWORD.",
    "--eureka-proxy": "HTTP proxy for Eureka. HTTPS_PROXY and similar variables, and netrc, are "
    "not used.",
    "--eureka-username-file": "File that holds the user name; read again when it changes.",
    "--eureka-password-file": "File that holds the password; read again when it changes.",
    "--eureka-ca-file": "PEM file of the authorities to trust for Eureka. Default: the public "
    "ones.",
    "--eureka-client-cert": "PEM file of the client certificate for Eureka.",
    "--eureka-client-key": "PEM file of the certificate's key.  [default: the file of the "
    "certificate]",
    "--eureka-insecure-skip-tls-verify": "Do not verify Eureka's certificate. Anybody can then "
    "pretend to be Eureka.",
    "--owner": "Name that marks all instances of this installation, as a part of their ids. Use a "
    "different one in "
    "each cluster.",
    "--lock": "Lease object by which only one of several copies of `run` works at a time. A dry "
    "run takes "
    "none, nor does --approve without --daemon. The Lease also shows when the last good pass was. "
    "auto: the Lease in "
    "the pod's own namespace; outside of a cluster, run takes no lock, and other commands read "
    "the Lease in the "
    "namespace eurekube-sync.",
    "--namespace": "Only the syncers of this namespace. May be repeated. Default: all.",
    "--drain-annotations": "Objects whose annotation eurekube.io/drain is read. services: "
    "Services; pods: Services and "
    "Pods; all: Services, Pods and Nodes.",
    "--former-owner": "An earlier name of this installation. Its instances count as ours: each is "
    "registered under "
    "its new id, then cancelled under the old one. Refused while somebody renews them. May be "
    "repeated.",
    "--former-cluster": "UID of a cluster that this one replaces. Its instances of the owner "
    "count as ours. Refused "
    "while somebody renews them. May be repeated.",
    "--syncer-class": "Only the syncers with this spec.syncerClass. Default: those without one.",
    "--allow-namespace": "Let syncers of namespace FROM select Services of namespace TO. * is "
    "any. May be repeated.",
    "--require-app-grant": "Serve a syncer only if its Namespace grants the syncer's names and "
    "hosts. Grants are the "
    "annotations eurekube.io/allowed-apps and eurekube.io/allowed-hosts.",
    "--approve": "Release held removals. A plan id releases exactly the removals that were held "
    "under it. A file is a "
    "dry run saved with -o json; it releases those of its removals that are still planned.",
    "--detailed-exitcode": f"With --dry-run: exit {ExitCode.CHANGES_PENDING} if there are changes "
    "to make.",
    "--fail-on-held/--no-fail-on-held": f"Exit {ExitCode.REMOVAL_HELD} if the brake holds "
    "removals.  [default: only "
    "for a single pass]",
    "--fail-on-broken": f"Exit {ExitCode.INCOMPLETE} if a syncer is not served, such as one with "
    "an invalid "
    "spec. A syncer that is served does not count, even if it has no UP instance and status calls "
    "it broken.",
    "--passes": "How many passes to run. The exit code is that of the last one.",
    "--interval": "Time from the start of a pass to the start of the next.",
    "--lease-duration": "How long Eureka lists a new instance that nobody renews. After a renewal "
    "it is twice as long.",
    "--registry-cache": "How old a list of Eureka can be, because Eureka caches its lists. The "
    "finalizer of a deleted "
    "syncer stays at least that long.",
    "--brake-percent": "Hold removals if they are more than this percentage of all our UP "
    "instances, or of the UP "
    "instances of one app. A removal cancels an UP instance or turns it DOWN. Removals with "
    "evidence, such as a "
    "terminating pod, do not count.",
    "--brake-count": "--brake-percent holds nothing of all our instances if at most this number "
    "would be removed, and "
    "nothing of one app if at most this number of its instances would be removed.",
    "--brake-apps-percent": "Hold removals if two or more apps would have no UP instance left, "
    "and these are more "
    "than this percentage of our apps.",
    "--listen": "Serve /metrics, /livez, /readyz and a page for people at this address, such as "
    ":8080. Anybody who can "
    "reach the address can read them.",
    "--metrics-file": "Write the metrics into this file after each pass, for the textfile "
    "collector of node_exporter.",
    "--record": "Keep in this folder what each pass read and decided, for eurekube-sync replay. "
    "Secrets are left out.",
    "--record-limit": "The greatest size of the folder of --record. The oldest records are "
    "deleted first.",
    "--list-renewals": "With -o json or yaml: list each renewed instance, and not only their "
    "number.",
    "--cluster": "Renew only instances of the cluster with this UID. Default: all instances of "
    "the owner.",
    "--condition": "Show only syncers that match: a condition, such as RemovalHeld or "
    "Ready=False; its reason, such as "
    "NoneUp; or a STATE, such as NotReady.",
    "--observe": "How long to watch whether somebody still renews the instances.  [default: twice "
    "the renewal period "
    "of the instances, plus 5s]",
    "--at": "Show the last pass that began at or before this time, such as 03:12 or "
    "2026-11-23T03:12:05Z. Times are "
    "UTC.",
}
"""The help of each option. Where commands need another text, it is given where the option is
declared."""
