"""Each shell step of the workflows runs, as GitHub would run it, in a copy of the checkout.

Stand-ins are those programs that would call a registry or GitHub, or act as root: docker, cosign,
gh, sudo, and two commands of Helm. They write down how they were called. The environments of `tox` that CI runs
anyway are looked up, and not run in here again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from eurekube_sync import __version__ as VERSION
from tests.servers.go_builds import helm
from tests.workflows.workflow import ROOT, Job, filled, jobs, tox_environments, workflow

REPOSITORY = "Eurekube/eurekube-sync"
"""With a capital, which no registry takes."""
IMAGE = "ghcr.io/eurekube/eurekube-sync"
CHART = "ghcr.io/eurekube/charts/eurekube-sync"
COMMIT = "c0ffee" * 6 + "c0ff"
DIGEST = f"sha256:{hashlib.sha256(b'image').hexdigest()}"
CHART_DIGEST = f"sha256:{hashlib.sha256(b'chart').hexdigest()}"
TOKEN = "short-lived"
_STAND_IN = """#!{python}
import json, pathlib, subprocess, sys
name, arguments = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
stdin = sys.stdin.read() if "--password-stdin" in arguments else ""
with open({calls!r}, "a") as calls:
    calls.write(json.dumps([name, *arguments, stdin]) + "\\n")
if "--metadata-file" in arguments:
    file = pathlib.Path(arguments[arguments.index("--metadata-file") + 1])
    file.write_text(json.dumps({{"containerimage.digest": {digest!r}}}))
if name == "helm" and arguments[0] == "push":  # Helm 4 prints this on stdout, Helm 3 on stderr
    assert pathlib.Path(arguments[1]).is_file(), arguments
    print("Pushed: " + arguments[2] + "\\nDigest: " + {chart_digest!r}, file=sys.stderr)
elif name == "helm" and arguments[0] != "registry":
    sys.exit(subprocess.run([{helm!r}, *arguments]).returncode)
elif name == "tox" and arguments[1] not in {elsewhere!r}:
    sys.exit(subprocess.run([{python!r}, "-m", "tox", *arguments]).returncode)
"""


@dataclass(kw_only=True)
class Runner:
    """What GitHub does for a workflow: an environment, outputs, and a folder with a checkout."""

    folder: Path
    event: dict[str, str]
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    """Those of the jobs that ended."""

    def __post_init__(self) -> None:
        programs = self.folder / "bin"
        programs.mkdir()
        text = _STAND_IN.format(
            python=sys.executable,
            calls=str(self.folder / "calls"),
            digest=DIGEST,
            chart_digest=CHART_DIGEST,
            helm=str(helm(4)),
            elsewhere=tox_environments(),
        )
        for name in ("docker", "cosign", "gh", "helm", "sudo", "tox"):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        (self.folder / "calls").touch()
        copy_checkout(self.checkout)

    @property
    def checkout(self) -> Path:
        """Where the steps run. The jobs share it, as their artifacts would."""
        return self.folder / "checkout"

    @property
    def calls(self) -> list[list[str]]:
        """How the stand-ins were called, and what each read from stdin last."""
        lines = (self.folder / "calls").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def run(self, name: str) -> int:
        """Run each shell step of each job, and return how many there are."""
        whole = workflow(name)
        count = 0
        for job in jobs(name):
            count += self._run_job(job, whole["defaults"]["run"]["shell"])
        return count

    def _run_job(self, job: Job, shell: str) -> int:
        assert shell == "bash"
        context: dict[str, Any] = {
            "github": {"token": TOKEN, "repository": REPOSITORY},
            "needs": {name: {"outputs": values} for name, values in self.outputs.items()},
            "matrix": job.matrix,
            "steps": {},
        }
        count = 0
        for step in job.steps:
            outputs: dict[str, str] = {}
            if "run" in step:
                given = {**job.content.get("env", {}), **step.get("env", {})}
                variables = {name: filled(text, context) for name, text in given.items()}
                outputs = self._run_step(step["run"], variables)
                count += 1
            for text in map(str, step.get("with", {}).values()):
                if "hashFiles" not in text:  # a function, and only for a cache's key
                    filled(text, context)
            if "id" in step and "run" in step:
                context["steps"][step["id"]] = {"outputs": outputs}
        self.outputs[job.name] = {
            name: filled(text, context) for name, text in job.content.get("outputs", {}).items()
        }
        return count

    def _run_step(self, script: str, variables: dict[str, str]) -> dict[str, str]:
        """Run a step as `shell: bash` does, and return its outputs."""
        output = self.folder / "output"
        output.write_text("")
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TOX_", "GITHUB_", "PIP_CONSTRAINT"))
        }
        path = f"{self.folder / 'bin'}{os.pathsep}{Path(sys.executable).parent}"
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.checkout,
            env={
                **inherited,
                **self.event,
                **variables,
                "GITHUB_OUTPUT": str(output),
                "PATH": f"{path}{os.pathsep}{inherited['PATH']}",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return dict(line.split("=", 1) for line in output.read_text().splitlines())


def copy_checkout(folder: Path) -> None:
    """What git has or would add, with a date in the changelog, as on the day of a release."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    changelog = folder / "CHANGELOG.md"
    dated = re.sub(r"(?m)^## (\S+) - unreleased$", r"## \1 - 2026-12-01", changelog.read_text())
    changelog.write_text(dated)


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """After a tag."""
    event = {
        "GITHUB_ACTOR": "somebody",
        "GITHUB_REF_NAME": f"v{VERSION}",
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_REPOSITORY_OWNER": REPOSITORY.partition("/")[0],
        "GITHUB_SERVER_URL": "https://git.example.com",
        "GITHUB_SHA": COMMIT,
    }
    runner = Runner(folder=tmp_path_factory.mktemp("release"), event=event)
    assert runner.run("release.yml") > 10
    return runner


