"""Exit codes: each documented code has one meaning, and a test that reaches it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from eurekube_sync.controller.exit_codes import ExitCode

HERE = Path(__file__).parent
REACHED_BY = {
    ExitCode.OK: "test_passes.py::test_in_sync_a_run_sends_one_list_and_renewals",
    ExitCode.INTERNAL_ERROR: "test_terminal.py::test_a_bug_is_a_sentence_and_a_traceback_on_demand",
    ExitCode.USAGE: "test_options.py::test_a_wrong_command_line_is_refused_in_one_sentence",
    ExitCode.CONFIGURATION: "test_kubernetes_trouble.py::test_a_wrong_kubeconfig_is_one_sentence",
    ExitCode.INVALID_MANIFEST: "test_demo.py::test_validate_judges_files_and_folders",
    ExitCode.CHANGES_PENDING: "test_passes.py::test_the_detailed_exit_code_says_whether_there_are_changes",
    ExitCode.NOT_REGISTERED: "test_explain.py::SILENCES",
    ExitCode.CHECK_FAILED: "test_check.py::test_a_planted_fault_is_found",
    ExitCode.NOT_WRITTEN: "test_terminal.py::test_a_full_disk_spoils_no_pass",
    ExitCode.KUBERNETES_UNREAD: "test_kubernetes_trouble.py::test_a_closed_port_is_one_sentence",
    ExitCode.KUBERNETES_DENIED: "test_kubernetes_trouble.py::test_a_forbidden_list_is_reported_in_one_sentence",
    ExitCode.EUREKA_UNREAD: "test_eureka_trouble.py::test_a_closed_port_is_named",
    ExitCode.EUREKA_DENIED: "test_eureka_trouble.py::test_a_wrong_password_is_one_sentence",
    ExitCode.INCOMPLETE: "test_eureka_trouble.py::test_one_refused_instance_stops_no_other",
    ExitCode.REMOVAL_HELD: "test_passes.py::test_a_pass_with_held_removals_keeps_and_renews_all",
    ExitCode.OWNER_CLASH: "test_eureka_trouble.py::test_another_cluster_with_our_owner_is_refused",
    ExitCode.REFUSED: "test_purge.py::test_a_purge_asks_at_a_terminal",
    ExitCode.APP_LOST: "test_broken_syncers.py::test_an_app_that_is_lost_while_its_pods_wait_is_no_success",
    ExitCode.INTERRUPTED: "test_passes.py::test_a_second_interrupt_ends_the_process_at_once",
}


def test_codes_and_meanings_are_distinct() -> None:
    """Two codes share neither number nor sentence."""
    assert len({int(code) for code in ExitCode}) == len(ExitCode.__members__)
    assert len({code.meaning for code in ExitCode}) == len(ExitCode)
    assert all(0 <= code <= 255 for code in ExitCode)


@pytest.mark.parametrize("code", ExitCode)
def test_each_code_is_reached_by_a_test(code: ExitCode) -> None:
    """The test that the table names exists, and its source names the code."""
    file, name = REACHED_BY[code].split("::")
    source = (HERE / file).read_text()
    for node in ast.parse(source).body:
        named = node.name if isinstance(node, ast.FunctionDef) else ""
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            named = node.targets[0].id
        if named == name:
            assert f"ExitCode.{code.name}" in (ast.get_source_segment(source, node) or "")
            return
    pytest.fail(f"there is no {name} in {file}")
