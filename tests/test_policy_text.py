"""A policy's text from elsewhere (HTTP, snapshots, journals) builds policies and nothing else: no file is opened,
nothing is imported, and no state grows without a limit. Driven by the registry, so a new class is covered."""

import json
import sys
import threading
import time
import tracemalloc
from contextlib import contextmanager
from inspect import signature

import pytest

from driftbandit import Bandit
from driftbandit.bandit.settings import checked_policy
from driftbandit.core.parameters import parameters
from driftbandit.core.protocols import Policy
from driftbandit.policies import Delayed, DiscountedTS, DriftTS, Oracle, PeriodicRestart, SlidingUCB
from driftbandit.service.bandits import library_policy
from driftbandit.spec.parse import constructors, environments, laws, parse_policy, parse_snapshot, policies

HUGE = (10**6, 2**62)
_watched: list[str] = []
_watching: set[int] = set()


def _hook(event, args):
    if threading.get_ident() in _watching and event in (
        "open",
        "import",
        "exec",
        "compile",
        "os.system",
        "socket.connect",
    ):
        if event == "compile" and args[1] == "<unknown>":  # ast.parse of the text itself
            return
        _watched.append(f"{event} {args[0]!r:.80}")


sys.addaudithook(_hook)


@contextmanager
def harmless(megabytes=200, seconds=5.0):
    """Nothing is opened, imported or run inside, and little memory and time is taken."""
    _watched.clear()
    tracemalloc.start()
    began = time.thread_time()
    _watching.add(threading.get_ident())
    try:
        yield
    finally:
        _watching.discard(threading.get_ident())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert _watched == []
    assert peak < megabytes * 2**20
    assert time.thread_time() - began < seconds


def base(cls):
    return "base=ds-ts, " if "base" in cls._fields else ""


def texts(cls, sizes=HUGE):
    """The class as a text may name it: by every name, with every parameter and every named constructor at extremes."""
    numbers = [p for p in parameters(cls) if p.kind in (int, float) and p.name != "base"]
    for name in (cls.__name__, cls.short, *getattr(cls, "aliases", {})):
        yield f"{name}({base(cls)})".replace(", )", ")")
    for value in sizes:
        for p in numbers:
            yield f"{cls.short}({base(cls)}{p.name}={value})"
        if numbers:
            yield f"{cls.short}({base(cls)}{', '.join(f'{p.name}={value}' for p in numbers)})"
        for maker in constructors(cls):
            wanted = [name for name in signature(getattr(cls, maker)).parameters if name != "base"]
            given = {"phases": 2, "n_arms": 1000, "smooth": True}
            inside = ", ".join(f"{name}={given.get(name, value)}" for name in wanted)
            yield f"{cls.short}.{maker}({base(cls)}{inside})"


@pytest.fixture(scope="module", autouse=True)
def imported():
    parse_policy("ds-ts")
    for cls in policies().values():  # what a class imports at its first use is its own
        for text in texts(cls, HUGE[:1]):
            try:
                library_policy(text, 2)
            except (ValueError, TypeError):
                continue


@pytest.mark.long
@pytest.mark.parametrize("cls", policies().values(), ids=lambda cls: cls.short)
def test_no_text_about_a_policy_opens_a_file_imports_or_allocates_without_bound(cls):
    for text in texts(cls):
        with harmless():
            try:
                made = library_policy(f"periodic-restart(base={text})", 1000)
            except (ValueError, TypeError):
                continue
        assert isinstance(made, Policy)


@pytest.mark.parametrize("cls", [*environments().values(), *laws().values()], ids=lambda cls: cls.__name__)
def test_environments_and_laws_are_not_made_by_the_parser_of_policies(cls):
    for name in (cls.__name__, getattr(cls, "short", cls.__name__)):
        inside = ['"/etc/passwd"', "stretch=2e7", "horizon=1000000000", ""]
        for read in (parse_policy, parse_snapshot, lambda text: library_policy(text, 3)):
            for given in inside:
                for text in (f"{name}({given})", f"delayed(base={name}({given}))", f"ds-ts({name}({given}))"):
                    with harmless(megabytes=4), pytest.raises(ValueError, match=r"Expected a policy|no policy"):
                        read(text)


def test_a_nest_of_wrappers_is_refused_by_its_size():
    nest = "DiscountedTS()"
    for _ in range(25):
        nest = f"PeriodicRestart({nest})"  # each doubles the state
    with harmless(megabytes=20), pytest.raises(ValueError, match="numbers; the limit"):
        library_policy(nest, 2)
    policy = parse_policy(nest)
    with pytest.raises(ValueError, match="numbers; the limit"):
        Bandit.open("unused.db", "x", policy, ["a", "b"])


def test_a_snapshot_allocates_no_more_than_it_holds():
    text = Bandit(["a", "b"], SlidingUCB(window=10), seed=1).snapshot()
    for window in ("20_000_000", "1_000"):
        content = json.loads(text.replace("window=10", f"window={window}"))
        del content["check"]  # as somebody would who made it
        with harmless(megabytes=20), pytest.raises(ValueError, match="damaged"):
            Bandit.restore(json.dumps(content))


@pytest.mark.parametrize(
    "policy",
    [Oracle(), Delayed(DriftTS()), PeriodicRestart(Delayed(DiscountedTS()))],
    ids=repr,
)
def test_policies_of_the_simulator_are_refused_live_with_one_sentence(policy, tmp_path):
    said = set()
    for refuse in (
        lambda: Bandit.open(tmp_path / "journal.db", "x", policy, ["a", "b"]),
        lambda: library_policy(repr(policy), 2),
        lambda: checked_policy(policy),
    ):
        with pytest.raises(ValueError, match="only plays in simulations") as refused:
            refuse()
        said.add(str(refused.value))
    assert len(said) == 1
    with Bandit.open(tmp_path / "journal.db", "y", DriftTS(), ["a", "b"], reward_range=(0, 1)) as bandit:
        with pytest.raises(ValueError, match="only plays in simulations"):
            bandit.change(policy=policy)
        assert bandit.policy == DriftTS()


def test_which_policies_need_a_simulation():
    """Those that are given the environment, and the wrapper that holds rewards back, which a journal does by itself."""
    marked = {cls.short for cls in policies().values() if getattr(cls, "simulated_only", False)}
    assert marked == {"oracle", "delayed"}
    assert marked >= {cls.short for cls in policies().values() if hasattr(cls, "with_environment")}
