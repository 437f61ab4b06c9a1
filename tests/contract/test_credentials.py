"""A kubeconfig that names credentials and yields none: nothing is called, on the embedded and on
the real API, which lets anonymous callers in."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.sources import Cause, Complete, Unknown
from tests.contract.client_subject import Subject
from tests.waiting import wait_until

VERSION = "client.authentication.k8s.io/v1"
START = "no credentials for the Kubernetes API: "
PROGRAM = f"{START}the kubeconfig's program for them (exec), sh, "


def program(script: str, **fields: Any) -> dict[str, Any]:
    """A user whose credentials a shell script prints."""
    plugin = {
        "apiVersion": VERSION,
        "command": "sh",
        "args": ["-c", script],
        "interactiveMode": "Never",
        **fields,
    }
    return {"exec": plugin}


def printing(document: Any, **fields: Any) -> dict[str, Any]:
    """A user whose program prints this document."""
    return program(f"cat <<'END'\n{json.dumps(document)}\nEND", **fields)


def credential(version: str = VERSION, **status: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": "ExecCredential", "status": status}


FAILING: dict[str, tuple[dict[str, Any], str]] = {
    "missing program": (
        program("", command="no-such-program", installHint="Install it by\n  get it.sh"),
        f"{START}the kubeconfig's program for them (exec), no-such-program, cannot be run: No "
        "such file or directory: "
        "Install it by get it.sh",
    ),
    "exit code": (
        program(
            "echo 'E1128 16:40:11.123456 7 get.go:12] you are' >&2; echo logged out >&2; echo "
            "secret; exit 255"
        ),
        f"{PROGRAM}ended with exit code 255: you are logged out",
    ),
    "signal": (program("kill -9 $$"), f"{PROGRAM}was ended by signal 9"),
    "no JSON": (program("echo secret"), f"{PROGRAM}printed no JSON"),
    "nothing": (program("true"), f"{PROGRAM}printed no JSON"),
    "a list": (printing([]), f"{PROGRAM}printed no ExecCredential"),
    "no status": (
        printing({"apiVersion": VERSION, "kind": "ExecCredential"}),
        f"{PROGRAM}printed neither a token nor a client certificate",
    ),
    "no credentials": (
        printing(credential()),
        f"{PROGRAM}printed neither a token nor a client certificate",
    ),
    "empty token": (
        printing(credential(token="")),
        f"{PROGRAM}printed neither a token nor a client certificate",
    ),
    "no key": (
        printing(credential(clientCertificateData="x")),
        f"{PROGRAM}printed only one of a client certificate and its key",
    ),
    "another version": (
        printing(credential("client.authentication.k8s.io/v1beta1", token="secret")),
        f"{PROGRAM}printed apiVersion client.authentication.k8s.io/v1beta1, but the kubeconfig "
        f"asks for {VERSION}",
    ),
    "no time": (
        printing(credential(token="secret", expirationTimestamp="soon")),
        f"{PROGRAM}printed an expirationTimestamp that is no time",
    ),
    "no terminal": (
        printing(credential(token="secret"), interactiveMode="Always"),
        f"{PROGRAM}needs a terminal (interactiveMode: Always)",
    ),
    "no command": (
        program("", command=""),
        f"{START}the kubeconfig's exec lacks its command or its apiVersion",
    ),
    "exec without a value": ({"exec": None}, f"{START}the kubeconfig's exec is empty"),
    "missing token file": (
        {"tokenFile": "/absent"},
        f"{START}the kubeconfig's tokenFile /absent cannot be read: No such file or directory",
    ),
    "odd token file": (
        {"tokenFile": "/odd\0"},
        f"{START}the kubeconfig's tokenFile /odd\\x00 is no file of UTF-8 text",
    ),
    "token without a value": ({"token": ""}, f"{START}the kubeconfig's token is empty"),
    "token of spaces": ({"token": " \n"}, f"{START}the kubeconfig's token is empty"),
    "certificate without a value": (
        {"client-certificate-data": "", "client-key-data": ""},
        f"{START}the kubeconfig's client-certificate-data is empty",
    ),
    "no password": (
        {"username": "admin"},
        f"{START}the kubeconfig names a username and a password, and one of them is empty",
    ),
    "auth-provider": (
        {"auth-provider": {"name": "azure"}},
        f"{START}the kubeconfig's auth-provider gives none; kubectl has a program (exec) in its "
        "place",
    ),
}


@pytest.mark.parametrize("case", FAILING)
def test_nothing_is_called_without_the_named_credentials(
    subject: Subject,
    case: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The source is Unknown, with the program's own words and no secret. Nothing else is
    printed."""
    user, sentence = FAILING[case]
    cluster = subject.cluster(subject.kubeconfig(user=user))
    for found in (cluster.identity(), cluster.list_services(None).elsewhere):
        assert isinstance(found, Unknown)
        assert (found.message, found.cause) == (sentence, Cause.UNAVAILABLE)
        assert "secret" not in found.message
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("content", ["", " \n"])
def test_an_empty_token_file_is_no_credential(
    subject: Subject,
    content: str,
    tmp_path: Path,
) -> None:
    """As while it is written. It is read again, and a token in the kubeconfig is used beside it, as
    by kubectl."""
    file = tmp_path / "token"
    file.write_text(content)
    cluster = subject.cluster(subject.kubeconfig(user={"tokenFile": str(file)}), again_seconds=0)
    found = cluster.identity()
    assert isinstance(found, Unknown)
    assert found.message == f"{START}the kubeconfig's tokenFile {file} is empty"
    file.write_text(f"{subject.token}\n")
    assert isinstance(cluster.identity(), Complete)
    file.write_text(content)
    both = {"tokenFile": str(file), "token": subject.token}
    assert isinstance(subject.cluster(subject.kubeconfig(user=both)).identity(), Complete)


