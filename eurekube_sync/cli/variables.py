"""Variables of the environment that look like ours and do nothing: each is warned of, as an unknown option is refused.

`EUREKUBE_SYNC_DRYRUN=1 eurekube-sync run` would write, against what its author believes.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

import click

from eurekube_sync.cli.options.declare import ENVIRONMENT_PREFIX, Option, variable_of
from eurekube_sync.model.foreign_text import printable

_NO_OPTIONS = frozenset(f"{ENVIRONMENT_PREFIX}{name}" for name in ("DEBUG", "EUREKA_PASSWORD", "TEST_CACHE"))
_OF_A_SERVICE = re.compile(r"(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_\w+)")
"""What Kubernetes puts into every container for a Service called `eurekube-sync` or `eurekube-sync-...`."""
_ALIKE = 0.8
"""As `difflib` measures it: all of them have the same first 14 letters."""
_log = logging.getLogger(__name__)


def warn_of_unknown(environ: Mapping[str, str]) -> None:
    """Logs a warning for each. Needs a running command: it loads all the others only when there is something to say."""
    context = click.get_current_context(silent=True)
    if context is None:
        return
    known = _NO_OPTIONS | {variable_of(one.opts) for one in options_of(context.command) if one.envvar}
    strange = sorted(name for name in environ if _looks_like_ours(name, environ[name]) and name not in known)
    if not strange:
        return
    options = [one for _, command in all_commands(context.find_root()) for one in options_of(command)]
    known |= {variable_of(one.opts) for one in options if one.envvar}
    without = {variable_of(one.opts): max(one.opts, key=len) for one in options if not one.envvar}
    for name in (one for one in strange if one not in known):
        if name in without:
            _log.warning("the variable %s does nothing: give %s on the command line", name, without[name])
            continue
        near = get_close_matches(name, known, n=1, cutoff=_ALIKE)
        hint = f"; did you mean {near[0]}?" if near else ""
        _log.warning("the variable %s is not known and does nothing%s", printable(name), hint)


def _looks_like_ours(name: str, value: str) -> bool:
    rest = name.removeprefix(ENVIRONMENT_PREFIX)
    made_of_a_service = _OF_A_SERVICE.fullmatch(rest) or (rest.endswith("PORT") and "://" in value)
    return name.startswith(ENVIRONMENT_PREFIX) and not made_of_a_service


def options_of(command: click.Command) -> list[click.Option]:
    """Those of ours; not --help and --version, which click adds."""
    return [one for one in command.params if isinstance(one, Option)]


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
