"""What the figures were measured on: a time without its machine says nothing."""

import os
import platform
import re
from importlib import metadata
from pathlib import Path
from typing import Any


def describe() -> dict[str, Any]:
    """Processor, cores, vector units, versions, and how busy the machine is now."""
    info = _processor()
    return {
        "processor": info["model name"] or platform.processor() or platform.machine(),
        "vectors": info["vectors"],
        "cores": os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in ("driftbandit", "numpy", "numba", "llvmlite")},
        "load": load(),
    }


def load() -> float | None:
    """How many processes wanted to run in the last minute, on average; None where the system does not say."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None


def sentence(machine: dict[str, Any]) -> str:
    """The machine in one line."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    busy = "unknown" if machine["load"] is None else f"{machine['load']:g}"
    vectors = f" with {machine['vectors']}" if machine["vectors"] else ""
    return (
        f"{machine['processor']}{vectors}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}, "
        f"{versions}; load average {busy} at the start"
    )


def _processor() -> dict[str, str]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    name = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    flags = next(
        (name for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2")) if re.search(rf"\b{flag}\b", text)), ""
    )
    return {"model name": name[1].strip() if name else "", "vectors": flags}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "from source"
