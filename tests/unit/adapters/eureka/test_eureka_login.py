"""The login for Eureka: from text, and from mounted files that are rotated, half written or
missing."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from eurekube_sync.adapters.eureka.address import (
    ConnectionOptions,
    EurekaAddress,
    Login,
    SecretFile,
    make_login,
    make_token_login,
)
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.eureka import InstanceKey
from tests.in_process.eureka import InProcessAdapter
from tests.unit.adapters.eureka.test_eureka_calls import EMPTY
from tests.unit.worlds.clock import Clock

ODD = '@:/%é "'
KEY = InstanceKey("RATING", "prod:shop:rating:10.0.0.1:8080")


@dataclass(slots=True)
class FileClock(Clock):
    """Files get its time as their modification time."""

    folder: Path = field(default=Path())

    def write(self, content: bytes, *, name: str = "password") -> Path:
        """Write a file with the clock's time."""
        path = self.folder / name
        path.write_bytes(content)
        os.utime(path, (self.time, self.time))
        return path


@pytest.fixture
def clock(tmp_path: Path) -> FileClock:
    """A clock with a folder."""
    return FileClock(folder=tmp_path)


def secret(clock: FileClock, content: bytes) -> SecretFile:
    """A password file that was written long ago."""
    path = clock.write(content)
    clock.time += 100
    return SecretFile(path, option="--eureka-password-file", clock=clock)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_end_of_the_line_is_no_part_of_a_password(clock: FileClock, end: str) -> None:
    """One trailing newline is removed. A space at the end belongs to the password."""
    assert secret(clock, f"{ODD} {end}".encode())() == f"{ODD} "


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"one\ntwo\n", "more than one line"),
        (b"one\n\n", "more than one line"),
        (b"nul\x00", "control characters"),
        (b"\xff\xfe", "is not UTF-8 text"),
    ],
)
def test_a_file_that_holds_no_password_is_refused_at_the_start(
    clock: FileClock, content: bytes, why: str
) -> None:
    """The error names the option, the file and the reason. It does not quote the content."""
    with pytest.raises(ConfigurationError, match=why) as caught:
        secret(clock, content)
    assert "--eureka-password-file" in str(caught.value)
    assert "password cannot" not in str(caught.value)


@pytest.mark.parametrize("name", ["absent", "."])
def test_a_file_that_cannot_be_read_is_refused_at_the_start(clock: FileClock, name: str) -> None:
    """The error names the missing file, or the folder, with the system's reason."""
    with pytest.raises(ConfigurationError, match=r"cannot be read: (No such file|it is a folder)"):
        SecretFile(clock.folder / name, option="--eureka-password-file", clock=clock)


@pytest.mark.parametrize("link", [False, True], ids=["itself", "by a link"])
def test_a_pipe_is_refused_and_not_waited_for(clock: FileClock, link: bool) -> None:
    """A read from a pipe without a writer would never end."""
    pipe = clock.folder / "pipe"
    os.mkfifo(pipe)
    if link:
        (clock.folder / "link").symlink_to(pipe)
    with pytest.raises(
        ConfigurationError, match="cannot be read: it is a folder, a pipe or a device"
    ):
        SecretFile(
            clock.folder / "link" if link else pipe, option="--eureka-password-file", clock=clock
        )


