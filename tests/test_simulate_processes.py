"""Simulations in separate processes: they end on request, and never run old code."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import driftbandit
from driftbandit.environments import Smooth
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.discounted_ts import DiscountedTS

SOURCE = Path(driftbandit.__file__).parent


# ---- interruption

LONG = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts jobs in the background deaf to it
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.environments import Smooth
from driftbandit.lab.engine.simulate import simulate
simulate(DiscountedTS(), Smooth(horizon=100), runs={runs}, workers={workers}, compiled={compiled})
print("ready", flush=True)
try:
    simulate(DiscountedTS(), Smooth(horizon=10**9), runs={runs}, workers={workers}, compiled={compiled})
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


def child(code: str, source: Path = SOURCE.parent, **variables: str) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": str(source), **variables}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", code], stdout=pipe, stderr=pipe, text=True, env=environment)


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is sent as a POSIX signal")
@pytest.mark.parametrize(
    ("runs", "workers", "compiled"),
    [
        (64, 2, True),
        pytest.param(2, 2, True, marks=pytest.mark.long),
        pytest.param(1, 1, True, marks=pytest.mark.long),
        (2, 1, False),
    ],
)
def test_ctrl_c_ends_within_a_second_and_cleanly(runs, workers, compiled):
    process = child(LONG.format(runs=runs, workers=workers, compiled=compiled))
    try:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        assert process.stdout.readline() == "stopped\n"
        waited = time.monotonic() - sent
        assert process.wait(timeout=5) == 0
        assert process.stderr.read() == ""
        assert waited < 1.0
    finally:
        process.kill()
        process.communicate()


# ---- the cache of compiled loops

SHORT = """
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.environments import Smooth
from driftbandit.lab.engine.simulate import simulate
print(simulate(DiscountedTS(), Smooth(horizon=300), runs=1, seed=1, checkpoints=1).regret[0, 0])
"""


def answer(code: str = SHORT, source: Path = SOURCE.parent, **variables: str) -> str:
    process = child(code, source, **variables)
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert errors == ""
    return out


@pytest.fixture(scope="module")
def right() -> str:
    result = simulate(DiscountedTS(), Smooth(horizon=300), 1, seed=1, checkpoints=1, compiled=False)
    return f"{result.regret[0, 0]}\n"


@pytest.mark.long
def test_an_edited_source_is_compiled_anew(tmp_path, right):
    copy = tmp_path / "copy"
    shutil.copytree(SOURCE, copy / "driftbandit", ignore=shutil.ignore_patterns("__pycache__"))
    cache = str(tmp_path / "cache")
    assert answer(source=copy, DRIFTBANDIT_CACHE=cache) == right
    path = copy / "driftbandit/environments/rewards.py"
    text = path.read_text()
    path.write_text(text.replace("rng.uniform(0) < mean", "rng.uniform(1) < mean"))
    changed = answer(source=copy, DRIFTBANDIT_CACHE=cache)
    assert changed == answer(SHORT.replace("checkpoints=1", "checkpoints=1, compiled=False"), source=copy)
    assert changed != right
    path.write_text(text)
    assert answer(source=copy, DRIFTBANDIT_CACHE=cache) == right


@pytest.mark.long
def test_a_home_that_cannot_be_written_does_no_harm(tmp_path, right):
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.mkdir()
    temporary.mkdir()
    (home / ".cache").write_text("a file where a directory should be")  # refuses even an administrator
    variables = {"HOME": str(home), "TMPDIR": str(temporary), "DRIFTBANDIT_CACHE": "", "XDG_CACHE_HOME": ""}
    assert answer(**variables) == right
    assert list(temporary.rglob("*.kernel"))
    assert (home / ".cache").read_text() == "a file where a directory should be"
    blocked = str(home / ".cache" / "below")
    assert answer(**{**variables, "DRIFTBANDIT_CACHE": blocked}) == right


@pytest.mark.long
def test_two_processes_may_start_with_an_empty_cache_at_once_and_a_third_finds_what_they_compiled(tmp_path, right):
    cache = tmp_path / "cache"
    processes = [child(SHORT, DRIFTBANDIT_CACHE=str(cache)) for _ in range(2)]
    answers = [process.communicate(timeout=120) for process in processes]
    assert answers == [(right, "")] * 2
    stamps = {path: path.stat().st_mtime_ns for path in cache.rglob("*.kernel")}
    assert stamps
    assert answer(DRIFTBANDIT_CACHE=str(cache)) == right
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*.kernel")} == stamps
