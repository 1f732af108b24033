"""Kill -9 loses at most what was under way; damaged files are noticed; ten thousand cells are planned at once."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import small_study
from driftbandit import DiscountedTS
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import Simulation
from driftbandit.lab.work import Cell, Store, chunks_by_name


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="drivers are forked")
def test_a_driver_killed_twenty_times_at_random_gives_the_undisturbed_result(tmp_path):
    """Each driver is killed with SIGKILL at a random moment after its first new chunk. Two chunks are under way then;
    they are lost and computed again."""
    whole, tally = small_study.played(tmp_path / "whole", workers=2, count=120)
    folder, clock, kept = tmp_path / "killed", random.Random(7), [0]
    folder.mkdir()
    command = [sys.executable, str(Path(small_study.__file__)), str(folder), "0.03", "120", "nursery"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as nursery:
        for _ in range(20):
            nursery.stdin.write("\n")
            driver = int(nursery.stdout.readline())
            while len(list(folder.glob("*/*.chunk"))) == kept[-1]:
                time.sleep(0.002)
            time.sleep(clock.uniform(0.0, 0.06))
            os.kill(driver, signal.SIGKILL)
            kept.append(len(list(folder.glob("*/*.chunk"))))
        nursery.stdin.close()
    assert kept == sorted(kept)  # nothing that was finished is ever lost
    assert kept[-1] < tally.computed  # the last one was killed at work too
    end, rest = small_study.played(folder, workers=2, count=120)
    assert end == whole
    assert rest == (kept[-1], tally.computed - kept[-1])
    print(
        f"chunks kept after each kill: {kept[1:]}; at most 2 under way each time; {rest.computed} computed at the end"
    )


@pytest.mark.long
def test_two_processes_in_one_folder_do_not_harm_each_other(tmp_path):
    command = [sys.executable, str(Path(small_study.__file__)), str(tmp_path), "0.01", "24"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outs = [driver.communicate(timeout=120)[0] for driver in both]
    assert len({out.split("'")[1] for out in outs}) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw[:-1] + b"?",
        lambda raw: b"",
        lambda raw: raw[:90] + b"0" + raw[91:],
    ],
)
def test_a_damaged_chunk_is_noticed_and_computed_again(tmp_path, damage):
    whole, _ = small_study.played(tmp_path, count=2)
    victim = sorted(tmp_path.glob("*/*.chunk"))[0]
    victim.write_bytes(damage(victim.read_bytes()))
    assert Store(tmp_path).get(victim.stem) is None
    assert not victim.exists()
    again, tally = small_study.played(tmp_path, count=2)
    assert again == whole
    assert tally.computed == 1


def test_more_runs_later_reuse_the_whole_chunks():
    long = Abrupt(n_arms=5, horizon=1_000_000, phases=5)  # 300 000 000 / 5 000 000 = 60 runs, cut to 32 a chunk
    few, many = (Cell(DiscountedTS(), long, runs).chunks() for runs in (64, 100))
    assert few == many[:2]
    assert [chunk.runs for chunk in many] == [32, 32, 32, 4]


@pytest.mark.long
def test_ten_thousand_cells_are_planned_and_resumed_in_seconds_with_little_memory(tmp_path):
    """Asserted at three times what was asked for (2 s, 5 s), because a test may share its machine; see
    benchmarks/overhead.py for the measurement."""
    environment = Abrupt(n_arms=3, horizon=100, phases=2)
    cells = [
        Cell(DiscountedTS(gamma=0.5 + 0.4999 * n / 10_000), environment, runs=20, checkpoints=5) for n in range(10_000)
    ]
    started = time.process_time()
    store, plan = Store(tmp_path), chunks_by_name(cells)
    assert time.process_time() - started < 6.0
    assert len(store.missing(plan)) == 10_000
    done = Simulation(np.arange(20, 101, 20), np.zeros((20, 5)), 0.0)
    for name in plan:
        store.put(name, done)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    again = Store(tmp_path)
    assert again.play(cells) == (10_000, 0)
    total = sum(float(again.result(cell).regret[:, -1].sum()) for cell in cells)
    assert total == 0.0
    assert time.process_time() - started < 15.0
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 100  # MB
