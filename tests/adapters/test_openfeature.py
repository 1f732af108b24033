"""Feature flags decided by bandits, through the OpenFeature client that is installed."""

import asyncio
import logging
import re
import subprocess
import sys

import pytest

pytest.importorskip("openfeature", reason="needs openfeature-sdk: make test-adapters, or pip install '.[openfeature]'")
from openfeature import api
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode
from openfeature.flag_evaluation import Reason
from openfeature.track import TrackingEventDetails

from driftbandit import Bandit
from driftbandit.adapters.openfeature import BanditProvider


def client(bandits, events=None):
    api.set_provider(BanditProvider(bandits, events))
    return api.get_client()


@pytest.fixture
def bandit(tmp_path):
    with Bandit.open(tmp_path / "shop.db", "button", arms=["red", "green"], seed=1) as made:
        yield made


def test_a_flag_is_an_arm_and_a_user_keeps_it(bandit):
    flags, user = client({"button": bandit}), EvaluationContext("user-1", {"plan": "free"})
    details = flags.get_string_details("button", "none", user)
    assert details.value in ("red", "green")
    assert details.variant == details.value
    assert details.reason == Reason.SPLIT
    assert details.flag_metadata["decision"] == "user-1"
    assert {flags.get_string_value("button", "none", user) for _ in range(10)} == {details.value}
    assert {flags.get_string_value("button", "none", EvaluationContext(f"u{n}")) for n in range(20)} == {"red", "green"}


def test_tracking_rewards_the_decision_of_the_same_user_once(bandit, caplog):
    flags, user = client({"button": bandit}, {"purchase": "button"}), EvaluationContext("user-1")
    flags.get_string_value("button", "none", user)
    flags.track("seen", user)
    assert bandit.outcome("user-1").reward is None
    with caplog.at_level(logging.WARNING):
        flags.track("purchase", user, TrackingEventDetails(12.5))
        flags.track("purchase", user, TrackingEventDetails(12.5))
        flags.track("purchase", EvaluationContext("a stranger without a decision"))
        flags.track("purchase")
    assert bandit.outcome("user-1").reward == 12.5
    assert [record.message for record in caplog.records if "stranger" not in record.message] == []
    with caplog.at_level(logging.WARNING):
        flags.track("purchase", user, TrackingEventDetails(99.0))
    assert "did not reward flag button" in caplog.text
    assert bandit.outcome("user-1").reward == 12.5


def test_an_event_without_a_value_is_a_reward_of_one_for_all_its_flags():
    bandits = {"button": Bandit(["red", "green"]), "price": Bandit([1, 2])}
    flags, user = client(bandits, {"purchase": ["button", "price"]}), EvaluationContext("user-1")
    flags.get_string_value("button", "none", user)
    flags.get_integer_value("price", 0, user)
    flags.track("purchase", user)
    assert [bandit.outcome("user-1").reward for bandit in bandits.values()] == [1.0, 1.0]


def test_attributes_that_are_features_are_the_context():
    features = {"device": ["mobile", "desktop"], "basket": "number"}
    bandit = Bandit(["red", "green"], features=features, seed=1)
    flags = client({"button": bandit})
    flags.get_string_value("button", "none", EvaluationContext("a", {"device": "mobile", "basket": 3.0, "name": "Ann"}))
    assert bandit.outcome("a").context == {"device": "mobile", "basket": 3.0}
    details = flags.get_string_details("button", "none", EvaluationContext("b", {"basket": "full"}))
    assert (details.value, details.error_code) == ("none", ErrorCode.INVALID_CONTEXT)


@pytest.mark.parametrize(
    ("arms", "kind", "default"),
    [
        ([True, False], "boolean", None),
        ([1, 2], "integer", 0),
        ([1, 0.5], "float", 0.0),
        ([("a", 1), ("b", 2)], "object", []),
    ],
    ids=["boolean", "integer", "float", "object"],
)
def test_flags_have_every_type_that_arms_have(arms, kind, default):
    flags = client({"flag": Bandit(arms)})
    values = [getattr(flags, f"get_{kind}_value")("flag", default, EvaluationContext(f"u{n}")) for n in range(20)]
    assert all(
        any(value == arm or value == list(arm) for arm in arms) if kind == "object" else value in arms
        for value in values
    )
    assert flags.get_string_details("flag", "none", EvaluationContext("u")).error_code == ErrorCode.TYPE_MISMATCH


def test_what_cannot_be_decided_has_the_default_value(bandit):
    flags = client({"button": bandit})
    for key, context, code in (
        ("buton", EvaluationContext("u"), ErrorCode.FLAG_NOT_FOUND),
        ("button", None, ErrorCode.TARGETING_KEY_MISSING),
        ("button", EvaluationContext("no spaces, please"), ErrorCode.INVALID_CONTEXT),
    ):
        details = flags.get_string_details(key, "none", context)
        assert (details.value, details.error_code) == ("none", code)
    bandit.close()
    assert flags.get_string_details("button", "none", EvaluationContext("u")).value == "none"
    with pytest.raises(ValueError, match="is not a flag"):
        BanditProvider({"button": bandit}, {"purchase": "buton"})


def test_asynchronous_calls_decide_as_well(bandit):
    flags, user = client({"button": bandit}), EvaluationContext("user-1")
    first = asyncio.run(flags.get_string_value_async("button", "none", user))
    assert first == flags.get_string_value("button", "none", user) != "none"


def test_the_bandit_may_be_in_a_service(tmp_path):
    pytest.importorskip("httpx")
    pytest.importorskip("starlette")
    words = [sys.executable, "-m", "driftbandit", "serve", "--port", "0", str(tmp_path / "served.db")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as service:
        try:
            address = re.search(r"http://[\d.]+:\d+", service.stdout.readline())[0]
            features = {"device": ["mobile", "desktop"]}
            with Bandit.open(address, "button", arms=["red", "green"], features=features) as bandit:
                flags = client({"button": bandit}, {"purchase": "button"})
                user = EvaluationContext("user-1", {"device": "mobile", "name": "Ann"})
                arm = flags.get_string_value("button", "none", user)
                flags.track("purchase", user)
                found = bandit.outcome("user-1")
                assert (found.decision.arm, found.reward, found.context) == (arm, 1.0, {"device": "mobile"})
        finally:
            service.terminate()
