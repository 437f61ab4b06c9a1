"""That the real servers start, do what the tests rely on, and leave nothing behind."""

import os
import socket
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.integration.program import Registry
from tests.waiting import wait_until

from . import cache
from .eureka import EurekaServer, ServerTls, eureka_pair, proxied_eureka_pair
from .kube import Etcd, KubernetesServers
from .process import Server, ServerError
from .toxiproxy import Proxy, Toxiproxy
from .world import KubernetesWorld, write_kubeconfig

pytestmark = pytest.mark.servers


def unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def instance(app: str, host: str = "10.0.0.1") -> dict[str, Any]:
    return {
        "instance": {
            "instanceId": f"{app}:{host}",
            "hostName": host,
            "app": app.upper(),
            "ipAddr": host,
            "vipAddress": app,
            "status": "UP",
            "port": {"$": 8080, "@enabled": "true"},
            "dataCenterInfo": {
                "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
                "name": "MyOwn",
            },
        }
    }


def register(server: EurekaServer, app: str, **options: Any) -> int:
    return requests.post(
        f"{server.url}/apps/{app.upper()}", json=instance(app), timeout=30, **options
    ).status_code


def instance_status(server: EurekaServer, app: str) -> int:
    return requests.get(f"{server.url}/apps/{app.upper()}/{app}:10.0.0.1", timeout=30).status_code


def available_replicas(server: EurekaServer, user: tuple[str, str]) -> str:
    status = requests.get(f"{server.url}/status", auth=user, timeout=30).text
    return (
        status.partition("<available-replicas>")[2].partition("<")[0].replace("user:password@", "")
    )


def test_pod_states_reach_the_slice(kubernetes_world: KubernetesWorld) -> None:
    """The real controller shows a pod as ready, not ready, terminating and gone, as its status
    says."""
    world, namespace, node = kubernetes_world, unique("pods"), unique("node")
    world.create_namespace(namespace)
    world.create_node(node, zone="zone-a")
    world.create_service(namespace, "rating", ports={"http": 8080})
    world.create_pod(
        namespace, "a", labels={"app": "rating"}, node=node, ips=["10.1.0.1"], ready=False
    )
    world.wait_for_slices(namespace, "rating", {"10.1.0.1": "NotReady"})
    world.set_ready(namespace, "a", True)
    world.wait_for_slices(namespace, "rating", {"10.1.0.1": "Ready"})
    world.delete_pod(namespace, "a", grace_seconds=30)
    world.wait_for_slices(namespace, "rating", {"10.1.0.1": "Terminating"})
    world.delete_pod(namespace, "a")
    world.wait_for_slices(namespace, "rating", {})


def test_service_account_has_no_rights_of_its_own(
    kubernetes_servers: KubernetesServers, kubernetes_world: KubernetesWorld, tmp_path: Path
) -> None:
    """A minted token is that service account's, and RBAC forbids it what nobody granted."""
    namespace = unique("rights")
    kubernetes_world.create_namespace(namespace)
    kubernetes_world.create_service_account(namespace, "syncer")
    token = kubernetes_world.mint_token(namespace, "syncer")
    ca_file = kubernetes_servers.ca_file
    config = write_kubeconfig(
        tmp_path / "kubeconfig", url=kubernetes_servers.url, token=token, ca_file=ca_file
    )
    who = kubernetes_servers.kubectl("auth", "whoami", kubeconfig=config).stdout
    assert f"system:serviceaccount:{namespace}:syncer" in who
    denied = kubernetes_servers.kubectl("get", "services", kubeconfig=config, check=False)
    assert denied.returncode == 1
    assert "Forbidden" in denied.stderr


def test_kubernetes_keeps_its_objects_over_restarts() -> None:
    """Each server comes back at its address with what was stored, and slices are made again."""
    with KubernetesServers() as servers:
        world = KubernetesWorld(servers.url, token=servers.admin_token, ca_file=servers.ca_file)
        world.create_node("node")
        world.create_service("default", "rating", ports={"http": 8080})
        for server in (servers.etcd, servers.api_server, servers.controller_manager):
            server.restart()
        world.create_pod("default", "a", labels={"app": "rating"}, node="node", ips=["10.1.0.1"])
        world.wait_for_slices("default", "rating", {"10.1.0.1": "Ready"})


