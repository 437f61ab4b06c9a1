"""Chromium without a screen, and what a test asks of it: a page at a width, light or dark.

It is spoken to over two pipes (`--remote-debugging-pipe`), each message JSON with a zero byte
after it."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_PATIENCE = 60.0  # seconds for one answer, on the busiest machine
_FLAGS = (
    "--headless",
    "--no-sandbox",  # which root may not use
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    # It would look for updates of itself, and for other hosts.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)


_KEYS = {"Tab": (9, ""), "Enter": (13, "\r")}
"""The number and the text of each key."""
_COMPLAINTS = frozenset(
    {
        "Log.entryAdded",
        "Runtime.consoleAPICalled",
        "Runtime.exceptionThrown",
        "Page.javascriptDialogOpening",
    }
)
"""Events that a page without scripts causes only if something is wrong."""


class BrowserError(Exception):
    """Chromium ended, or did not do what it was asked for."""


class Chromium:
    """A running browser with one tab."""

    def __init__(self, to: int, of: int) -> None:
        self._to, self._of = to, of
        self._left = b""
        self.complaints: list[str] = []
        """What its console showed, such as a breach of the page's policy."""
        self._number = 0
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **given: Any) -> dict[str, Any]:
        """Call a method of the protocol. Raises BrowserError."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": given}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                break
            if answer.get("method") in _COMPLAINTS:
                self.complaints.append(json.dumps(answer["params"]))
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def show(self, url: str, *, width: int, dark: bool = False) -> None:
        """Load a page at a width in pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.go_to(url)

    def go_to(self, url: str) -> None:
        """Load a page."""
        self.call("Page.navigate", url=url)
        # It may still be the page before.
        self.wait_for(f"document.readyState === 'complete' && location.href === {json.dumps(url)}")

    def value(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript. The page itself may run none."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in found:
            raise BrowserError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Press Tab or Enter."""
        number, text = _KEYS[key]
        given = {"key": key, "code": key, "windowsVirtualKeyCode": number}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **given)
        self.call("Input.dispatchKeyEvent", type="keyUp", **given)

    def write(self, text: str) -> None:
        """Write a text where the focus is."""
        self.call("Input.insertText", text=text)

    def wait_for(self, expression: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + _PATIENCE
        while not self.value(expression):
            if time.monotonic() > deadline:
                raise BrowserError(f"{expression} does not become true")
            time.sleep(0.02)

    def picture(self, path: Path) -> None:
        """Write a picture of what the window shows, as PNG."""
        shot = self.call("Page.captureScreenshot")
        path.write_bytes(base64.b64decode(shot["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._of], [], [], _PATIENCE)
            part = os.read(self._of, 1 << 20) if ready else b""
            if not part:
                raise BrowserError("Chromium ended, or gives no answer")
            self._left += part
        message, _, self._left = self._left.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer


@contextmanager
def chromium(program: Path, folder: Path) -> Iterator[Chromium]:
    """Start Chromium with an empty profile in this folder, and end it."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    log = folder / "chromium.log"

    def numbered() -> None:
        # The protocol reads from 3 and writes to 4. Copies first: one may have the other's number.
        source, sink = os.dup(theirs_in), os.dup(theirs_out)
        os.dup2(source, 3)
        os.dup2(sink, 4)

    with log.open("wb") as output:
        process = subprocess.Popen(
            [program, *_FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=numbered,
            close_fds=False,
        )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Chromium(ours_out, ours_in)
    except BrowserError as error:
        raise BrowserError(
            f"{error}; its log: {log.read_text(errors='replace')[-2000:]}"
        ) from error
    finally:
        os.close(ours_out)
        process.terminate()
        process.wait(_PATIENCE)
        os.close(ours_in)
