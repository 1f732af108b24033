"""Bandits as river policies, with the river that is installed."""

import random

import pytest

pytest.importorskip("river", reason="needs river: make test-adapters, or pip install '.[river]'")
from river import bandit, stats

from driftbandit.adapters.river import RiverContextualPolicy, RiverPolicy
from driftbandit.policies import DriftTS


class Clicks:
    """As much of a Gymnasium environment as river's `evaluate` uses: arm 2 is the best."""

    class Arms:
        n = 3

        def seed(self, seed):
            pass

    action_space = Arms()

    def reset(self, seed):
        self.rng, self.left = random.Random(seed), 300

    def step(self, arm):
        self.left -= 1
        return None, float(self.rng.random() < (0.2, 0.3, 0.8)[arm]), False, self.left == 0, {}


def clicks(policies):
    totals = [0.0] * len(policies)
    for step in bandit.evaluate(policies, Clicks(), n_episodes=2, seed=1):
        totals[step["policy_idx"]] += step["reward"]
    return totals


def test_rivers_evaluate_plays_our_policies_and_they_learn():
    ours, named, rivers = clicks([RiverPolicy(seed=1), RiverPolicy("ds-ts", seed=1), bandit.RandomPolicy(seed=1)])
    assert min(ours, named) > 0.65 * 600  # the best arm has 0.8, a random one 0.43
    assert rivers < 0.5 * 600


def test_an_evaluation_can_be_repeated():
    assert clicks([RiverPolicy(seed=7)]) == clicks([RiverPolicy(seed=7)])


@pytest.mark.parametrize("policy", [DriftTS(), "ds-ts(gamma=0.9)", None], ids=repr)
def test_a_clone_has_the_same_parameters_and_has_learned_nothing(policy):
    first = RiverPolicy(policy, seed=3, floor=0.1)
    first.update(first.pull(["a", "b"]), 1.0)
    second = first.clone()
    assert (second.policy, second.seed, second.options) == (policy, 3, {"floor": 0.1})
    assert second.bandit is None
    assert second._n == 0
    whole = first.clone(include_attributes=True)
    assert whole.bandit.health()["rewards"] == first.bandit.health()["rewards"] == 1


def test_only_the_arms_of_a_pull_are_chosen_and_new_ones_are_added():
    policy = RiverPolicy(seed=1)
    for _ in range(20):
        arm = policy.pull(["a", "b"])
        policy.update(arm, 1.0)
    assert {policy.pull(["b", "c"]) for _ in range(20)} <= {"b", "c"}
    assert policy.bandit.arms == ["a", "b", "c"]
    assert policy.pull(["c"]) == "c"


def test_a_reward_without_a_pull_is_learned_too():
    policy = RiverPolicy("ts", seed=1, floor=0.0)
    policy.pull(["a", "b"])
    for _ in range(50):
        policy.update("a", 0.0)
        policy.update("b", 1.0)
    assert policy.bandit.probabilities()["b"] > 0.99
    assert policy.ranking == ["b", "a"]


def contexts(n, seed=5):
    """Contexts, and for each the arm that pays."""
    rng = random.Random(seed)
    for _ in range(n):
        x = rng.gauss(0.0, 1.0)
        yield {"x": x, "member": rng.random() < 0.5}, "plus" if x > 0 else "minus"


def test_a_contextual_policy_learns_which_arm_suits_a_context():
    policy, hits = RiverContextualPolicy(seed=2), 0
    for n, (context, best) in enumerate(contexts(400)):
        arm = policy.pull(["plus", "minus"], context=context)
        policy.update(arm, context, float(arm == best))
        hits += n >= 200 and arm == best
    assert hits > 160
    assert policy.bandit.config.features == {"x": "number", "member": "flag"}


def test_rivers_offline_evaluation_replays_a_log_with_contexts():
    rng = random.Random(3)
    rows = []
    for context, best in contexts(600):
        arm = rng.choice(["plus", "minus"])
        rows.append((["plus", "minus"], context, arm, float(arm == best)))
    total, used = bandit.evaluate_offline(RiverContextualPolicy(seed=2), rows, stats.Mean())
    assert 200 < used < 400
    assert total.get() > 0.7


def test_a_reward_belongs_to_its_context_and_not_to_the_last_pull():
    late, prompt = (RiverContextualPolicy("lin-ts", seed=2, floor=0.0) for _ in range(2))
    for context, best in contexts(60):
        prompt.pull(["plus", "minus"], context=context)
        prompt.update(best, context, 1.0)
        late.pull(["plus", "minus"], context=context)
        late.pull(["plus", "minus"], context={"x": 0.0, "member": False})
        late.update(best, context, 1.0)
    context = {"x": 1.0, "member": True}
    assert late.bandit.probabilities(context) == pytest.approx(prompt.bandit.probabilities(context), abs=0.1)


def test_a_text_needs_declared_levels():
    with pytest.raises(ValueError, match="declare its levels"):
        RiverContextualPolicy().pull(["a", "b"], context={"device": "mobile"})
    policy = RiverContextualPolicy(seed=1, features={"device": ["mobile", "desktop"]})
    assert policy.clone().pull(["a", "b"], context={"device": "mobile"}) in ("a", "b")
