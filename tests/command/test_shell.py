"""Shell features: completion and versions."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from eurekube_sync import __version__
from eurekube_sync.controller.exit_codes import ExitCode
from tests.command.program import BINARY, Program, syncer
from tests.report_schema import faults
from tests.waiting import wait_until

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/eurekasyncers.eurekube.io"


def completed(program: Program, line: str, **variables: str | None) -> list[str]:
    """What bash offers for the last word of the line."""
    words = line.split(" ")
    asked = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    ended = program.command(stdin="", _EUREKUBE_SYNC_COMPLETE="bash_complete", **asked, **variables)
    assert (ended.code, ended.err) == (0, "")
    return [answer.partition(",")[2] for answer in ended.out.splitlines() if answer]


def test_a_shell_completes_names_of_the_cluster(program: Program) -> None:
    """These are contexts of the kubeconfig, namespaces with a syncer, and syncers. In a list the
    last name is completed."""
    program.playground.create(syncer("rest", {"selector": {"app": "rest"}}))
    offered = {
        "run --context ": ["embedded"],
        "run -n rat": ["rating"],
        "status -n shop,rat": ["shop,rating"],
        "explain rating/r": ["rating/rating", "rating/rest"],
    }
    for line, words in offered.items():  # a very slow machine offers nothing in time

        def is_offered(line: str = line, words: list[str] = words) -> bool:
            return completed(program, f"eurekube-sync {line}") == words

        wait_until(is_offered, line)
    assert completed(program, "eurekube-sync exp") == ["explain"]
    assert "--dry-run" in completed(program, "eurekube-sync run --dry")


@pytest.mark.parametrize("line", ["run -n ", "run --context ", "explain "])
def test_a_shell_is_offered_nothing_where_no_cluster_is_found(settled: Program, line: str) -> None:
    """There is no word and no message, because a message would appear in the line that a person
    types."""
    assert completed(settled, f"eurekube-sync {line}", KUBECONFIG="/nowhere/none") == []


def test_the_script_works_in_bash(settled: Program) -> None:
    """It is loaded as the help says. The function that it defines gives the words."""
    script = (
        f"PATH={BINARY.parent}:$PATH; source <(eurekube-sync completion bash); "
        "COMP_WORDS=(eurekube-sync pu); COMP_CWORD=1; _eurekube_sync_completion eurekube-sync; "
        'echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script],
        env=settled.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("purge", "")


def test_all_versions_are_shown(settled: Program) -> None:
    """The API server stores the CRD as it was given."""
    ended = settled.command("version")
    assert (ended.code, ended.err) == (0, "")
    lines = dict(line.split(maxsplit=1) for line in ended.out.splitlines())
    assert list(lines) == ["eurekube-sync", "Python", "Kubernetes", "CRD", "Eureka"]
    assert lines["eurekube-sync"] == __version__
    assert lines["CRD"] == "as in this version"
    assert lines["Eureka"] == f"{settled.playground.eureka_url} answers, with 3 instances"
    data = json.loads(settled.command("version", "-o", "json", EUREKUBE_SYNC_EUREKA_URL=None).out)
    assert data["version"] == __version__
    assert data["crd"] == {"found": "as in this version", "unknown": None}
    assert "eureka" not in data


def test_a_crd_of_another_version_is_reported(program: Program) -> None:
    """The report has the fix. A missing CRD has its own exit code."""
    _, crd = program.playground.kubernetes.call("GET", CRD)
    del crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][
        "limit"
    ]
    program.playground.kubernetes.call("PUT", CRD, crd)
    ended = program.command("version")
    assert ended.code == ExitCode.OK
    assert "eurekube-sync crd | kubectl apply" in ended.out
    program.playground.kubernetes.call("DELETE", CRD)
    ended = program.command("version")
    assert ended.code == ExitCode.KUBERNETES_UNREAD
    assert "CRD            unknown: " in ended.out


def test_a_server_that_does_not_answer_is_unknown_and_the_rest_is_shown(
    settled: Program, tmp_path: Path
) -> None:
    """Each server has its own exit code. Without a call nothing can fail."""
    ended = settled.command("version", EUREKUBE_SYNC_EUREKA_URL="http://127.0.0.1:9/eureka")
    assert ended.code == ExitCode.EUREKA_UNREAD
    assert "as in this version" in ended.out
    assert "Eureka         unknown: " in ended.out
    ended = settled.command("version", KUBECONFIG=str(settled.kubeconfig_of("http://127.0.0.1:9")))
    assert ended.code == ExitCode.KUBERNETES_UNREAD
    assert "Kubernetes     unknown: no answer from the Kubernetes API" in ended.out
    ended = settled.command("version", KUBECONFIG=str(tmp_path / "none"))
    assert ended.code == ExitCode.CONFIGURATION
    assert "unknown: there is no kubeconfig" in ended.out
    ended = settled.command("version", "--client", KUBECONFIG=str(tmp_path / "none"))
    assert (ended.code, len(ended.out.splitlines())) == (0, 2)
    assert not ended.kubernetes + ended.eureka


def test_real_reports_are_as_the_schema_in_the_docs_says(program: Program) -> None:
    """They are from before the first registration, from each pass, and from an outage of Eureka."""
    program.playground.create(syncer("broken", {"selector": {"app": "nothing"}}))
    first = program.run("--dry-run", "-o", "json")
    passes = program.run("--passes", "2", "--interval", "1s", "-o", "json", "--verbose")
    away = program.run("-o", "json", EUREKUBE_SYNC_EUREKA_URL="http://127.0.0.1:9/eureka")
    lines = [first.out, *passes.out.splitlines(), away.out]
    assert [faults(json.loads(line)) for line in lines] == [[]] * 4
    assert json.loads(lines[2])["renewals"] == {"planned": 2, "done": 0}  # not due within a second
    assert "unknown" in json.loads(away.out)
    markdown = program.run("--dry-run", "-o", "markdown").out
    assert markdown.startswith("### eurekube-sync: dry run: ")
