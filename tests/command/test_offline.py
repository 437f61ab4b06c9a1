"""Recorded passes and saved clusters: `--from` works without a cluster."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from eurekube_sync.controller.exit_codes import ExitCode
from tests.command.program import IDS, Program, syncer

NOWHERE = {"KUBECONFIG": "/nowhere/none"}
LISTS = {
    "syncers": "/apis/eurekube.io/v1/eurekasyncers",
    "services": "/api/v1/services",
    "slices": "/apis/discovery.k8s.io/v1/endpointslices",
}
PASSWORD, PLANTED = "s3cr3t-of-eureka", "s3cr3t-of-a-spec"


def save(program: Program, folder: Path, *names: str) -> list[str]:
    """Save the lists as kubectl writes them; returns the options that read them."""
    options = []
    for name in names:
        _, found = program.playground.kubernetes.call("GET", LISTS[name])
        kind = found["kind"].removesuffix("List")
        items = [
            {"apiVersion": found["apiVersion"], "kind": kind, **item} for item in found["items"]
        ]
        (folder / name).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        options += ["--from", str(folder / name)]
    return options


def test_a_saved_cluster_is_planned_as_the_cluster_itself(program: Program, tmp_path: Path) -> None:
    """The cluster is not called. Eureka is read as always, and nothing is written."""
    program.playground.create(syncer("broken", {"selector": {"app": "nothing"}}))
    saved = save(program, tmp_path, *LISTS)
    live = json.loads(program.run("--dry-run", "-o", "json").out)
    ended = program.run("--dry-run", "-o", "json", *saved, **NOWHERE)
    assert ended.code == ExitCode.OK, ended.err
    assert (sum(ended.kubernetes.values()), set(ended.eureka)) == (0, {"GET"})
    found = json.loads(ended.out)
    assert [one["action"] for one in found["actions"]] == ["register", "register"]
    assert (found["actions"], found["messages"]) == (live["actions"], live["messages"])


def test_explain_and_status_read_a_saved_cluster(settled: Program, tmp_path: Path) -> None:
    """They ask Eureka alone, and say what the files do not have."""
    saved = save(settled, tmp_path, *LISTS)
    explained = settled.command("explain", "rating/rating", *saved, **NOWHERE)
    assert explained.out.splitlines()[-1] == "Registered: 2 of 2 UP as RATING."
    shown = settled.command("status", "--all", *saved, **NOWHERE)
    assert "1 syncer: 1 in sync; 2 instances UP" in shown.out
    assert sum(explained.kubernetes.values()) + sum(shown.kubernetes.values()) == 0


def test_objects_that_were_not_saved_are_unknown(program: Program, tmp_path: Path) -> None:
    """An empty list of EndpointSlices would lead to a removal."""
    assert program.run().code == ExitCode.OK
    ended = program.run(
        "--dry-run", "-o", "json", *save(program, tmp_path, "syncers", "services"), **NOWHERE
    )
    assert ended.code == ExitCode.KUBERNETES_UNREAD
    assert json.loads(ended.out)["actions"] == []
    assert "add what kubectl get endpointslices -A -o json writes" in ended.out


def test_files_without_any_syncer_are_no_empty_cluster(settled: Program, tmp_path: Path) -> None:
    """The files hold only Services, or objects without a namespace."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "rating"}}
    (tmp_path / "namespace").write_text(json.dumps(namespace))
    for given in (save(settled, tmp_path, "services"), ["--from", tmp_path / "namespace"]):
        ended = settled.run("--dry-run", "-o", "json", *given, **NOWHERE)
        assert ended.code == ExitCode.KUBERNETES_UNREAD
        assert "add what kubectl get eurekasyncers -A -o json writes" in ended.out


def test_files_are_for_a_dry_run_without_a_cluster(settled: Program, tmp_path: Path) -> None:
    """Other uses are a wrong command line, or a file that is refused in one sentence."""
    given = save(settled, tmp_path, "syncers")
    assert settled.run(*given).sentence == "Error: --from requires --dry-run"
    ended = settled.run("--dry-run", "--context", "embedded", *given)
    assert (
        ended.code,
        ended.sentence.startswith("Error: --from cannot be used with"),
    ) == (
        ExitCode.USAGE,
        True,
    )
    ended = settled.run("--dry-run", "--from", tmp_path / "none")
    assert ended.code == ExitCode.CONFIGURATION
    assert ended.sentence.endswith("none cannot be read: No such file or directory")


def test_a_removal_is_explained_from_its_record(program: Program, tmp_path: Path) -> None:
    """Passes were recorded, and the servers are gone. No file has a secret."""
    records = tmp_path / "records"
    program.playground.create(
        syncer(
            "secret",
            {
                "selector": {"app": "rating"},
                "appName": "OTHER",
                "metadata": {"user.password": PLANTED},
            },
        )
    )
    program.playground.eureka.credentials = ("joe", PASSWORD)
    login = {"EUREKUBE_SYNC_EUREKA_USERNAME": "joe", "EUREKUBE_SYNC_EUREKA_PASSWORD": PASSWORD}
    for _ in range(2):
        ended = program.run("--record", records, **login)
        assert ended.code == ExitCode.OK, ended.out + ended.err
        program.playground.delete("Pod", "rating", "rating-1")
        login = {**login, "EUREKUBE_SYNC_RECORD_LIMIT": "1"}
    written = [gzip.decompress(file.read_bytes()).decode() for file in sorted(records.iterdir())]
    assert len(written) == 2
    assert not [text for text in written if PASSWORD in text or PLANTED in text]
    nowhere = {**NOWHERE, "EUREKUBE_SYNC_EUREKA_URL": None, "EUREKUBE_SYNC_OWNER": None}
    ended = program.command("explain", "10.0.0.1", "--from", records, stdin="", **nowhere)
    assert (ended.code, ended.eureka + ended.kubernetes) == (ExitCode.NOT_REGISTERED, {})
    assert "; a pass removes it: pod rating-1 terminates" in ended.out
    again = program.command(
        "run", "--dry-run", "--from", records, "-o", "json", stdin="", **nowhere
    )
    planned = [
        (one["action"], one["id"])
        for one in json.loads(again.out)["actions"]
        if one["action"] != "renew"
    ]
    assert again.code == ExitCode.OK
    assert ("cancel", IDS[0]) in planned
    assert (
        program.command("status", "--from", tmp_path / "none", stdin="").code
        == ExitCode.CONFIGURATION
    )
