"""Options for both servers and for Eureka's login and TLS, which are checked before anything is
sent."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from eurekube_sync.adapters.kubernetes.connection import (
    ClientConnection,
    Connection,
    ConnectionSettings,
)
from eurekube_sync.cli.options.declare import (
    ENVIRONMENT_PREFIX,
    Section,
    check_present,
    group,
    on_command_line,
    option,
    variable_of,
)
from eurekube_sync.cli.values import (
    NAME,
    Duration,
    File,
    Value,
    complete_contexts,
    end_of_moment,
    keyed,
)
from eurekube_sync.files import open_regular
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.ports import Clock
from eurekube_sync.model.struct import replace

if TYPE_CHECKING:
    from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress, Login

# Not an option: a process list shows those
PASSWORD_VARIABLE = f"{ENVIRONMENT_PREFIX}EUREKA_PASSWORD"
_MOST_BYTES = 16 * 1024 * 1024  # of a file with certificates
_URL_WITH_PASSWORD = re.compile(r"//[^/,]*:[^/,]*@")

call_option = option(
    "--call-timeout", section=Section.CALLS, type=Duration(least=0.1), default="10s"
)
batch_option = option(
    "--eureka-batch",
    section=Section.EUREKA,
    type=click.Choice(["auto", "on", "off"]),
    default="auto",
)
_kubeconfig = [ENVIRONMENT_PREFIX + "KUBECONFIG", "KUBECONFIG"]
kubernetes_options = (
    option("--kubeconfig", section=Section.WHERE, type=File(), envvar=_kubeconfig),
    option("--context", section=Section.WHERE, type=NAME, shell_complete=complete_contexts),
)


CONCURRENCY = 16
"""Threads, each with a connection to each server."""


def to_cluster(
    kubeconfig: str | None, context: str | None, *, call_timeout: float, concurrency: int
) -> Connection:
    """Connect to Kubernetes as the options say. Raises ConfigurationError."""
    settings = ConnectionSettings(
        kubeconfig=kubeconfig or "",
        context=context or "",
        connect_seconds=min(5.0, call_timeout),
        read_seconds=call_timeout,
        threads=concurrency,
    )
    return ClientConnection(settings)


class SavedInput(Struct, frozen=True):
    """What is read instead of a cluster: output of kubectl, or the record of a pass."""

    paths: tuple[str, ...]  # files, or one folder of records
    at: datetime | None  # the end of the moment that chooses the record; None: the newest


def _without_servers(
    context: click.Context, _parameter: click.Parameter, paths: tuple[str, ...]
) -> tuple[str, ...]:
    """Require no owner and no Eureka with a folder of records: a recorded pass names them."""
    if any(os.path.isdir(path) for path in paths):
        context.default_map = {
            "owner": "recorded",
            "eureka_url": ["http://recorded.invalid/eureka"],
        }
    return paths


saved_options = group(
    "saved",
    SavedInput,
    option(
        "--from",
        "paths",
        variable=False,
        section=Section.COMMAND,
        metavar="FILE|DIR",
        multiple=True,
        is_eager=True,
        callback=_without_servers,
    ),
    option(
        "--at",
        variable=False,
        section=Section.COMMAND,
        metavar="TIME",
        type=Value("time", end_of_moment),
    ),
)


def _all_present(
    _context: click.Context, _parameter: click.Parameter, names: tuple[str, ...]
) -> tuple[str, ...]:
    for name in names:
        check_present(name)
    return names


filename_option = option(
    "--filename",
    "-f",
    variable=False,
    section=Section.COMMAND,
    metavar="FILE",
    multiple=True,
    callback=_all_present,
)


class TlsFiles(Struct, frozen=True, kw_only=True):
    """PEM files for the connections to Eureka; an empty path is none."""

    ca: str = ""  # the authorities; without it, the public ones
    cert: str = ""
    key: str = ""  # of `cert`; without it, in the same file


NO_TLS_FILES = TlsFiles()


def _tls_files(text: str) -> TlsFiles:
    return TlsFiles(**keyed(text, dict.fromkeys(("ca", "cert", "key"), str)))


class EurekaAccess(Struct, frozen=True, kw_only=True):
    """How to reach Eureka."""

    eureka_url: str = ""
    """One address, or several peers' with commas between; may be empty for some commands."""
    eureka_username: str | None = None
    eureka_password_file: str | None = None
    eureka_token_file: str | None = None
    eureka_tls: TlsFiles = NO_TLS_FILES

    @property
    def printable_urls(self) -> tuple[str, ...]:
        """Each server's address without its login."""
        from eurekube_sync.adapters.eureka.address import parse_addresses

        if not self.eureka_url:
            return ()
        return tuple(address.url for address in parse_addresses(self.eureka_url))

    @property
    def warnings(self) -> Iterator[str]:
        """Sentences to log once, at the start."""
        if _URL_WITH_PASSWORD.search(self.eureka_url) and on_command_line("eureka_url"):
            yield (
                "The password in --eureka-url is in the process list of this machine; set "
                f"{variable_of(['--eureka-url'])} instead."
            )