def test_eureka_registers_renews_lists_and_cancels(eureka_fast: EurekaServer) -> None:
    """The fast Eureka server lists a registered instance within its one second cache, and knows
    itself."""
    app = unique("rating")
    address = f"{eureka_fast.url}/apps/{app.upper()}"

    def listed() -> bool:
        return requests.get(address, timeout=30).ok

    assert register(eureka_fast, app) == 204
    assert requests.put(f"{address}/{app}:10.0.0.1", timeout=30).status_code == 200
    wait_until(listed, "its list does not show it")
    assert requests.delete(f"{address}/{app}:10.0.0.1", timeout=30).status_code == 200
    wait_until(lambda: not listed(), "its list still shows it")
    assert (
        "<registered-replicas></registered-replicas>"
        in requests.get(f"{eureka_fast.url}/status", timeout=30).text
    )


def test_stock_eureka_keeps_its_cache(eureka_stock: EurekaServer) -> None:
    """The stock Eureka server still hides a new instance from cached reads after what the fast one
    takes."""
    app = unique("rating")
    assert requests.get(f"{eureka_stock.url}/apps", timeout=30).ok
    assert register(eureka_stock, app) == 204
    assert instance_status(eureka_stock, app) == 200
    assert "eureka.server.enable-self-preservation" not in eureka_stock.properties()


def test_an_instance_that_no_list_shows_yet_is_cleared(eureka_stock: EurekaServer) -> None:
    registry, app = Registry(url=eureka_stock.url), unique("left")
    registry.listed("left")  # the server keeps this list for 30 s
    marked = instance(app)
    marked["instance"]["metadata"] = {"eurekube.owner": "left"}
    requests.post(
        f"{eureka_stock.url}/apps/{app.upper()}", json=marked, timeout=30
    ).raise_for_status()
    registry.clear(eureka_stock.session())
    assert instance_status(eureka_stock, app) == 404


def test_eureka_peers_replicate() -> None:
    """Two peers, told apart by their loopback addresses, copy a registration to each other, with
    passwords too."""
    user = ("user", "password")
    with eureka_pair(basic_auth=user) as (first, second):
        app = unique("rating")
        assert register(first, app) == 401
        assert register(first, app, auth=user) == 204
        copy = f"{second.url}/apps/{app.upper()}/{app}:10.0.0.1"
        wait_until(lambda: requests.get(copy, auth=user, timeout=30).ok, "the peer was not told")
        for server, other in ((first, second), (second, first)):
            wait_for_replica(server, other, user)


def test_eureka_speaks_https(kubernetes_servers: KubernetesServers) -> None:
    """A server with a certificate in PEM answers over HTTPS, and again without after a restart,
    empty."""
    certificate = kubernetes_servers.ca_file
    tls = ServerTls(
        certificate=certificate, private_key=certificate.with_suffix(".key"), ca_file=certificate
    )
    with EurekaServer(host="127.0.0.1", tls=tls) as server:
        assert server.url.startswith("https://")
        assert register(server, "rating", verify=str(certificate)) == 204
        server.restart(tls=None)
        assert instance_status(server, "rating") == 404


def wait_for_replica(server: EurekaServer, other: EurekaServer, user: tuple[str, str]) -> None:
    wait_until(
        lambda: other.url in available_replicas(server, user),
        f"{other.url} is not available to its peer",
    )


def wait_for_copy(server: EurekaServer, app: str) -> None:
    wait_until(lambda: instance_status(server, app) == 200, f"{server.url} was not told of {app}")


@pytest.fixture
def proxied(toxiproxy: Toxiproxy, eureka_fast: EurekaServer) -> Iterator[Proxy]:
    """A proxy that leads to the fast Eureka server."""
    proxy = toxiproxy.proxy(f"127.0.0.1:{eureka_fast.port}")
    yield proxy
    toxiproxy.remove(proxy)


def seconds_of_answer(proxy: Proxy) -> float:
    started = time.monotonic()
    assert answers(proxy)
    return time.monotonic() - started


def answers(proxy: Proxy, *, seconds: float = 60) -> bool:
    return requests.get(f"http://{proxy.address}/eureka/apps", timeout=seconds).ok


