"""What a run was made on, for the report: enough to judge its time, nothing that names a person or a place."""

import os
import platform
from importlib import metadata
from pathlib import Path

from driftbandit.state import memory


def machine() -> str:
    """Processor, cores, memory and system, as far as they can be found out."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parts = [_processor(), f"{cores} core{'s' if cores != 1 else ''}", f"{memory() / 2**30:.0f} GB of memory"]
    return ", ".join(part for part in [*parts, f"{platform.system()} {platform.machine()}"] if part)


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    except OSError:
        pass
    return platform.processor()


def versions() -> dict[str, str]:
    """The versions that a number may depend on."""
    out = {"python": platform.python_version()}
    for name in ("driftbandit", "numpy", "numba"):
        try:
            out[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            out[name] = "from source" if name == "driftbandit" else "not installed"
    return out
