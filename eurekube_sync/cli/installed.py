"""Commands that use the settings of the installation in the cluster, so that a dry run on a laptop
shows what the installation does.

The order is click's: command line, own variables, then the installation (as click's `default_map`),
then the defaults."""

from __future__ import annotations

import logging
import os
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

import click
from click.core import ParameterSource
from msgspec import Struct, field

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.kubernetes.connection import Connection
from eurekube_sync.adapters.kubernetes.installed import HIDDEN, LABEL, Installations, Workload
from eurekube_sync.cli.options.command import WHY_MISSING, Command
from eurekube_sync.cli.options.declare import (
    ENVIRONMENT_PREFIX,
    Option,
    Section,
    is_no_option,
    option,
    options_of,
)
from eurekube_sync.cli.options.report import ReportForm
from eurekube_sync.cli.options.servers import CONCURRENCY, PASSWORD_VARIABLE, to_cluster
from eurekube_sync.cli.values import Value
from eurekube_sync.controller.look import Deployed
from eurekube_sync.model.errors import SourceUnknown
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import one_or_more

INSTALLED_IN = "eurekube-sync"  # the namespace in the shipped manifests
_log = logging.getLogger(__name__)
_FOUND = f"{__name__}.found"  # in a context's `meta`: the `Installed` of this command
_NAME = re.compile(r"([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)/([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)")
_TAKEN = frozenset({Section.WHERE, Section.SCOPE, Section.BRAKE, Section.LOGIN, Section.EUREKA})
"""The headings of the settings that decide what an installation does. All others are of one
process, such as the format of its logs."""
_NOT_TAKEN = frozenset({"kubeconfig", "context", "approve", "installed"})
_FILES = frozenset(
    {
        "eureka_password_file",
        "eureka_token_file",
        "eureka_tls",
    }
)
_PASSWORD = frozenset({PASSWORD_VARIABLE, "--eureka-password-file"})
_CALLED: Mapping[str, str] = {
    "--eureka-password-file": "its password",
    PASSWORD_VARIABLE: "its password",
    "--eureka-token-file": "its token",
    "--eureka-url": "its URL",
}
"""What a person has to give, by the option that the installation has."""
_LOGIN = frozenset({"eureka_username", "eureka_password_file", "eureka_token_file"})
_PLACEHOLDERS: Mapping[str, Any] = {
    "owner": "installed",
    "eureka_url": ["http://installed.invalid/eureka"],
}
"""In the first look at a command line, for the required options that may be the installation's."""

Choice: TypeAlias = Literal["auto", "off"] | tuple[str, str]


class Installed(Struct, frozen=True, kw_only=True):
    """What a command found in the cluster before its own work."""

    connection: Connection  # for its work, too: a program for credentials may ask a person
    kind: str = ""
    namespace: str = ""
    name: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)  # by parameter, as click takes them
    options: tuple[str, ...] = ()  # the names of these settings
    notes: tuple[str, ...] = ()  # what a person must know of them
    why_none: str = ""  # why no settings were found
    without_eureka: str = ""  # why its Eureka is not asked; empty if it is
    works: bool = True  # not suspended, and not scaled to 0

    @property
    def ref(self) -> str:
        """The installation's namespace and name; empty if no settings are used."""
        return f"{self.namespace}/{self.name}" if self.name else ""

    @property
    def deployed(self) -> Deployed:
        """What a person pastes to reach it; empty if no settings are used."""
        if not self.name:
            return Deployed()
        kind = self.kind.lower()
        resource = f"{kind} {self.name} -n {self.namespace}"
        logs = f"kubectl logs -n {self.namespace} -l {LABEL} --prefix"
        start = ""
        if not self.works and self.kind == "CronJob":
            start = f'kubectl patch {resource} --patch \'{{"spec":{{"suspend":false}}}}\''
        elif not self.works:
            start = f"kubectl scale {resource} --replicas=1"
        return Deployed(resource=resource, logs=logs, start=start)

    def data(self) -> dict[str, Any] | None:
        """Return what a report says of it as data."""
        if not self.ref:
            return None
        return {
            "namespace": self.namespace,
            "name": self.name,
            "kind": self.kind,
            "options": list(self.options),
            "notes": list(self.notes),
        }


def _choice(given: str) -> Choice:
    if given in ("auto", "off"):
        return cast(Choice, given)
    match = _NAME.fullmatch(given)
    if not match:
        raise ValueError(f"{given!r} is not an installation; write auto, off or NAMESPACE/NAME")
    return match[1], match[2]