def test_a_proxy_delays_and_recovers(proxied: Proxy) -> None:
    """What goes through comes late in the chosen direction, in both when both were, and on time
    once healed."""
    proxied.lag(0.5)
    assert seconds_of_answer(proxied) >= 0.5
    proxied.lag(0.5, stream="upstream")
    assert seconds_of_answer(proxied) >= 1
    proxied.if_gone()
    wait_until(lambda: seconds_of_answer(proxied) < 0.5, "it still lags")


def test_a_proxy_is_cut_in_three_ways(proxied: Proxy) -> None:
    """Disabled it refuses, dropping it is silent, resetting it hangs up; each time it heals."""
    cuts: list[tuple[Callable[[], None], type[requests.RequestException]]] = [
        (proxied.disable, requests.ConnectionError),
        (proxied.drop, requests.ReadTimeout),
        (proxied.reset, requests.ConnectionError),
    ]
    for cut, error in cuts:
        cut()
        with pytest.raises(error):
            answers(proxied, seconds=2)
        proxied.if_gone()
        assert answers(proxied)


def test_peers_behind_proxies_replicate_unless_cut(toxiproxy: Toxiproxy) -> None:
    """Each peer tells the other through its proxy: cut, a registration stays where it was made;
    healed, it arrives."""
    with proxied_eureka_pair(toxiproxy) as pair:
        for server, other in ((pair.first, pair.second), (pair.second, pair.first)):
            app = unique("rating")
            assert register(server, app) == 204
            wait_for_copy(other, app)
        for proxy in (pair.to_first, pair.to_second):
            proxy.disable()
        apps = {
            unique("rating"): (pair.first, pair.second),
            unique("rating"): (pair.second, pair.first),
        }
        for app, (server, _) in apps.items():
            assert register(server, app) == 204
        time.sleep(3)
        assert [instance_status(other, app) for app, (_, other) in apps.items()] == [404, 404]
        for proxy in (pair.to_first, pair.to_second):
            proxy.if_gone()
        for app, (server, other) in apps.items():
            requests.put(
                f"{server.url}/apps/{app.upper()}/{app}:10.0.0.1", timeout=30
            ).raise_for_status()
            wait_for_copy(other, app)


class Sleeper(Server):
    """A process that is ready at once, or says what it is told and ends."""

    name = "sleeper"
    start_seconds = 60.0

    def __init__(self, *, last_words: str = "") -> None:
        super().__init__()
        self._last_words = last_words

    def _command(self) -> list[str]:
        code = (
            f"raise SystemExit({self._last_words!r})"
            if self._last_words
            else "import time; time.sleep(600)"
        )
        return [sys.executable, "-c", code]

    def _is_ready(self) -> bool:
        return not self._last_words


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_stopped_server_leaves_no_process() -> None:
    """After the `with` block, even when the server was paused, its process and its directory are
    gone."""
    with Sleeper() as server:
        pid = server.pid
        assert pid is not None
        server.pause()
    assert not is_running(pid)
    assert not server.directory.exists()


def test_killed_test_run_leaves_no_process() -> None:
    """A server and its directory go when the process that started it is killed and could not clean
    up."""
    package = __package__ or ""
    code = f"""
        import os, signal
        from {package}.test_servers import Sleeper
        server = Sleeper().start()
        print(server.pid, server.directory, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    killed = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, env=environment, check=False, timeout=300
    )
    pid, directory = killed.stdout.split()
    wait_until(
        lambda: not is_running(int(pid)) and not Path(directory).exists(), "they are still there"
    )


def test_taken_port_is_exchanged() -> None:
    """A server whose free port was taken in the meantime starts at another one."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = Etcd()
        server.port = taken.getsockname()[1]
        with server:
            assert server.port != taken.getsockname()[1]


def test_failed_start_shows_the_log() -> None:
    """A server that dies while starting gives its last words in the error."""
    with pytest.raises(ServerError, match="no such flag"), Sleeper(last_words="no such flag"):
        pass


def test_unfinished_build_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build that failed half-way is made anew, and a finished one never again."""
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(tmp_path))
    builds: list[str] = []

    def build(folder: Path) -> None:
        builds.append("build")
        (folder / f"part-{len(builds)}").touch()
        if len(builds) == 1:
            raise cache.BuildError("half-way")

    with pytest.raises(cache.BuildError):
        cache.cached("thing", ["1"], build)
    for _ in range(2):
        folder = cache.cached("thing", ["1"], build)
        assert [part.name for part in folder.iterdir()] == ["part-2"]
    assert cache.cached("thing", ["2"], build) != folder
