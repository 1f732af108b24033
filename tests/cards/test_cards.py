"""Every policy has a card that says everything, a new one gets its own, and nothing is made twice."""

import re
import shutil
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

from driftbandit.core.parameters import checked, described, within
from driftbandit.field.standings import find_best_tuned
from driftbandit.field.suites import BINARY
from driftbandit.policies import BetaTS, DiscountedTS, DriftTS
from driftbandit.spec.parse import policies
from tools.site import behaviour, card_figure, cards, facts, index, made, page, standing, store
from tools.site.environments import as_its_theory_says, small_environments

pytest.importorskip("matplotlib")
CLASSES = {facts.find_short_name(cls): cls for cls in policies().values()}
ENVIRONMENTS = small_environments(quick=True)


class MineState(NamedTuple):
    """What it knows."""

    pulls: Any  # of each arm
    mean: Any


@described(short="mine", forgets="half of it", knows="nothing", rewards="any", cost="O(K)", formula=r"a = \pi")
@checked
class Mine(NamedTuple):
    """A policy of somebody's own, for arms * and _.

    It looks at the best mean."""

    step: Annotated[float, within("(0, 1]", "A tenth will do.")] = 0.5  # how much is forgotten

    def init(self, n_arms: int) -> MineState:
        return MineState(np.zeros(n_arms), np.zeros(n_arms))

    def choose(self, state: MineState, t: int, rng: Any) -> int:
        return t % len(state.pulls)

    def learn(self, state: MineState, t: int, arm: int, reward: float) -> None:
        state.pulls[arm] += 1.0
        state.mean[arm] += self.step * (reward - state.mean[arm])


@pytest.fixture(scope="module")
def ts():
    return behaviour.behaviour(BetaTS, quick=True)


FEW = ("ds-ts", "m-ucb", "drift-lin-ts")  # with all others the test is long


@pytest.mark.parametrize(
    "short", [pytest.param(short, marks=() if short in FEW else pytest.mark.long) for short in CLASSES]
)
def test_every_policy_gets_a_card_with_all_that_belongs_on_it(short, ts, tmp_path):
    cls = CLASSES[short]
    assert facts.formula(cls), f"{short} states no formula: described(formula=...)"
    mine = behaviour.behaviour(cls, quick=True)
    policy = as_its_theory_says(cls, ENVIRONMENTS[0].environment)
    text = page.page(cls, policy, mine, ts, ENVIRONMENTS, tmp_path)
    assert text.startswith(f"# {short}\n")
    parts = dict(zip(page.SECTIONS, re.split(r"^## .*$", text, flags=re.MULTILINE)[1:], strict=True))
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == list(page.SECTIONS)
    assert all(body.strip() for body in parts.values())
    for name in cls._fields:
        assert f"| `{name}` |" in parts["Parameters"]
    assert "```{math}\n" in parts["The rule"]
    assert parts["How it behaves"].count("{image}") == 6
    for target in re.findall(r"\]\(([^)]+)\)", parts["Source"]):
        assert (tmp_path / target).exists(), target
    assert "Late rewards" in text
    row = index.row(cls, policy, mine, ts, ENVIRONMENTS)
    assert row["short"] == short
    assert set(row["beside"]) == {environment.name for environment in ENVIRONMENTS}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    into = tmp_path_factory.mktemp("cards")
    cards.write(into, quick=True, classes=[Mine, DiscountedTS], workers=1)
    return into


def test_a_users_policy_gets_a_card(written):
    text = (written / "mine.md").read_text()
    assert "A policy of somebody's own, for arms \\* and \\_." in text
    assert "| `step` | float | `0.5` | (0, 1\\] | how much is forgotten; A tenth will do. |" in text
    assert "2 numbers for each arm and 0 besides; 160 bytes with 10 arms" in text
    assert "It has no slow twin." in text
    assert {path.name for path in written.glob("mine-*.svg")} == {
        f"mine-{environment.name}-{side}.svg" for environment in ENVIRONMENTS for side in ("light", "dark")
    }
    listed = (written / "index.md").read_text()
    assert "[mine](mine.md)" in listed
    assert "\nds-ts\nmine\n" in listed


def test_a_card_is_made_again_only_when_it_has_to_be_and_goes_with_its_policy(written, tmp_path, monkeypatch):
    into, again, real = tmp_path / "cards", [], cards.make
    shutil.copytree(written, into)
    monkeypatch.setattr(cards, "make", lambda task: again.append(facts.find_short_name(task.cls)) or real(task))
    monkeypatch.setattr(cards, "behaviour", lambda *_: pytest.fail("what was played is kept"))
    cards.write(into, quick=True, classes=[Mine, DiscountedTS], workers=1)
    assert again == []
    (into / "mine.md").write_text("by hand")
    cards.write(into, quick=True, classes=[Mine, DiscountedTS], workers=1)
    assert again == ["mine"]
    assert (into / "mine.md").read_text().startswith("# mine")
    cards.write(into, quick=True, classes=[DiscountedTS], workers=1)
    assert again == ["mine"]
    assert not list(into.glob("mine*"))
    assert "mine" not in (into / "index.md").read_text()
    assert len(list((into / ".store").glob("*.npz"))) == 2  # its own and that of ts


