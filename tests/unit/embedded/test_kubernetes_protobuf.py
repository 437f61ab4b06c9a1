"""The protobuf of kubectl, recorded from kubectl 1.32, which is read like JSON."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eurekube_sync.embedded.http import Request
from eurekube_sync.embedded.kubernetes.bodies import MEDIA_TYPE, decode
from eurekube_sync.embedded.kubernetes.errors import ApiError
from eurekube_sync.embedded.kubernetes.server import EmbeddedKubernetes

NAMESPACE = bytes.fromhex(
    "6b3873000a0f0a02763112094e616d65737061636512190a110a016212001a0022002a0032003800420012001a020a001a002200"
)
NODE_PORT = bytes.fromhex(
    "6b3873000a0d0a02763112075365727669636512690a220a017912001a0764656661756c7422002a00320038004200"
    "5a080a03617070120179123f0a1b0a0738302d383038301203544350185022070800"
    "10903f1a002800"
    + "12080a03617070120179"
    + "1a0022084e6f6465506f72743a00420052005a00600068001a020a001a002200"
)
EXTERNAL = bytes.fromhex(
    "6b3873000a0d0a02763112075365727669636512"
    + "4c0a1b0a017a12001a0022002a003200380042005a080a0361707012017a1229"
    "12080a0361707012017a1a00220c45787465726e616c4e616d653a00420052"
    "03612e625a00600068001a020a001a002200"
)
REVIEW = bytes.fromhex(
    "6b3873000a320a17617574686f72697a6174696f6e2e6b38732e696f2f7631121753656c665375626a65637441636365737352657669657712"
    "3d0a100a0012001a0022002a0032003800420012"
    + "1f0a1d0a0764656661756c7412046c6973741a0022002a04706f647332003a001a080800"
    "12001a0020001a002200"
)
SENT: dict[str, tuple[bytes, dict[str, Any]]] = {
    "create namespace b": (
        NAMESPACE,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b"}},
    ),
    "create service nodeport y --tcp=80:8080": (
        NODE_PORT,
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "y", "namespace": "default", "labels": {"app": "y"}},
            "spec": {
                "ports": [{"name": "80-8080", "protocol": "TCP", "port": 80, "targetPort": 8080}],
                "selector": {"app": "y"},
                "type": "NodePort",
            },
        },
    ),
    "create service externalname z --external-name a.b": (
        EXTERNAL,
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "z", "labels": {"app": "z"}},
            "spec": {"selector": {"app": "z"}, "type": "ExternalName", "externalName": "a.b"},
        },
    ),
    "auth can-i list pods": (
        REVIEW,
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {
                "resourceAttributes": {"namespace": "default", "verb": "list", "resource": "pods"}
            },
        },
    ),
}


@pytest.mark.parametrize("command", SENT)
def test_a_command_of_kubectl_is_read(command: str) -> None:
    """Empty fields are left out, as in JSON."""
    body, expected = SENT[command]
    assert decode(body) == expected


def test_a_port_may_be_a_name() -> None:
    """The target port of a Service is a number or a name."""
    port = b"\x08\x01\x10\x00\x1a\x04http"
    ports = b"\x0a" + bytes([len(port) + 2]) + b"\x22" + bytes([len(port)]) + port
    raw = b"\x12" + bytes([len(ports)]) + ports
    body = NODE_PORT[: NODE_PORT.index(b"\x12i")] + b"\x12" + bytes([len(raw)]) + raw
    assert decode(body)["spec"] == {"ports": [{"targetPort": "http"}]}


def test_a_kind_that_is_not_known_is_an_unknown_format() -> None:
    """It is 415, as for any other body that cannot be read."""
    server = EmbeddedKubernetes(lambda: 1_767_323_045.0)
    body = NAMESPACE.replace(b"Namespace", b"Nimespace")
    request = Request(
        method="POST", path="/api/v1/namespaces", headers={"content-type": MEDIA_TYPE}, body=body
    )
    assert server.handle(request).status == 415
    request = Request(
        method="POST",
        path="/api/v1/namespaces",
        headers={"content-type": MEDIA_TYPE},
        body=NAMESPACE,
    )
    assert server.handle(request).status == 201
    assert server.call("GET", "/api/v1/namespaces/b")[0] == 200


@given(cut=st.integers(0, len(NODE_PORT)), noise=st.binary(max_size=30))
def test_broken_bytes_are_refused_in_one_way(cut: int, noise: bytes) -> None:
    """A body that is cut or has extra bytes is read or refused, and never raises an error of
    another kind."""
    for body in (NODE_PORT[:cut] + noise, noise, b"k8s\x00" + noise):
        with suppress(ApiError):
            assert decode(body)["kind"]
