"""Power loss while old rows are dropped: each decision is in the journal or in a file it was exported to."""

import os
import random
import tempfile
from pathlib import Path

from driftbandit.bandit.audit import audit
from tests.drill import prunes
from tests.drill.power import JOURNAL, Lies, cut_power, quiet, recorded, stored
from tests.drill.site import Finding, Site

_DAYS = 4


def live_and_drop(folder: str) -> None:
    """Some days with the decisions and rewards of each; then those older than two days are exported and dropped."""
    target = os.path.join(folder, JOURNAL)
    for day in range(_DAYS):
        prunes.live_a_day(target, day)
    prunes.drop(target, _DAYS - 1, os.path.join(folder, "exports"), os.path.join(folder, "dropping"))


def found_in(folder: str) -> dict[str, bool]:
    """The ids in the exported files and in the journal, and whether each has an outcome, once dropping was taken up
    again."""
    import pyarrow.parquet as parquet

    target, exports = os.path.join(folder, JOURNAL), os.path.join(folder, "exports")
    prunes.drop(target, _DAYS - 1, exports, os.path.join(folder, "again"))
    found = stored(target)
    for path in sorted(Path(exports).rglob("*.parquet")):
        table = parquet.read_table(path, columns=["decision", "reward"])
        rewards = table["reward"].to_pylist()
        for id, reward in zip(table["decision"].to_pylist(), rewards, strict=True):
            found[id] = found.get(id, False) or reward is not None
    return found


def power_loss_while_dropping(site: Site, count: int, seed: int = 1, lies: Lies = lambda name: False) -> list[Finding]:
    """Cut the power at moments of the run that drops."""
    steps, chance = recorded(site, [(__name__, "live_and_drop", ())]), random.Random(seed)
    begins = next(number for number, step in enumerate(steps) if step.what == "o" and step.data == b"dropping")
    rare = [number for number in range(begins, len(steps)) if steps[number].what in "oudr"]
    at = [chance.choice(rare) if n % 2 else chance.randrange(begins, len(steps)) for n in range(count)]
    asked = [f"{day}-{part}-{n}" for day in range(_DAYS) for part in range(6) for n in range(50)]
    rewarded = {id for id in asked if int(id.rsplit("-")[2]) % 2 == 0}
    lost, unopened, differ, first = 0, 0, 0, ""
    for moment, files in cut_power(steps, sorted(at), seed, lies):
        with tempfile.TemporaryDirectory(dir=site.folder) as folder, quiet():
            files.write(folder)
            try:
                found = found_in(folder)
                differ += sum(len(report.differences) for report in audit(os.path.join(folder, JOURNAL)))
                gone = [id for id in asked if id not in found] + [id for id in rewarded if not found.get(id)]
                lost += len(gone)
                first = first or (gone and f"after step {moment} of {len(steps)}, {gone[:3]}")
            except Exception as error:
                unopened += 1
                first = first or f"after step {moment} of {len(steps)}: {type(error).__name__}: {error}"
    good = not (lost or unopened or differ) and len(at) > 0
    result = f"{lost} lost; {unopened} images not opened, {differ} differences" + (f"; {first:.300}" if first else "")
    tried = f"{len(at)} images, {len(asked) + len(rewarded)} acknowledged"
    return [Finding("power loss while dropping", site.kind, tried, result, good)]
