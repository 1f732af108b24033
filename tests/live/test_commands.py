"""The commands about live bandits, as typed at a prompt."""

import csv
import json
import sqlite3

import pytest

from driftbandit import DiscountedTS
from driftbandit.bandit import Bandit
from driftbandit.cli._main import main


def run(capsys, *words) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.fixture
def shop(tmp_path, capsys):
    path = tmp_path / "shop.db"
    arms = ["--arms", "red", "green", "blue"]
    code, out, _ = run(capsys, "live", "create", path, "button", "--policy", "ds-ts", *arms, "--half-life", "6 h",
                       "--holdback", "0.2", "--baseline", "red", "--seed", "3")  # fmt: skip
    assert code == 0
    assert out.startswith("made button: DiscountedTS(tau_max=")
    return path


def test_a_bandit_is_made_asked_paid_shown_changed_audited_and_exported(shop, capsys, tmp_path) -> None:
    for n in range(12):
        code, out, _ = run(capsys, "live", "decide", shop, "button", "--id", f"d{n}", "--json")
        assert code == 0
        assert json.loads(out)["id"] == f"d{n}"
        assert run(capsys, "live", "reward", shop, "button", f"d{n}", "1")[:2] == (0, "learned\n")
    assert run(capsys, "live", "reward", shop, "button", "d0", "1")[1] == "again\n"
    code, out, _ = run(capsys, "live", "show", shop)
    assert "button" in out
    assert "12" in out
    code, out, _ = run(capsys, "live", "show", shop, "button", "--json")
    shown = json.loads(out)
    assert shown["health"]["rewards"] == 12
    assert sum(row["probability"] for row in shown["probabilities"]) == pytest.approx(1.0)
    assert shown["recent"][0]["decision"]["id"] == "d11"
    assert shown["recent"][0]["reward"] == 1.0
    assert shown["explanation"] is None
    (listed,) = json.loads(run(capsys, "live", "show", shop, "--json")[1])
    assert listed["decisions"] == listed["rewards"] == 12
    assert 0.0 < listed["probability"] <= 1.0
    code, out, _ = run(capsys, "live", "change", shop, "button", "--half-life", "none", "--floor", "0.05")
    assert code == 0
    assert run(capsys, "live", "change", shop, "button", "--add-arm", "pink", "--retire-arm", "blue")[0] == 0
    assert run(capsys, "live", "fix", shop, "button", "pink")[0] == 0
    assert "pink" in run(capsys, "live", "decide", shop, "button")[1]
    assert "fixed: pink" in run(capsys, "live", "show", shop, "button")[1]
    assert run(capsys, "live", "release", shop, "button", "--who", "Ada")[1] == "button is released\n"
    assert run(capsys, "live", "release", shop, "button")[1] == "button was not fixed; nothing was written\n"
    changes = json.loads(run(capsys, "live", "changes", shop, "button", "--json")[1])
    assert [row["what"].split()[0] for row in changes] == ["create", "half_life", "add_arm", "fix", "release"]
    assert [row["who"] for row in changes] == ["command line"] * 4 + ["Ada"]
    assert "Ada" in run(capsys, "live", "changes", shop, "button")[1]
    assert run(capsys, "live", "uplift", shop, "button")[0] == 0
    code, out, _ = run(capsys, "audit", shop)
    assert code == 0
    assert "all proved" in out
    for ending in ("parquet", "csv", "jsonl"):
        target = tmp_path / f"log.{ending}"
        code, out, _ = run(capsys, "export", shop, "--out", target, "--propensity", "all")
        assert (code, out) == (0, f"13 decisions: {target}\n")
    with open(tmp_path / "log.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["decision"] for row in rows[:12]] == [f"d{n}" for n in range(12)]
    assert {"time", "decision", "arm", "reward", "reward_time", "outcome", "propensity", "policy", "known"} <= set(
        rows[0]
    )
    assert rows[12]["reward"] == ""
    assert float(rows[12]["propensity"]) == 1.0
    with open(tmp_path / "log.jsonl") as file:
        first = json.loads(file.readline())
    assert sum(first[f"p_{arm}"] for arm in ("red", "green", "blue", "pink")) == pytest.approx(1.0)
    assert first["p_pink"] == 0.0
    assert first["propensity"] == first[f"p_{first['arm']}"]
    table = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "log.parquet")
    assert table.num_rows == 13
    assert table["propensity"].to_pylist()[0] == first["propensity"]


