"""What a declared feature becomes, and what is refused."""

import hashlib
import json
import math
import warnings
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit import Bandit
from driftbandit.bandit.carrying import Seen
from driftbandit.bandit.export import export
from driftbandit.bandit.features import MOST_BYTES, MOST_COLUMNS, Features, log_1p, sin_cos

DECLARED = {
    "device": ["mobile", "desktop"],
    "basket": "number",
    "member": "flag",
    "spent": "log number",
    "hour": "hour of day in Europe/Berlin",
    "day": "day of week",
}
NOON = 1_750_248_000_000_000  # Wednesday 18 June 2025, 12:00 UTC: 14:00 in Berlin


def test_each_kind_has_the_columns_and_numbers_it_should():
    features = Features.declare(DECLARED)
    assert features.columns == (
        [
            "device=mobile",
            "device=desktop",
            "basket",
            "member",
            "spent",
            "hour sin1",
            "hour cos1",
            "hour sin2",
            "hour cos2",
        ]
        + [f"day {wave}{n}" for n in (1, 2, 3) for wave in ("sin", "cos")]
    )
    context = features.read({"device": "desktop", "basket": 42, "member": True, "spent": -np.float64(math.e - 1)})
    assert json.loads(json.dumps(context)) == context
    day, week = 2 * math.pi * 14 / 24, 2 * math.pi * 2.5 / 7
    waves = [f(n * a) for a, most in ((day, 2), (week, 3)) for n in range(1, most + 1) for f in (math.sin, math.cos)]
    assert features.encode(context, NOON) == pytest.approx([0, 1, 42, 1, -1, *waves], abs=1e-12)


def test_cycles_and_logarithms_are_computed_without_a_mathematical_library():
    for n in range(2001):
        assert sin_cos(n / 2000) == pytest.approx(
            (math.sin(math.pi * n / 1000), math.cos(math.pi * n / 1000)), abs=4e-15
        )
        x = 1.02**n if n < 1396 else n / 1e5
        assert log_1p(x) == pytest.approx(math.log1p(x), rel=1e-15)
    digest = hashlib.sha256(json.dumps([[sin_cos(n / 999), log_1p(n / 7)] for n in range(1000)]).encode())
    assert digest.hexdigest()[:16] == "4ed6a1d5b312ecb1"


def test_summer_time_is_the_time_zones():
    features = Features.declare({"hour": "hour of day in Europe/Berlin"})
    half_year = 183 * 86_400_000_000
    assert features.encode({}, NOON) != pytest.approx(features.encode({}, NOON + half_year))
    assert features.encode({}, NOON) == pytest.approx(features.encode({}, NOON + half_year + 3_600_000_000))


def test_missing_values_become_means_and_unknown_levels_have_no_column():
    features = Features.declare({"device": ["mobile", "desktop"], "basket": "number", "hour": "hour of day"})
    seen = Seen(features)
    for n in range(4):
        seen.learn({"device": "mobile" if n == 0 else "desktop", "basket": 15.0 + 10.0 * n}, NOON)
    context = features.read({"device": None, "basket": float("nan")})
    assert context == {}
    assert features.encode(context, NOON, seen)[:3] == seen.means[:3] == [0.25, 0.75, 30.0]
    assert seen.spread(2) == pytest.approx(125**0.5)
    assert features.encode(context, NOON, seen)[3:] == pytest.approx([0, -1, 0, 1], abs=1e-12)
    assert features.encode(context, NOON)[:3] == [0, 0, 0]
    assert features.encode(features.read({"device": "fridge", "basket": 1}), NOON)[:2] == [0, 0]