def _found_or_choice(context: click.Context, _parameter: click.Parameter, choice: Choice) -> object:
    return context.meta.get(_FOUND, choice)


installation_option = option(
    "--installation",
    "installed",
    section=Section.WHERE,
    type=Value("auto|off|namespace/name", _choice),
    metavar="auto|off|NAMESPACE/NAME",
    default="auto",
    callback=_found_or_choice,
)
"""The command gets an `Installed`, or None."""


class InstalledCommand(Command):
    """A command whose options default to the settings of the installation in the cluster."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # click shares `meta` between contexts. The first look has to see the choice itself.
        ctx.meta.pop(_FOUND, None)
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        given = _Given.of(self, ctx, list(args))
        if not given.asks_for_settings():
            ctx.meta[_FOUND] = None
            return super().parse_args(ctx, args)
        installed = _looked_up(given)
        ctx.meta[_FOUND] = installed
        defaults = ctx.default_map or {}
        ctx.default_map = {**defaults, **installed.settings}
        ctx.meta[WHY_MISSING] = installed.why_none
        left = super().parse_args(ctx, args)
        _tell(installed)
        form = ctx.params.get("form")
        if isinstance(form, ReportForm):
            ctx.params["form"] = replace(form, installation=installed.data())
        return left


def _tell(installed: Installed) -> None:
    if installed.ref:
        _log.info(
            "settings of the installation %s (%s); --installation off ignores them",
            installed.ref,
            installed.kind,
        )
    for note in installed.notes:
        _log.warning("%s", note)


class _Given(Struct, frozen=True):
    """The options as a person gave them, by the command line or by variables."""

    command: click.Command
    context: click.Context  # of a first look, which had placeholders for required options

    @classmethod
    def of(cls, command: click.Command, context: click.Context, args: list[str]) -> _Given:
        """Take a first look. It shows the help, and refuses what is wrong before any server is
        called."""
        try:
            return cls(command, _parsed(command, context, args, None))
        except click.MissingParameter:
            return cls(command, _parsed(command, context, args, _PLACEHOLDERS))

    @property
    def choice(self) -> Choice:
        return cast(Choice, self.context.params["installed"])

    def is_by_hand(self, name: str) -> bool:
        source = self.context.get_parameter_source(name)
        return source in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)

    def value(self, name: str) -> Any:
        """Return a value that was given by hand; else None."""
        if not self.is_by_hand(name):
            return None
        return self.context.params.get(name)

    def asks_for_settings(self) -> bool:
        """Say whether to look for an installation. A real pass uses its settings only if it is
        named; the installation's own pods have them as variables."""
        params = self.context.params
        is_saved = params.get("paths") or params.get("at")
        if self.choice == "off" or is_saved:
            return False
        if self.choice != "auto":
            return True
        is_real_pass = not params.get("dry_run", True)
        if is_real_pass or params.get("pre"):
            return False
        if params["kubeconfig"] or params["context"]:
            return True
        is_in_pod = bool(os.environ.get("KUBERNETES_SERVICE_HOST"))
        return not is_in_pod


def _parsed(
    command: click.Command,
    context: click.Context,
    args: list[str],
    defaults: Mapping[str, Any] | None,
) -> click.Context:
    """Parse the arguments in a context like this one. Raises click.UsageError."""
    look = type(context)(
        command, info_name=context.info_name, parent=context.parent, **command.context_settings
    )
    if defaults is not None:
        look.default_map = dict(defaults)
    with look.scope(cleanup=False):
        click.Command.parse_args(command, look, list(args))
    return look


def _looked_up(given: _Given) -> Installed:
    """Find the installation that is meant. Raises click.UsageError if that is not clear and the
    needed options are missing, and EurekubeError if one that was named cannot be read."""
    params = given.context.params
    connection = to_cluster(
        params["kubeconfig"],
        params["context"],
        call_timeout=params["call_timeout"],
        concurrency=CONCURRENCY,
    )
    none = Installed(connection=connection)
    installations = Installations(connection, clock=SystemClock(), random=random.Random())
    if isinstance(given.choice, tuple):
        return _named(given.choice, installations, given, none)
    asked = given.value("namespaces") or ()
    namespaces = sorted({INSTALLED_IN, *asked})
    workloads, hidden = installations.find(namespaces)
    candidates: list[_Settings] = []
    for workload in workloads:
        settings = _Settings.of(workload, given)
        if settings.runs:
            candidates.append(settings)
    if not candidates:
        return _none_found(hidden, none)
    if hidden is not None and hidden.cause is not Cause.DENIED:
        note = f"other installations may be hidden: {hidden.message}"
        none = replace(none, notes=(note,))
    fitting = _fitting(candidates, given)
    return _chosen(fitting, given, none)


