"""Feature columns of a log: kinds, values and numbers, from every kind of source."""

import csv
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from driftbandit.bandit import Bandit
from driftbandit.bandit.export import export
from driftbandit.bandit.features import Features
from driftbandit.cli._main import main
from driftbandit.logs import Log, LogError, replay
from driftbandit.logs.context import cells, contexts, encode
from driftbandit.policies import LinTS
from live.button import HOUR, Clock

N = 48
ROWS = {
    "time": [f"2026-11-{16 + at // 24:02d}T{at % 24:02d}:30:00" for at in range(N)],
    "arm": ["a", "b"] * (N // 2),
    "reward": [float(at % 3 == 0) for at in range(N)],
    "propensity": [0.5] * N,
    "device": ["mobile", "desktop", "mobile", None] * (N // 4),
    "basket": [float(at) for at in range(N - 1)] + [None],
    "member": [True, False] * (N // 2),
}
FEATURES = "device,basket:number,member,time:hour,time:day in Europe/Berlin"
DECLARED = {
    "device": ["desktop", "mobile"],
    "basket": "number",
    "member": "flag",
    "hour": "hour of day",
    "weekday": "day of week in Europe/Berlin",
}


def sources(folder):
    with open(folder / "log.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(ROWS)
        writer.writerows(["" if value is None else value for value in row] for row in zip(*ROWS.values(), strict=True))
    parquet.write_table(pa.table(ROWS), folder / "log.parquet")
    with open(folder / "log.jsonl", "w") as file:
        file.writelines(
            json.dumps(dict(zip(ROWS, row, strict=True))) + "\n" for row in zip(*ROWS.values(), strict=True)
        )
    return [ROWS, pa.table(ROWS), *(folder / f"log.{ending}" for ending in ("csv", "parquet", "jsonl"))]


@pytest.mark.parametrize("features", ["all", "device,empty", "device,empty:number"])
def test_a_column_without_values_is_named_as_missing(features, tmp_path):
    path = tmp_path / "log.csv"
    columns = {**{name: ROWS[name] for name in ("time", "arm", "reward", "propensity")}, "device": ["x", "y"] * 24}
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*columns, "empty"])
        writer.writerows([*row, ""] for row in zip(*columns.values(), strict=True))
    log = Log(path, features=features)
    assert log.features.declaration() == {"device": ["x", "y"], "empty": "number"}
    assert f"Feature empty is missing in {N} events; the mean so far stands for it." in log.summary.warnings


def test_a_column_whose_values_begin_late_has_the_kind_of_these(tmp_path, monkeypatch):
    monkeypatch.setattr("driftbandit.logs.read.PIECE", 8)
    late = {"device": [None] * 20 + ["mobile"] * 28, "basket": [None] * 20 + [1.5] * 28}
    path = tmp_path / "log.jsonl"
    rows = [dict(zip({**ROWS, **late}, row, strict=True)) for row in zip(*{**ROWS, **late}.values(), strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = Log(path, features="device,basket")
    assert log.features.declaration() == {"device": ["mobile"], "basket": "number"}


def test_every_source_gives_the_same_contexts(tmp_path):
    logs = [Log(source, features=FEATURES) for source in sources(tmp_path)]
    for log in logs:
        assert log.features.declaration() == DECLARED
        assert np.array_equal(contexts(log), contexts(logs[0]))
    declared = Log(ROWS, features=DECLARED)
    assert np.array_equal(contexts(declared), contexts(logs[0]))


def test_the_numbers_are_those_of_a_bandit():
    """Held to the encoding of a bandit, decision by decision, with the mean so far where a value is missing."""
    log, features = Log(ROWS, features=FEATURES), Features.declare(DECLARED)
    found, seen = contexts(log), []
    for at in range(N):
        context = {name: ROWS[name][at] for name in ("device", "basket", "member")}
        time = round(log.whole().time[at] * 1e6)
        known = [row for row, missing in seen if not missing]
        encoded = features.encode(features.read(context), time)
        if context["device"] is None:
            encoded[:2] = np.mean([row[:2] for row in known], axis=0)
        if context["basket"] is None:
            encoded[2] = np.mean([row[2] for row, _ in seen])
        assert found[at] == pytest.approx(encoded)
        seen.append((encoded, context["device"] is None))
    assert any("device is missing in 12 events" in warning for warning in log.summary.warnings)


def test_levels_that_are_not_named_count_as_other():
    log = Log(ROWS, features="device:mobile|tablet")
    assert contexts(log)[:3].tolist() == [[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]
    assert any("other levels than those named in 12 events" in warning for warning in log.summary.warnings)


def test_all_columns_that_are_not_named_otherwise():
    assert Log(ROWS, features="all").features.declaration() == {name: DECLARED[name] for name in list(DECLARED)[:3]}
    assert Log(ROWS).features == ()


def test_rows_out_of_order_keep_their_contexts():
    order = np.random.default_rng(1).permutation(N)
    shuffled = {name: [column[at] for at in order] for name, column in ROWS.items()}
    assert np.array_equal(contexts(Log(shuffled, features=FEATURES)), contexts(Log(ROWS, features=FEATURES)))


@pytest.mark.parametrize(
    ("features", "said"),
    [
        ("devise", "no column 'devise' for a feature"),
        (
            "basket:weight",
            "'weight' is not a kind of feature. Kinds are number, log, flag, levels, time:hour",
        ),
        ("basket:hour", "'basket:hour' is not the time of the decision. Write time:hour"),
        ("device:number", "Row 1: device is 'mobile', not a number"),
        ("basket:flag", "Row 3: basket is neither true nor false"),
        ("device,device", "given twice"),
        ("time:hour in Atlantis", "Atlantis"),
        ({"device": "colour"}, "'colour'"),
    ],
)
def test_what_is_wrong_with_features_is_said(features, said):
    with pytest.raises(LogError, match=said):
        Log(ROWS, features=features)


def test_a_clock_needs_dates_and_ids_are_not_levels():
    with pytest.raises(LogError, match="the times are not dates"):
        Log({**ROWS, "time": list(range(N))}, features="time:hour")
    many = {name: column * 2 for name, column in ROWS.items()}
    many["id"] = [f"user{at}" for at in range(2 * N)]
    with pytest.raises(LogError, match=r"more than 64 levels.*id:a"):
        Log(many, features="id")


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    """A bandit that explores nearly always; the best arm differs by device, and one basket in ten is missing."""
    path, clock = tmp_path_factory.mktemp("journal") / "shop.db", Clock()
    features = {"device": ["mobile", "desktop"], "basket": "log number", "member": "flag", "arm": "number"}
    features["hour"] = "hour of day in Europe/Berlin"
    options = {"features": features, "floor": 0.999, "seed": 1, "clock": clock}
    with Bandit.open(path, "banner", LinTS(), ["a", "b"], **options) as bandit:
        rng = np.random.default_rng(1)
        for n in range(600):
            clock.now += 3 * HOUR
            device = ("mobile", "desktop", "tablet")[n % 3]
            context = {"device": device, "basket": float(n % 7), "member": n % 5 < 2, "arm": float(n % 4)}
            if n % 10 == 9:
                del context["basket"]
            decision = bandit.decide(f"d{n}", context=context)
            best = (device == "mobile") == (decision.arm == "a")
            bandit.reward(decision, float(rng.random() < (0.9 if best else 0.1)))
    return path, features


def test_the_contexts_of_a_journal_are_those_of_its_bandit(journal):
    path, features = journal
    log, declared = Log(path, propensity="uniform"), Features.declare(features)
    assert log.features == declared
    assert Log(path, propensity="uniform", features="all").features == declared
    at = round(log.whole().time[1] * 1e6)
    context = {"device": "desktop", "basket": 1.0, "member": True, "arm": 1.0}
    assert contexts(log)[1] == pytest.approx(declared.encode(declared.read(context), at))
    assert [int(re.search(r"in (\d+) events", text)[1]) for text in log.summary.warnings] == [200, 60]
    some = Log(path, propensity="uniform", features="device,basket:number,time:hour")
    assert some.features.declaration() == {"device": ["mobile", "desktop"], "basket": "number", "hour": "hour of day"}


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_an_export_has_the_same_contexts(journal, tmp_path, ending):
    path, features = journal
    export(path, tmp_path / f"log.{ending}", propensity="none")
    features = {name: kind for name, kind in features.items() if name != "arm"}
    exported, direct = (Log(p, propensity="uniform", features=features) for p in (tmp_path / f"log.{ending}", path))
    assert np.allclose(contexts(exported), contexts(direct))


def test_drift_and_replay_use_the_contexts_of_a_journal(journal, capsys):
    path, _ = journal
    assert main(["drift", str(path), "--propensity", "uniform", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [gain["feature"] for gain in found["context"]][:2] == ["device", "basket"]
    assert found["policy"] == "drift-lin-ts"
    result = replay(Log(path, propensity="uniform"), ["ts", "lin-ucb"], own=False, compiled=False)
    assert result.features == ["device", "basket", "member", "arm", "hour"]
    assert result.lines[1].over_ts.low > 0.0


def test_cells_are_levels_quarters_and_hours():
    log = Log(ROWS, features=FEATURES)
    values = log.whole().context
    counts = []
    for at, feature in enumerate(log.features):
        own = encode(Features((feature,)), values[:, at : at + 1])
        counts.append(np.bincount(cells(feature, values[:, at], own)).tolist())
    assert counts == [[12, 24, 12], [12, 12, 11, 12, 1], [24, 24], [6] * 8, [23, 24, 1]]
