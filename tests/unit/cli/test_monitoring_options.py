"""The options for monitoring a run."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.passes import Monitoring, Records, monitoring_options


def read(*arguments: str) -> Monitoring:
    """Return the value that the command line reads."""
    found: list[Monitoring] = []

    @click.command(cls=Command)
    @monitoring_options
    def command(monitoring: Monitoring) -> None:
        found.append(monitoring)

    command.main(list(arguments), standalone_mode=False)
    return found[0]


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        (":8080", "", 8080),
        ("127.0.0.1:0", "127.0.0.1", 0),
        ("localhost:9", "localhost", 9),
        ("[::1]:8080", "::1", 8080),
    ],
)
def test_an_address(text: str, host: str, port: int) -> None:
    """The host is optional."""
    assert read("--listen", text).listen == (host, port)


@pytest.mark.parametrize(
    "text", ["", "8080", ":", ":x", "::1:8080", "http://a:1", "[::1]", "a b:1"]
)
def test_a_text_that_is_no_address_is_refused(text: str) -> None:
    """The error lists the valid forms."""
    with pytest.raises(click.BadParameter, match=r"write :8080, 127\.0\.0\.1:8080 or \[::1\]:8080"):
        read("--listen", text)


def test_a_port_that_cannot_be_is_named() -> None:
    """The form is right, so it is not what to correct."""
    with pytest.raises(click.BadParameter, match="has the port 65536, and a port is a number"):
        read("--listen", ":65536")


@pytest.mark.parametrize("text", ["ftp://a", "http://", "http://joe:s3cr3t@a:9091"])
def test_a_url_that_is_no_gateway_is_refused(text: str) -> None:
    """Otherwise a push would fail after each pass."""
    with pytest.raises(click.BadParameter, match="write http://pushgateway:9091") as refused:
        read("--metrics-to", text)
    assert "s3cr3t" not in str(refused.value)


def test_nothing_is_asked_for_by_default() -> None:
    """Without options, no server is started."""
    assert read() == Monitoring()


def test_metrics_go_to_a_file_or_to_a_gateway() -> None:
    """Only an address with a scheme is a gateway's."""
    assert read("--metrics-to", "http://a:9091").metrics_to == "http://a:9091"
    assert read("--metrics-to", "x.prom").metrics_to == Path("x.prom")
    with pytest.raises(click.BadParameter, match="it is empty"):
        read("--metrics-to", " ")


@pytest.mark.parametrize(
    ("text", "records"),
    [
        ("records", Records(Path("records"), 256)),
        ("records,8", Records(Path("records"), 8)),
        ("a,b", Records(Path("a,b"), 256)),
        ("a,b,8", Records(Path("a,b"), 8)),
    ],
)
def test_the_folder_of_records_may_have_a_size(text: str, records: Records) -> None:
    """It is the number after the last comma, in MiB."""
    assert read("--record", text).record == records


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        (",8", "it is empty"),
        ("a,0", "0 MiB is not a size"),
        (__file__, "is a file"),
    ],
)
def test_a_folder_that_cannot_be_one_is_refused(text: str, words: str) -> None:
    """Before any pass."""
    with pytest.raises(click.BadParameter, match=words):
        read("--record", text)
