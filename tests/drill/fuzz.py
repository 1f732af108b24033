"""Calls with any arguments at all: an answer or one sentence, and after an error nothing has changed."""

import math
import random
import warnings
from itertools import islice
from typing import Any, NamedTuple

from driftbandit.bandit import Bandit, StoreError
from driftbandit.bandit.audit import audit
from driftbandit.bandit.records import DEFAULT
from driftbandit.policies import LinTS
from driftbandit.policies.beta_ts import BetaTS, DiscountedBetaTS
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.drift import DriftLinTS
from driftbandit.policies.exp3 import EXP3S
from tests.drill.load import ARMS
from tests.drill.site import Finding, Site

_VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2**70, 0.0, 1.0, 0.5, -0.0, 1e308, -1e308, 1e-320, math.nan, math.inf, -math.inf, "",
    "a", "b", "x" * 200, "é", "a\nb", "'; DROP TABLE event; --", "\x00", "1 h", "0 h", "-1 h", "none", b"a", [], ["a"],
    ["a", "zz"], [["a"]], {}, {"a": 1.0}, {"x": "y"}, {"x": "number"}, {"a": ["p", "q"], "x": "hour of day"}, (), (1,),
    ("a", "b"), object, object(), DiscountedTS(), BetaTS(), DiscountedBetaTS(binarise=True), EXP3S(), DriftLinTS(),
    LinTS(), DiscountedTS, 3 + 4j, range(3), range(2000), "d1", "d2", "d3", 1000, 1001,
]  # fmt: skip
_FEATURES = {"x": "number", "a": ["a", "b"], "f": "flag", "l": "log number", "t": "hour of day"}
_EACH = 5_000  # calls for one journal
_ALLOWED = (ValueError, TypeError, StoreError)


class Fuzzed(NamedTuple):
    """The outcome of some calls."""

    answered: int
    changed: int  # by calls that met an error
    strange: list[str]
    differences: list[str]