def test_contexts_are_counted_with_their_means_and_what_was_wrong_with_them():
    features = Features.declare({"device": ["mobile", "desktop"], "basket": "number", "hour": "hour of day"})
    seen = Seen(features)
    assert seen.learn({"device": "mobile", "basket": 10.0}, NOON)[:3] == [1, 0, 10]
    assert seen.learn({"device": "fridge", "basket": 30.0}, NOON)[:3] == [0, 0, 30]
    assert seen.learn({}, NOON)[:3] == [0.5, 0, 20]
    assert seen.means[:3] == [0.5, 0, 20]
    assert seen.missing == {"device": 1, "basket": 1}
    assert seen.undeclared == {"device": {"fridge": 1}}
    for n in range(100):
        seen.learn({"device": f"d{n}", "basket": 20.0}, NOON)
    assert sum(seen.undeclared["device"].values()) == 101
    assert len(seen.undeclared["device"]) < 30
    assert Seen.read(json.loads(json.dumps(seen.plain())), features).plain() == seen.plain()


def test_the_spread_of_a_column_is_that_of_the_values_that_were_given():
    seen = Seen(Features.declare({"device": ["a", "b"], "age": "number", "x": "number"}))
    for n in range(100):
        seen.learn({"device": "a", "age": 50.0, "x": float(n % 4 // 2)} if n % 2 else {"x": float(n % 4 // 2)}, NOON)
    assert [seen.spread(column) for column in range(4)] == pytest.approx([0.0, 0.0, 0.0, 0.5])


def test_a_value_of_another_kind_than_the_feature_has_now_is_missing():
    old = {"a": "mobile", "b": 3.0, "c": True, "d": "x"}
    now = Features.declare({"a": "number", "b": ["x"], "c": "number", "d": "flag"})
    seen = Seen(now)
    seen.learn({"a": 7.0, "b": "x", "c": 9.0, "d": True}, NOON)
    assert now.encode(old, NOON, seen) == [7.0, 1.0, 1.0, 1.0]
    assert now.encode(old, NOON) == [0.0, 0.0, 1.0, 0.0]


def test_a_declaration_comes_back_as_it_was():
    features = Features.declare(DECLARED)
    assert features.declaration() == DECLARED
    assert Features.declare(json.loads(json.dumps(features.declaration()))) == features


@pytest.mark.parametrize(
    ("declared", "word"),
    [
        (["device"], "maps names to kinds"),
        ({"x": "numbre"}, "'x'"),
        ({"x": []}, "at least one"),
        ({"x": ["a", "a"]}, "distinct"),
        ({"x": [1, 2]}, "texts"),
        ({"x": {"a": 1}}, "list of levels"),
        ({"": "number"}, "name"),
        ({"a\nb": "number"}, "name"),
        ({"x": "hour of day in Atlantis/Capital"}, "time zone"),
        ({"x": "hour of day in ../../etc/passwd"}, "time zone"),
        ({"x": [str(n) for n in range(MOST_COLUMNS + 1)]}, str(MOST_COLUMNS)),
        ({str(n): "number" for n in range(MOST_COLUMNS + 1)}, str(MOST_COLUMNS + 1)),
    ],
)
def test_a_wrong_declaration_is_refused_in_a_sentence(declared, word):
    with pytest.raises(ValueError, match=word.replace("+", r"\+")):
        Features.declare(declared)


@pytest.mark.parametrize(
    ("context", "word"),
    [
        ("mobile", "maps names"),
        ({"devise": "mobile"}, "device"),
        ({"device": 3}, "text"),
        ({"device": "x" * 201}, "text"),
        ({"basket": "42"}, "number"),
        ({"basket": True}, "number"),
        ({"basket": math.inf}, "number"),
        ({"basket": 10**400}, "number"),
        ({"member": "yes"}, "True or False"),
        ({"hour": 3}, "time"),
    ],
)
def test_a_wrong_context_is_refused_in_a_sentence(context, word):
    with pytest.raises(ValueError, match=word):
        Features.declare(DECLARED).read(context)


def test_a_context_is_bounded():
    features = Features.declare({f"f{n}": ["a"] for n in range(40)})
    with pytest.raises(ValueError, match=str(MOST_BYTES)):
        features.read({f"f{n}": "\x00" * 200 for n in range(40)})


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9), st.lists(st.integers(), max_size=2)
)


@given(st.dictionaries(st.sampled_from([*DECLARED, "other"]), VALUES), st.integers(0, 4_000_000_000_000_000))
def test_whatever_is_given_is_refused_by_a_value_error_or_becomes_finite_numbers(context, at):
    features = Features.declare(DECLARED)
    try:
        kept = features.read(context)
    except ValueError:
        return
    numbers = features.encode(json.loads(json.dumps(kept)), at)
    assert len(numbers) == len(features.columns)
    assert all(map(math.isfinite, numbers))


def test_what_programs_give_as_values_is_read():
    """The types of other libraries, and what they have for a missing value."""
    features = Features.declare({"member": "flag", "basket": "number", "device": ["mobile"]})
    assert features.read({"member": 1.0, "basket": Decimal("2.5")}) == {"member": True, "basket": 2.5}
    assert features.read({"member": np.float64(0.0), "basket": np.nan, "device": None}) == {"member": False}
    pandas = pytest.importorskip("pandas")
    row = pandas.Series({"device": "mobile", "basket": 3, "member": pandas.NA}, dtype=object)
    assert features.read(row) == {"device": "mobile", "basket": 3.0}
    bandit = Bandit(2, features=features.declaration())
    bandit.decide(context=row)
    assert len(bandit.decide_many(2, context=(row, {"basket": 1.0}))) == 2
    for wrong in (0.5, 2, "yes"):
        with pytest.raises(ValueError, match="is True or False"):
            features.read({"member": wrong})
    with pytest.raises(ValueError, match="half a character"):
        features.read({"device": "\ud800"})


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("hour", "did you mean hour of day"),
        ("Number", "did you mean number"),
        ({"a", "b"}, "a set has no order"),
        ([f"l{n}" for n in range(1000)], "become 1000 columns, and at most 64"),
    ],
)
def test_a_wrong_kind_is_refused_with_what_helps(kind, words):
    with pytest.raises(ValueError, match=words):
        Features.declare({"x": kind})