def test_a_user_that_does_not_exist_is_no_anonymous_one(subject: Subject) -> None:
    """A context may name no user at all, as for `kubectl proxy`; then the call is anonymous."""
    path = Path(subject.kubeconfig())
    config = json.loads(path.read_text())
    config["contexts"][0]["context"]["user"] = "gone"
    path.write_text(json.dumps(config))
    with pytest.raises(
        ConfigurationError, match="the context 'test' names the user 'gone', and there is none"
    ):
        subject.cluster(str(path))
    del config["contexts"][0]["context"]["user"]
    path.write_text(json.dumps(config))
    found = subject.cluster(str(path)).identity()
    assert isinstance(found, Unknown)
    assert found.cause is Cause.DENIED


def test_a_program_that_failed_runs_again(subject: Subject, tmp_path: Path) -> None:
    """Not for each call, but for each pass; then its token is used to its end."""
    works, runs = tmp_path / "works", tmp_path / "runs"
    given = json.dumps(credential(token=subject.token, expirationTimestamp="2020-01-01T00:00:00Z"))
    script = f"echo >> {runs}; [ -e {works} ] || {{ echo not yet >&2; exit 1; }}; echo '{given}'"
    cluster = subject.cluster(subject.kubeconfig(user=program(script)), again_seconds=1)
    for _ in range(5):
        found = cluster.identity()
        assert isinstance(found, Unknown)
        assert found.message == f"{PROGRAM}ended with exit code 1: not yet"
    failed = len(runs.read_text().splitlines())
    assert failed <= 2
    works.touch()
    wait_until(lambda: isinstance(cluster.identity(), Complete), "the program does not run again")
    before = len(runs.read_text().splitlines())
    assert before == failed + 1
    for _ in range(20):
        assert isinstance(cluster.list_services(None).elsewhere, Complete)
    assert len(runs.read_text().splitlines()) <= before + 1


def test_two_connections_need_one_run(subject: Subject, tmp_path: Path) -> None:
    """The lock has a connection of its own. A token that lives for less than five minutes is used
    until it ends."""
    runs = tmp_path / "runs"
    end = datetime.fromtimestamp(time.time() + 120, UTC).isoformat().replace("+00:00", "Z")
    given = json.dumps(credential(token=subject.token, expirationTimestamp=end))
    kubeconfig = subject.kubeconfig(user=program(f"echo >> {runs}; echo '{given}'"))
    clusters = [subject.cluster(kubeconfig, again_seconds=60) for _ in range(2)]
    for cluster in clusters * 3:
        assert isinstance(cluster.identity(anew=True), Complete)
    assert len(runs.read_text().splitlines()) == 1
