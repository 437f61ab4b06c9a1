"""Owns how what is written in Go is built from its modules: etcd, the Kubernetes commands,
toxiproxy, Helm.

What is built is fixed by `go/*/go.mod` and `go.sum`. To raise a version, change it in go.mod (for
Kubernetes also in every `replace` and below), run `go mod tidy -e` there and commit both files.
Go's own module and build caches are used as the machine has them, so a second build is quick.
"""

from pathlib import Path

from .cache import cached, run_logged
from .toolchains import go

ETCD_VERSION = "v3.6.8"
KUBERNETES_VERSION = "v1.36.3"
OLDEST_KUBERNETES_VERSION = "v1.28.15"
TOXIPROXY_VERSION = "v2.12.0"
GATEWAY_API_VERSION = "v1.3.0"
HELM_VERSIONS = {3: "v3.22.0", 4: "v4.3.1"}

_MODULES = Path(__file__).parent / "go"
_ENVIRONMENT = {
    "CGO_ENABLED": "0",
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
    "GOFLAGS": "-trimpath -buildvcs=false",
}
_KUBERNETES_COMMANDS = ("kube-apiserver", "kube-controller-manager", "kubectl")
_LINKING = "-s -w -X k8s.io/component-base/version.gitVersion="
_KUBERNETES_LINKING = f"{_LINKING}{KUBERNETES_VERSION}"


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


def kubernetes() -> Path:
    """Return the folder with kube-apiserver, kube-controller-manager and kubectl, built first when
    the cache lacks it.

    An empty Go cache takes 5 to 10 minutes on two cores. Raises BuildError.
    """
    module = _MODULES / "kube"

    def build(folder: Path) -> None:
        packages = [f"k8s.io/kubernetes/cmd/{command}" for command in _KUBERNETES_COMMANDS]
        command: list[str | Path] = [
            go(),
            "build",
            "-ldflags",
            _KUBERNETES_LINKING,
            "-o",
            f"{folder}/",
            *packages,
        ]
        run_logged("kubernetes", command, environment=_ENVIRONMENT, directory=module)

    inputs: list[str | Path] = [
        module / "go.mod",
        module / "go.sum",
        _KUBERNETES_LINKING,
        *_KUBERNETES_COMMANDS,
    ]
    return cached(f"kubernetes-{KUBERNETES_VERSION}", inputs, build)


def oldest_kubernetes() -> Path:
    """Return the folder with the kube-apiserver of the oldest Kubernetes that is supported, built
    first when the cache lacks it: 3 to 5 minutes on two cores. Raises BuildError."""
    module = _MODULES / "kube128"
    # Without the clouds' own code, which is not on every module proxy.
    flags = ("-tags", "providerless", "-ldflags", f"{_LINKING}{OLDEST_KUBERNETES_VERSION}")

    def build(folder: Path) -> None:
        command: list[str | Path] = [
            go(),
            "build",
            *flags,
            "-o",
            f"{folder}/",
            "k8s.io/kubernetes/cmd/kube-apiserver",
        ]
        run_logged("kubernetes-oldest", command, environment=_ENVIRONMENT, directory=module)

    return cached(
        f"kubernetes-{OLDEST_KUBERNETES_VERSION}",
        [module / "go.mod", module / "go.sum", *flags],
        build,
    )


def toxiproxy() -> Path:
    """Return the toxiproxy server command, built first when the cache lacks it. Raises
    BuildError."""
    folder = _installed(
        "toxiproxy", TOXIPROXY_VERSION, "github.com/Shopify/toxiproxy/v2/cmd/server"
    )
    return folder / "server"


def helm(major: int = 4) -> Path:
    """Return the helm command of a major version, built first when the cache lacks it: 2 minutes.
    Raises BuildError."""
    return (
        _installed(f"helm{major}", HELM_VERSIONS[major], f"helm.sh/helm/v{major}/cmd/helm") / "helm"
    )


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
