"""What can happen to a SQLite file: a full disk, a second process, a clock set back."""

import contextlib
import itertools
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator

from driftbandit.bandit import StoreError
from driftbandit.bandit.audit import audit
from tests.drill.load import bandit_for_drills, reward_of
from tests.drill.site import Finding, Site
from tests.drill.verify import losses


@contextlib.contextmanager
def small_disk(megabytes: int) -> Iterator[tuple[str, bool]]:
    """A folder on a small disk of memory, or any folder where such disks cannot be made; and which it is."""
    with tempfile.TemporaryDirectory(prefix="driftbandit-disk-") as folder:
        words = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder]
        try:
            real = subprocess.run(words, capture_output=True, check=False).returncode == 0
        except OSError:
            real = False
        try:
            yield folder, real
        finally:
            if real:
                subprocess.run(["umount", folder], capture_output=True, check=False)


def full_disk(site: Site, calls: int) -> list[Finding]:
    """Work until the disk is full, free space, work on: what was acknowledged is there, what was refused changed
    nothing."""
    with small_disk(16) as (folder, real):
        target = os.path.join(folder, "journal.db")
        bandit = bandit_for_drills(target)
        ballast = os.path.join(folder, "ballast")
        if real:
            with contextlib.suppress(OSError), open(ballast, "wb") as file:
                file.write(b"x" * (13 << 20))
        else:
            pages = bandit._journal._writer.execute("PRAGMA page_count").fetchone()[0]
            bandit._journal._writer.execute(f"PRAGMA max_page_count={pages + 200}")
        decided, rewarded, refused, changed = set[str](), set[str](), 0, 0
        for n in range(calls):
            id, before = f"f{n}", bandit.fingerprint()
            try:
                bandit.decide(id)
                decided.add(id)
                bandit.reward(id, reward_of(id))
                rewarded.add(id)
            except StoreError:
                refused += 1
                changed += bandit.fingerprint() != before
                if refused == 20:
                    if real:
                        os.unlink(ballast)
                    else:
                        bandit._journal._writer.execute("PRAGMA max_page_count=1073741823")
        bandit.close()
        found = losses(target, decided, rewarded)
        differences = [text for report in audit(target) for text in report.differences]
    where = "a tmpfs of 16 MB" if real else "SQLite's own page limit"
    result = f"{found}; {refused} calls refused, {changed} changed the state; audit: {len(differences)} differ"
    good = not any(found) and not differences and refused >= 20 and changed == 0 and len(decided) > refused
    return [Finding("disk full", site.kind, f"{calls} calls, {where}", result, good)]


def second_process(site: Site) -> list[Finding]:
    """Another process that wants to write is refused with one sentence."""
    target = site.journal()
    code = "import sys; from driftbandit.bandit import Bandit; Bandit.open(sys.argv[1], 'drill')"
    with bandit_for_drills(target) as bandit:
        bandit.decide("one")
        done = subprocess.run([sys.executable, "-c", code, target], capture_output=True, text=True, check=False)
        bandit.decide("two")
    line = (done.stderr.strip().splitlines() or [""])[-1]
    good = done.returncode != 0 and "PostgreSQL" in line and not any(losses(target, {"one", "two"}, set()))
    return [
        Finding("second writing process", site.kind, "1 process", "refused" if good else f"NOT refused: {line}", good)
    ]


def clock_set_back(site: Site, decisions: int) -> list[Finding]:
    """The clock jumps back and forth; times in the journal never do, and it is reported."""
    now = [1_700_000_000_000_000]
    target = site.journal()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with bandit_for_drills(target, clock=lambda: now[0]) as bandit:
            times = []
            for n in range(decisions):
                now[0] += 1_000_000 if n % 10 else -30_000_000
                times.append(bandit.decide(f"c{n}").at)
                bandit.reward(f"c{n}", reward_of(f"c{n}"))
    reports = sum("set back" in str(warning.message) for warning in caught)
    back = sum(b < a for a, b in itertools.pairwise(times))
    differences = [text for report in audit(target) for text in report.differences]
    result = f"{back} times went back, {reports} reports; audit: {len(differences)} differ"
    good = back == 0 and reports > 0 and not differences
    return [Finding("clock set back", site.kind, f"{decisions} decisions", result, good)]
