"""Owns the way of a call from a pod, by a Service's name, to a server: kube-proxy and CoreDNS
between three network namespaces.

`node` is a node of the cluster, where kube-proxy and CoreDNS run. `pod` is a pod on it, at
10.8.0.10. `dc` is the data centre, at 10.9.0.1 and 10.9.0.2, whose router is the node. The servers
of the control plane stay on the machine's loopback, and a namespace reaches them at the same
address by a forwarder.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

import requests

from tests.waiting import wait_until

from .cache import BuildError
from .go_builds import coredns, kubernetes
from .kube import KubernetesServers
from .namespaces import Forwarder, NetworkNamespace, WebServer, connect
from .process import LOOPBACK, Server, ServerError, temporary_directory
from .toolchains import install
from .world import KubernetesWorld

POD_ADDRESS = "10.8.0.10"
FIRST, SECOND = "10.9.0.1:8080", "10.9.0.2:9090"
"""The servers of the data centre, `address:port`."""
POD = f"{POD_ADDRESS}:8080"
"""The server of the pod."""
NODE, NODE_ADDRESS = "data-path", "10.250.0.1"
"""The Node on which the pod is, and its address in the data centre."""
NAMESPACE = "shop"
"""The Kubernetes namespace of the pod, whose Services it calls by their bare names."""
_NODE_TO_POD = "10.8.0.1"
_DATA_CENTRE_TO_NODE = "10.250.0.2"
_PACKAGES = {"nft": "nftables", "ip": "iproute2", "curl": "curl"}
_PROBE_SECONDS = 10.0
_CALL_SECONDS = "10"
_DOMAIN = "svc.cluster.local"
_MARKER = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices/marker"
_MARKER_ADDRESS = "192.0.2.9"


class KubeProxy(Server):
    """kube-proxy on a node, with nftables."""

    name: ClassVar[str] = "kube-proxy"
    start_seconds: ClassVar[float] = 120.0

    def __init__(
        self,
        node: NetworkNamespace,
        kubeconfig: Path,
        *,
        node_name: str = NODE,
        address: str = NODE_ADDRESS,
    ) -> None:
        """`node_name` and `address` are those of the Node. It opens node ports at that address."""
        self._program = kubernetes() / "kube-proxy"
        super().__init__()
        self._node = node
        self._kubeconfig = kubeconfig
        self._node_name = node_name
        self._address = address

    def _command(self) -> list[str]:
        configuration = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "hostnameOverride": self._node_name,
            "bindAddress": self._address,
            "clusterCIDR": "10.8.0.0/16",
            "detectLocalMode": "ClusterCIDR",
            "healthzBindAddress": f"{LOOPBACK}:{self.port}",
            "metricsBindAddress": f"{LOOPBACK}:10249",
            "clientConnection": {"kubeconfig": str(self._kubeconfig)},
            # These settings of the kernel are the machine's, and no namespace has its own
            "conntrack": {
                "maxPerCore": 0,
                "min": 0,
                "tcpEstablishedTimeout": "0s",
                "tcpCloseWaitTimeout": "0s",
            },
            "nftables": {"minSyncPeriod": "1s"},
        }
        file = self.directory / "config.json"
        file.write_text(json.dumps(configuration))
        return self._node.command(self._program, f"--config={file}")

    def _is_ready(self) -> bool:
        url = f"http://{LOOPBACK}:{self.port}/healthz"
        return self._node.inside(lambda: requests.get(url, timeout=_PROBE_SECONDS)).ok


class CoreDns(Server):
    """CoreDNS on the node, which answers for the Services of the cluster alone."""

    name: ClassVar[str] = "coredns"
    start_seconds: ClassVar[float] = 120.0

    def __init__(self, node: NetworkNamespace, kubeconfig: Path) -> None:
        self._program = coredns()
        super().__init__()
        self._node = node
        self._kubeconfig = kubeconfig

    def _command(self) -> list[str]:
        corefile = f"""
            .:53 {{
                errors
                ready {LOOPBACK}:{self.port}
                kubernetes cluster.local {{
                    kubeconfig {self._kubeconfig}
                }}
            }}
        """
        file = self.directory / "Corefile"
        file.write_text(corefile)
        return self._node.command(self._program, "-conf", file)

    def _is_ready(self) -> bool:
        url = f"http://{LOOPBACK}:{self.port}/ready"
        return self._node.inside(lambda: requests.get(url, timeout=_PROBE_SECONDS)).ok


class DataPath:
    """The three namespaces with all that runs in them; a context manager.

    In the data centre, `FIRST` and `SECOND` answer calls with these names, and in the pod, `POD`.
    """

    def __init__(self, kubernetes_servers: KubernetesServers) -> None:
        """Describe one for a cluster whose servers run. Nothing is started before `with`."""
        self._kubernetes = kubernetes_servers
        self._marker_ports = itertools.count(1)
        self._directory = temporary_directory("data-path")
        self._running = ExitStack()
        self.node, self.pod, self.data_centre = (NetworkNamespace() for _ in range(3))
        self.nodes = [self.node]
        """The networks in which a kube-proxy runs."""

    def curl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run curl in the pod, with ten seconds for a call. Never raises on an exit code."""
        options = ["--silent", "--show-error", "--noproxy", "*", "--max-time", _CALL_SECONDS]
        return subprocess.run(
            self.pod.command("curl", *options, *arguments),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def wait_for_kube_proxy(self) -> None:
        """Wait until each kube-proxy has followed what was written to slices so far. It gets them
        in order, so it is enough that it follows one more write. Raises AssertionError."""
        port = next(self._marker_ports)
        self._world.request("PATCH", _MARKER, {"ports": [{"name": "marker", "port": port}]})
        rule = f"{_MARKER_ADDRESS} . {port}"

        def followed() -> bool:
            tables = [node.run("nft", "list", "table", "ip", "kube-proxy") for node in self.nodes]
            return all(rule in table for table in tables)

        wait_until(followed, "kube-proxy does not follow the slices")

    def __enter__(self) -> Self:
        try:
            self._make_network()
            self._start_servers()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all that runs in the namespaces, and with it the namespaces."""
        self._running.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _make_network(self) -> None:
        """Make the three namespaces and their cables. Raises ServerError, with the reason, on a
        machine that does not allow it."""
        try:
            if os.geteuid() != 0:
                raise ServerError("only root may make network namespaces")
            install(_PACKAGES, user="the data path")
            for namespace in (self.node, self.pod, self.data_centre):
                self._running.enter_context(namespace)
            self._connect()
        except (BuildError, ServerError) as error:
            raise ServerError(
                f"this machine does not allow what the data path needs: {error}\n"
                "To leave out these tests: TOX_SKIP_ENV=datapath tox"
            ) from error

    def _connect(self) -> None:
        connect(self.node, f"pod {_NODE_TO_POD}/24", self.pod, f"node {POD_ADDRESS}/24")
        connect(
            self.node,
            f"dc {NODE_ADDRESS}/24",
            self.data_centre,
            f"node {_DATA_CENTRE_TO_NODE}/24",
        )
        for address in ("10.9.0.1", "10.9.0.2"):
            self.data_centre.run("ip", "address", "add", f"{address}/32", "dev", "lo")
        self.pod.run("ip", "route", "add", "default", "via", _NODE_TO_POD)
        # Also for a ClusterIP: kube-proxy's rule that refuses a call, because the Service has no
        # endpoints, only sees what the node would forward
        self.node.run("ip", "route", "add", "default", "via", _DATA_CENTRE_TO_NODE)
        self.data_centre.run("ip", "route", "add", "10.8.0.0/16", "via", NODE_ADDRESS)
        self.node.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        self.node.run("nft", "add table ip trial; delete table ip trial")
        resolver = self._directory / "resolv.conf"
        resolver.write_text(
            f"nameserver {_NODE_TO_POD}\n"
            f"search {NAMESPACE}.{_DOMAIN} {_DOMAIN} cluster.local\n"
            "options ndots:5\n"
        )
        self.pod.run("mount", "--bind", resolver, "/etc/resolv.conf")

    def _start_servers(self) -> None:
        self._prepare_cluster()
        kubeconfig = self._kubernetes.kubeconfig
        servers = (
            Forwarder(self.node, self._kubernetes.api_server.port),
            KubeProxy(self.node, kubeconfig),
            CoreDns(self.node, kubeconfig),
            WebServer(self.data_centre, FIRST),
            WebServer(self.data_centre, SECOND),
            WebServer(self.pod, POD),
        )
        for server in servers:
            self._running.enter_context(server)

    def _prepare_cluster(self) -> None:
        """Make the Node, the namespace of the pod, and the Service whose slice marks what
        kube-proxy has followed."""
        world = KubernetesWorld(
            self._kubernetes.url,
            token=self._kubernetes.admin_token,
            ca_file=self._kubernetes.ca_file,
        )
        self._world = world
        world.create_namespace(NAMESPACE)
        make_node(world, NODE, NODE_ADDRESS)
        world.create_service(NAMESPACE, "marker", ports={"marker": 1}, selector={})
        slice_ = {
            "metadata": {"name": "marker", "labels": {"kubernetes.io/service-name": "marker"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [_MARKER_ADDRESS]}],
        }
        world.request("POST", _MARKER.removesuffix("/marker"), slice_)


def make_node(world: KubernetesWorld, name: str, address: str) -> None:
    """Create a Node that is ready, with its address."""
    world.create_node(name)
    status = {
        "addresses": [{"type": "InternalIP", "address": address}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    world.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": status})