ALTERATIONS = {
    "an arm": ("UPDATE decision SET slot = (slot + 1) % 3 WHERE id = 'd7'", "d7"),
    "what it knew": ("UPDATE decision SET known = 1 WHERE id = 'd19'", "altered"),
    "a reward": ("UPDATE event SET value = 1 - value WHERE decision = 'd9'", "altered"),
    "the last reward": ("UPDATE event SET value = 1 - value WHERE decision = 'd19'", "altered"),
    "a missing reward": ("DELETE FROM event WHERE decision = 'd5'", "missing"),
    "a missing decision": ("DELETE FROM decision WHERE id = 'd5'", "missing"),
    "the configuration": ("UPDATE event SET body = replace(body, '0.99', '0.5') WHERE kind = 4", "altered"),
    "the way": ("UPDATE decision SET how = 1 WHERE id = 'd3'", "d3"),
    "a snapshot": ("UPDATE snapshot SET body = replace(body, '\"learned\": 1', '\"learned\": 2')", "snapshot"),
}


@pytest.mark.parametrize("what", ALTERATIONS)
def test_an_altered_journal_is_found_out_and_the_place_is_named(what, tmp_path, capsys) -> None:
    from driftbandit import DiscountedTS

    path = tmp_path / "j.db"
    with Bandit.open(path, "b", DiscountedTS(), ["x", "y", "z"], seed=2, snapshot_every=6) as bandit:
        for n in range(20):
            bandit.reward(bandit.decide(f"d{n}").id, float(n % 3 == 0))
    assert run(capsys, "audit", path)[0] == 0
    sql, words = ALTERATIONS[what]
    connection = sqlite3.connect(path)
    assert connection.execute(sql).rowcount > 0
    connection.commit()
    connection.close()
    code, out, _ = run(capsys, "audit", path)
    assert code == 1
    assert words in out


def test_wrong_calls_get_one_line_and_exit_code_2(shop, tmp_path, capsys) -> None:
    wrong = [
        ("live", "create", shop, "button", "--policy", "ds-ts", "--arms", "a", "b"),
        ("live", "create", shop, "other", "--policy", "no-such", "--arms", "a", "b"),
        ("live", "create", shop, "other", "--policy", "sw-ts", "--arms", "a", "b", "--half-life", "1 h"),
        ("live", "create", shop, "o t h e r", "--policy", "ds-ts", "--arms", "a", "b"),
        ("live", "decide", tmp_path / "none.db", "button"),
        ("live", "decide", shop, "missing"),
        ("live", "decide", shop, "button", "--available", "grey"),
        ("live", "reward", shop, "button", "missing", "1"),
        ("live", "reward", shop, "button", "missing", "x"),
        ("live", "change", shop, "button"),
        ("live", "change", shop, "button", "--half-life", "0 h"),
        ("live", "show", tmp_path / "none.db"),
        ("live", "show", shop, "missing"),
        ("live", "uplift", shop, "button", "--since", "never"),
        ("live",),
        ("audit", tmp_path / "none.db"),
        ("audit", shop, "missing"),
        ("export", shop, "--out", tmp_path / "log.xls"),
        ("export", shop, "--out", tmp_path / "no" / "log.csv"),
        ("export", tmp_path / "none.db", "--out", tmp_path / "log.csv"),
    ]
    before = shop.read_bytes()
    for words in wrong:
        code, out, err = run(capsys, *words)
        assert code == 2, words
        assert out == ""
        assert err.startswith("driftbandit: ")
        assert err.count("\n") == 1, err
    assert not (tmp_path / "none.db").exists()
    assert not (tmp_path / "log.csv").exists()
    assert shop.read_bytes() == before


