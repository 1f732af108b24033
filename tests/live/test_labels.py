"""Labels: names with values, by which lists of bandits are filtered; no choice depends on them."""

from contextlib import closing

import pytest

from driftbandit.bandit import Bandit
from driftbandit.bandit.asks import PURGE, AddChange, SetNote
from driftbandit.bandit.audit import audit
from driftbandit.bandit.moving import move
from driftbandit.bandit.opening import writing
from driftbandit.bandit.retention import purge
from driftbandit.cli._main import main
from driftbandit.errors import NotFound, RecordConflict

ARMS = ["red", "green"]
GERMAN = {"country": "de"}


def names(store, **which) -> list[str]:
    return list(Bandit.names(store, **which))


@pytest.fixture
def shop(store):
    for name, labels in (("a", {"page": "home", **GERMAN}), ("b", GERMAN), ("c", {"country": "fr"}), ("d", None)):
        Bandit.open(store, name, arms=ARMS, seed=1, labels=labels).close()
    return store


def test_lists_are_filtered_by_all_labels_and_follow_every_change(shop) -> None:
    assert names(shop) == ["a", "b", "c", "d"]
    assert names(shop, labels=GERMAN) == ["a", "b"]
    assert names(shop, labels={**GERMAN, "page": "home"}) == ["a"]
    assert names(shop, labels=GERMAN, search="B") == ["b"]
    assert names(shop, search="a\0") == []
    assert names(shop, labels={"country": "d"}) == names(shop, labels={"de": "country"}) == []
    with Bandit.open(shop, "a") as bandit:
        assert bandit.config.labels == {"country": "de", "page": "home"}
        bandit.config.labels["page"] = "other"  # a copy
        bandit.change(labels={"page": "cart"}, floor=0.1, who="Ada")
        assert bandit.changes()[-1]["what"].startswith("floor 0.005 -> 0.1, labels {'country'")
        assert (names(shop, labels=GERMAN), names(shop, labels={"page": "cart"})) == (["b"], ["a"])
        bandit.change(floor=0.2)
        assert names(shop, labels={"page": "cart"}) == ["a"]
        bandit.change(labels=None)
        assert bandit.config.labels is None
    assert names(shop, labels={"page": "cart"}) == []


def test_labels_do_not_change_choices_and_are_proved(shop) -> None:
    with Bandit.open(shop, "a") as one, Bandit.open(shop, "d") as other:
        for n in range(40):
            assert one.decide(str(n)).arm == other.decide(str(n)).arm
            assert one.reward(str(n), n % 2) == other.reward(str(n), n % 2)
            if n == 20:
                one.change(labels=None)
            one.refresh()
            other.refresh()
    assert all(report.differences == [] for report in audit(shop))
    memory = Bandit(ARMS, seed=1, labels=GERMAN)
    assert Bandit.restore(memory.snapshot()).config.labels == GERMAN


@pytest.mark.parametrize(
    "bad", [{"a": 1}, {"": "x"}, {"a": ""}, {"a:b": "x"}, {"a=b": "x"}, {"a": "x" * 65}, {"a": "\n"}, {"a": "\ud800"},
            "x", {str(n): "x" for n in range(17)}]
)  # fmt: skip
def test_bad_labels_change_nothing(shop, bad) -> None:
    with Bandit.open(shop, "b") as bandit:
        for call in (lambda: bandit.change(labels=bad), lambda: names(shop, labels=bad),
                     lambda: Bandit.open(shop, "new", arms=ARMS, labels=bad)):  # fmt: skip
            with pytest.raises(ValueError, match="label") as error:
                call()
            assert "\n" not in str(error.value)
        assert len(bandit.changes()) == 1
    assert names(shop, labels=GERMAN) == ["a", "b"]
    assert "new" not in names(shop)


