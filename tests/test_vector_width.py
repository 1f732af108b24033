"""The same numbers to the last bit, however wide the processor's vectors are.

LLVM makes other code for SSE2, AVX2 and AVX-512. Without fast-math it may neither reorder an addition nor fuse a
product into one, so narrow vectors may only cost time. Here processes that compile for a lesser processor
play short experiments with their own empty cache, and what they find is compared with what this process finds.

Run as a program, this file prints what it found, for the process that started it."""

import hashlib
import json
import os
import platform
import subprocess
import sys

import numpy as np
import pytest

numba = pytest.importorskip("numba")

from llvmlite import binding  # noqa: E402

from benchmarks.speed import workload  # noqa: E402
from driftbandit.core.draws import ENVIRONMENT, stream_key  # noqa: E402
from driftbandit.lab.engine import simulate as engine_runs  # noqa: E402
from driftbandit.lab.engine.arguments import Shared, prepare  # noqa: E402
from driftbandit.lab.engine.simulate import simulate  # noqa: E402

HOST = {name: bool(has) for name, has in binding.get_host_cpu_features().items()}
X86 = platform.machine() in ("x86_64", "AMD64")
# Seven arms and eight runs: no whole number of registers in one case, one or several in the other.
ARMS, ROUNDS = 7, 1500
CASES = {
    "ds-ts, lockstep": ("ds-ts", 8),
    "sw-ts, lockstep": ("sw-ts", 8),
    "dts": ("dts", 2),
    "d-ucb, lockstep": ("d-ucb", 8),
    "sw-lb-sda": ("sw-lb-sda", 2),
}


def bits(value):
    """Every bit of a state: tuples of tuples, arrays and rows of lanes."""
    if isinstance(value, tuple):
        return b"".join(map(bits, value))
    return np.asarray(getattr(value, "array", value)).tobytes()


def digests():
    """For each case a digest of every bit of its regret and its pulls, and one of what its policy knows at the end.

    A last digit that differs seldom changes a decision, and regret and pulls come from decisions only; in the state
    it stays."""
    out = {}
    for case, (name, runs) in CASES.items():
        policy, spec = workload.tuned(name, ROUNDS, ARMS), workload.environment(ARMS, ROUNDS)
        result = simulate(policy, spec, runs=runs, workers=1, checkpoints=50, pulls=True, progress=False)
        out[case] = hashlib.sha256(result.regret.tobytes() + result.pulls.tobytes()).hexdigest()
        environments = [spec.realise(stream_key(0, run, ENVIRONMENT)) for run in range(runs)]
        shared = Shared(policy, environments, 0, 0, result.rounds, pulls=True, trajectories=False, compiled=True)
        task = engine_runs.tasks(shared, lockstep=case.endswith("lockstep"))[0]
        advance, given = engine_runs.compile_loop(shared, [task]), prepare(shared, task)
        advance(*given._replace(start=0, stop=ROUNDS))
        out[f"{case}, state"] = hashlib.sha256(bits(given.state)).hexdigest()
    return out


def registers():
    """Which vector registers the compiler uses here, by a loop that it certainly vectorises."""

    @numba.njit(error_model="numpy")
    def probe(numbers):
        for i in range(len(numbers)):
            numbers[i] = np.sqrt(numbers[i]) * 3.0 + 1.0

    probe(np.ones(64))
    text = "".join(probe.inspect_asm().values())
    return [name for name in ("xmm", "ymm", "zmm") if f"%{name}" in text]


def compiled_for(cpu, features, cache):
    """What a process finds that compiles for this processor, with a cache that holds nothing of ours."""
    variables = {**os.environ, "NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": features, "DRIFTBANDIT_CACHE": str(cache)}
    variables["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run([sys.executable, __file__], env=variables, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def native():
    return digests()


pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="nothing is compiled"),
]


def test_the_least_processor_of_this_kind_finds_the_same_bits(native, tmp_path):
    found = compiled_for("generic", "", tmp_path)
    if X86:
        assert found["registers"] == ["xmm"]  # 128 bits and no more: the setting was heard
    assert found["digests"] == native


@pytest.mark.skipif(not X86, reason="AVX2 is of x86-64")
@pytest.mark.skipif(not HOST.get("avx2"), reason="the processor has no AVX2; SSE2 is compared above")
@pytest.mark.skipif(not HOST.get("avx512f"), reason="the processor has no AVX-512: AVX2 is what this process uses")
def test_avx2_finds_the_same_bits_as_avx512(native, tmp_path):
    features = {name: has and not name.startswith(("avx512", "avx10")) for name, has in HOST.items()}
    found = compiled_for(
        binding.get_host_cpu_name(),
        ",".join(f"{'+' if has else '-'}{name}" for name, has in features.items()),
        tmp_path,
    )
    assert "ymm" in found["registers"]
    assert "zmm" not in found["registers"]
    assert found["digests"] == native


if __name__ == "__main__":
    print(json.dumps({"digests": digests(), "registers": registers()}))
