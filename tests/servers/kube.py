"""Owns a real Kubernetes API without nodes: etcd, kube-apiserver, kube-controller-manager, and
kubectl for it.

Authorisation is RBAC, with one static administrator token. The controllers that make slices, jobs,
service accounts and clean up run; nothing runs pods (see world.py for pods without a kubelet).
"""

import base64
import secrets
import shutil
import subprocess
import warnings
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import requests

from .go_builds import chosen_release, etcd, kubernetes
from .process import Server, free_port, temporary_directory
from .world import write_kubeconfig

_PROBE_SECONDS = 10.0
_CONTROLLERS = (
    "endpointslice-controller",
    "endpointslice-mirroring-controller",
    "cronjob-controller",
    "job-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "deployment-controller",
    "replicaset-controller",
    "resourcequota-controller",
)


class Etcd(Server):
    """etcd with one member, which does not wait for the disk."""

    name = "etcd"
    stop_seconds = 1.0

    def __init__(self, *, port: int | None = None) -> None:
        """`port` None: a free one."""
        self._program = etcd()
        super().__init__(port=port)

    @property
    def url(self) -> str:
        """Its client address."""
        return f"http://{self.host}:{self.port}"

    def _command(self) -> list[str]:
        return [
            str(self._program),
            f"--data-dir={self.directory / 'data'}",
            f"--listen-client-urls={self.url}",
            f"--advertise-client-urls={self.url}",
            f"--listen-peer-urls=http://{self.host}:{free_port()}",
            "--unsafe-no-fsync=true",
            "--log-level=warn",
        ]

    def _is_ready(self) -> bool:
        return requests.get(f"{self.url}/health", timeout=_PROBE_SECONDS).ok


class ApiServer(Server):
    """kube-apiserver on an etcd; `admin_token` may do everything."""

    name = "kube-apiserver"
    stop_seconds = 1.0

    def __init__(
        self,
        *,
        etcd_url: str,
        service_accounts: bool = False,
        port: int | None = None,
        certificate: tuple[Path, Path, Path] | None = None,
        programs: Path | None = None,
        plugins: tuple[str, ...] = (),
    ) -> None:
        """`etcd_url` is that of a running etcd; `port` None: a free one. With `service_accounts` a
        pod needs its account, and gets a volume with its token. `certificate`: the files of one for
        localhost, of its key, and of its authority, all PEM; by default the server makes its own.
        `programs` is the folder of another release than the newest, `plugins` are admission plugins
        that are off by default."""
        self._plugins = plugins
        self._service_accounts = service_accounts
        self._certificate = certificate
        self._program = (programs or kubernetes()) / "kube-apiserver"
        super().__init__(port=port)
        self._etcd_url = etcd_url
        self.admin_token = secrets.token_urlsafe(24)
        self.key_file = self.directory / "service-account.key"
        self.key_file.write_text(_elliptic_private_key())
        self._tokens = self.directory / "tokens.csv"
        self._tokens.write_text(f'{self.admin_token},admin,admin,"system:masters"\n')

    @property
    def url(self) -> str:
        """Its address."""
        return f"https://{self.host}:{self.port}"

    @property
    def ca_file(self) -> Path:
        """The authority of its certificate, made at its first start."""
        if self._certificate is not None:
            return self._certificate[2]
        return self.directory / "certificates" / "apiserver.crt"

    def _command(self) -> list[str]:
        return [
            str(self._program),
            f"--etcd-servers={self._etcd_url}",
            f"--cert-dir={self.directory / 'certificates'}",
            *self._own_certificate(),
            f"--bind-address={self.host}",
            f"--secure-port={self.port}",
            # A documentation address; by default it looks for a route, and may fail
            "--advertise-address=192.0.2.1",
            "--service-cluster-ip-range=10.96.0.0/16,fd00:10:96::/112",
            "--allow-privileged=true",
            "--authorization-mode=RBAC",
            *([] if self._service_accounts else ["--disable-admission-plugins=ServiceAccount"]),
            *(f"--enable-admission-plugins={plugin}" for plugin in self._plugins),
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.key_file}",
            f"--service-account-signing-key-file={self.key_file}",
            f"--token-auth-file={self._tokens}",
        ]

    def _own_certificate(self) -> list[str]:
        if self._certificate is None:
            return []
        certificate, key, _ = self._certificate
        return [f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}"]

    def _is_ready(self) -> bool:
        if not self.ca_file.is_file():
            return False
        headers = {"Authorization": f"Bearer {self.admin_token}"}
        verify = str(self.ca_file) if self._certificate is None else False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a connection that is not verified
            return requests.get(
                f"{self.url}/readyz", headers=headers, verify=verify, timeout=_PROBE_SECONDS
            ).ok


