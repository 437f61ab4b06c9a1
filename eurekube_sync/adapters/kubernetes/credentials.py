"""The credentials that a user of a kubeconfig names: a token, a file with one, a certificate, or a
program (`exec`).

A user that names credentials and yields none is an error. The call would be anonymous, and the API
may answer it: then it forbids everything, and a right for `system:anonymous` would seem to be the
cure.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from eurekube_sync.files import open_regular
from eurekube_sync.model.errors import ClusterCredentialsMissing
from eurekube_sync.model.sanitize import excerpt

NO_CREDENTIALS = "no credentials for the Kubernetes API"
PROGRAM = "the kubeconfig's program for them (exec)"
_NAMES = (
    "token",
    "tokenFile",
    "client-certificate",
    "client-certificate-data",
    "client-key",
    "client-key-data",
    "exec",
    "username",
    "password",
)
"""What names credentials, also without a value, as a template leaves it without its variable. An
`auth-provider` is left to the official client."""
_SOURCES = ("token", "tokenFile", "exec")
"""What is replaced by the credentials that it names."""
_MOST_SECONDS = 150.0  # of a program without a person at a terminal
_LONGEST = 300  # characters of a program's or a person's words
_LARGEST = 1024 * 1024  # bytes of a file with a token
_EXTENSION = "client.authentication.k8s.io/exec"
"""The extension of a kubeconfig's cluster that a program is told."""
_LOG_HEAD = re.compile(r"^[IWEF]\d{4} [\d:.]+ +\d+ [^]]+\] ", re.MULTILINE)  # klog's, with a time


class Credentials(NamedTuple):
    user: Mapping[str, Any]  # of a kubeconfig, with the token or the certificate itself
    until: float  # Unix seconds of their end; infinite without one


def credentials_of(
    user: Mapping[str, Any], cluster: Mapping[str, Any], again: float
) -> Credentials:
    """Return the user's credentials. A program that ended less than `again` seconds ago does not
    run once more. Raise ClusterCredentialsMissing, also if it did not give any."""
    named = [name for name in _NAMES if name in user]
    if not named or "auth-provider" in user:
        return Credentials(user, inf)
    others = {name: value for name, value in user.items() if name not in _SOURCES}
    token = _token(user)
    if token:
        return Credentials({**others, "token": token}, inf)
    if user.get("exec") is not None:
        given = _remembered(_Program.of(user["exec"], cluster), again)
        return Credentials({**others, **given.user}, given.until)
    if user.get("client-certificate-data") or user.get("client-certificate"):
        return Credentials(user, inf)
    username, password = user.get("username"), user.get("password")
    if username and password:
        return Credentials(user, inf)
    if username or password:
        raise _missing("the kubeconfig names a username and a password, and one of them is empty")
    raise _missing(f"the kubeconfig's {named[0]} is empty")


def _token(user: Mapping[str, Any]) -> str:
    """Return the token of the file, else the one in the kubeconfig, as kubectl does; empty if the
    user names none."""
    fixed = str(user.get("token") or "").strip()
    path = user.get("tokenFile")
    if not path:
        return fixed
    token = ""
    why = "is empty"
    try:
        with open_regular(str(path), follow=True) as file:
            token = file.read(_LARGEST).decode().strip()
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
    except ValueError:  # of bytes that are no text, or of a NUL character in the path
        why = "is no file of UTF-8 text"
    if not token and not fixed:
        raise _missing(f"the kubeconfig's tokenFile {excerpt(str(path), most=_LONGEST)} {why}")
    return token or fixed


def _missing(why: str) -> ClusterCredentialsMissing:
    return ClusterCredentialsMissing(f"{NO_CREDENTIALS}: {why}")