def _named(
    ref: tuple[str, str], installations: Installations, given: _Given, none: Installed
) -> Installed:
    """Return what the command takes of the installation that a person named."""
    namespace, name = ref
    try:
        workload = installations.named(namespace, name)
    except SourceUnknown as error:
        # The account of the installation needs no right to read its own workload.
        may_lack_right = given.context.info_name == "check" and error.cause is Cause.DENIED
        if not may_lack_right:
            raise
        why = f"the settings of {namespace}/{name} could not be read: {error}"
        note = f"{why}. Give its options by hand, such as --owner and --namespace"
        return replace(none, why_none=why, notes=(note,))
    if workload is None:
        raise click.UsageError(
            f"--installation {namespace}/{name}: there is no Deployment and no CronJob of this name"
        )
    settings = _Settings.of(workload, given)
    return _used(settings, given, none)


def _none_found(hidden: Unknown | None, none: Installed) -> Installed:
    """Say why no installation was found: there is none, or it may be `hidden` by a failed list."""
    if hidden is None:
        return replace(none, why_none=f"no installation is in the cluster (label {LABEL})")
    why = f"the installation could not be looked for: {hidden.message}"
    if hidden.cause is not Cause.DENIED:
        # A server that does not answer is reported by what needs it.
        return replace(none, why_none=why, notes=())
    return replace(none, why_none=why, notes=(f"{why}; give its options by hand",))


def _chosen(fitting: Sequence[_Settings], given: _Given, none: Installed) -> Installed:
    """Return what the command takes of the one installation that fits. Raises click.UsageError if
    several fit, and their settings are needed."""
    if len(fitting) == 1:
        return _used(fitting[0], given, none)
    names = ", ".join(candidate.words for candidate in fitting)
    several = f"several installations are in the cluster: {names}"
    has_required = given.is_by_hand("owner") and given.is_by_hand("eureka_url")
    if not has_required:
        raise click.UsageError(
            f"{several}; choose one with --installation NAMESPACE/NAME", given.context
        )
    note = f"{several}; none of their settings are used without --installation NAMESPACE/NAME"
    return replace(none, notes=(*none.notes, note))


class _Settings(Struct, frozen=True, kw_only=True):
    """The settings of one installation, as `run` reads them."""

    workload: Workload
    runs: bool  # whether it is `run`
    run: click.Command
    context: click.Context  # for the options of `run`
    raw: Mapping[str, Any]  # by parameter, as click takes them; without those that are not read
    hidden: frozenset[str]  # parameters whose values are not read
    strange: tuple[str, ...]  # settings that this version does not know

    @classmethod
    def of(cls, workload: Workload, given: _Given) -> _Settings:
        """Read the variables of a workload, then its arguments, which win."""
        root = given.context.find_root()
        assert isinstance(root.command, click.Group)
        run = root.command.get_command(root, "run")
        assert run is not None
        context = click.Context(run, info_name="run", parent=root, ignore_unknown_options=True)
        runs = workload.arguments[:1] == ("run",)
        raw = _of_variables(run, workload)
        strange = _unknown_variables(run, workload)
        if runs:
            of_arguments, rest = _of_arguments(run, context, workload.arguments[1:])
            raw.update(of_arguments)
            strange += [word for word in rest if word.startswith("-")]
        hidden: set[str] = set()
        for name, value in list(raw.items()):
            if value is None or HIDDEN in str(value):
                hidden.add(name)
                del raw[name]
        return cls(
            workload=workload,
            runs=runs,
            run=run,
            context=context,
            raw=raw,
            hidden=frozenset(hidden),
            strange=tuple(strange),
        )

    @property
    def words(self) -> str:
        owner = self.raw.get("owner", "not read")
        return f"{self.workload.ref} ({self.workload.kind}, owner {owner})"

    def effective(self, parameter: Option) -> Any:
        """Return the value that the installation's `run` has for an option. Raises
        click.UsageError."""
        name = parameter.name or ""
        raw = self.raw.get(name, parameter.get_default(self.context))
        try:
            return parameter.process_value(self.context, raw)
        except click.UsageError as error:
            raise click.UsageError(
                f"the installation {self.workload.ref} has a setting that cannot be used: "
                f"{error.format_message()} (--installation off ignores it)"
            ) from error

    def of_name(self, name: str) -> Any:
        for parameter in options_of(self.run):
            if parameter.name == name and name in self.raw:
                return self.effective(parameter)
        return None