def test_a_change_that_another_one_preceded_writes_no_labels(shop) -> None:
    opened = writing(shop)
    try:
        number = opened.journal.number("b")
        answer = opened.writer.submit([AddChange(number, 1, 50, "{}", False, {"page": "new"})]).wait()[0]
        assert isinstance(answer, RecordConflict)
    finally:
        opened.release()
    assert (names(shop, labels=GERMAN), names(shop, labels={"page": "new"})) == (["a", "b"], [])


def test_archived_bandits_are_listed_and_deleted_ones_leave_nothing(shop) -> None:
    with Bandit.open(shop, "a") as bandit, Bandit.open(shop, "b") as other:
        bandit.archive()
        other.archive()
        other.unarchive()
    assert (names(shop, archived=True), names(shop, archived=True, labels={"country": "fr"})) == (["a"], [])
    assert names(shop, labels=GERMAN) == ["b"]
    opened = writing(shop)
    try:
        opened.writer.submit([SetNote(PURGE + "a", "a", first=False)]).wait()
        purge(opened.journal, opened.writer, "a")
        assert len(opened.journal._rows("SELECT * FROM @label")) == 2
    finally:
        opened.release()
    assert names(shop, archived=True) == []


def test_labels_move_along_and_may_change_there(shop, another_postgres) -> None:
    list(move(shop, another_postgres, ["a", "c"]))
    assert (names(shop, labels=GERMAN), names(another_postgres, labels=GERMAN)) == (["b"], ["a"])
    with Bandit.open(another_postgres, "c") as bandit:
        assert bandit.config.labels == {"country": "fr"}
        bandit.change(labels=GERMAN)
    assert names(another_postgres, labels=GERMAN) == ["a", "c"]
    assert all(report.differences == [] for report in audit(another_postgres))


def test_names_are_read_page_by_page_and_only_of_a_journal_that_is_there(store, tmp_path) -> None:
    with closing(writing(store).journal) as journal:
        for n in range(1100):
            journal.create(f"b{n:04}", 0)
        found = Bandit.names(store)
        assert next(found) == "b0000"
        journal.create("z", 0)
        assert list(found)[-2:] == ["b1099", "z"]
    with pytest.raises(NotFound):
        next(Bandit.names(str(tmp_path / "none.db")))
    with pytest.raises(ValueError, match="service"):
        next(Bandit.names(store, key="drb_x"))


def test_the_command_line_filters_lists_and_keeps_templates(tmp_path, capsys) -> None:
    pytest.importorskip("msgspec")
    path = str(tmp_path / "shop.db")

    def run(*words) -> str:
        code = main(["live", words[0], path, *words[1:]])
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    labels = ["--label", "country=de", "--label", "city=New York"]
    assert "no journal" in run("template")
    assert "New York" in run("create", "button", "--arms", *ARMS, *labels)
    run("create", "other", "--arms", *ARMS)
    assert "other" not in run("show", "--label", "city=New York")
    assert "button" in run("show", "--label", "city=New York")
    for bad in (["country"], ["=de"], ["country=de", "--label", "country=fr"]):
        assert "name=value" in run("show", "--label", *bad)
    run("change", "button", "--label", "none")
    assert "button" not in run("show", "--label", "country=de")
    run("archive", "button")
    assert "button" in run("show", "--archived")
    assert "other" not in run("show", "--archived")
    assert "banner:" in run("template", "banner:", "--arms", *ARMS, "--wait", "1 h", *labels)
    for bad in (["banner:"], ["--arms", "a"], ["banner:", "--remove", "--floor", "0.1"], ["x", "--arms", "a", "a"],
                ["x", "--arms", "a", "b", "--wait", "soon"], ["x", "--arms", "a", "b", "--floor", "3"]):  # fmt: skip
        assert run("template", *bad).startswith("driftbandit: ")
    assert run("template").count(":") == 3
    assert "banner:" not in run("template", "banner:", "--remove")
    assert "no template" in run("template", "banner:", "--remove")
