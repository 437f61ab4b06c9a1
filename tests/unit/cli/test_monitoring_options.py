"""The options for monitoring a run."""

from __future__ import annotations

import click
import pytest

from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.passes import Monitoring, monitoring_options


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
    "text", ["", "8080", ":", ":x", ":65536", "::1:8080", "http://a:1", "[::1]", "a b:1"]
)
def test_a_text_that_is_no_address_is_refused(text: str) -> None:
    """The error lists the valid forms."""
    with pytest.raises(click.BadParameter, match=r"write :8080, 127\.0\.0\.1:8080 or \[::1\]:8080"):
        read("--listen", text)


@pytest.mark.parametrize(
    "text", ["", "pushgateway:9091", "ftp://a", "http://", "http://joe:s3cr3t@a:9091"]
)
def test_a_url_that_is_no_gateway_is_refused(text: str) -> None:
    """Otherwise a push would fail after each pass."""
    with pytest.raises(click.BadParameter, match="write http://pushgateway:9091") as refused:
        read("--push-metrics", text)
    assert "s3cr3t" not in str(refused.value)


def test_nothing_is_asked_for_by_default() -> None:
    """Without options, no server is started."""
    assert read() == Monitoring()
    assert read("--push-metrics", "http://a:9091").push_metrics == "http://a:9091"
    assert str(read("--metrics-file", "x.prom").metrics_file) == "x.prom"