def _of_variables(run: click.Command, workload: Workload) -> dict[str, Any]:
    """Return what the workload's variables give, by parameter of `run`."""
    raw: dict[str, Any] = {}
    for parameter in options_of(run):
        text = workload.variables.get(parameter.variable, "")
        if text == "" or not parameter.envvar or not parameter.name:
            continue
        raw[parameter.name] = text
        if text is not None and parameter.multiple:
            # click takes the default of several values as a list.
            raw[parameter.name] = parameter.type.split_envvar_value(text)
    return raw


def _unknown_variables(run: click.Command, workload: Workload) -> list[str]:
    """Return the variables with our prefix that `run` of this version does not read."""
    known = {parameter.variable for parameter in options_of(run)}
    unknown: list[str] = []
    for name in sorted(workload.variables):
        if name in known or not name.startswith(ENVIRONMENT_PREFIX):
            continue
        text = workload.variables[name] or ""
        if not is_no_option(name, text):
            unknown.append(name)
    return unknown


def _of_arguments(
    run: click.Command, context: click.Context, words: Sequence[str]
) -> tuple[Mapping[str, Any], Sequence[str]]:
    """Return what the workload's arguments give, by parameter of `run`, and the words that `run`
    does not know."""
    try:
        raw, rest, _ = run.make_parser(context).parse_args(list(words))
    except click.UsageError as error:
        return {}, [error.format_message()]
    return raw, rest


def _fitting(candidates: Sequence[_Settings], given: _Given) -> Sequence[_Settings]:
    """Return the installations that may be meant: those that work, and have the owner, the class
    and the namespaces that were given. If none has them, all."""
    working = [candidate for candidate in candidates if candidate.workload.works] or candidates
    if len(working) == 1:
        return working
    return [candidate for candidate in working if _fits(candidate, given)] or working


def _fits(candidate: _Settings, given: _Given) -> bool:
    for name in ("owner", "syncer_class"):
        if given.is_by_hand(name) and candidate.of_name(name) != given.value(name):
            return False
    served = candidate.of_name("namespaces")
    asked = given.value("namespaces")
    return served is None or asked is None or asked <= served


def _used(settings: _Settings, given: _Given, none: Installed) -> Installed:
    """Return what the command takes of an installation, and what it cannot take."""
    workload = settings.workload
    if workload.unread is not None:
        why = f"the settings of {workload.ref} could not be read: {workload.unread.message}"
        return replace(none, why_none=why, notes=(*none.notes, f"{why}; give them by hand"))
    taken, by_hand = _taken(settings, given)
    notes = list(none.notes)
    without_eureka = ""
    if by_hand:
        without_eureka = _without_eureka(settings, given, by_hand)
        notes.append(f"Eureka is not asked: {without_eureka}")
        for name in list(taken):
            if name.startswith("eureka_"):
                del taken[name]
    notes += _differences(settings, given)
    notes += _what_to_know(settings)
    options: list[str] = []
    for parameter in options_of(settings.run):
        if parameter.name in taken:
            options.append(parameter.long_name)
    return replace(
        none,
        kind=workload.kind,
        namespace=workload.namespace,
        name=workload.name,
        works=workload.works,
        settings=taken,
        options=tuple(options),
        notes=tuple(notes),
        without_eureka=without_eureka,
    )


def _taken(settings: _Settings, given: _Given) -> tuple[dict[str, Any], Sequence[str]]:
    """Return the settings that the command takes, as click takes them, and the options that a
    person has to give, because their values are in files or Secrets of the pods. Raises
    click.UsageError for a setting that cannot be used."""
    taken: dict[str, Any] = {}
    by_hand: list[str] = []
    kept = _kept(settings, given)
    shared = {parameter.name for parameter in options_of(given.command)}
    for parameter in options_of(settings.run):
        name = parameter.name or ""
        if name not in shared or name not in kept or given.is_by_hand(name):
            continue
        is_file = name in _FILES and name in settings.raw
        if name in settings.hidden or is_file:
            by_hand.append(parameter.long_name)
        elif name in settings.raw:
            settings.effective(parameter)  # raises if it cannot be used
            taken[name] = settings.raw[name]
    if _needs_password(settings, given, kept):
        by_hand.append(PASSWORD_VARIABLE)
    return taken, by_hand