def fuzz(site: Site, calls: int, seed: int = 1, contextual: bool = False) -> list[Finding]:
    """Random methods with random arguments, some of them right; a new journal every so often, since another policy has
    to learn everything there again. In contexts, a third of the calls are to a bandit of candidates."""
    kinds = {"contexts": calls - calls // 3, "candidates": calls // 3} if contextual else {"": calls}
    parts = [
        _fuzzed(site.journal(), min(_EACH, some - first), f"{seed} {first}", kind)
        for kind, some in kinds.items()
        for first in range(0, some, _EACH)
    ]
    strange = [text for part in parts for text in part.strange]
    changed = sum(part.changed for part in parts)
    differences = [text for part in parts for text in part.differences]
    result = f"{len(strange)} strange, {changed} changed by errors; audit: {len(differences)} differ"
    if strange:
        result += f" (first: {strange[0]})"
    tried = f"{calls} calls, {sum(part.answered for part in parts)} answered"
    title = "fuzzed calls" + (", contexts" if contextual else "")
    return [Finding(title, site.kind, tried, result, not strange and changed == 0 and not differences)]


def _fuzzed(target: str, calls: int, seed: str, kind: str) -> Fuzzed:
    chance = random.Random(seed)
    strange: list[str] = []
    changed = answered = 0
    given: dict[str, Any] = {"policy": DriftLinTS(), "features": _FEATURES} if kind else {"policy": DiscountedTS()}
    given |= {"candidates": True} if kind == "candidates" else {"arms": ARMS}
    with Bandit.open(target, "drill", seed=5, wait="1 h", durability="disk", **given) as bandit:
        bandit.refresh()
        before, seen = bandit.fingerprint(), bandit._fold.n
        for n in range(calls):
            name, call = (_candidate_call if kind == "candidates" else _call)(bandit, chance, n, kind != "")
            failed = False
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    call()
                answered += 1
            except _ALLOWED as error:
                text = str(error)
                if "\n" in text or not text.endswith((".", "?")):
                    strange.append(f"{name}: not one sentence: {text[:200]}")
                failed = True
            except Exception as error:
                strange.append(f"{name}: {type(error).__name__}: {error}"[:300])
            bandit.refresh()
            after = bandit.fingerprint()
            changed += failed and after != before and not _only_defaults(bandit, seen)
            before, seen = after, bandit._fold.n
    return Fuzzed(answered, changed, strange, [text for report in audit(target) for text in report.differences])


def _only_defaults(bandit: Bandit, seen: int) -> bool:
    """Whether nothing but defaults has come since: they are written by themselves, whatever is called."""
    return all(event.kind == DEFAULT for _, event in islice(bandit._journal.events(1), seen, None))


def _asked_in_context(bandit: Bandit, chance: random.Random, context: Any, value: Any) -> tuple[str, Any]:
    """A question about a context, or one with candidates, which a bandit with arms refuses."""
    verb = chance.choice(["expected", "probabilities", "greedy", "effects", "explain", "decide"])
    if verb in ("effects", "explain"):
        return f"{verb}()", getattr(bandit, verb)
    if verb == "decide" or chance.random() < 0.3:
        given = {"candidates": {"a": context, "b": value}}
        return f"{verb}({given!r:.80})", lambda: getattr(bandit, verb)(**given)
    return f"{verb}({context!r:.80})", lambda: getattr(bandit, verb)(context)


def _candidate_call(bandit: Bandit, chance: random.Random, n: int, contextual: bool) -> tuple[str, Any]:
    """Half of the calls are about candidates, the others any."""
    kind = chance.randrange(100)
    if kind >= 55:
        return _call(bandit, chance, n, contextual)
    usual = {"x": chance.random(), "a": "b", "f": True, "l": 2.0}
    names = chance.sample(["o1", "o2", "o3", "a", "x" * 70, 7, None], chance.choice([0, 1, 2, 2, 3, 3]))
    given: Any = {name: usual if chance.random() < 0.7 else {"x": chance.choice(_VALUES)} for name in names}
    given = given if chance.random() < 0.9 else chance.choice(_VALUES)
    if kind < 35:
        id = f"d{n}" if chance.random() < 0.8 else chance.choice(_VALUES)
        return f"decide({id!r:.40}, candidates={given!r:.80})", lambda: bandit.decide(id, candidates=given)
    if kind < 40:
        ids = [f"m{n}", f"m{n + 1}"]
        several = [given, {"o9": usual, "o8": usual}] if chance.random() < 0.7 else given
        return f"decide_many(candidates={several!r:.80})", lambda: bandit.decide_many(ids, candidates=several)
    verb = chance.choice(["probabilities", "greedy", "expected", "effects", "explain"])
    if verb in ("effects", "explain"):
        return f"{verb}()", getattr(bandit, verb)
    return f"{verb}(candidates={given!r:.80})", lambda: getattr(bandit, verb)(candidates=given)


def _call(bandit: Bandit, chance: random.Random, n: int, contextual: bool) -> tuple[str, Any]:
    def any_value() -> Any:
        return chance.choice(_VALUES)

    def some_id() -> Any:
        return f"d{chance.randrange(n + 1 if chance.random() < 0.5 else 20)}" if chance.random() < 0.6 else any_value()

    def some_context() -> Any:
        if chance.random() < (0.3 if contextual else 0.9):
            return None if chance.random() < 0.8 else any_value()
        return {name: any_value() for name in chance.sample([*_FEATURES, "no"], chance.choice([0, 1, 1, 2]))}

    options = (
        "half_life",
        "features",
        "floor",
        "holdback",
        "baseline",
        "wait",
        "default",
        "policy",
        "learn_holdback",
        "retention",
        "labels",
        "gamma",
    )
    kind = chance.randrange(100)
    if kind < 30:
        id, available = some_id(), None if chance.random() < 0.6 else any_value()
        context = some_context()
        title = f"decide({id!r:.40}, {context!r:.60}, {available!r:.40})"
        return title, lambda: bandit.decide(id, context=context, available=available)
    if kind < 40:
        id, part = some_id(), chance.choice([None, "p1", "p2", "p3", any_value()])
        value, add = chance.choice([0.0, 0.5, 1.0, any_value()]), chance.random() < 0.95 or any_value()
        title = f"reward({id!r:.40}, {value!r:.40}, add={add!r:.40}, part={part!r:.40})"
        return title, lambda: bandit.reward(id, value, add=add, part=part)
    if kind < 60:
        id, value = some_id(), any_value() if chance.random() < 0.5 else chance.choice([0.0, 0.5, 1.0])
        return f"reward({id!r:.40}, {value!r:.40})", lambda: bandit.reward(id, value)
    if kind < 66:
        what, context = any_value(), some_context() if chance.random() < 0.5 else [some_context(), some_context()]
        return f"decide_many({what!r:.40}, {context!r:.60})", lambda: bandit.decide_many(what, context=context)
    if kind < 74:
        pairs = any_value() if chance.random() < 0.5 else [(some_id(), any_value()) for _ in range(chance.randrange(4))]
        return f"reward_many({pairs!r:.60})", lambda: bandit.reward_many(pairs)
    if kind < 75:
        triples = [(some_id(), any_value(), any_value()) for _ in range(chance.randrange(4))]
        return f"reward_many({triples!r:.60}, add=True)", lambda: bandit.reward_many(triples, add=True)
    if kind < 76:
        past = {name: any_value() for name in chance.sample(["like", "mean", "worth"], chance.randrange(1, 4))}
        past = past if chance.random() < 0.5 else {"mean": chance.random(), "worth": 10.0 * chance.random()}
        return f"add_arm({n}, {past!r:.60})", lambda: bandit.add_arm(n if chance.random() < 0.2 else "a", **past)
    if kind < 78:
        arm = any_value()
        verb = chance.choice(["add_arm", "retire_arm", "fix"])
        return f"{verb}({arm!r:.40})", lambda: getattr(bandit, verb)(arm)
    if kind < 84:
        given = {chance.choice(options): any_value() for _ in range(chance.randrange(1, 3))}
        return f"change({given!r:.80})", lambda: bandit.change(**given)
    if kind < 87:
        return "release()", bandit.release
    if kind < 88:
        among, context = None if chance.random() < 0.6 else any_value(), some_context()
        return f"greedy({context!r:.60}, {among!r:.40})", lambda: bandit.greedy(context, available=among)
    if kind < 91:
        value = any_value()
        return f"history(points={value!r:.40})", lambda: bandit.history(points=value)
    if kind < 94:
        value = any_value()
        return f"uplift({value!r:.40})", lambda: bandit.uplift(value)
    if kind < 95:
        value = some_id()
        return f"erase({value!r:.40})", lambda: bandit.erase(value)
    if kind < 97:
        value = some_id()
        return f"outcome({value!r:.40})", lambda: bandit.outcome(value)
    if chance.random() < 0.1:  # undone at once: an archived bandit refuses every decision
        return "archive()", lambda: (bandit.archive(), bandit.unarchive())
    value = any_value()
    if chance.random() < (0.5 if contextual else 0.97):
        return f"recent({value!r:.40})", lambda: bandit.recent(value)
    if contextual:
        return _asked_in_context(bandit, chance, some_context(), value)
    if chance.random() < 0.5:  # seldom: policies without a belief to integrate are asked thousands of times
        return f"probabilities(draws={value!r:.40})", lambda: bandit.probabilities(draws=value)
    return f"probabilities({value!r:.40})", lambda: bandit.probabilities(available=value)