def test_a_digest_depends_on_the_policy_the_size_and_the_parameters():
    assert len({cards.numbers(cls, quick) for cls in (BetaTS, DiscountedTS, Mine) for quick in (True, False)}) == 6
    assert cards.numbers(DiscountedTS, True) == cards.numbers(DiscountedTS, True)


def test_play_is_kept_to_the_last_bit(ts, tmp_path):
    store.save(ts, tmp_path / "ts.npz")
    again = store.load(tmp_path / "ts.npz")
    assert again.delays == ts.delays
    assert np.array_equal(again.late, ts.late)
    for one, other in zip(again.seen, ts.seen, strict=True):
        assert one.policy == other.policy
        assert all(np.array_equal(a, b) for a, b in zip(one[1:], other[1:], strict=True))
    (tmp_path / "ts.npz").write_bytes(b"PK\x03\x04 cut off")
    assert store.load(tmp_path / "ts.npz") is None


def test_shares_are_shares_and_the_belief_is_that_of_the_run(ts):
    seen = ts.seen[0]
    assert np.allclose(seen.shares.sum(axis=1), 1.0)
    assert seen.regret.shape == (2, len(seen.rounds))
    assert seen.mean.shape == seen.sd.shape == (len(seen.at), 4)
    assert np.allclose(seen.mean[0], 0.5)
    assert np.allclose(seen.sd[0], 12**-0.5)  # Beta(1, 1)


def test_a_mixture_of_beta_laws_has_the_moments_of_its_parts():
    state = DriftTS().init(3)
    mean, sd = behaviour.moments(DriftTS().belief(state))
    assert np.allclose(mean, 0.5)
    assert (sd <= 12**-0.5 + 1e-9).all()  # drifters are sharper than the prior
    assert (sd > 0.15).all()
    assert behaviour.moments(object()) is None


def test_the_figure_shows_the_belief_where_there_is_one_and_alarms_where_there_are_some(ts):
    assert card_figure.rows(ts) == ["means", "shares", "belief", "regret"]
    alarms = ts.seen[0]._replace(mean=np.zeros((0, 4)), alarms=np.array([[0, 7]]))
    assert card_figure.rows(ts._replace(seen=(alarms,))) == ["means", "shares", "alarms", "regret"]
    neither = alarms._replace(alarms=np.zeros((0, 2)))
    assert card_figure.rows(ts._replace(seen=(neither,))) == ["means", "shares", "regret"]


def test_the_best_tuned_policy_is_the_one_the_field_names():
    lines = [
        line
        for line in standing.read_kept(BINARY.kept)
        if line.environment in ("stat-K5", "trap-K5", "smooth-K5-short")
    ]
    environments = [
        environment for environment in BINARY.environments if environment.name in {line.environment for line in lines}
    ]
    assert environments
    for name, found in find_best_tuned(BINARY, environments, lines).items():
        assert standing.best()[name] == found.line.mean


def test_docstrings_are_prose_without_markup():
    assert page.prose("N**(-1/2) in `a*b`, x_i < 3 | [0, 1]") == "N\\*\\*(-1/2) in `a*b`, x\\_i \\< 3 \\| \\[0, 1\\]"


def test_no_page_sends_a_request_to_another_host():
    here = Path(cards.__file__).parent
    for path in here.glob("*"):
        if path.suffix in (".js", ".css", ".html"):
            assert not re.search(r"https?://(?!www\.w3\.org/)", path.read_text()), path.name


def test_the_digest_of_the_sources_follows_every_import_of_this_package():
    here = Path(made.__file__).parent
    text = (here / "cards.py").read_text()
    assert len({made.own_sources(name) for name in ("cards", "pictures", "store")}) == 3
    for name in ("card_figure", "page", "colours", "environments"):  # imported by name, from a module, or further down
        changed = (here / f"{name}.py").read_text() + "\n# other"
        assert made.own_sources("cards") != _with(name, changed), name
    assert made.own_sources("cards") == _with("cards", text)


def _with(name, text):
    """The digest as if a file held this text."""
    with pytest.MonkeyPatch.context() as patch:
        real = Path.read_text
        patch.setattr(Path, "read_text", lambda path, *a, **k: text if path.stem == name else real(path, *a, **k))
        return made.own_sources("cards")
