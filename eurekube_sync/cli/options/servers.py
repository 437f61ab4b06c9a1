"""Options for both servers and for Eureka's login, TLS and proxy, which are checked before anything
is sent."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

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
)
from eurekube_sync.files import open_regular
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.ports import Clock

if TYPE_CHECKING:
    from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress, Login

# Not an option: a process list shows those
PASSWORD_VARIABLE = f"{ENVIRONMENT_PREFIX}EUREKA_PASSWORD"
_MOST_BYTES = 16 * 1024 * 1024  # of a file with certificates
_URL_WITH_PASSWORD = re.compile(r"//[^/,]*:[^/,]*@")

call_options = (
    option("--concurrency", section=Section.CALLS, type=click.IntRange(1, 256), default=16),
    option("--call-timeout", section=Section.CALLS, type=Duration(least=0.1), default="10s"),
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


@dataclass(frozen=True, slots=True)
class SavedInput:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EurekaAccess:
    """How to reach Eureka."""

    eureka_url: str = ""
    """One address, or several peers' with commas between; may be empty for some commands."""
    eureka_username: str | None = None
    eureka_password_file: str | None = None
    eureka_token_file: str | None = None
    eureka_ca_file: str | None = None
    eureka_client_cert: str | None = None
    eureka_client_key: str | None = None
    eureka_insecure_skip_tls_verify: bool = False
    eureka_proxy: str | None = None

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
        if self.eureka_insecure_skip_tls_verify:
            yield (
                "Eureka's certificate is not verified (--eureka-insecure-skip-tls-verify): anybody "
                "in between can read the login and change what is registered; give "
                "--eureka-ca-file instead."
            )
        for name, url in (
            ("--eureka-url", self.eureka_url),
            ("--eureka-proxy", self.eureka_proxy or ""),
        ):
            if _URL_WITH_PASSWORD.search(url) and on_command_line(name[2:].replace("-", "_")):
                variable = variable_of([name])
                yield (
                    f"The password in {name} is in the process list of this machine; set "
                    f"{variable} instead."
                )


def with_access(
    options: ConnectionOptions,
    access: EurekaAccess,
    addresses: Sequence[EurekaAddress],
    clock: Clock,
) -> ConnectionOptions:
    """Add login, TLS and proxy to the options. Reads each file once, and raises
    ConfigurationError."""
    _check_tls(access, addresses)
    certificate, key = access.eureka_client_cert, access.eureka_client_key
    return replace(
        options,
        login=_login(access, addresses, clock),
        ca_file=access.eureka_ca_file or "",
        verify=not access.eureka_insecure_skip_tls_verify,
        client_certificate=(certificate, key or certificate) if certificate else None,
        proxies=_proxies(access.eureka_proxy),
        proxy_origin="--eureka-proxy"
        if on_command_line("eureka_proxy")
        else variable_of(["--eureka-proxy"]),
    )


def _login(access: EurekaAccess, addresses: Sequence[EurekaAddress], clock: Clock) -> Login | None:
    from eurekube_sync.adapters.eureka.address import SecretFile, make_login, make_token_login

    in_url = any(address.login for address in addresses)
    if access.eureka_token_file:
        if access.eureka_username or in_url:
            other = "--eureka-username" if access.eureka_username else "in --eureka-url"
            raise ConfigurationError(
                f"The login of Eureka is given twice, as --eureka-token-file and {other}"
            )
        path = Path(access.eureka_token_file)
        return make_token_login(path, option="--eureka-token-file", clock=clock)
    user, file = access.eureka_username, access.eureka_password_file
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


def _check_tls(access: EurekaAccess, addresses: Sequence[EurekaAddress]) -> None:
    certificate, key = access.eureka_client_cert, access.eureka_client_key
    files = {
        "--eureka-ca-file": access.eureka_ca_file,
        "--eureka-client-cert": certificate,
        "--eureka-client-key": key,
    }
    given = [name for name, path in files.items() if path]
    if access.eureka_insecure_skip_tls_verify:
        if access.eureka_ca_file:
            raise ConfigurationError(
                "--eureka-insecure-skip-tls-verify makes --eureka-ca-file useless: give one of them"
            )
        given.append("--eureka-insecure-skip-tls-verify")
    if key and not certificate:
        raise ConfigurationError("--eureka-client-key needs --eureka-client-cert")
    if given and not any(address.url.startswith("https:") for address in addresses):
        raise ConfigurationError(
            f"{given[0]} is for https, and --eureka-url is http, where nothing is encrypted"
        )
    for name, path in files.items():
        if path:
            _check_readable(name, path)
    _check_usable(access.eureka_ca_file, certificate, key)


def _check_usable(ca_file: str | None, certificate: str | None, key: str | None) -> None:
    """Let TLS load the files, as each connection does later."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca_file:
        try:
            context.load_verify_locations(ca_file)
        except ssl.SSLError:
            raise ConfigurationError(
                f"--eureka-ca-file: {ca_file} holds no certificate in PEM form"
            ) from None
    if certificate:
        try:
            context.load_cert_chain(certificate, key, password=lambda: "")
        except ssl.SSLError:
            raise ConfigurationError(
                f"--eureka-client-cert {certificate} and the key in {key or certificate} cannot be "
                "used: both have to be in PEM form and belong together, and the key must not be "
                "encrypted"
            ) from None


def _check_readable(name: str, path: str) -> None:
    try:
        with open_regular(path, follow=True) as file:
            size = len(file.read(_MOST_BYTES + 1))
    except OSError as error:
        raise ConfigurationError(f"{name}: {path} cannot be read: {error.strerror}") from None
    if size > _MOST_BYTES:
        raise ConfigurationError(f"{name}: {path} is larger than {_MOST_BYTES // 2**20} MiB")


def _proxies(url: str | None) -> dict[str, str]:
    if not url:
        return {}
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ConfigurationError(
            "--eureka-proxy is not the URL of an HTTP proxy: write it as http://proxy:3128"
        )
    return {"http": url, "https": url}


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
    _file("--eureka-ca-file"),
    _file("--eureka-client-cert"),
    _file("--eureka-client-key"),
    _login_option("--eureka-insecure-skip-tls-verify", is_flag=True),
    _login_option("--eureka-proxy", metavar="URL"),
)
eureka_options = (_url(required=True), *_login_options)
optional_eureka_options = (_url(), *_login_options)  # without --eureka-url, the URL is empty
