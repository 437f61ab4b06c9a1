"""Owns how what is written in Go is built from its modules: etcd, the Kubernetes commands,
CoreDNS, toxiproxy, Helm, actionlint.

What is built is fixed by `go/*/go.mod` and `go.sum`. To raise a version, change it in go.mod (for
Kubernetes also in every `replace` and below), run `go mod tidy -e` there and commit both files.
Go's own module and build caches are used as the machine has them, so a second build is quick.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from .cache import cached, run_logged
from .toolchains import go

ETCD_VERSION = "v3.6.8"
KUBERNETES_VERSION = "v1.36.3"
COREDNS_VERSION = "v1.15.0"
TOXIPROXY_VERSION = "v2.12.0"
ACTIONLINT_VERSION = "v1.7.12"
GATEWAY_API_VERSION = "v1.3.0"
HELM_VERSIONS = {3: "v3.22.0", 4: "v4.3.1"}

_MODULES = Path(__file__).parent / "go"
_ENVIRONMENT = {
    "CGO_ENABLED": "0",
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
    "GOFLAGS": "-trimpath -buildvcs=false",
}
_LINKING = "-s -w -X k8s.io/component-base/version.gitVersion="
_SERVER_COMMANDS = ("kube-apiserver", "kube-controller-manager")


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesRelease:
    """A release of Kubernetes that the tests run on."""

    version: str
    """Its tag, such as "v1.36.3"."""
    module: str
    """The folder of its go.mod."""
    commands: tuple[str, ...] = _SERVER_COMMANDS
    tags: tuple[str, ...] = ()
    """Tags of the build, as arguments of `go build`."""


OLDEST_KUBERNETES = "1.28"
NEWEST_KUBERNETES = "1.36"
KUBERNETES_RELEASES = {
    OLDEST_KUBERNETES: KubernetesRelease(
        version="v1.28.15",
        module="kube128",
        # Without the clouds' own code, which is not on every module proxy.
        tags=("-tags", "providerless"),
    ),
    "1.32": KubernetesRelease(version="v1.32.2", module="kube132"),
    NEWEST_KUBERNETES: KubernetesRelease(
        version=KUBERNETES_VERSION,
        module="kube",
        commands=(*_SERVER_COMMANDS, "kube-proxy", "kubectl"),
    ),
}
RELEASE_VARIABLE = "EUREKUBE_SYNC_TEST_KUBERNETES"


def chosen_release() -> str:
    """Return the release that the run chose by the variable, by default the newest."""
    return os.environ.get(RELEASE_VARIABLE, NEWEST_KUBERNETES)


def etcd() -> Path:
    """Return the etcd command, built first when the cache lacks it. Raises BuildError."""
    module = _MODULES / "etcd"

    def build(folder: Path) -> None:
        command: list[str | Path] = [
            go(),
            "build",
            "-ldflags",
            "-s -w",
            "-o",
            folder / "etcd",
            "go.etcd.io/etcd/server/v3",
        ]
        run_logged("etcd", command, environment=_ENVIRONMENT, directory=module)

    return cached(f"etcd-{ETCD_VERSION}", [module / "go.mod", module / "go.sum"], build) / "etcd"


def kubernetes(release: str = NEWEST_KUBERNETES) -> Path:
    """Return the folder with kube-apiserver and kube-controller-manager of a release, built first
    when the cache lacks it. The newest has kube-proxy and kubectl as well.

    An empty Go cache takes 5 to 10 minutes on two cores. Raises BuildError.
    """
    built = KUBERNETES_RELEASES[release]
    module = _MODULES / built.module
    linking = f"{_LINKING}{built.version}"

    def build(folder: Path) -> None:
        packages = [f"k8s.io/kubernetes/cmd/{command}" for command in built.commands]
        command: list[str | Path] = [
            go(),
            "build",
            *built.tags,
            "-ldflags",
            linking,
            "-o",
            f"{folder}/",
            *packages,
        ]
        run_logged(f"kubernetes-{release}", command, environment=_ENVIRONMENT, directory=module)

    inputs: list[str | Path] = [
        module / "go.mod",
        module / "go.sum",
        linking,
        *built.tags,
        *built.commands,
    ]
    return cached(f"kubernetes-{built.version}", inputs, build)


def coredns() -> Path:
    """Return the coredns command, built first when the cache lacks it. Raises BuildError."""
    module = _MODULES / "coredns"

    def build(folder: Path) -> None:
        command: list[str | Path] = [go(), "build", "-ldflags", "-s -w", "-o", folder / "coredns"]
        run_logged("coredns", command, environment=_ENVIRONMENT, directory=module)

    inputs = [module / "go.mod", module / "go.sum", module / "main.go"]
    return cached(f"coredns-{COREDNS_VERSION}", inputs, build) / "coredns"


def toxiproxy() -> Path:
    """Return the toxiproxy server command, built first when the cache lacks it. Raises
    BuildError."""
    folder = _installed(
        "toxiproxy", TOXIPROXY_VERSION, "github.com/Shopify/toxiproxy/v2/cmd/server"
    )
    return folder / "server"


def actionlint() -> Path:
    """Return the command that checks GitHub's workflows, built first when the cache lacks it: 10 s.
    Raises BuildError."""
    package = "github.com/rhysd/actionlint/cmd/actionlint"
    return _installed("actionlint", ACTIONLINT_VERSION, package) / "actionlint"


def helm(major: int = 4) -> Path:
    """Return the helm command of a major version, built first when the cache lacks it: 2 minutes.
    Raises BuildError."""
    return (
        _installed(f"helm{major}", HELM_VERSIONS[major], f"helm.sh/helm/v{major}/cmd/helm") / "helm"
    )


def module_of_ours(name: str, module: Path) -> Path:
    """Return the command of a module whose source is `main.go`, built first when the cache lacks
    it. Raises BuildError."""

    def build(folder: Path) -> None:
        command: list[str | Path] = [go(), "build", "-ldflags", "-s -w", "-o", folder / name, "."]
        run_logged(name, command, environment=_ENVIRONMENT, directory=module)

    inputs = [module / file for file in ("go.mod", "go.sum", "main.go")]
    return cached(name, inputs, build) / name


def gateway_api() -> Path:
    """Return the folder with the definitions of the Gateway API, downloaded first when the cache
    lacks them. Raises BuildError."""
    module = f"sigs.k8s.io/gateway-api@{GATEWAY_API_VERSION}"

    def build(folder: Path) -> None:
        environment = {**_ENVIRONMENT, "GOMODCACHE": str(folder), "GOFLAGS": "-modcacherw"}
        run_logged("gateway-api", [go(), "mod", "download", module], environment=environment)

    folder = cached(f"gateway-api-{GATEWAY_API_VERSION}", [module], build)
    return folder / module / "config" / "crd" / "standard"


def _installed(name: str, version: str, package: str) -> Path:
    """The folder with the command of a package, which needs no go.mod of ours."""

    def build(folder: Path) -> None:
        command: list[str | Path] = [go(), "install", "-ldflags", "-s -w", f"{package}@{version}"]
        run_logged(name, command, environment={**_ENVIRONMENT, "GOBIN": str(folder)})

    return cached(f"{name}-{version}", [package], build)