def test_every_command_takes_the_journal_and_then_the_bandit(shop, tmp_path, capsys) -> None:
    """JOURNAL [BANDIT]: the name may be left out if there is one bandit, and is asked for if there are more."""
    out = ["--out", tmp_path / "log.csv"]
    assert run(capsys, "live", "decide", shop, "--id", "d0")[0] == 0
    assert run(capsys, "live", "reward", shop, "d0", "1")[:2] == (0, "learned\n")
    assert json.loads(run(capsys, "live", "fix", shop, "green", "--json")[1])["fix"] is True
    for words in (("live", "release", shop), ("live", "changes", shop), ("audit", shop), ("export", *out, shop)):
        assert run(capsys, *words)[0] == 0, words
    assert "A new bandit needs a name" in run(capsys, "live", "create", shop, "--arms", "a", "b")[2]
    assert run(capsys, "live", "create", shop, "other", "--arms", "a", "b")[0] == 0
    for words in (("live", "decide"), ("live", "changes"), ("export", *out), ("drift",), ("replay",)):
        code, _, err = run(capsys, *words, shop)
        assert (code, err) == (2, "driftbandit: This journal has 2 bandits; write the name of one after the journal: "
                                  "button, other.\n"), words  # fmt: skip
    for words in (("live", "decide"), ("live", "changes"), ("live", "show"), ("audit",), ("export", *out)):
        assert run(capsys, *words, shop, "button")[0] == 0, words
    assert run(capsys, "drift", tmp_path / "log.csv", "button")[2].count("not a journal") == 1


def test_a_change_of_several_things_is_made_whole_or_not_at_all(shop, capsys) -> None:
    assert run(capsys, "live", "change", shop, "button", "--add-arm", "pink", "--floor", "7")[0] == 2
    assert run(capsys, "live", "change", shop, "button", "--add-arm", "pink", "--retire-arm", "mauve")[0] == 2
    assert run(capsys, "live", "change", shop, "button", "--floor", "0.2", "--retire-arm", "red")[0] == 2
    with Bandit.open(shop, "button") as bandit:
        assert bandit.arms == ["red", "green", "blue"]
        assert len(bandit.changes()) == 1
    words = ["--add-arm", "pink", "--retire-arm", "red", "--baseline", "pink", "--policy", "ds-ts(gamma=0.9)"]
    assert run(capsys, "live", "change", shop, "button", *words)[0] == 0
    with Bandit.open(shop, "button") as bandit:
        assert bandit.arms == ["green", "blue", "pink"]
        assert bandit.stored.baseline == 3
        assert bandit.policy.gamma == 0.9
        assert len(bandit.changes()) == 2
        bandit.decide_many(20)
    assert run(capsys, "audit", shop)[0] == 0


def test_a_view_from_another_process_omits_figures_it_cannot_have(shop, capsys) -> None:
    shown = json.loads(run(capsys, "live", "show", shop, "button", "--json")[1])
    assert list(shown["health"]) == [
        "decisions", "rewards", "defaults", "late", "waiting", "events", "plays", "cut", "delays", "warnings",
        "missing", "undeclared",
    ]  # fmt: skip
    assert "0 waiting" in run(capsys, "live", "show", shop, "button")[1]
    with Bandit.open(shop, "button") as bandit:
        assert bandit.health()["commits"] == 0


def test_the_configuration_is_shown_in_words_and_a_half_life_hides_the_discount(shop, capsys) -> None:
    words = ["--wait", "1 h", "--default", "0.5", "--add-arm", "pink"]
    out = run(capsys, "live", "change", shop, "button", *words)[1]
    for text in (out, run(capsys, "live", "show", shop, "button")[1]):
        assert "gamma" not in text
        for part in ("arms: red, green, blue, pink", "half_life: 6 h", "floor: 0.005", "holdback: 0.2", "baseline: red",
                     "wait: 1 h", "default: 0.5"):  # fmt: skip
            assert part in text
    run(capsys, "live", "fix", shop, "button", "green")
    with Bandit.open(shop, "button") as bandit:
        text = repr(bandit)
    assert text.endswith("half_life='6 h', floor=0.005, holdback=0.2, baseline='red', wait='1 h', default=0.5, "
                         "fixed='green', events=3)")  # fmt: skip
    assert "gamma" not in text