def test_each_step_of_ci_runs(tmp_path: Path) -> None:
    """One for each environment, and an image that is built and run."""
    runner = Runner(folder=tmp_path, event={})
    assert runner.run("ci.yml") == 2 * len(tox_environments()) + 2
    called = [call[:2] for call in runner.calls if call[0] == "docker"]
    assert called == [["docker", "build"], ["docker", "run"]]


def test_the_release_has_wheel_source_and_notes(released: Runner) -> None:
    """Of the tagged version. The links of the notes lead to the tagged files."""
    packages = released.checkout / "dist" / "packages"
    names = sorted(file.name for file in packages.iterdir())
    assert names == [f"eurekube_sync-{VERSION}-py3-none-any.whl", f"eurekube_sync-{VERSION}.tar.gz"]
    with zipfile.ZipFile(packages / names[0]) as wheel:
        metadata = wheel.read(f"eurekube_sync-{VERSION}.dist-info/METADATA").decode()
    with tarfile.open(packages / names[1]) as source:
        assert f"eurekube_sync-{VERSION}/LICENSE" in source.getnames()
    notes = (released.checkout / "dist" / "notes.md").read_text()
    assert notes.startswith("- **The custom resource `EurekaSyncer`**")
    repository = re.search(r"Project-URL: Repository, (\S+)", metadata)
    assert repository is not None
    assert f"]({repository[1]}/blob/v{VERSION}/docs/eurekasyncer.md)" in notes
    for text in (notes, metadata):  # PyPI shows the latter
        assert re.search(r"\]\((?!https://)", text) is None


def test_the_image_is_pushed_for_both_processors_and_signed_by_digest(released: Runner) -> None:
    """A tag can be moved before it is signed, a digest cannot."""
    (build,) = [call for call in released.calls if call[:2] == ["docker", "buildx"]]
    assert build[build.index("--platform") + 1] == "linux/amd64,linux/arm64"
    assert build[build.index("--tag") + 1] == f"{IMAGE}:{VERSION}"
    assert f"org.opencontainers.image.revision={COMMIT}" in build
    assert f"org.opencontainers.image.source=https://git.example.com/{REPOSITORY}" in build
    signed = [call[1:-1] for call in released.calls if call[0] == "cosign"]
    assert signed == [
        ["sign", "--yes", f"{IMAGE}@{DIGEST}"],
        ["sign", "--yes", f"{CHART}@{CHART_DIGEST}"],
    ]


def test_the_published_chart_has_the_image_of_the_release(released: Runner) -> None:
    """So whoever installs it sets no image."""
    archive = released.checkout / "dist" / f"eurekube-sync-{VERSION}.tgz"
    pushed = [call[1:-1] for call in released.calls if call[:2] == ["helm", "push"]]
    charts = CHART.rpartition("/")[0]
    assert pushed == [["push", f"dist/{archive.name}", f"oci://{charts}"]]
    values = ("--set", "owner=my-cluster", "--set", "eurekaUrl=http://eureka.example.com/eureka")
    rendered = subprocess.run(
        [helm(4), "template", "eurekube-sync", archive, *values],
        capture_output=True,
        text=True,
        check=True,
    )
    documents = list(yaml.safe_load_all(rendered.stdout))
    (cronjob,) = [document for document in documents if document["kind"] == "CronJob"]
    pod = cronjob["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert [container["image"] for container in pod["containers"]] == [f"{IMAGE}@{DIGEST}"]


def test_the_release_gets_every_file(released: Runner) -> None:
    """Only the SBOM is made elsewhere here."""
    (made,) = [call[1:-1] for call in released.calls if call[0] == "gh"]
    assert made[:3] == ["release", "create", f"v{VERSION}"]
    files = [Path(name) for name in made if name.startswith("dist/") and name != "dist/notes.md"]
    assert [file.name for file in files] == [
        f"eurekube_sync-{VERSION}-py3-none-any.whl",
        f"eurekube_sync-{VERSION}.tar.gz",
        "sbom.json",
        f"eurekube-sync-{VERSION}.tgz",
    ]


def test_no_token_is_an_argument(released: Runner) -> None:
    """Other processes could read it there. Each login reads it from stdin."""
    assert [call[:-1] for call in released.calls if TOKEN in call[:-1]] == []
    logins = [call for call in released.calls if "--password-stdin" in call]
    assert [(call[0], call[-1]) for call in logins] == [
        ("docker", f"{TOKEN}\n"),
        ("docker", f"{TOKEN}\n"),
        ("helm", f"{TOKEN}\n"),
    ]


@pytest.mark.parametrize(
    ("tag", "changelog", "sentence"),
    [
        ("v9.9.9", f"## {VERSION} - 2026-12-01\n", f"the tag v9.9.9 is not v{VERSION}"),
        (VERSION, f"## {VERSION} - 2026-12-01\n", f"the tag {VERSION} is not v{VERSION}"),
        (f"v{VERSION}", f"## {VERSION} - unreleased\n", f"give the heading of {VERSION} its date"),
        (f"v{VERSION}", "## 0.0.9 - 2026-11-01\n", f"has no part for {VERSION}"),
    ],
)
def test_a_tag_that_does_not_fit_is_refused(
    tag: str, changelog: str, sentence: str, tmp_path: Path
) -> None:
    """Before anything is published."""
    for name in (".github/release_notes.py", "eurekube_sync/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{changelog}\n- a change\n")
    done = subprocess.run(
        [sys.executable, ".github/release_notes.py", tag],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert sentence in done.stderr
    assert not (tmp_path / "dist" / "notes.md").exists()