def _without_eureka(settings: _Settings, given: _Given, by_hand: Sequence[str]) -> str:
    """Say why Eureka is not asked. Raises click.UsageError if the command cannot do without what a
    person has to give."""
    options = _joined(by_hand)
    what = f"{settings.workload.ref} has {options} from a file or Secret of its pods"
    for_eureka = all(name.startswith(("--eureka-", PASSWORD_VARIABLE)) for name in by_hand)
    needs_eureka = False
    for parameter in options_of(given.command):
        if parameter.name == "eureka_url":
            needs_eureka = parameter.required
    if needs_eureka or not for_eureka:
        raise click.UsageError(f"{what}: give it here, too", given.context)
    called: list[str] = []
    for name in by_hand:
        thing = _CALLED.get(name, name)
        if thing not in called:
            called.append(thing)
    lacking = _joined(called)
    verb = one_or_more(len(called), "is", "are")
    ways = options
    if _PASSWORD.issuperset(by_hand):
        ways = f"--eureka-password-file or {PASSWORD_VARIABLE}"
    return f"{lacking} {verb} missing here: {what}; give {ways} here, too"


def _what_to_know(settings: _Settings) -> Sequence[str]:
    """Say what of the installation is unknown, not read, or at rest."""
    workload = settings.workload
    notes: list[str] = []
    if settings.strange:
        unknown = _joined(settings.strange)
        notes.append(f"{workload.ref} has settings that this version does not know: {unknown}")
    if workload.secrets:
        secrets = _joined(workload.secrets)
        notes.append(f"{workload.ref} has variables from the Secret {secrets}, which is not read")
    if not workload.works:
        state = "scaled to 0"
        if workload.kind == "CronJob":
            state = "suspended"
        notes.append(f"{workload.ref} does not run: it is {state}")
    return notes


def _kept(settings: _Settings, given: _Given) -> frozenset[str]:
    """Return the parameters that are taken of an installation. Who names another Eureka also says
    how to log in there, and who gives another login means all of it."""
    kept: set[str] = set()
    if given.context.info_name == "check":
        kept.add("interval")
    other_eureka = given.is_by_hand("eureka_url")
    for parameter in options_of(settings.run):
        name = parameter.name or ""
        of_eureka = name.startswith("eureka_")
        if parameter.section in _TAKEN and not (of_eureka and other_eureka):
            kept.add(name)
    kept -= _NOT_TAKEN
    if given.is_by_hand("eureka_username") or given.is_by_hand("eureka_token_file"):
        kept -= _LOGIN
    elif given.is_by_hand("eureka_password_file") or os.environ.get(PASSWORD_VARIABLE):
        kept -= _LOGIN - {"eureka_username"}
    return frozenset(kept)


def _needs_password(settings: _Settings, given: _Given, kept: Iterable[str]) -> bool:
    """Say whether the installation has a password in its variable, and none was given here. It is
    not taken: it may be a Secret's."""
    if PASSWORD_VARIABLE not in settings.workload.variables:
        return False
    given_here = bool(os.environ.get(PASSWORD_VARIABLE))
    return not given_here and "eureka_password_file" in kept


def _differences(settings: _Settings, given: _Given) -> list[str]:
    """Say which owner, scope or brake the installation has instead of what was given here."""
    clauses: list[str] = []
    shared = {parameter.name for parameter in options_of(given.command)}
    for parameter in options_of(settings.run):
        name = parameter.name or ""
        decides = name == "owner" or parameter.section in (Section.SCOPE, Section.BRAKE)
        if not decides or name in _NOT_TAKEN or name not in shared:
            continue
        if not given.is_by_hand(name):
            continue
        here = given.value(name)
        clause = f"{parameter.long_name} is {_shown(here)}"
        if name in settings.hidden:
            clauses.append(f"{clause}, and its own is not read")
            continue
        there = settings.effective(parameter)
        # Fewer namespaces are a filter.
        is_filter = name == "namespaces" and (there is None or here <= there)
        if here != there and not is_filter:
            clauses.append(f"{clause}, and not {_shown(there)}")
    if not clauses:
        return []
    differences = "; ".join(clauses)
    return [f"this differs from the installation {settings.workload.ref}: {differences}"]


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or value in ((), frozenset(), ""):
        return "not set"
    if not isinstance(value, frozenset | tuple):
        return str(value)
    parts: list[str] = []
    for part in value:
        if isinstance(part, tuple):
            parts.append(":".join(part))
        else:
            parts.append(str(part))
    return ",".join(sorted(parts))


def _joined(names: Sequence[str]) -> str:
    """Return names as an English list."""
    if len(names) < 2:
        return "".join(names)
    *first, last = names
    listed = ", ".join(first)
    return f"{listed} and {last}"
