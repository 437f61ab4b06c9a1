"""Whether passes are recorded, where, and how much."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import click

from eurekube_sync.cli.options.declare import Section, group, option
from eurekube_sync.cli.options.eureka import PASSWORD_VARIABLE, EurekaAccess
from eurekube_sync.cli.values import File

_MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Where records go; nowhere by default."""

    record: str | None = None
    record_limit: int = 256

    @property
    def most_bytes(self) -> int:
        """Of all records together."""
        return self.record_limit * _MEBIBYTE


def given_secrets(eureka: EurekaAccess) -> tuple[str, ...]:
    """What this process was given to log in to Eureka."""
    return tuple(one for one in _secrets(eureka) if one)


def _secrets(eureka: EurekaAccess) -> Iterator[str]:
    yield os.environ.get(PASSWORD_VARIABLE, "")
    if eureka.eureka_password_file:
        try:
            with open(eureka.eureka_password_file, encoding="utf-8", errors="replace") as file:
                yield file.read(4096).strip()
        except OSError:
            pass  # the connection will say so
    for url in eureka.eureka_url.split(","):
        try:
            password = urlsplit(url).password or ""
        except ValueError:
            continue
        yield from (password, unquote(password))


recording_options = group(
    "recording",
    Recording,
    option(
        "--record",
        metavar="DIR",
        type=File(file_okay=False),
        default=None,
        help="Keep in this folder what each pass read and decided, for eurekube-sync replay. Secrets are left out.",
    ),
    option(
        "--record-limit",
        metavar="MIB",
        type=click.IntRange(1, 1024 * 1024),
        default=256,
        help="Delete the oldest records above this size.",
    ),
    section=Section.WATCHING,
)
"""The command gets them as `recording`, a `Recording`."""