class ControllerManager(Server):
    """kube-controller-manager with the controllers that need no node."""

    name = "kube-controller-manager"

    def __init__(
        self,
        *,
        kubeconfig: Path,
        key_file: Path,
        ca_file: Path,
        port: int | None = None,
        programs: Path | None = None,
    ) -> None:
        """`key_file` signs the tokens of service accounts, `ca_file` is given to pods; `port` None:
        a free one. `programs` is the folder of another release than the newest."""
        self._program = (programs or kubernetes()) / "kube-controller-manager"
        super().__init__(port=port)
        self._kubeconfig = kubeconfig
        self._key_file = key_file
        self._ca_file = ca_file

    def _command(self) -> list[str]:
        return [
            str(self._program),
            f"--kubeconfig={self._kubeconfig}",
            f"--bind-address={self.host}",
            f"--secure-port={self.port}",
            f"--cert-dir={self.directory / 'certificates'}",
            "--leader-elect=false",
            f"--service-account-private-key-file={self._key_file}",
            f"--root-ca-file={self._ca_file}",
            f"--controllers={','.join(_CONTROLLERS)}",
            # 5 minutes by default, in which a new CRD is not counted
            "--resource-quota-sync-period=5s",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ]

    def _is_ready(self) -> bool:
        certificate = self.directory / "certificates" / "kube-controller-manager.crt"
        url = f"https://{self.host}:{self.port}/healthz"
        return (
            certificate.is_file()
            and requests.get(url, verify=str(certificate), timeout=_PROBE_SECONDS).ok
        )


class KubernetesServers:
    """The three servers together; a context manager. Each one, also when stopped alone, keeps its
    address and data."""

    def __init__(self, *, service_accounts: bool = False) -> None:
        """Nothing is started before `start` or `with`. `service_accounts`: those that pods need,
        see `ApiServer`. The release is the one that the run chose, by default the newest."""
        self._service_accounts = service_accounts
        self._programs = kubernetes(chosen_release())
        self.directory = temporary_directory("kubernetes")
        self.kubeconfig = self.directory / "kubeconfig"
        self._running = ExitStack()

    def start(self) -> Self:
        """Start all three. Raises ServerError or BuildError."""
        try:
            self.etcd = self._running.enter_context(Etcd())
            self.api_server = self._running.enter_context(
                ApiServer(
                    etcd_url=self.etcd.url,
                    service_accounts=self._service_accounts,
                    programs=self._programs,
                )
            )
            write_kubeconfig(
                self.kubeconfig, url=self.url, token=self.admin_token, ca_file=self.ca_file
            )
            self.controller_manager = self._running.enter_context(
                ControllerManager(
                    kubeconfig=self.kubeconfig,
                    key_file=self.api_server.key_file,
                    ca_file=self.api_server.ca_file,
                    programs=self._programs,
                )
            )
        except BaseException:
            self.close()
            raise
        return self

    @property
    def url(self) -> str:
        """The address of the API."""
        return self.api_server.url

    @property
    def admin_token(self) -> str:
        """A token that may do everything."""
        return self.api_server.admin_token

    @property
    def ca_file(self) -> Path:
        """The authority of the API's certificate."""
        return self.api_server.ca_file

    def kubectl(
        self,
        *arguments: str,
        stdin: str | None = None,
        kubeconfig: Path | None = None,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator, or as whom `kubeconfig` names, and return its output as
        text.

        Raises AssertionError with that output when it fails and `check` is set.
        """
        command = [
            str(kubernetes() / "kubectl"),
            f"--kubeconfig={kubeconfig or self.kubeconfig}",
            *arguments,
        ]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, check=False, timeout=400
        )
        if check and done.returncode != 0:
            raise AssertionError(
                f"kubectl {' '.join(arguments)}: exit code "
                f"{done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done

    def close(self) -> None:
        """Stop all three and remove what they wrote."""
        self._running.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _elliptic_private_key() -> str:
    """Return a new P-256 private key, in PEM: RFC 5915 lets the public half, which Python cannot
    make, be left out."""
    # A number of 31 bytes is always below the order of the curve; 00 first, and 01 so that it is
    # never zero.
    number = b"\x00" + secrets.token_bytes(30) + b"\x01"
    curve = bytes.fromhex("a00a06082a8648ce3d030107")
    body = bytes.fromhex("0201010420") + number + curve
    encoded = base64.b64encode(b"\x30" + bytes([len(body)]) + body).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{encoded}\n-----END EC PRIVATE KEY-----\n"
