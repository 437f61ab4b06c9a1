"""Owns a node that runs the Pods of one Kubernetes API as processes of this machine: scheduler and
kubelet in one.

A Pod's first container runs its command, with its args, its variables and its volumes at their
paths, and with the token of its own service account. Its readiness probe over HTTP counts. All pods
have the machine's network, so each listens on a port of its own. Image, resources and security
context count for nothing here: tests/image has those.
"""

import base64
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import requests

from eurekube_sync.embedded.http import Request, Response
from tests.certificates import Authority, server_context, serving_tls

from .process import free_port, temporary_directory
from .world import Json, KubernetesWorld

_POLL_SECONDS = 0.2
_GRACE_SECONDS = 30.0
# Mounts and host name are the process's own. `/run` holds nothing that it needs.
_MOUNT = 'mount -t tmpfs t /run && while [ "$1" != -- ]; do mkdir -p "$2" && mount --bind "$1" "$2"; shift 2; done'
_SCRIPT = f'echo "$0" > /proc/sys/kernel/hostname && {_MOUNT} && shift && exec "$@"'


@dataclass(slots=True)
class _Running:
    pod: Json
    process: subprocess.Popen[bytes]
    port: int
    """Where it listens instead of on its container's port."""
    ready: bool
    ending_since: float | None = None
    reported: bool = False


