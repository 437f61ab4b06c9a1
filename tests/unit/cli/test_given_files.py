"""Paths in options: every path must be a file, so that no reader waits for a pipe or reads a
device."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress
from eurekube_sync.adapters.kubernetes.connection import Call, ClientConnection, ConnectionSettings
from eurekube_sync.adapters.kubernetes.kubeconfig import context_names
from eurekube_sync.adapters.tries import AnswerTime
from eurekube_sync.cli.options.servers import EurekaAccess, TlsFiles, with_access
from eurekube_sync.manifests.dumps import read_dumps
from eurekube_sync.manifests.files import validate_paths
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import ClusterCredentialsMissing, ConfigurationError

NO_FILE = "cannot be read: it is a folder, a pipe or a device"


def _access(option: str) -> Callable[[str], None]:
    def read(path: str) -> None:
        url = "https://eureka.test/eureka"
        address = EurekaAddress.parse(url)
        given: dict[str, Any] = {option: path}
        if option == "eureka_password_file":
            given["eureka_username"] = "joe"
        else:
            given = {"eureka_tls": TlsFiles(**given)}
        access = EurekaAccess(eureka_url=url, **given)
        with_access(ConnectionOptions(address=address), access, (address,), SystemClock())

    return read


def _validate(path: str) -> None:
    (finding, *_) = validate_paths([path], stdin=io.BytesIO()).findings
    raise ConfigurationError(finding.reason)


READERS: dict[str, tuple[Callable[[str], object], str]] = {
    "--from": (lambda path: read_dumps([path], stdin=io.BytesIO()), NO_FILE),
    "--kubeconfig": (context_names, "there is no kubeconfig"),
    "validate": (_validate, NO_FILE),
    "--eureka-tls: ca": (_access("ca"), NO_FILE),
    "--eureka-tls: cert": (_access("cert"), NO_FILE),
    "--eureka-password-file": (_access("eureka_password_file"), NO_FILE),
}


@pytest.fixture
def pipe(tmp_path: Path) -> str:
    """A pipe without a writer."""
    os.mkfifo(tmp_path / "pipe")
    return str(tmp_path / "pipe")


@pytest.mark.parametrize("option", READERS)
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_path_that_is_no_file_is_refused_in_one_sentence(
    option: str, kind: str, pipe: str
) -> None:
    """A read from a pipe or a device would never end."""
    read, words = READERS[option]
    with pytest.raises(ConfigurationError, match=words):
        read(pipe if kind == "pipe" else "/dev/zero")


@pytest.mark.parametrize("option", ["--kubeconfig", "--eureka-tls: ca"])
def test_a_huge_file_is_not_read(option: str, tmp_path: Path) -> None:
    """A person may give a file of ten gigabytes by mistake."""
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(10 * 2**30)
    with pytest.raises(ConfigurationError, match=r"is larger than \d+ MiB"):
        READERS[option][0](str(tmp_path / "sparse"))


def test_a_kubeconfig_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    """Such a file may come from a stranger."""
    (tmp_path / "config").write_text("[" * 700)
    with pytest.raises(ConfigurationError, match="cannot be read: maximum recursion depth"):
        context_names(str(tmp_path / "config"))


def test_a_pipe_that_the_kubeconfig_names_is_not_waited_for(pipe: str, tmp_path: Path) -> None:
    """It gives no token, so nothing is called."""
    (tmp_path / "config").write_text(
        "contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n"
        f"clusters: [{{name: a, cluster: {{server: 'http://k'}}}}]\nusers: [{{name: a, user: "
        f"{{tokenFile: {pipe}}}}}]\n"
    )
    connection = ClientConnection(ConnectionSettings(kubeconfig=str(tmp_path / "config")))
    clock = SystemClock()
    with pytest.raises(ClusterCredentialsMissing, match=rf"tokenFile {pipe} {NO_FILE}$"):
        connection.send(
            Call(method="GET", path="/version"), AnswerTime(clock, 30, TimeLimit(clock))
        )
