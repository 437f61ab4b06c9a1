"""The command line: `build` fills the cache, `up` runs the servers in the foreground until
Ctrl-C."""

import argparse
import signal
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

from .cache import BuildError, say
from .eureka import EurekaServer
from .eureka_build import eureka
from .eureka_lines import LINES
from .go_builds import (
    KUBERNETES_RELEASES,
    actionlint,
    coredns,
    etcd,
    gateway_api,
    helm,
    kubernetes,
    toxiproxy,
)
from .kube import KubernetesServers
from .process import ServerError
from .pythons import IMAGE, NEWEST, locked_python, python
from .toolchains import chromium, nginx, promtool

_BUILDS: dict[str, Callable[[], object]] = {
    "etcd": etcd,
    **{release.module: partial(kubernetes, name) for name, release in KUBERNETES_RELEASES.items()},
    "eureka": eureka,
    **{f"eureka-{name}": partial(eureka, line) for name, line in LINES.items()},
    "coredns": coredns,
    "toxiproxy": toxiproxy,
    "helm3": lambda: helm(3),
    "helm4": lambda: helm(4),
    "actionlint": actionlint,
    "gateway-api": gateway_api,
    "promtool": promtool,
    "chromium": chromium,
    "nginx": nginx,
    f"python{IMAGE}": lambda: locked_python(IMAGE),
    f"python{NEWEST}": lambda: python(NEWEST),
}


def main() -> int:
    """Run one command; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.servers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build what the cache lacks")
    build.add_argument("server", nargs="?", default="all", choices=[*_BUILDS, "all"])
    up = commands.add_parser("up", help="run a Kubernetes API and a Eureka server until Ctrl-C")
    up.add_argument(
        "--stock",
        action="store_true",
        help="Eureka with its own timings: 30 s cache, 60 s eviction",
    )
    arguments = parser.parse_args()
    try:
        if arguments.command == "build":
            for name in _BUILDS if arguments.server == "all" else [arguments.server]:
                _BUILDS[name]()
        else:
            _up(stock_timings=arguments.stock)
    except (BuildError, ServerError) as error:
        say(str(error))
        return 1
    return 0


def _up(*, stock_timings: bool) -> None:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    try:
        with (
            KubernetesServers() as kubernetes_servers,
            EurekaServer(stock_timings=stock_timings) as eureka_server,
        ):
            sys.stdout.write(f"export KUBECONFIG={kubernetes_servers.kubeconfig}\n")
            sys.stdout.write(f"export EUREKA_URL={eureka_server.url}\n")
            sys.stdout.flush()
            say("running; Ctrl-C ends them")
            signal.pause()
    except KeyboardInterrupt:
        say("ended")


if __name__ == "__main__":
    sys.exit(main())
