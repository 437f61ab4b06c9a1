"""Owns buildah and podman with a store of the tests' own, and a base image made of Debian packages.

No image can be pulled where there are only package registries. The base has what the Dockerfile
asks of `python:slim`: `python3` with `venv`, and certificates.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.servers.cache import cached, run_logged
from tests.servers.pythons import debian_mirror
from tests.servers.toolchains import install

ROOT = Path(__file__).parents[2]
TOOLS = ("buildah", "podman", "runc", "mmdebstrap")
BASE = "localhost/python:stand-in"
IMAGE = "registry.example.com/eurekube-sync:0.1.0"
"""As docs/install.md calls it."""
_SUITE = "trixie"
_PACKAGES = "python3,python3-venv,python3-pip-whl,ca-certificates"
_DEBOOTSTRAP = (
    "--variant=essential",
    f"--include={_PACKAGES}",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    '--customize-hook=ln -s /usr/bin/python3 "$1/usr/local/bin/python3"',
)
_CERTIFICATES = Path("/etc/ssl/certs")
_PIP = Path("/etc/pip.conf")
_DOCKER = """#!/bin/sh
command=$1; shift
case $command in
build) exec buildah bud --isolation chroot --pull-never --build-arg BASE={base} {volumes} "$@" ;;
push) exec buildah push "$1" dir:{pushed} ;;
esac
exit 1
"""
# Without it podman fails at setrlimit, where a limit may not be raised.
_CONTAINERS = """
[containers]
default_ulimits = []
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
_STORAGE = """
[storage]
driver = "overlay"
graphroot = "{folder}/images"
runroot = "{folder}/run"
"""


def install_tools() -> None:
    """Install what is missing, as root on Debian. Raises BuildError where that cannot be done:
    nothing is skipped."""
    install(dict(zip(TOOLS, TOOLS, strict=True)), user="the image")


def base_archive() -> Path:
    """Return the base as a tar file, made first when the cache lacks it: about a minute. Raises
    BuildError."""

    def build(folder: Path) -> None:
        run_logged(
            "image-base",
            ["mmdebstrap", *_DEBOOTSTRAP, _SUITE, folder / "base.tar", debian_mirror()],
        )

    return cached(f"image-base-{_SUITE}", [*_DEBOOTSTRAP], build) / "base.tar"


@dataclass(frozen=True, kw_only=True)
class Containers:
    """The images in one folder, and containers of them."""

    folder: Path

    def __post_init__(self) -> None:
        (self.folder / "containers.conf").write_text(_CONTAINERS)
        (self.folder / "storage.conf").write_text(_STORAGE.format(folder=self.folder))

    @property
    def variables(self) -> dict[str, str]:
        """What both programs need to know."""
        return {
            **os.environ,
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
        }

    def build_base(self) -> None:
        """The base, from its tar file."""
        archive = base_archive()
        dockerfile = self.folder / "Base"
        dockerfile.write_text("FROM scratch\nADD base.tar /\n")
        self.call(
            "buildah", "bud", "--isolation", "chroot", "-t", BASE, "-f", dockerfile, archive.parent
        )

    def follow(self, script: str) -> None:
        """Runs a shell script in the checkout. `docker build` and `docker push` in it are buildah,
        with that base, the machine's certificates and pip's settings, and a folder as registry."""
        mounts = [_CERTIFICATES, *([_PIP] if _PIP.is_file() else [])]
        volumes = " ".join(f"-v {path}:{path}:ro" for path in mounts)
        programs = self.folder / "bin"
        programs.mkdir()
        docker = programs / "docker"
        docker.write_text(_DOCKER.format(base=BASE, volumes=volumes, pushed=self.pushed))
        docker.chmod(0o755)
        self.call("env", f"PATH={programs}:{os.environ['PATH']}", "sh", "-euxc", script)

    @property
    def pushed(self) -> Path:
        """What stands for a registry."""
        return self.folder / "pushed"

    def run(
        self, *arguments: str, options: tuple[str, ...] = ("--network=none",), image: str = IMAGE
    ) -> subprocess.CompletedProcess[str]:
        """The program in a container as Kubernetes runs it: a read-only root, nobody's user, no
        right. Never raises on an exit code."""
        secured = (
            "--read-only",
            "--read-only-tmpfs=false",
            "--user=65532:65532",
            "--cap-drop=all",
            "--security-opt=no-new-privileges",
            "--unsetenv=HOME",
        )
        return subprocess.run(
            ["podman", "run", "--rm", *secured, *options, image, *arguments],
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def call(self, *command: str | Path) -> str:
        """What a program prints. AssertionError, with all that it said, when it fails."""
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, (
            f"{command[0]}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        )
        return done.stdout