def test_the_same_features_in_another_order_are_the_same(tmp_path):
    journal, features = tmp_path / "j.db", {"a": "number", "b": "flag"}
    with Bandit.open(journal, "x", arms=2, features=features):
        pass
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Bandit.open(journal, "x", arms=2, features={"b": "flag", "a": "number"}).close()
    with pytest.warns(RuntimeWarning, match="features"):
        Bandit.open(journal, "x", arms=2, features={"a": "number"}).close()


def test_a_parquet_column_has_the_type_of_its_kind_where_values_come_late(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    with Bandit.open(tmp_path / "j.db", "x", arms=2, features={"n": "number", "f": "flag", "l": ["a"]}) as bandit:
        bandit.decide_many(3, context={})
    export(tmp_path / "j.db", tmp_path / "log.parquet")
    schema = parquet.read_schema(tmp_path / "log.parquet")
    assert [str(schema.field(f"x_{name}").type) for name in "nfl"] == ["double", "bool", "string"]


@pytest.mark.parametrize("policy", ["drift-lin-ts", "d-logistic-ts", "lin-ts", "kalman-ts", "lin-ucb"])
def test_beliefs_of_every_policy_are_honest_before_and_after_rewards(policy):
    bandit = Bandit(["a", "b"], policy, features={"x": "number"}, reward_range=(0, 1), seed=1)
    if policy != "lin-ucb":
        assert all(math.isnan(one.mean) and math.isinf(one.sd) for one in bandit.expected().values())
    assert bandit.greedy({"x": 1.0}) in ("a", "b")
    for n in range(60):
        x = n % 2
        decision = bandit.decide(context={"x": float(x)})
        bandit.reward(decision, float((decision.arm == "a") == (x == 1)))
    assert (bandit.greedy({"x": 1.0}), bandit.greedy({"x": 0.0})) == ("a", "b")
    if policy != "lin-ucb":
        found = bandit.expected({"x": 1.0})
        assert found["a"].mean > found["b"].mean
        assert 0.0 < found["a"].sd < 1.0
        assert bandit.explain().features["x"]
