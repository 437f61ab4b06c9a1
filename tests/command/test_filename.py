"""A plan before the pass: `run --dry-run -f` shows what the next pass would do after an apply."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.embedded.http import Handler, Request, Response
from tests.command.program import SYNCERS, Ended, Program, syncer

PLAN = ("run", "--dry-run", "-o", "json")


def text_of(*documents: Any) -> str:
    return yaml.safe_dump_all(documents)


def plan_of(ended: Ended) -> tuple[Any, Any]:
    """What would be done, and what is said of each syncer."""
    assert ended.code == ExitCode.OK, ended.err
    report = json.loads(ended.out)
    return report["actions"], report["syncers"]


def apply(program: Program, document: Any) -> None:
    """Put a syncer in the place of one with its name, or beside the others."""
    name = document["metadata"]["name"]
    status, stored = program.playground.kubernetes.call("GET", f"{SYNCERS}/{name}")
    if status == 404:
        program.playground.create(document)
        return
    spec = {**dict.fromkeys(stored["spec"]), **document["spec"]}  # a null removes a field
    program.playground.change("EurekaSyncer", "rating", name, {"spec": spec})


CHANGES = {
    "a limit": syncer("rating", {"selector": {"app": "rating"}, "limit": 1}),
    "another name": syncer("rating", {"selector": {"app": "rating"}, "appName": "grade"}),
    "a port that is not there": syncer("rating", {"selector": {"app": "rating"}, "port": 9}),
    "a second syncer": syncer("again", {"selector": {"service": "rating"}, "appName": "again"}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_plan_is_that_of_the_pass_after_the_apply(program: Program, name: str) -> None:
    """Also of a syncer that does not exist yet. Nothing is written."""
    assert program.run().code == ExitCode.OK
    document = CHANGES[name]
    before = plan_of(program.command(*PLAN))
    ended = program.command(*PLAN, "-f", "-", stdin=text_of(document))
    planned = plan_of(ended)
    assert ended.kubernetes.keys() <= {"GET"}
    assert f"plan as if these were applied: EurekaSyncer rating/{name_of(document)}" in ended.err
    assert plan_of(program.command(*PLAN)) == before
    apply(program, document)
    assert planned == plan_of(program.command(*PLAN))
    assert planned != before


def name_of(document: Any) -> str:
    return str(document["metadata"]["name"])


def test_what_a_chart_renders_may_be_given(program: Program) -> None:
    """Several files and documents; other kinds are skipped; a syncer without a namespace is in
    that of -n, else in that of the kubeconfig's context, as for kubectl."""
    bare = syncer("again", {"selector": {"service": "rating"}, "appName": "again"})
    bare["metadata"] = {"name": "again"}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}}
    (program.folder / "one.yaml").write_text(text_of(deployment, bare))
    (program.folder / "two.yaml").write_text(text_of(CHANGES["a limit"]))
    files = ("-f", "one.yaml", "--filename", "two.yaml")
    ended = program.command(*PLAN, *files, "-n", "rating")
    assert {action["app"] for action in plan_of(ended)[0]} == {"RATING", "AGAIN"}
    assert "1 object of other kinds skipped" in ended.err
    document = yaml.safe_load(program.playground.kubeconfig.read_text())
    context = {**document["contexts"][0]["context"], "namespace": "rating"}
    kubeconfig = program.kubeconfig(contexts=[{**document["contexts"][0], "context": context}])
    by_context = program.command(*PLAN, *files, KUBECONFIG=str(kubeconfig))
    assert plan_of(by_context) == plan_of(ended)
    elsewhere = program.command(*PLAN, *files)
    assert "EurekaSyncer default/again" in elsewhere.err


def test_a_manifest_that_is_refused_is_named_as_by_validate(program: Program) -> None:
    """No pass is made."""
    wrong = syncer("rating", {"selector": {"app": "rating"}, "limti": 1})
    ended = program.command(*PLAN, "-f", "-", stdin=text_of(wrong))
    assert ended.code == ExitCode.INVALID_MANIFEST
    assert "<stdin>:" in ended.err
    assert 'did you mean "limit"?' in ended.err
    assert not ended.out + "".join(ended.eureka)


@pytest.mark.parametrize(
    ("words", "stdin", "code", "sentence"),
    [
        (["run", "-f", "-"], text_of(CHANGES["a limit"]), ExitCode.USAGE, "requires --dry-run"),
        ([*PLAN, "-f", "no.yaml"], "", ExitCode.USAGE, "there is no file or folder no.yaml"),
        ([*PLAN, "-f", "-", "--from", "x"], "", ExitCode.USAGE, "are mutually exclusive"),
        (
            [*PLAN, "-f", "-"],
            "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n",
            ExitCode.CONFIGURATION,
            "--filename - has no EurekaSyncer and no EurekaImport; it has 1 object of other kinds",
        ),
    ],
)
def test_what_makes_no_plan_is_one_sentence(
    program: Program, words: list[str], stdin: str, code: ExitCode, sentence: str
) -> None:
    ended = program.command(*words, stdin=stdin)
    assert ended.code == code
    assert sentence in ended.sentence
    assert not ended.eureka


def test_what_is_out_of_scope_is_said(program: Program) -> None:
    """It would not be served, or by another installation."""
    document = syncer("rating", {"selector": {"app": "rating"}, "syncerClass": "edge"})
    ended = program.command(*PLAN, "-f", "-", stdin=text_of(document))
    assert "EurekaSyncer rating/rating is not part of the plan: another namespace" in ended.err
    import_ = {
        "apiVersion": "eurekube.io/v1",
        "kind": "EurekaImport",
        "metadata": {"name": "review", "namespace": "rating"},
        "spec": {"app": "REVIEW"},
    }
    ended = program.command(*PLAN, "-f", "-", stdin=text_of(import_))
    assert "EurekaImport rating/review is not part of the plan: imports are off" in ended.err


def test_a_list_that_is_refused_is_not_the_planned_one(program: Program) -> None:
    """The living cluster stays unknown."""

    def proxy(request: Request, kubernetes: Handler) -> Response:
        if "eurekasyncers" in request.path:
            return Response(status=403, body=b'{"kind": "Status", "message": "you may not"}')
        return kubernetes(request)

    assert program.run().code == ExitCode.OK
    with program.kubernetes_behind(proxy) as kubeconfig:
        ended = program.command(
            *PLAN, "-f", "-", stdin=text_of(CHANGES["a limit"]), KUBECONFIG=str(kubeconfig)
        )
    assert ended.code == ExitCode.KUBERNETES_DENIED
    assert not [action for action in json.loads(ended.out)["actions"] if action["removal"]]
