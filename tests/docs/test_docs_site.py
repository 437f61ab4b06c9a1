"""The addresses of the docs site that the program and its alerts show: each page and anchor exists."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from eurekube_sync.cli.command_line import cli
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.explain.links import Check
from eurekube_sync.model.docs import SITE, page
from eurekube_sync.model.reasons import Reason
from tests.docs.test_documentation import ROOT

RULES = ROOT / "cronjob" / "monitoring" / "rules.yml"
DASHBOARD = ROOT / "cronjob" / "monitoring" / "dashboard.json"


def assert_exists(address: str) -> None:
    """The page is in docs/, and has a heading with that anchor, as GitHub and the site make it."""
    found = re.fullmatch(rf"{re.escape(SITE)}/([a-z-]+)/(?:#(.+))?", address)
    assert found, address
    text = (ROOT / "docs" / f"{found[1]}.md").read_text()
    if found[2]:
        anchors = set()
        for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
            words = re.sub(r"[^\w\s-]", "", heading.lower()).strip()
            anchors.add(re.sub(r"\s+", "-", words))
        assert found[2] in anchors, address


def test_each_alert_has_the_address_of_its_runbook() -> None:
    """Whoever is called at night gets a page, and not a path in a repository."""
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    assert len(group["rules"]) >= 8
    for rule in group["rules"]:
        assert_exists(rule["annotations"]["runbook_url"])
        assert "docs/" not in rule["annotations"]["description"]


def test_each_panel_of_the_dashboard_explains_itself() -> None:
    """By a description, and a link to a page that exists."""
    dashboard = json.loads(DASHBOARD.read_text())
    assert dashboard["description"]
    assert len(dashboard["panels"]) >= 15
    for panel in [dashboard, *dashboard["panels"]]:
        assert panel["description"].endswith((".", "?")), panel["title"]
        assert panel["links"], panel["title"]
        for link in panel["links"]:
            assert_exists(link["url"])


@pytest.mark.parametrize("word", [*Reason, *Check], ids=str)
def test_each_reason_and_check_has_help(word: Reason | Check) -> None:
    """With its meaning, its cure and the address of its section, whatever the case of the word."""
    result = CliRunner().invoke(cli, ["help", word.value.lower()], terminal_width=200)
    assert result.exit_code == ExitCode.OK, result.output
    said = " ".join(result.output.split())
    assert said.startswith(word.value)
    assert page("troubleshooting", word.value.lower()) in said
    assert_exists(page("troubleshooting", word.value.lower()))
    assert "](" not in said
    for address in re.findall(r"https://[^\s)]+", said):
        assert_exists(address)
    assert "`" not in said
    first, _, _ = word.meaning.replace("`", "").partition(" ")
    assert first.strip("[") in said


def test_reasons_is_a_topic() -> None:
    """It lists each reason under its group. A typo is answered with a similar reason."""
    result = CliRunner().invoke(cli, ["help", "reasons"], terminal_width=200)
    assert result.exit_code == ExitCode.OK
    for reason in Reason:
        assert reason.value in result.output
    unknown = CliRunner().invoke(cli, ["help", "NotRenewd"])
    assert unknown.exit_code == 2
    assert "No such command or topic 'NotRenewd'. Did you mean 'NotRenewed'?" in unknown.output
    more = CliRunner().invoke(cli, ["help", "NotRenewed", "Expired"])
    assert "'NotRenewed' is a topic, and takes no other word" in more.output


def test_no_message_names_a_path_of_the_repository() -> None:
    """The wheel, the image and the chart do not contain docs/."""
    naming = []
    for path in sorted(Path(ROOT / "eurekube_sync").rglob("*.py")):
        tree = ast.parse(path.read_text())
        docstrings = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr):
                docstrings.add(node.value)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or node in docstrings:
                continue
            if re.search(r"docs/[\w-]+\.md", str(node.value)):
                naming.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert naming == []