class _Program(Struct, frozen=True, kw_only=True):
    """See
    https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins."""

    command: str
    arguments: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]
    version: str  # `apiVersion` of what it is told and of what it prints
    hint: str  # how to install it
    mode: str  # whether it may ask a person at the terminal
    cluster: str  # as JSON; empty: it is not told

    @classmethod
    def of(cls, entry: Any, cluster: Mapping[str, Any]) -> _Program:
        """Read `exec` of a kubeconfig's user."""
        named = entry if isinstance(entry, Mapping) else {}
        if not named.get("command") or not named.get("apiVersion"):
            raise _missing("the kubeconfig's exec lacks its command or its apiVersion")
        variables: list[tuple[str, str]] = []
        for variable in _listed(entry, "env"):
            if isinstance(variable, Mapping):
                variables.append((str(variable.get("name")), str(variable.get("value"))))
        return cls(
            command=str(entry["command"]),
            arguments=tuple([str(argument) for argument in _listed(entry, "args")]),
            variables=tuple(variables),
            version=str(entry["apiVersion"]),
            hint=str(entry.get("installHint") or ""),
            mode=str(entry.get("interactiveMode") or "IfAvailable"),
            cluster=_told(cluster) if entry.get("provideClusterInfo") else "",
        )

    def run(self) -> Credentials:
        """Run it to its end. Raise ClusterCredentialsMissing, with its own words."""
        at_terminal = self.mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if self.mode == "Always" and not at_terminal:
            raise self._failed("needs a terminal (interactiveMode: Always)")
        # A person at the terminal reads its questions, and may take any time.
        told: dict[str, Any] = {"interactive": at_terminal}
        if self.cluster:
            told["cluster"] = json.loads(self.cluster)
        asked = {"apiVersion": self.version, "kind": "ExecCredential", "spec": told}
        environment = {**os.environ, **dict(self.variables)}
        environment["KUBERNETES_EXEC_INFO"] = json.dumps(asked)
        try:
            done = subprocess.run(
                [self.command, *self.arguments],
                env=environment,
                stdin=None if at_terminal else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if at_terminal else subprocess.PIPE,
                timeout=None if at_terminal else _MOST_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            ended = f"did not end within {_MOST_SECONDS:.0f} s, and was killed"
            raise self._failed(ended) from None
        except (OSError, ValueError) as error:  # ValueError: of a NUL character
            why = getattr(error, "strerror", None) or "its command is no text of the system"
            raise self._failed(f"cannot be run: {why}", self.hint) from error
        if not done.returncode:
            return self._read(done.stdout)
        ended = f"ended with exit code {done.returncode}"
        if done.returncode < 0:
            ended = f"was ended by signal {-done.returncode}"
        words = (done.stderr or b"").decode(errors="replace")
        raise self._failed(ended, _LOG_HEAD.sub("", words))

    def _read(self, printed: bytes) -> Credentials:
        """Read the ExecCredential that it printed. An error shows nothing of it, because it may be
        a secret."""
        try:
            document = json.loads(printed)
        except (ValueError, RecursionError):
            raise self._failed("printed no JSON") from None
        if not isinstance(document, dict) or document.get("kind") != "ExecCredential":
            raise self._failed("printed no ExecCredential")
        if document.get("apiVersion") != self.version:
            version = excerpt(str(document.get("apiVersion")), most=80)
            raise self._failed(
                f"printed apiVersion {version}, but the kubeconfig asks for {self.version}"
            )
        status = document.get("status")
        return self._given(status if isinstance(status, dict) else {})

    def _given(self, status: Mapping[str, Any]) -> Credentials:
        """Read the status of an ExecCredential."""
        token = _text(status, "token")
        certificate = _text(status, "clientCertificateData")
        key = _text(status, "clientKeyData")
        if bool(certificate) is not bool(key):
            raise self._failed("printed only one of a client certificate and its key")
        user: dict[str, Any] = {}
        if certificate:
            user["client-certificate-data"] = _base64(certificate.encode())
            user["client-key-data"] = _base64(key.encode())
        if token:
            user["token"] = token
        if not user:
            raise self._failed("printed neither a token nor a client certificate")
        end = status.get("expirationTimestamp")
        if not end:
            return Credentials(user, inf)
        try:
            return Credentials(user, datetime.fromisoformat(str(end)).timestamp())
        except (ValueError, OverflowError):
            raise self._failed("printed an expirationTimestamp that is no time") from None

    def _failed(self, why: str, words: str = "") -> ClusterCredentialsMissing:
        values = [value for _, value in self.variables]  # they may be passwords
        said = excerpt(words, most=_LONGEST, secrets=values)
        failed = f"{PROGRAM}, {excerpt(self.command, most=80)}, {why}"
        if said:
            failed = f"{failed}: {said}"
        return _missing(failed)


def _text(status: Mapping[str, Any], name: str) -> str:
    return str(status.get(name) or "").strip()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _told(cluster: Mapping[str, Any]) -> str:
    """Return what a program is told of its cluster, as client-go does: without files."""
    told = dict(cluster)
    path = told.pop("certificate-authority", None)
    if path:
        try:
            authority = Path(str(path)).read_bytes()
        except OSError as error:
            why = f"the certificate-authority {path} cannot be read: {error.strerror}"
            raise _missing(why) from error
        told.setdefault("certificate-authority-data", _base64(authority))
    told.pop("extensions", None)
    for extension in _listed(cluster, "extensions"):
        if isinstance(extension, Mapping) and extension.get("name") == _EXTENSION:
            told["config"] = extension.get("extension")
    return json.dumps(told)


def _listed(entry: Mapping[str, Any], name: str) -> Sequence[Any]:
    listed = entry.get(name)
    if isinstance(listed, list):
        return listed
    return ()


class _Result(NamedTuple):
    at: float  # monotonic seconds
    credentials: Credentials | ClusterCredentialsMissing


_results: dict[_Program, _Result] = {}
"""What each program gave last. All connections of the process share it: the lock and the passes
need one run."""
_results_lock = threading.Lock()


def _remembered(program: _Program, again: float) -> Credentials:
    """Return what the program gave. It runs if it is not known, or after `again` seconds. While it
    runs it has no lock, because it may hang."""
    with _results_lock:
        result = _results.get(program)
    if result is None or time.monotonic() - result.at >= again:
        try:
            credentials: Credentials | ClusterCredentialsMissing = program.run()
        except ClusterCredentialsMissing as missing:
            credentials = missing
        result = _Result(time.monotonic(), credentials)
        with _results_lock:
            _results[program] = result
    if isinstance(result.credentials, ClusterCredentialsMissing):
        raise ClusterCredentialsMissing(str(result.credentials))
    return result.credentials
