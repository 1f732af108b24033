"""Every command in README, docs, examples and the commands' own help is run, with sizes reduced where needed, and so is
every block of code in docs, which has to print what the page shows below it.

Commands for a cluster, and those that take minutes at any size (`bench`), are only parsed."""

import random
import re
import shlex
import shutil
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from driftbandit import Bandit, DiscountedTS
from driftbandit.cli import _main as cli
from driftbandit.lab import study
from tools.site import committed, outputs

ROOT = Path(__file__).parents[1]
pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")
pytestmark = [
    pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the pages are not part of the source archive"),
    pytest.mark.filterwarnings("ignore:The formula gives"),
]
MADE = ("docs/_made/", "docs/reference/api/", "docs/reference/policies/")  # by `make docs`, from the code itself
MADE += tuple(f"docs/reference/{name}" for name in committed.PAGES)
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")])
PAGES = [page for page in PAGES if not page.relative_to(ROOT).as_posix().startswith(MADE)]
ELSEWHERE = ("dask", "ray", "postgresql", "serve", "demo", "watch", "http")  # read, not run
PLACEHOLDER = re.compile(
    r"(?<![\w.])(?:WHO|ADDRESS|FOLDER|FILE|FILE_OR_URL|LOG|COPY|PREFIX|3f9a12bc|NAME|SCHEDULER|T|B|N)(?!\w)"
)


def text_of(page):
    return page.read_text(encoding="utf-8")


def commands_in(text):
    """Lines that begin with `driftbandit`, and commands between backquotes."""
    text = re.sub(r"```(?:toml|python|sh run|text).*?```", "", text, flags=re.DOTALL)
    found = re.findall(r"^ {2,}(driftbandit [^\n]+)$", text, flags=re.MULTILINE)
    found += re.findall(r"`(driftbandit [^`]+)`", text.replace("\n", " "))
    return [line for line in found if not re.match(r"driftbandit: ", line)]


def everything():
    """(where, command) for each different command shown anywhere."""
    shown = {}
    for page in PAGES:
        if page.name != "CHANGELOG.md":
            for line in commands_in(text_of(page)):
                shown.setdefault(" ".join(shlex.split(line, comments=True)), (page.name, line))
    for module in cli.modules():
        for line in commands_in(module._EXAMPLES):
            line = re.split(r" {3,}", line)[0]
            shown.setdefault(" ".join(shlex.split(line)), (module.__name__.rsplit(".", 1)[1], line))
    return list(shown.values())


SHOWN = everything()


def words_of(line):
    return shlex.split(line.partition(" > ")[0], comments=True)[1:]


def reduced(words):
    """The same command at a size of moments."""
    name, out = words[0], []
    for word in words[1:]:
        out.append(re.sub(r"horizon=[\d_]+", "horizon=400", word))
    for option, value in (("--runs", "4"), ("--horizon", "400")):
        if option in out:
            out[out.index(option) + 1] = value
        elif option == "--runs" and name in ("run", "field", "reproduce") and "--init" not in out:
            out += [option, value]
    if name == "run" and any(word.endswith((".toml", ".py")) for word in out):
        out += ["--horizon", "400"]
    if "--growth" in out:
        out += ["--runs", "2"]
    if name == "field":
        out += ["--quick"]
    if name == "reproduce":
        items = [word for word in out if re.match(r"(fig|table|abrupt|smooth|finite)[\w-]*$", word)]
        out = ["fig1", *(word for word in out if word not in items)]
    return [name, *out]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The files that commands on the pages name: the examples, a journal, logs, and a policy and an environment."""
    tmp_path = tmp_path_factory.mktemp("reader")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "benchmarks").mkdir()
    shutil.copyfile(ROOT / "benchmarks/safe_bandit.py", tmp_path / "benchmarks/safe_bandit.py")
    own = (
        text_of(ROOT / "examples" / "own_policy.py").replace("Cautious", "MyPolicy").replace("Seasons", "MyEnvironment")
    )
    (tmp_path / "package").mkdir()
    for name in ("my_policy.py", "my_environment.py", "package/module.py", "package/__init__.py"):
        (tmp_path / name).write_text(own if "__init__" not in name else "", encoding="utf-8")
    with Bandit.open(
        tmp_path / "shop.db",
        "button",
        DiscountedTS(),
        ["red", "green", "blue"],
        holdback=0.1,
        baseline="red",
        wait="1 h",
    ) as made:
        made.decide(id="ID")
        made.decide(id="visit-17")
    chance = random.Random(7)
    rows = [
        (datetime(2026, 1, 1) + timedelta(minutes=n), arm, int(chance.random() < 0.3 + 0.2 * arm))
        for n in range(20_000)
        for arm in [chance.randrange(2)]
    ]
    lines = [
        "time,arm,reward,propensity,device,basket",
        *(
            f"{time.isoformat()},{'ab'[arm]},{reward},0.5,{('phone', 'desk')[time.minute % 7 % 2]},{time.minute % 11}"
            for time, arm, reward in rows
        ),
    ]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    columns = {
        "time": [row[0] for row in rows],
        "arm": ["ab"[row[1]] for row in rows],
        "reward": [row[2] for row in rows],
    }
    columns |= {"when": columns["time"], "button": columns["arm"], "click": columns["reward"]}
    pq.write_table(pa.table({**columns, "propensity": [0.5] * len(rows)}), tmp_path / "log.parquet")
    (tmp_path / "environment.csv").write_text("rounds,a,b\n200,0.5,0.5\n200,0.6,0.4\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def folder(prepared, tmp_path, monkeypatch):
    """A new copy of those files, as the working directory."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.split(".")[0] == "package"]:
        monkeypatch.delitem(sys.modules, name)  # of another test's folder
    return tmp_path


