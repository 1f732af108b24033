"""Other libraries on the same environments, in environments made for them, with their regret next to ours."""

import json
import os
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed import live, ours, workload
from benchmarks.speed.workload import PHASES, Scale
from driftbandit.lab.engine.simulate import simulate

# One environment takes the libraries that get on with today's NumPy, another the one that needs an old one.
ENVIRONMENTS: dict[str, dict[str, tuple[str, ...]]] = {
    "today": {name: (name,) for name in ("river", "pymab", "mabwiser", "pybandits", "bayesianbandits")},
    "old": {"SMPyBandits": ("SMPyBandits", "numpy<2", "scipy<1.12")},
}
_WHOLE_ARMS = 10  # here every library plays at least one run to the end
_OURS = ("ds-ts", "dts", "ts")


class Installed(NamedTuple):
    """A library and a Python that has it, or the reason why there is none."""

    library: str
    python: Path
    reason: str


def install(place: Path, say: Callable[[str], None]) -> list[Installed]:
    """Every library in its environment below `place`: those of one environment with one call of pip, which is quickest,
    and if that fails each separately, so that one that cannot be installed does not keep out the others."""
    out: list[Installed] = []
    for group, libraries in ENVIRONMENTS.items():
        say(f"installing {', '.join(libraries)}")
        python, reason = _ready(place / group, tuple(name for packages in libraries.values() for name in packages))
        for library, packages in libraries.items():
            if reason and len(libraries) > 1:
                out.append(Installed(library, *_ready(place / group, packages)))
            else:
                out.append(Installed(library, python, reason))
    return out


def rows(scale: Scale, installed: list[Installed], say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Everybody's time a round and regret; libraries that cannot be had are listed with the reason."""
    script = Path(__file__).with_name("peer_loops.py")
    arms = [n_arms for n_arms in scale.arms if n_arms <= 30]
    out: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="driftbandit-bench-") as folder:
        job = _job(Path(folder), arms, scale)
        for library, python, reason in installed:
            say(f"library {library}")
            if reason:
                out.append(_failed(library, reason))
                continue
            version = _versions(python, (library,))
            out += [{**row, "version": version} for row in _played(python, script, library, job)]
    return [*_ours(arms, scale), *out]


def left_out(reason: str) -> list[dict[str, Any]]:
    """The rows of a run without other libraries: one that says why."""
    return [_failed("all", reason)]


def _job(folder: Path, arms: list[int], scale: Scale) -> Path:
    environments = {}
    for n_arms in arms:
        path = folder / f"environments-{n_arms}.npy"
        np.save(path, workload.tables(n_arms, scale.peer_horizon, ours.LOCKSTEP_RUNS))
        environments[str(n_arms)] = str(path)
    job = {
        "environments": environments,
        "horizon": scale.peer_horizon,
        "gamma": 1.0 - (PHASES / scale.peer_horizon) ** 0.5,
        "seconds": scale.peer_seconds,
        "whole_arms": _WHOLE_ARMS,
        "live": {"river": live.ARMS, "pymab": live.ARMS},
        "live_seconds": min(1.0, scale.peer_seconds),
        "slice": 50,
    }
    path = folder / "job.json"
    path.write_text(json.dumps(job), encoding="utf-8")
    return path


def environment(group: str, packages: tuple[str, ...]) -> tuple[Path, str]:
    """A Python of one of our environments with these packages, for others who need one; the reason if there is none."""
    return _ready(default_place() / group, packages)


def _ready(folder: Path, packages: tuple[str, ...]) -> tuple[Path, str]:
    """A Python with the packages installed, and the reason if it cannot be had."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    try:
        if not python.exists():
            venv.create(folder, with_pip=True, clear=True)
        if _versions(python, tuple(re.split("[<>=]", package)[0] for package in packages)):
            return python, ""  # from an earlier call
        # One retry: without a network every library would otherwise wait a quarter of a minute for its five.
        options = ("--quiet", "--disable-pip-version-check", "--no-compile", "--retries", "1")
        words = [str(python), "-m", "pip", "install", *options, *packages]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, env=bare())
    except (OSError, subprocess.SubprocessError) as error:
        return python, f"{type(error).__name__}: {error!s:.160}"
    lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["pip gave no reason"]
    return python, "" if done.returncode == 0 else f"pip: {lines[-1].removeprefix('ERROR: '):.160}"


def bare() -> dict[str, str]:
    """Our own search path must not reach into another environment."""
    return {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    }


def _played(python: Path, script: Path, library: str, job: Path) -> list[dict[str, Any]]:
    try:
        done = subprocess.run(
            [str(python), str(script), library, str(job)], capture_output=True, text=True, timeout=600, env=bare()
        )
    except subprocess.TimeoutExpired:
        return [_failed(library, "it did not finish in ten minutes")]
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 and not rows:
        return [_failed(library, (done.stderr.strip().splitlines() or ["it ended without a word"])[-1][:160])]
    return rows


def _failed(library: str, reason: str) -> dict[str, Any]:
    return {"library": library, "policy": "", "kind": "failed", "reason": reason}


def _versions(python: Path, names: tuple[str, ...]) -> str:
    """The versions that this Python has, or nothing if it lacks one of them."""
    code = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    done = subprocess.run([str(python), "-c", code, *names], capture_output=True, text=True, env=bare())
    return done.stdout.strip() if done.returncode == 0 else ""


def _ours(arms: list[int], scale: Scale) -> list[dict[str, Any]]:
    """Ours on the same environments, timed as a user gets it: 64 runs in one call, on one core."""
    out = []
    for name in _OURS:
        for n_arms in arms:
            policy = workload.tuned(name, scale.peer_horizon, n_arms)
            environment = workload.environment(n_arms, scale.peer_horizon)
            timing = ours.measured(policy, n_arms, scale.peer_horizon, ours.LOCKSTEP_RUNS, scale.repeats, lockstep=True)
            final = simulate(policy, environment, runs=ours.LOCKSTEP_RUNS, workers=1, checkpoints=1).regret[:, -1]
            out.append(
                {
                    "library": "driftbandit",
                    "policy": name,
                    "kind": "environment",
                    "n_arms": n_arms,
                    "cpu": timing.cpu,
                    "wall": timing.wall,
                    "regrets": final.tolist(),
                    "version": "",
                }
            )
    return out


def default_place() -> Path:
    """Where the environments are kept between calls: next to the compiled loops."""
    from driftbandit.lab.files import cache_root

    return cache_root() / f"peers-{sys.version_info.major}.{sys.version_info.minor}"