def test_the_default_policy_explains_its_belief_in_the_units_of_the_rewards(tmp_path, capsys) -> None:
    path = tmp_path / "p.db"
    with Bandit.open(path, "x", arms=["a", "b", "c"], reward_range=(0, 10), seed=1) as bandit:
        assert str(bandit.explain()).startswith("Nothing learned yet")
        bandit.reward_many([(one.id, 9.0 if one.arm == "a" else 1.0) for one in bandit.decide_many(60)])
        bandit.retire_arm("b")
        bandit.add_arm("b")
        bandit.refresh()
        explained = bandit.explain()
        assert list(explained.arms) == ["a", "c", "b"]
        assert explained.arms["a"].mean > 6.0 > 4.0 > explained.arms["c"].mean
    assert "The environment is stationary" in run(capsys, "live", "show", path, "x")[1]
    shown = json.loads(run(capsys, "live", "show", path, "x", "--json")[1])["explanation"]
    assert shown["arms"][0] == {"arm": "a", **explained.arms["a"]._asdict()}
    assert shown["text"] == str(explained)
    with (
        Bandit.open(tmp_path / "q.db", "y", DiscountedTS(), ["a", "b"]) as other,
        pytest.raises(ValueError, match="cannot explain its choices; DriftAuto can"),
    ):
        other.explain()


def test_features_contexts_and_candidates_are_given_as_json(tmp_path, capsys) -> None:
    path, features = tmp_path / "shop.db", '{"device": ["mobile", "desktop"]}'
    assert run(capsys, "live", "create", path, "banner", "--arms", "red", "green", "--features", features)[0] == 0
    decide = "live", "decide", path, "banner"
    assert run(capsys, *decide, "--id", "a", "--context", '{"device": "mobile"}')[0] == 0
    code, _, error = run(capsys, *decide, "--context", "{device: mobile}")
    assert (code, "--context is JSON" in error) == (2, True)
    assert "decides in a context" in run(capsys, *decide)[2]
    assert run(capsys, "live", "change", path, "banner", "--features", '{"device": ["tv"]}')[0] == 0
    assert "['tv']" in run(capsys, "live", "show", path, "banner")[1]
    made = run(capsys, "live", "create", path, "offers", "--candidates", "--features", '{"price": "number"}')
    assert (made[0], "arms" in made[1]) == (0, False)
    among = '{"x": {"price": 1}, "y": {"price": 2}}'
    code, out, _ = run(capsys, "live", "decide", path, "offers", "--candidates", among, "--json")
    assert (code, json.loads(out)["arm"] in "xy") == (0, True)
    assert run(capsys, "live", "show", path, "offers")[0] == run(capsys, "live", "show", path)[0] == 0


def test_parts_pasts_and_the_greedy_arm_from_the_command_line(tmp_path, capsys) -> None:
    path = tmp_path / "shop.db"
    run(capsys, "live", "create", path, "button", "--policy", "ts", "--arms", "red", "green", "--wait", "1 h")
    assert run(capsys, "live", "decide", path, "--id", "d")[0] == 0
    assert run(capsys, "live", "reward", path, "d", "0.25", "--add", "--part", "basket")[1] == "waiting\n"
    assert run(capsys, "live", "reward", path, "d", "0.25", "--add", "--part", "basket")[1] == "again\n"
    assert run(capsys, "live", "reward", path, "d", "0.5", "--add")[1] == "waiting\n"
    code, _, error = run(capsys, "live", "reward", path, "d", "0.5")
    assert (code, "give add=True" in error) == (2, True)
    with Bandit.open(path, "button") as bandit:
        assert bandit.outcome("d").added == 0.75
    assert run(capsys, "live", "change", path, "--add-arm", "blue", "--mean", "0.9", "--worth", "500")[0] == 0
    assert run(capsys, "live", "change", path, "--add-arm", "navy", "--like", "blue")[0] == 0
    code, _, error = run(capsys, "live", "change", path, "--floor", "0.1", "--like", "blue")
    assert (code, "go with --add-arm" in error) == (2, True)
    assert run(capsys, "live", "greedy", path)[1] == "blue\n"
    assert json.loads(run(capsys, "live", "greedy", path, "--available", "red", "navy", "--json")[1]) == {"arm": "navy"}
    assert "add_arm navy, like blue" in run(capsys, "live", "changes", path)[1]
    assert run(capsys, "audit", path)[0] == 0