def is_complete(line):
    """Whether a command can be run as it is: no placeholder, and more than its name in a sentence."""
    words = words_of(line)
    single = len(words) < 2 and words[0] not in ("list", "field", "reproduce", "bench", "theory", "help")
    return not single and not PLACEHOLDER.search(line)


COMPLETE = [(where, line) for where, line in SHOWN if is_complete(line)]


def test_every_command_that_is_shown_can_be_parsed():
    parser = cli.build_parser()
    for _, line in COMPLETE:
        words = words_of(line)
        if "--help" not in words and words[0] != "help":
            cli.parse_arguments(parser, words)


COMPILE = ("bench", "field", "reproduce", "replay", "run", "theory")  # too slow for the short suite


@pytest.mark.parametrize(
    ("where", "line"),
    [pytest.param(*shown, marks=pytest.mark.long if words_of(shown[1])[0] in COMPILE else ()) for shown in COMPLETE],
    ids=[f"{where}: {line[:70]}" for where, line in COMPLETE],
)
def test_every_command_that_is_shown_works(where, line, folder, capsys):
    words = words_of(line)
    if any(word.endswith(".parquet") for word in words[1:2]) and words[0] == "run":
        environment = "abrupt(n_arms=2, horizon=200, phases=2)"
        assert cli.main(["run", "ts", "--env", environment, "--runs", "2", "--out", "result.parquet"]) == 0
        for name in ("monday.parquet", "tuesday.parquet"):
            shutil.copyfile("result.parquet", name)
    if any(word in line.split() or f"{word}:" in line for word in ELSEWHERE):
        return
    if words[:2] == ["live", "create"]:
        Path("shop.db").unlink()
    if "study.toml" in words and "--init" not in words:
        assert cli.main(["run", "--init", "study.toml"]) == 0
    code = cli.main(reduced(words))
    assert code == 0, capsys.readouterr().err


def test_the_pages_show_commands_and_no_command_is_missing_from_them():
    assert len(SHOWN) > 40
    names = {words_of(line)[0] for _, line in SHOWN if words_of(line)}
    assert {module.__name__.rsplit(".", 1)[1] for module in cli.modules()} <= names


@pytest.mark.long
@pytest.mark.parametrize("page", outputs.PAGES, ids=lambda page: page.name)
def test_every_block_on_a_page_runs_and_prints_what_the_page_shows(page):
    kept = outputs.kept(page)
    for output, block in zip(outputs.run(page), kept, strict=True):
        if output is None:  # runs with another library only
            continue
        assert bool(output) == bool(block)
        if block and block[0]:
            assert output == block[1]


def test_every_study_on_a_page_can_be_read(folder):
    for page in PAGES:
        for block in re.findall(r"```toml\n(.*?)```", text_of(page), re.DOTALL):
            assert study.loads(block, page.name, folder).count() > 0, page


def test_every_make_target_that_is_shown_exists():
    targets = set(re.findall(r"^([a-z]+):", text_of(ROOT / "Makefile"), flags=re.MULTILINE))
    for page in PAGES:
        for target in re.findall(r"(?:^ {4}|`)make ([a-z]+)", text_of(page), flags=re.MULTILINE):
            assert target in targets, f"{page.name} shows make {target}"