def with_access(
    options: ConnectionOptions,
    access: EurekaAccess,
    addresses: Sequence[EurekaAddress],
    clock: Clock,
) -> ConnectionOptions:
    """Add login and TLS to the options. Reads each file once, and raises ConfigurationError."""
    tls = access.eureka_tls
    _check_tls(tls, addresses)
    certificate = None
    if tls.cert:
        certificate = (tls.cert, tls.key or tls.cert)
    return replace(
        options,
        login=_login(access, addresses, clock),
        ca_file=tls.ca,
        client_certificate=certificate,
    )


def _login(access: EurekaAccess, addresses: Sequence[EurekaAddress], clock: Clock) -> Login | None:
    from eurekube_sync.adapters.eureka.address import SecretFile, make_login, make_token_login

    in_url = any(address.login for address in addresses)
    if access.eureka_token_file:
        if access.eureka_username or in_url:
            other = "in --eureka-url"
            if access.eureka_username:
                other = "--eureka-username"
            raise ConfigurationError(
                f"The login of Eureka is given twice, as --eureka-token-file and {other}"
            )
        path = Path(access.eureka_token_file)
        return make_token_login(path, option="--eureka-token-file", clock=clock)
    user = access.eureka_username
    file = access.eureka_password_file
    password = os.environ.get(PASSWORD_VARIABLE)
    if file and password:
        raise ConfigurationError(
            "the password of Eureka is given twice, as --eureka-password-file and as "
            f"{PASSWORD_VARIABLE}"
        )
    if not user:
        if file or password:
            given = "--eureka-password-file" if file else PASSWORD_VARIABLE
            raise ConfigurationError(f"{given} needs --eureka-username")
        return None
    if in_url:
        raise ConfigurationError(
            "the login of Eureka is given twice, in --eureka-url and as --eureka-username"
        )
    if file:
        secret = SecretFile(Path(file), option="--eureka-password-file", clock=clock)
        return make_login(user=user, password=secret)
    if password:
        return make_login(user=user, password=password)
    raise ConfigurationError(
        f"--eureka-username needs --eureka-password-file or {PASSWORD_VARIABLE}"
    )


def _check_tls(tls: TlsFiles, addresses: Sequence[EurekaAddress]) -> None:
    if tls == NO_TLS_FILES:
        return
    if tls.key and not tls.cert:
        raise ConfigurationError("--eureka-tls: key needs cert")
    if not any(address.url.startswith("https:") for address in addresses):
        raise ConfigurationError(
            "--eureka-tls is for https, and --eureka-url is http, where nothing is encrypted"
        )
    for key, path in (("ca", tls.ca), ("cert", tls.cert), ("key", tls.key)):
        if path:
            _check_readable(f"--eureka-tls: {key}", path)
    _check_usable(tls)


def _check_usable(tls: TlsFiles) -> None:
    """Let TLS load the files, as each connection does later."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if tls.ca:
        try:
            context.load_verify_locations(tls.ca)
        except ssl.SSLError:
            raise ConfigurationError(
                f"--eureka-tls: ca: {tls.ca} holds no certificate in PEM form"
            ) from None
    if tls.cert:
        try:
            context.load_cert_chain(tls.cert, tls.key or None, password=lambda: "")
        except ssl.SSLError:
            raise ConfigurationError(
                f"--eureka-tls: the certificate in {tls.cert} and the key in "
                f"{tls.key or tls.cert} cannot be used: both have to be in PEM form and belong "
                "together, and the key must not be encrypted"
            ) from None


def _check_readable(name: str, path: str) -> None:
    try:
        with open_regular(path, follow=True) as file:
            size = len(file.read(_MOST_BYTES + 1))
    except OSError as error:
        raise ConfigurationError(f"{name}: {path} cannot be read: {error.strerror}") from None
    if size > _MOST_BYTES:
        raise ConfigurationError(f"{name}: {path} is larger than {_MOST_BYTES // 2**20} MiB")


def _one_text(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> str:
    from eurekube_sync.adapters.eureka.address import parse_addresses

    url = ",".join(given)
    try:
        if given:
            parse_addresses(url)
    except ConfigurationError as error:
        raise click.BadParameter(str(error)) from None
    return url


_url = partial(
    option, "--eureka-url", callback=_one_text, section=Section.WHERE, metavar="URL", multiple=True
)
_login_option = partial(option, section=Section.LOGIN)
_file = partial(_login_option, metavar="FILE", type=click.Path())
_login_options = (
    _login_option("--eureka-username", metavar="NAME"),
    _file("--eureka-password-file"),
    _file("--eureka-token-file"),
    _login_option(
        "--eureka-tls",
        metavar="KEY=FILE[,...]",
        type=Value("key=file[,...]", _tls_files),
        default=NO_TLS_FILES,
        show_default=False,
    ),
)
eureka_options = (_url(required=True), *_login_options)
optional_eureka_options = (_url(), *_login_options)  # without --eureka-url, the URL is empty
