"""What a page's hidden first cell sets up: a reader's folder, a service to talk to, and cells of other kinds.

`%%sh` is run as a reader would type it, with this environment's own `driftbandit` first in the path. `%%peer river`
runs in an environment that has that library; where it cannot be installed the cell says so."""

import atexit
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def begin(shell: Any, serving: bool = False) -> None:
    """Stand where a reader of the page stands: in a folder of one's own, with the examples in it."""
    shutil.copytree(ROOT / "examples", "examples")
    commands = Path("bin")
    commands.mkdir()
    script = commands / "driftbandit"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m driftbandit "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    os.environ["PATH"] = (
        f"{commands.resolve()}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    os.environ["COLUMNS"] = "100"
    shell.register_magic_function(_sh, "cell", "sh")
    shell.register_magic_function(_peer, "cell", "peer")
    shell.run_line_magic("config", "InlineBackend.figure_formats = ['svg']")
    if serving:
        _serve()


def _sh(line: str, cell: str) -> None:
    done = subprocess.run(["sh", "-ec", cell], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, end="")
    if done.returncode:
        raise SystemExit(f"the command ended with {done.returncode}")


def _peer(line: str, cell: str) -> None:
    print(in_peer(line.strip(), cell), end="")


def in_peer(library: str, code: str) -> str:
    """What the code prints in an environment with the library, or why it could not be run.

    The environments are those of `make bench`, kept between calls."""
    sys.path.insert(0, str(ROOT))
    from benchmarks.speed import peers

    python, reason = peers.environment("today", (library,))
    if reason:
        return f"(not run here: {library} could not be installed)\n"
    words = [str(python), "-W", "ignore", "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, env=peers.bare(), timeout=300)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def _serve() -> None:
    """A service of the page's own on a free port, found at the address the page names."""
    words = [sys.executable, "-m", "driftbandit", "serve", "--port", "0", "served.db"]
    service = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    atexit.register(service.terminate)
    assert service.stdout is not None
    port = int(re.search(r"http://[\d.]+:(\d+)", service.stdout.readline())[1])  # type: ignore[index]
    connect = socket.create_connection

    def redirected(address: Any, *rest: Any, **options: Any) -> socket.socket:
        return connect(("127.0.0.1", port) if address[1] == 8000 else address, *rest, **options)

    socket.create_connection = redirected  # type: ignore[assignment]
