"""Variables of the environment that look like ours and do nothing: each is warned of, as an unknown option is refused.

`EUREKUBE_SYNC_DRYRUN=1 eurekube-sync run` would write, against what its author believes.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

import click

from eurekube_sync.cli.options.declare import ENVIRONMENT_PREFIX, variable_of
from eurekube_sync.model.foreign_text import printable

_NO_OPTIONS = frozenset(f"{ENVIRONMENT_PREFIX}{name}" for name in ("DEBUG", "EUREKA_PASSWORD", "TEST_CACHE"))
_OF_A_SERVICE = re.compile(r"(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_\w+)")
"""What Kubernetes puts into every container for a Service called `eurekube-sync` or `eurekube-sync-...`."""
_log = logging.getLogger(__name__)


def warn_of_unknown(environ: Mapping[str, str]) -> None:
    """Logs a warning for each. Needs a running command: it loads all the others only when there is something to say."""
    context = click.get_current_context(silent=True)
    if context is None:
        return
    strange = [name for name in environ if _looks_like_ours(name, environ[name])]
    strange = [name for name in strange if name not in _variables([context.command])]
    if strange:
        commands = [one for _, one in all_commands(context.find_root())]
        for name in sorted(strange):
            if name not in _variables(commands):
                _log.warning("%s", _sentence(name, commands))


def _looks_like_ours(name: str, value: str) -> bool:
    if not name.startswith(ENVIRONMENT_PREFIX) or name in _NO_OPTIONS:
        return False
    rest = name.removeprefix(ENVIRONMENT_PREFIX)
    return not (_OF_A_SERVICE.fullmatch(rest) or (rest.endswith("PORT") and "://" in value))


def _sentence(name: str, commands: list[click.Command]) -> str:
    without = {variable_of(one.opts): max(one.opts, key=len) for one in _options(commands) if one.envvar is None}
    if name in without:
        return f"the variable {name} does nothing: give {without[name]} on the command line"
    variables = {one.removeprefix(ENVIRONMENT_PREFIX): one for one in _variables(commands) | _NO_OPTIONS}
    near = get_close_matches(name.removeprefix(ENVIRONMENT_PREFIX), variables, n=1)
    hint = f"; did you mean {variables[near[0]]}?" if near else ""
    return f"the variable {printable(name)} is not known and does nothing{hint}"


def _variables(commands: list[click.Command]) -> frozenset[str]:
    return frozenset(one.envvar for one in _options(commands) if isinstance(one.envvar, str))


def _options(commands: list[click.Command]) -> Iterator[click.Option]:
    for command in commands:
        for one in command.params:
            if isinstance(one, click.Option) and any(name.startswith("--") for name in one.opts):
                yield one


def all_commands(context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Of the whole program, each with its words, such as `owner adopt`; groups left out."""
    waiting = [("", context.command)]
    while waiting:
        words, one = waiting.pop(0)
        if isinstance(one, click.Group):
            found = ((name, one.get_command(context, name)) for name in one.list_commands(context))
            waiting += [(f"{words} {name}".strip(), command) for name, command in found if command is not None]
        else:
            yield words, one
