"""Owns a network outside of the cluster whose containers reach nodes, but no pods, as where pods
have addresses that no router knows.

`caller` is a container there. Beside the node of the data path there is a second one, `other_node`,
with the pod `other_pod` at 10.8.1.10. Nodes and pods reach each other, as in every cluster.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from .data_path import NODE_ADDRESS, POD_ADDRESS, DataPath, KubeProxy, make_node
from .kube import KubernetesServers
from .namespaces import Forwarder, NetworkNamespace, WebServer, connect
from .process import temporary_directory
from .world import KubernetesWorld

OTHER_NODE, OTHER_NODE_ADDRESS = "data-path-other", "10.251.2.1"
OTHER_POD_ADDRESS = "10.8.1.10"
OTHER_POD = f"{OTHER_POD_ADDRESS}:8080"
"""The server of the pod on the other node."""
_BETWEEN_NODES = ("10.252.0.1", "10.252.0.2")
_FIRST_CABLE = ("10.251.1.1", "10.251.1.2")
_CALLER_TO_OTHER_NODE = "10.251.2.2"
_OTHER_NODE_TO_POD = "10.8.1.1"
_FORWARDS = "ip portmap"


class Outside:
    """The caller's network, the second node, and the ports of `forwarded` on both nodes; a context
    manager.

    `forwarded` are numbers of `hostPort`s: each leads to port 8080 of the node's own pod, by the
    rule that the CNI plugin portmap writes. `routed` are addresses for which the network has a
    route to the first node, as of a load balancer. `hosts` are names of the first node.
    """

    def __init__(
        self,
        data_path: DataPath,
        kubernetes_servers: KubernetesServers,
        *,
        forwarded: Collection[int] = (),
        routed: Collection[str] = (),
        hosts: Collection[str] = (),
    ) -> None:
        self._data_path = data_path
        self._kubernetes = kubernetes_servers
        self._forwarded = forwarded
        self._routed = routed
        self._hosts = hosts
        self._directory = temporary_directory("outside")
        self._running = ExitStack()
        self.caller, self.other_node, self.other_pod = (NetworkNamespace() for _ in range(3))

    def __enter__(self) -> Self:
        try:
            for namespace in (self.caller, self.other_node, self.other_pod):
                self._running.enter_context(namespace)
            self._make_other_node()
            self._make_caller()
            for number in self._forwarded:
                _forward(self._data_path.node, number, POD_ADDRESS)
                _forward(self.other_node, number, OTHER_POD_ADDRESS)
            # The node outlives this network. A table can only be deleted if it is there
            forgotten = f"add table {_FORWARDS}; delete table {_FORWARDS}"
            self._running.callback(self._data_path.node.run, "nft", forgotten)
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
        if self.other_node in self._data_path.nodes:
            self._data_path.nodes.remove(self.other_node)
        self._running.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _make_other_node(self) -> None:
        node, other = self._data_path.node, self.other_node
        to_node, to_other = _BETWEEN_NODES
        connect(node, f"other {to_node}/24", other, f"node {to_other}/24")
        connect(
            other,
            f"pod {_OTHER_NODE_TO_POD}/24",
            self.other_pod,
            f"node {OTHER_POD_ADDRESS}/24",
        )
        node.run("ip", "route", "add", "10.8.1.0/24", "via", to_other)
        other.run("ip", "route", "add", "default", "via", to_node)
        self.other_pod.run("ip", "route", "add", "default", "via", _OTHER_NODE_TO_POD)
        other.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")

    def _make_caller(self) -> None:
        node, caller = self._data_path.node, self.caller
        at_node, at_caller = _FIRST_CABLE
        connect(node, f"caller {at_node}/24", caller, f"node {at_caller}/24")
        connect(
            self.other_node,
            f"caller {OTHER_NODE_ADDRESS}/24",
            caller,
            f"other {_CALLER_TO_OTHER_NODE}/24",
        )
        for address in (NODE_ADDRESS, *self._routed):
            caller.run("ip", "route", "add", f"{address}/32", "via", at_node)
        lines = ["127.0.0.1 localhost\n"]
        for host in self._hosts:
            lines.append(f"{NODE_ADDRESS} {host}\n")
        file = self._directory / "hosts"
        file.write_text("".join(lines))
        caller.run("mount", "--bind", file, "/etc/hosts")

    def _start_servers(self) -> None:
        world = KubernetesWorld(
            self._kubernetes.url,
            token=self._kubernetes.admin_token,
            ca_file=self._kubernetes.ca_file,
        )
        make_node(world, OTHER_NODE, OTHER_NODE_ADDRESS)
        self._running.callback(world.request, "DELETE", f"/api/v1/nodes/{OTHER_NODE}")
        proxy = KubeProxy(
            self.other_node,
            self._kubernetes.kubeconfig,
            node_name=OTHER_NODE,
            address=OTHER_NODE_ADDRESS,
        )
        servers = (
            Forwarder(self.other_node, self._kubernetes.api_server.port),
            proxy,
            WebServer(self.other_pod, OTHER_POD),
        )
        for server in servers:
            self._running.enter_context(server)
        self._data_path.nodes.append(self.other_node)


def _forward(node: NetworkNamespace, number: int, pod_address: str) -> None:
    """Lead calls of a port of the node itself to port 8080 of a pod."""
    node.run(
        "nft",
        f"add table {_FORWARDS};"
        f"add chain {_FORWARDS} prerouting {{ type nat hook prerouting priority dstnat; }};"
        f"add rule {_FORWARDS} prerouting fib daddr type local tcp dport {number} "
        f"dnat to {pod_address}:8080",
    )
