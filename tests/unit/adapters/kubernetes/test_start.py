"""What a start costs: nobody pays for the official client before something connects."""

from __future__ import annotations

import subprocess
import sys


def test_the_official_client_is_imported_late() -> None:
    """Importing our adapter loads neither `kubernetes` nor `urllib3`: a third of a second, each run."""
    code = "import sys, eurekube_sync.adapters.kubernetes; print({'kubernetes', 'urllib3', 'yaml'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
