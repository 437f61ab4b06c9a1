"""The addresses of the repository and of the docs site: `[project.urls]` of pyproject.toml has them,
and whatever must repeat them says the same."""

from __future__ import annotations

import re
import subprocess
import tomllib

import yaml

from tests.docs.test_documentation import ROOT

URLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
REPOSITORY: str = URLS["Repository"]
DOCUMENTATION: str = URLS["Documentation"]
RUNBOOKS = {
    address.partition("#")[0]
    for address in re.findall(
        r"runbook_url: (\S+)", (ROOT / "cronjob" / "monitoring" / "rules.yml").read_text()
    )
}
LINKS = {
    address.partition("#")[0]
    for address in re.findall(
        r'"url": "([^"]+)"', (ROOT / "cronjob" / "monitoring" / "dashboard.json").read_text()
    )
}
REPEATED = {
    "README.md": {f"{REPOSITORY}.git"},
    "cronjob/chart/Chart.yaml": {DOCUMENTATION, f"{DOCUMENTATION}/icon.svg", REPOSITORY},
    ".github/ISSUE_TEMPLATE/config.yml": {
        f"{DOCUMENTATION}/troubleshooting/",
        f"{REPOSITORY}/security/advisories/new",
    },
    "eurekube_sync/model/docs.py": {DOCUMENTATION},  # the image has no pyproject.toml
    "cronjob/monitoring/rules.yml": RUNBOOKS,
    "cronjob/chart/files/rules.yml": RUNBOOKS,
    "cronjob/monitoring/dashboard.json": LINKS,
    "cronjob/chart/files/dashboard.json": LINKS,
    "tests/cases/alerts.yml": RUNBOOKS,
    "docs/terminal.svg": {f"{DOCUMENTATION}/brake/"},
}
"""Files that cannot read pyproject.toml, and the addresses in each."""


def addresses(text: str) -> set[str]:
    """The addresses below either of the two hosts."""
    hosts = {address.split("/")[2] for address in (REPOSITORY, DOCUMENTATION)}
    below = "|".join(re.escape(host) for host in sorted(hosts))
    return set(re.findall(rf"https://(?:{below})[\w./-]*", text))


def test_the_other_addresses_of_the_package_are_in_the_repository() -> None:
    """PyPI shows them beside the package."""
    assert {
        "Documentation": DOCUMENTATION,
        "Repository": REPOSITORY,
        "Issues": f"{REPOSITORY}/issues",
        "Changelog": f"{REPOSITORY}/blob/main/CHANGELOG.md",
    } == URLS


def test_each_repeated_address_is_the_packages() -> None:
    """So that a change of pyproject.toml alone fails, and says what to write."""
    shown = {name: addresses((ROOT / name).read_text()) for name in REPEATED}
    assert shown == REPEATED


def test_no_other_file_names_them() -> None:
    """A page of the docs links relatively. The site and the workflows learn the address where they
    run."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    assert len(names) > 400
    naming = []
    for name in names:
        text = (ROOT / name).read_text(errors="replace")
        if REPOSITORY in text or DOCUMENTATION in text:
            naming.append(name)
    assert set(naming) == {"pyproject.toml", *REPEATED}


def test_the_chart_says_where_it_comes_from() -> None:
    """`helm show chart` and Artifact Hub show it."""
    chart = yaml.safe_load((ROOT / "cronjob" / "chart" / "Chart.yaml").read_text())
    assert chart["home"] == DOCUMENTATION
    assert chart["sources"] == [REPOSITORY]
    assert chart["icon"] == f"{DOCUMENTATION}/icon.svg"
    assert (ROOT / "docs" / "icon.svg").is_file()
    assert [maintainer["url"] for maintainer in chart["maintainers"]] == [REPOSITORY]
    assert chart["annotations"]["artifacthub.io/license"] == "Apache-2.0"