@dataclass(kw_only=True)
class Kubelet:
    """A context manager. Takes Pods of any namespace that no node has, until it dies."""

    world: KubernetesWorld
    name: str = "node-1"
    pods: dict[str, _Running] = field(default_factory=dict)
    """By UID."""
    _ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._folder = temporary_directory("kubelet")
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._closing = contextlib.ExitStack()

    def __enter__(self) -> Self:
        certificate = Authority(folder=self._folder).issue("127.0.0.1")
        server = self._closing.enter_context(serving_tls(self._serve, server_context(*certificate)))
        self.world.create_node(self.name)
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": urlsplit(server).port}},
        }
        self.world.request("PATCH", f"/api/v1/nodes/{self.name}/status", {"status": status})
        self._thread.start()
        return self

    def die(self) -> None:
        """The node is lost: its processes end, and nobody says so to the API."""
        self._ended.set()
        self._thread.join()
        for running in self.pods.values():
            running.process.kill()
            running.process.wait()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.die()
        self._closing.close()

    def process(self, pod: str) -> subprocess.Popen[bytes]:
        """The process of a Pod, by the Pod's name."""
        return next(
            each.process for each in self.pods.values() if each.pod["metadata"]["name"] == pod
        )

    def log(self, pod: str) -> str:
        """What the process of a Pod wrote, by the Pod's name."""
        return (self._folder / f"{pod}.log").read_text()

    def _go_on(self) -> None:
        while not self._ended.wait(_POLL_SECONDS):
            try:
                self._turn()
            except (
                requests.RequestException
            ) as error:  # the API is away, or a Pod changed in between
                sys.stderr.write(f"[kubelet] {error}\n")

    def _turn(self) -> None:
        for pod in self.world.request("GET", "/api/v1/pods")["items"]:
            uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
            if node is None and "deletionTimestamp" not in pod["metadata"]:
                self._bind(pod)
            elif node == self.name and uid not in self.pods and pod["status"]["phase"] == "Pending":
                self._start(pod)
            elif uid in self.pods:
                self._follow(pod, self.pods[uid])

    def _bind(self, pod: Json) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": self.name}
        body = {"metadata": {"name": pod["metadata"]["name"]}, "target": target}
        try:
            self.world.request("POST", f"{_path(pod)}/binding", body)
        except requests.HTTPError as error:
            if error.response.status_code != 409:  # another node was first
                raise

    def _start(self, pod: Json) -> None:
        container = pod["spec"]["containers"][0]
        variables = self._variables(pod, container)
        port = free_port()
        arguments = [
            _expanded(word, variables)
            for word in (*container.get("command", ()), *container.get("args", ()))
        ]
        for listed in container.get("ports", ()):
            arguments = [
                re.sub(rf"(?<==):{listed['containerPort']}$", f"127.0.0.1:{port}", each)
                for each in arguments
            ]
        mounts = [str(path) for pair in self._mounts(pod, container) for path in pair]
        own = ["unshare", "--mount", "--uts", *([] if os.geteuid() == 0 else ["--map-root-user"])]
        programs = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        with (self._folder / f"{pod['metadata']['name']}.log").open("ab") as log:
            process = subprocess.Popen(
                [*own, "sh", "-c", _SCRIPT, pod["metadata"]["name"], *mounts, "--", *arguments],
                env={"PATH": programs, **variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        ready = "readinessProbe" not in container
        self.pods[pod["metadata"]["uid"]] = _Running(pod, process, port, ready)
        self._report(pod, "Running", {"running": {}}, ready=ready)

    def _follow(self, pod: Json, running: _Running) -> None:
        code = running.process.poll()
        if code is not None and not running.reported:
            phase = "Failed" if code else "Succeeded"
            self._report(pod, phase, {"terminated": {"exitCode": code % 256}}, ready=False)
            running.reported = True
        elif code is None and (ready := _is_ready(running)) is not running.ready:
            self._report(pod, "Running", {"running": {}}, ready=ready)
            running.ready = ready
        if "deletionTimestamp" not in pod["metadata"]:
            return
        if code is not None:
            self.world.delete_pod(pod["metadata"]["namespace"], pod["metadata"]["name"])
        elif running.ending_since is None:
            running.ending_since = time.monotonic()
            running.process.send_signal(signal.SIGTERM)
        elif time.monotonic() - running.ending_since > _GRACE_SECONDS:
            running.process.kill()

    def _report(self, pod: Json, phase: str, state: Json, *, ready: bool) -> None:
        container = pod["spec"]["containers"][0]
        status = {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "restartCount": 0,
        }
        body = {
            "phase": phase,
            "containerStatuses": [{**status, "ready": ready, "state": state}],
            "conditions": [
                {"type": kind, "status": str(ready)} for kind in ("Ready", "ContainersReady")
            ],
        }
        self.world.patch_pod_status(pod["metadata"]["namespace"], pod["metadata"]["name"], body)

    def _variables(self, pod: Json, container: Json) -> dict[str, str]:
        server = urlsplit(self.world.url)
        found = {
            "KUBERNETES_SERVICE_HOST": str(server.hostname),
            "KUBERNETES_SERVICE_PORT": str(server.port),
        }
        for source in container.get("envFrom", ()):
            ((kind, reference),) = source.items()
            found |= self._data(pod, kind.removesuffix("Ref"), reference)
        for variable in container.get("env", ()):
            reference = variable.get("valueFrom", {}).get("fieldRef")
            found[variable["name"]] = (
                _field(pod, reference["fieldPath"]) if reference else variable.get("value", "")
            )
        return found

    def _data(self, pod: Json, kind: str, reference: Json) -> dict[str, str]:
        """Of a ConfigMap or Secret; of none where it is optional."""
        name = reference.get("secretName") or reference["name"]
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/{kind.lower()}s/{name}"
        try:
            data = self.world.request("GET", path).get("data", {})
        except requests.HTTPError as error:
            if error.response.status_code == 404 and reference.get("optional"):
                return {}
            raise
        return (
            {key: base64.b64decode(text).decode() for key, text in data.items()}
            if kind == "secret"
            else data
        )

    def _mounts(self, pod: Json, container: Json) -> Iterator[tuple[Path, str]]:
        """Each volume as a folder, with the path where the container wants it."""
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", ())}
        for mount in container.get("volumeMounts", ()):
            folder = self._folder / pod["metadata"]["uid"] / mount["name"]
            folder.mkdir(parents=True)
            for name, text in self._files(pod, volumes[mount["name"]]).items():
                (folder / name).write_text(text)
            yield folder, mount["mountPath"]

    def _files(self, pod: Json, volume: Json) -> Mapping[str, str]:
        if "secret" in volume:
            return self._data(pod, "secret", volume["secret"])
        found: dict[str, str] = {}
        for source in volume["projected"]["sources"]:
            ((kind, content),) = source.items()
            if kind == "serviceAccountToken":
                found[content["path"]] = self._token(pod)
            elif kind == "configMap":
                data = self._data(pod, "configMap", content)
                found |= {item["path"]: data[item["key"]] for item in content["items"]}
            else:
                found |= {
                    item["path"]: _field(pod, item["fieldRef"]["fieldPath"])
                    for item in content["items"]
                }
        return found

    def _token(self, pod: Json) -> str:
        """That of the Pod's account, which ends with the Pod."""
        metadata = pod["metadata"]
        bound = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        path = f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{pod['spec']['serviceAccountName']}/token"
        body = {"spec": {"expirationSeconds": 3607, "boundObjectRef": bound}}
        return str(self.world.request("POST", path, body)["status"]["token"])

    def _serve(self, request: Request) -> Response:
        """What `kubectl logs` asks for; always all of it."""
        _, kind, _, pod, *_ = request.path.split("/")
        known = kind == "containerLogs" and (self._folder / f"{pod}.log").exists()
        return Response(
            status=200 if known else 404,
            body=self.log(pod).encode() if known else b"",
            content_type="text/plain",
        )


def _path(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _is_ready(running: _Running) -> bool:
    asked = running.pod["spec"]["containers"][0].get("readinessProbe")
    if asked is None:
        return True
    try:
        url = f"http://127.0.0.1:{running.port}{asked['httpGet']['path']}"
        return requests.get(url, timeout=asked["timeoutSeconds"]).ok
    except requests.RequestException:
        return False


def _field(pod: Json, path: str) -> str:
    """What a fieldPath such as `metadata.labels['x']` names."""
    found: Any = pod
    for bracketed, name in re.findall(r"\['([^']+)'\]|([^.\[]+)", path):
        found = found[bracketed or name]
    return str(found)


def _expanded(word: str, variables: Mapping[str, str]) -> str:
    return re.sub(r"\$\((\w+)\)", lambda found: variables.get(found[1], found[0]), word)
