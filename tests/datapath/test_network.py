"""The namespaces of the data path: what they leave behind, and what is said on a machine that does
not allow them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.data_path import DataPath
from tests.servers.kube import KubernetesServers
from tests.servers.namespaces import NetworkNamespace, connect
from tests.servers.process import ServerError
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

_ENTER = """
import sys
from tests.servers.data_path import DataPath
from tests.servers.kube import KubernetesServers
try:
    DataPath(KubernetesServers()).__enter__()
except Exception as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


def test_a_namespace_goes_with_its_process(data_path: DataPath) -> None:
    """It is killed, as by the end of a run that is killed. The kernel removes the namespace with
    its end of a cable, and so the other end."""
    with NetworkNamespace() as first, NetworkNamespace() as second:
        connect(first, "to-second 10.1.0.1/24", second, "to-first 10.1.0.2/24")
        assert "to-second" in first.run("ip", "link")
        second.kill()
        wait_until(lambda: "to-second" not in first.run("ip", "link"), "the cable is still there")


def test_the_machine_keeps_its_settings(data_path: DataPath) -> None:
    """The node forwards packets, and the pod has another name server. Both are theirs alone."""
    forwarding, resolver = "/proc/sys/net/ipv4/ip_forward", "/etc/resolv.conf"
    assert data_path.node.run("cat", forwarding) == "1\n"
    assert "svc.cluster.local" in data_path.pod.run("cat", resolver)
    assert "svc.cluster.local" not in Path(resolver).read_text()
    assert "kube-proxy" in data_path.node.run("nft", "list", "tables")
    assert data_path.pod.run("nft", "list", "tables") == ""


@pytest.mark.parametrize("right", ["sys_admin", "net_admin"])
def test_a_machine_without_the_right_says_so(data_path: DataPath, right: str) -> None:
    """Root in a container may lack a capability. The error has the system's reason, and says how to
    leave out the tests."""
    done = subprocess.run(
        ["setpriv", f"--bounding-set=-{right}", sys.executable, "-c", _ENTER],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("ServerError: this machine does not allow what the data path")
    assert "Operation not permitted" in done.stderr
    assert "TOX_SKIP_ENV=datapath" in done.stderr


def test_only_root_has_a_data_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for another user, before anything is made."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ServerError, match="only root"):
        DataPath(KubernetesServers()).__enter__()


def test_a_machine_without_the_programs_names_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They are missing, and this is no Debian to install them on."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerError, match="the data path needs nft, ip, curl"):
        DataPath(KubernetesServers()).__enter__()
