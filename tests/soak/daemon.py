"""Owns the program under soak: `eurekube-sync run` as a process between the real servers, nothing
in between."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.world import write_kubeconfig

_STOP_SECONDS = 120.0
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Daemon:
    """One process at a time. What all of them said is in one file."""

    def __init__(
        self,
        servers: KubernetesServers,
        eureka: EurekaServer,
        folder: Path,
        *,
        owner: str,
        batch: str = "auto",
        namespace: str | None = None,
    ) -> None:
        """`folder` gets the kubeconfig, the password and what is said; `batch` is `--eureka-batch`;
        `namespace` is the one whose syncers it serves, None: all."""
        self.owner = owner
        self._folder = folder
        kubeconfig = write_kubeconfig(
            folder / "kubeconfig",
            url=servers.url,
            token=servers.admin_token,
            ca_file=servers.ca_file,
        )
        self._environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith("EUREKUBE_SYNC_")
            },
            "EUREKUBE_SYNC_OWNER": owner,
            "EUREKUBE_SYNC_EUREKA_URL": eureka.url,
            "EUREKUBE_SYNC_EUREKA_BATCH": batch,
            "KUBECONFIG": str(kubeconfig),
        }
        if namespace is not None:
            self._environment["EUREKUBE_SYNC_NAMESPACE"] = namespace
        if eureka.basic_auth is not None:
            user, password = eureka.basic_auth
            secret = folder / "password"
            secret.write_text(password)
            self._environment |= {
                "EUREKUBE_SYNC_EUREKA_USERNAME": user,
                "EUREKUBE_SYNC_EUREKA_PASSWORD_FILE": str(secret),
            }
        if eureka.tls is not None:
            self._environment["EUREKUBE_SYNC_EUREKA_TLS"] = f"ca={eureka.tls.ca_file}"

    def start(self, *options: str) -> None:
        """Begin a `run`; `options` such as `--daemon`."""
        with (self._folder / "said").open("ab") as said:
            self._process = subprocess.Popen(
                [Path(sys.executable).with_name("eurekube-sync"), "run", *options],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
            )

    def wait(self, seconds: float) -> int:
        """Its exit code, once it has ended by itself."""
        return self._process.wait(seconds)

    def terminate(self) -> int:
        """End it with SIGTERM; gives its exit code."""
        self._process.terminate()
        return self._process.wait(_STOP_SECONDS)

    def kill(self) -> None:
        """End it with SIGKILL, also when it has ended already."""
        self._process.kill()
        self._process.wait()

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def said(self) -> str:
        """All that was said, standard output and errors."""
        return (self._folder / "said").read_text()

    def cpu_seconds(self) -> float:
        """Processor time that it took so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND

    def peak_megabytes(self) -> float:
        """The most memory that it held so far."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024
