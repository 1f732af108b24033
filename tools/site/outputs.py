"""The outputs of blocks in tutorials and explanations, kept in the pages, so that they can be read where no code runs:
`python -m tools.site.outputs` runs the blocks and writes the outputs anew.

Every page is run twice. An output that is the same both times is marked `<!-- output -->`, and tests hold the page to
it. Any other, such as one with a random id, is marked `<!-- output of one run -->`. Sphinx leaves both out, because it
runs the blocks itself."""

import ast
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.site.pages import FENCE, OUTPUT, ROOT, runs

PAGES = [page for part in ("tutorials", "explanation") for page in sorted((ROOT / "docs" / part).glob("*.md"))]
PAGES = [page for page in PAGES if any(runs(found[1], found[2]) for found in FENCE.finditer(page.read_text("utf-8")))]
_MOST = 40  # lines of one output
_SHOWN = ("matplotlib", "IPython", "pathlib")  # packages whose values are pictures, or files
_SAME, _ONCE = "<!-- output -->", "<!-- output of one run -->"


def run(page: Path) -> list[str]:
    """What each block of the page prints, in a new folder and a new process."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-W", "ignore", "-m", "tools.site.outputs", str(page)]
        environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}", "COLUMNS": "100"}
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{page.name}: {done.stderr}")
    return list(json.loads(done.stdout))


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
    outputs = iter(zip(run(page), run(page), strict=True))

    def with_output(found: re.Match[str]) -> str:
        if not runs(found[1], found[2]):
            return found[0]
        first, second = next(outputs)
        mark = _SAME if first == second else _ONCE
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
            if value is not None and type(value).__module__.split(".")[0] not in _SHOWN:
                print(repr(value))
    return out.getvalue()


def play_shell(code: str) -> str:
    """What the lines of a shell block print, with this environment's own `driftbandit`."""
    define = f'driftbandit() {{ "{sys.executable}" -m driftbandit "$@"; }}\n'
    done = subprocess.run(["sh", "-c", define + code], capture_output=True, text=True)
    return done.stdout


def _play_page(page: Path) -> list[str]:
    os.environ["MPLBACKEND"] = "agg"
    os.symlink(ROOT / "examples", "examples")
    scope: dict[str, object] = {"__name__": "page"}
    out = []
    for language, words, code in FENCE.findall(page.read_text(encoding="utf-8")):
        if runs(language, words):
            lines = (play(code, scope) if language == "python" else play_shell(code)).rstrip().splitlines()
            lines = lines if len(lines) <= _MOST else [*lines[:_MOST], "..."]
            out.append("".join(f"{line.rstrip()}\n" for line in lines))
    return out


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.stdout.write(json.dumps(_play_page(Path(sys.argv[1]))))
    else:
        for one in PAGES:
            write(one)
