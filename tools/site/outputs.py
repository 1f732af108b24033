"""The outputs of the blocks on the pages, kept in the pages: `python -m tools.site.outputs [PAGE ...]`.

Nothing runs when the site is built, and the pages read the same on a platform that only renders Markdown. This command
runs the blocks of a page in their order, as a reader would, twice. An output that is the same both times is marked
`<!-- output -->`, and a test holds the page to it. Any other, such as one with a random id, is marked
`<!-- output of one run -->`. A picture that the page shows, and that its blocks wrote, is copied next to the page."""

import ast
import contextlib
import datetime
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.site.pages import FENCE, OUTPUT, PEER, ROOT, SERVED, runs

_PARTS = ("*.md", "tutorials/*.md", "how-to/*.md", "explanation/*.md", "reference/*.md")
PAGES = [page for part in _PARTS for page in sorted((ROOT / "docs").glob(part))]
PAGES = [page for page in PAGES if any(runs(found[1], found[2]) for found in FENCE.finditer(page.read_text("utf-8")))]
_MOST = 40  # lines of one output
_PICTURE = re.compile(r"!\[[^\]]*\]\(([\w-]+\.svg)\)")
_READY = re.compile(r"^\d+ of \d+ chunks were ready, \d+ computed\n", re.M)
_SAME, _ONCE = "<!-- output -->", "<!-- output of one run -->"


def run(page: Path, peers: bool = False, pictures: Path | None = None) -> list[str | None]:
    """What each block of the page prints, in a new folder and a new process. A block that needs another library prints
    None unless `peers`, and new pictures are copied into the folder `pictures`."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-W", "ignore", "-m", "tools.site.outputs", "--play", str(page), *["peers"] * peers]
        environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}", "COLUMNS": "100"}
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{page.name}: {done.stderr}")
        for name in _PICTURE.findall(page.read_text(encoding="utf-8")) if pictures else ():
            if Path(folder, name).exists():
                shutil.copyfile(Path(folder, name), pictures / name)
    # Which pieces of an experiment were on disk depends on what was played before.
    return [printed and _READY.sub("", printed) for printed in json.loads(done.stdout)]


def kept(page: Path) -> list[tuple[bool, str] | None]:
    """The outputs in the page, one for each block that runs: whether it is the same every time, and its text."""
    text, out = page.read_text(encoding="utf-8"), []
    for found in FENCE.finditer(text):
        if runs(found[1], found[2]):
            output = OUTPUT.match(text, found.end())
            out.append((output[0].lstrip().startswith(_SAME), output[1]) if output else None)
    return out


def write(page: Path) -> None:
    """Put the outputs into the page."""
    outputs = iter(zip(run(page, peers=True, pictures=page.parent), run(page, peers=True), strict=True))
    today = datetime.datetime.now(datetime.UTC).date().isoformat()

    def with_output(found: re.Match[str]) -> str:
        if not runs(found[1], found[2]):
            return found[0]
        first, second = next(outputs)
        mark = _SAME if first == second and today not in str(first) else _ONCE
        return found[0] + (f"\n\n{mark}\n\n```text\n{first}```" if first else "")

    text = OUTPUT.sub("", page.read_text(encoding="utf-8"))
    page.write_text(FENCE.sub(with_output, text), encoding="utf-8")


def play(code: str, scope: dict[str, object]) -> str:
    """What a block of Python prints, and the value of its last line, as in a notebook."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(tree, "page", "exec"), scope)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "page", "eval"), scope)
            if value is not None and type(value).__module__.split(".")[0] not in ("matplotlib", "pathlib"):
                print(repr(value))
    return out.getvalue()


def play_shell(code: str) -> str:
    """What the lines of a shell block print, with this environment's own `driftbandit`."""
    define = f'driftbandit() {{ "{sys.executable}" -m driftbandit "$@"; }}\n'
    done = subprocess.run(["sh", "-ec", define + code], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{code}\n{done.stderr}")
    return done.stdout


def play_with_peer(library: str, code: str) -> str:
    """What the code prints in an environment of `make bench` that has the library."""
    from benchmarks.speed import peers

    python, reason = peers.environment("today", (library,))
    if reason:
        raise RuntimeError(f"{library} could not be installed: {reason}")
    words = [str(python), "-W", "ignore", "-c", code]
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, env=peers.bare(), check=True).stdout


@contextlib.contextmanager
def serving(text: str):  # type: ignore[no-untyped-def]
    """The address of a service for the blocks that talk to one, started if the page has such a block."""
    if SERVED not in text:
        yield SERVED
        return
    words = [sys.executable, "-m", "driftbandit", "serve", "--port", "0", "served.db"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as service:
        assert service.stdout is not None
        found = re.search(r"http://[\d.]+:\d+", service.stdout.readline())
        assert found is not None
        yield found[0]
        service.terminate()


def _play_page(page: Path, peers: bool) -> list[str | None]:
    os.environ["MPLBACKEND"] = "agg"
    shutil.copytree(ROOT / "examples", "examples")
    scope: dict[str, object] = {"__name__": "page"}
    text = page.read_text(encoding="utf-8")
    out: list[str | None] = []
    with serving("".join(found[3] for found in FENCE.finditer(text) if found[1] == "python")) as address:
        for language, words, code in FENCE.findall(text):
            peer = PEER.search(words)
            if peer and not peers:
                out.append(None)
            elif runs(language, words):
                code = code.replace(SERVED, address)
                shown = (
                    play_with_peer(peer[1], code)
                    if peer
                    else play(code, scope)
                    if language == "python"
                    else play_shell(code)
                )
                lines = shown.replace(address, SERVED).rstrip().splitlines()
                lines = lines if len(lines) <= _MOST else [*lines[:_MOST], "..."]
                out.append("".join(f"{line.rstrip()}\n" for line in lines))
    return out


if __name__ == "__main__":
    if sys.argv[1:2] == ["--play"]:
        sys.stdout.write(json.dumps(_play_page(Path(sys.argv[2]), sys.argv[3:] == ["peers"])))
    else:
        for one in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
            print(one.name, flush=True)
            write(one)
