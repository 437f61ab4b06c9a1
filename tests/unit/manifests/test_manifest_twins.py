"""The CEL rules of the CRD and their twins in Python."""

from __future__ import annotations

import json
import re

import pytest

from eurekube_sync.manifests import validate_object
from eurekube_sync.manifests.crd import object_schema
from eurekube_sync.manifests.rules import rules_of
from eurekube_sync.manifests.twins import MESSAGES, TWINS
from tests.cases import syncer_cases

RULES = tuple(rules_of(object_schema()))


def test_each_rule_has_a_twin_and_each_twin_a_rule() -> None:
    """The texts of the rules and the keys of the twins are the same set."""
    assert {rule.text for rule in RULES} == set(TWINS)


def test_each_message_expression_has_a_twin() -> None:
    """The message that a rule computes is computed offline, too."""
    text = json.dumps(object_schema())
    assert {json.loads(found) for found in re.findall(r'"messageExpression": ("(?:[^"\\]|\\.)*")', text)} == set(
        MESSAGES
    )


@pytest.mark.parametrize("message", sorted({rule.message for rule in RULES}))
def test_each_rule_is_broken_by_a_case(message: str) -> None:
    """The table of cases has one that breaks each rule."""
    reasons = [finding.reason for case in syncer_cases() for finding in validate_object(case.manifest)]
    assert any(reason.startswith(message) for reason in reasons)


def test_messages_are_short_and_without_full_stop() -> None:
    """A rule's message is one clause that reads well after a path."""
    for rule in RULES:
        assert len(rule.message) < 140
        assert re.fullmatch(r"\S.*[^.\s]", rule.message)
