"""docs/security.md: each threat names code and tests that exist."""

from __future__ import annotations

import re

import pytest

from tests.docs.test_documentation import ROOT
from tests.docs.test_safety_page import defined_in, named_tests

TEXT = (ROOT / "docs" / "security.md").read_text()
_CODE = re.compile(r"`([a-z_/]+)\.([A-Za-z_.]+)`")
_FILE = re.compile(r"`([a-z_/]+\.py)`: ((?:`test_\w+`(?:, )?)+)")


def threats() -> list[tuple[str, str, str]]:
    """Threat, code and tests of each row."""
    table = TEXT.split("\n## Threats\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][
        1:
    ]
    return [(threat, code, tests) for threat, code, tests in rows]


@pytest.mark.parametrize(("threat", "code", "tests"), threats())
def test_each_threat_names_code_and_tests_that_exist(threat: str, code: str, tests: str) -> None:
    """The code is a function of the program or a manifest. The tests are files with their
    functions."""
    assert threat[0].isupper()
    path = ROOT / code.strip("`")
    if not path.is_file():
        found = _CODE.fullmatch(code)
        assert found is not None, code
        assert found[2] in defined_in(ROOT / "eurekube_sync" / f"{found[1]}.py"), code
    files = _FILE.findall(tests)
    assert files, tests
    assert re.sub(_FILE, "", tests).strip("; ") == "", tests
    for file, names in files:
        for name in re.findall(r"test_\w+", names):
            assert name in named_tests(ROOT / "tests" / file), (file, name)


def test_no_row_is_lost() -> None:
    """The pattern above finds every row of the table."""
    assert len(threats()) > 15


def test_others_lead_to_the_page() -> None:
    """They are README and SECURITY.md."""
    assert "](docs/security.md)" in (ROOT / "README.md").read_text()
    assert "](docs/security.md)" in (ROOT / "SECURITY.md").read_text()
