"""Owns the cache folder of built servers: what is in it is complete, whoever is building at the
same time.

The folder is `~/.cache/eurekube-sync/servers`, or `EUREKUBE_SYNC_TEST_CACHE`. Each entry is named
after the version and a hash of everything it is made from, so that a changed input is another
entry.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from filelock import FileLock

CACHE_VARIABLE = "EUREKUBE_SYNC_TEST_CACHE"
_PROGRESS_EVERY_SECONDS = 30.0
_TAIL_LINES = 40
_UNFINISHED = ".unfinished-"


class BuildError(Exception):
    """A server could not be built or downloaded; the message ends with the tail of its log."""


def cache_folder() -> Path:
    """Return the folder of all built servers; it is created if need be."""
    configured = os.environ.get(CACHE_VARIABLE)
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(configured) if configured else base / "eurekube-sync" / "servers"
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def say(message: str) -> None:
    """Write one progress line to stderr."""
    sys.stderr.write(f"[servers] {message}\n")
    sys.stderr.flush()


def tail(path: Path, lines: int = _TAIL_LINES) -> str:
    """Return the last lines of a log file, or an empty string when there is none."""
    if not path.is_file():
        return ""
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])


def cached(name: str, inputs: Iterable[str | Path], build: Callable[[Path], None]) -> Path:
    """Return the complete folder `name-<hash of the inputs>`, building it first when it is not
    there.

    `inputs` are strings and files (hashed by content); the platform is always one of them. `build`
    fills the folder it is given; that folder gets its final name only when `build` has returned.
    Raises what `build` raises.
    """
    digest = hashlib.sha256(f"{platform.system()}-{platform.machine()}".encode())
    for part in inputs:
        digest.update(b"\0" + (part.read_bytes() if isinstance(part, Path) else part.encode()))
    key = f"{name}-{digest.hexdigest()[:12]}"
    folder = cache_folder() / key
    if folder.is_dir():
        return folder
    lock = FileLock(cache_folder() / f".{key}.lock")
    if not _try(lock):
        say(f"{name}: waiting for another build of it")
        lock.acquire()
    try:
        if not folder.is_dir():
            _build_into(name, folder, build)
    finally:
        lock.release()
    return folder


def complete_name(folder: Path) -> Path:
    """Return the name that the folder which `build` fills will have: a program may have to know its
    own path."""
    return folder.with_name(folder.name.removeprefix(_UNFINISHED))


def _try(lock: FileLock) -> bool:
    try:
        lock.acquire(blocking=False)
    except TimeoutError:
        return False
    return True


def _build_into(name: str, folder: Path, build: Callable[[Path], None]) -> None:
    started = time.monotonic()
    unfinished = folder.with_name(f"{_UNFINISHED}{folder.name}")
    shutil.rmtree(unfinished, ignore_errors=True)  # of a build that was killed; we hold its lock
    unfinished.mkdir()
    try:
        build(unfinished)
        os.replace(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    say(f"{name}: ready in {time.monotonic() - started:.0f} s at {folder}")


def run_logged(
    what: str,
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> None:
    """Run a build command, its output in `<cache>/logs/<what>.log`, with a progress line every 30
    seconds.

    `environment` is added to our own. Raises BuildError, with the log's tail, when the command
    fails or is missing.
    """
    log = cache_folder() / "logs" / f"{what}.log"
    log.parent.mkdir(exist_ok=True)
    say(f"{what}: building, log in {log}")
    started = time.monotonic()
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                cwd=directory,
            )
        except OSError as error:
            raise BuildError(f"{what}: cannot run {command[0]}: {error}") from error
        try:
            while True:
                try:
                    code = process.wait(timeout=_PROGRESS_EVERY_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    say(f"{what}: still building after {time.monotonic() - started:.0f} s")
        except BaseException:
            process.kill()
            process.wait()
            raise
    if code != 0:
        raise BuildError(f"{what}: exit code {code}; the end of {log}:\n{tail(log)}")