def test_a_file_that_became_a_pipe_changes_nothing(
    clock: FileClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The last content stays in use, and one warning says so."""
    password = secret(clock, b"s3cret")
    path = clock.folder / "password"
    path.unlink()
    os.mkfifo(path)
    assert password() == "s3cret"
    clock.time += 5
    assert [password(), password()] == ["s3cret", "s3cret"]
    assert [record.message.partition(" cannot ")[2] for record in caplog.records] == [
        "be read: it is a folder, a pipe or a device; keeping its last content"
    ]


def test_a_changed_file_is_believed_after_a_second(clock: FileClock) -> None:
    """A file that changed within the last second may be half written."""
    password = secret(clock, b"old\n")
    clock.write(b"ne")
    assert password() == "old"
    clock.time += 0.9
    clock.write(b"new\n")
    assert password() == "old"
    clock.time += 0.9
    assert password() == "old"
    clock.time += 0.2
    assert password() == "new"


def test_a_file_that_was_replaced_a_while_ago_is_believed_at_once(clock: FileClock) -> None:
    """The first call of a pass uses a password that was written between two passes."""
    password = secret(clock, b"old\n")
    clock.write(b"new\n")
    clock.time += 10
    assert password() == "new"


def test_a_file_from_the_future_is_believed_after_a_second_too(clock: FileClock) -> None:
    """A file server's clock may be ahead of ours."""
    password = secret(clock, b"old\n")
    clock.time += 3600
    clock.write(b"new\n")
    clock.time -= 3600
    assert password() == "old"
    clock.time += 1
    assert password() == "new"


@pytest.mark.parametrize("content", [b"", b"\n", b"two\nlines\n", b"\xff"])
def test_a_file_that_became_unusable_changes_nothing(
    clock: FileClock, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The last content stays in use, and one warning says so. The next valid content is used."""
    password = secret(clock, b"old\n")
    clock.write(content)
    clock.time += 10
    assert [password(), password(), password()] == ["old"] * 3
    assert len(caplog.records) == 1
    assert "keeping its last content" in caplog.text
    clock.write(b"new\n")
    clock.time += 10
    assert password() == "new"


def test_a_file_that_is_gone_changes_nothing(
    clock: FileClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The last content stays in use, and one warning says so. A new file is used."""
    password = secret(clock, b"old\n")
    (clock.folder / "password").unlink()
    assert [password(), password()] == ["old"] * 2
    assert len(caplog.records) == 1
    clock.write(b"new\n")
    clock.time += 10
    assert password() == "new"


def test_a_secret_that_kubernetes_swaps_is_seen(clock: FileClock) -> None:
    """The file of a mounted secret is a link into a folder that Kubernetes replaces as a whole."""
    for number, content in ((1, b"old\n"), (2, b"new\n")):
        (clock.folder / f"..{number}").mkdir()
        clock.write(content, name=f"..{number}/password")
    link = clock.folder / "..data"
    link.symlink_to("..1")
    (clock.folder / "password").symlink_to("..data/password")
    clock.time += 100
    password = SecretFile(clock.folder / "password", option="--eureka-password-file", clock=clock)
    assert password() == "old"
    (clock.folder / "..new").symlink_to("..2")
    (clock.folder / "..new").rename(link)
    assert password() == "new"


def test_a_user_with_a_colon_is_refused(clock: FileClock) -> None:
    """In basic authentication, a server would read the part after the colon as the password."""
    with pytest.raises(ConfigurationError, match="colon"):
        make_login(user="a:b", password="c")


def test_each_call_carries_the_login_of_the_moment(clock: FileClock) -> None:
    """The client reads the login before each call, and encodes it in UTF-8 (RFC 7617)."""
    seen: list[str] = []

    def handle(request: Request) -> Response:
        seen.append(
            base64.b64decode(request.headers["authorization"].removeprefix("Basic ")).decode()
        )
        return Response(status=200, body=EMPTY)

    current = make_login(user="jöe", password=secret(clock, f"{ODD}1\n".encode()))
    options = ConnectionOptions(address=EurekaAddress.parse("http://eureka/eureka"), login=current)
    client = EurekaClient(options, clock=clock, random=_Never(), adapter=InProcessAdapter(handle))
    client.list_instances()
    clock.write(f"{ODD}2\n".encode())
    clock.time += 10
    client.list_instances()
    assert seen == [f"jöe:{ODD}1", f"jöe:{ODD}2"]
    assert ODD not in repr(options) + repr(current()) + repr(client)


def tokens(clock: FileClock, content: bytes) -> Login:
    """A login by a token file that was written long ago."""
    path = clock.write(content, name="token")
    clock.time += 100
    return make_token_login(path, option="--eureka-token-file", clock=clock)


def test_each_call_carries_the_token_of_the_moment(
    clock: FileClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that is no token any more leaves the last one in use."""
    seen: list[str] = []

    def handle(request: Request) -> Response:
        seen.append(request.headers["authorization"])
        return Response(status=200, body=EMPTY)

    login = tokens(clock, b"eyJ0.first-_~+/=\n")
    options = ConnectionOptions(address=EurekaAddress.parse("http://eureka/eureka"), login=login)
    client = EurekaClient(options, clock=clock, random=_Never(), adapter=InProcessAdapter(handle))
    client.list_instances()
    for content in (b"Bearer eyJ0.second", b"eyJ0.third"):
        clock.write(content, name="token")
        clock.time += 10
        client.list_instances()
    assert seen == ["Bearer eyJ0.first-_~+/=", "Bearer eyJ0.first-_~+/=", "Bearer eyJ0.third"]
    assert "holds no bearer token" in caplog.text
    assert "eyJ0" not in repr(options) + repr(login()) + repr(client) + caplog.text


@pytest.mark.parametrize(
    "content", [b"", b"Bearer eyJ0", b'"eyJ0"', b"one\ntwo", b"=", b"\xc3\xa9"]
)
def test_a_file_that_holds_no_token_is_refused_at_the_start(
    clock: FileClock, content: bytes
) -> None:
    """A token has the characters of RFC 6750."""
    with pytest.raises(ConfigurationError, match=r"--eureka-token-file: \S+ (holds|is empty)"):
        tokens(clock, content)


class _Never:
    def random(self) -> float:
        return 0.0
