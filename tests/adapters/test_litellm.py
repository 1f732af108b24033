"""A bandit in the LiteLLM router that is installed, with our own provider on this machine."""

import asyncio
import json
import logging
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # otherwise importing it asks another host for prices
pytest.importorskip("litellm", reason="needs litellm: make test-adapters, or pip install '.[litellm]'")
import litellm

from driftbandit import Bandit
from driftbandit.adapters.litellm import DeploymentChooser

ANSWER = {"role": "assistant", "content": "yes"}
SECONDS = {"quick": 0.0, "slow": 0.3, "broken": 0.0}


class Provider(BaseHTTPRequestHandler):
    """As much of a provider as a chat needs. The model's name says how it behaves."""

    def do_POST(self):
        model = json.loads(self.rfile.read(int(self.headers["content-length"])))["model"]
        time.sleep(SECONDS[model])
        usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
        choice = {"index": 0, "message": ANSWER, "finish_reason": "stop"}
        body = json.dumps(
            {"id": "1", "object": "chat.completion", "created": 1, "model": model, "choices": [choice], "usage": usage}
        )
        self.send_response(500 if model == "broken" else 200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *words):
        pass


@pytest.fixture(scope="module")
def address():
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


@pytest.fixture(autouse=True)
def no_other_callbacks():
    yield
    litellm.logging_callback_manager._reset_all_callbacks()


def router(address, *ids, **options):
    """A router of one model group; a deployment's id is the name of its model."""
    deployments = [
        {
            "model_name": "chat",
            "litellm_params": {
                "model": f"openai/{id}", "api_base": address, "api_key": "none", "max_retries": 0,
                "input_cost_per_token": 0.001 if id == "quick" else 0.0001, "output_cost_per_token": 0.0,
            },
            "model_info": {"id": id},
        }
        for id in ids
    ]  # fmt: skip
    return litellm.Router(deployments, disable_cooldowns=True, retry_after=0, **options)


def ask(routes, chooser, count, model="chat", metadata=None, **options):
    """The ids of the deployments that answered, after all events have come."""

    async def run():
        litellm.callbacks = [chooser]
        answered = []
        for _ in range(count):
            given = {} if metadata is None else metadata
            response = await routes.acompletion(
                model=model, messages=[{"role": "user", "content": "?"}], metadata=given, **options
            )
            answered.append(response._hidden_params["model_id"])
            await settled(chooser)
        return answered

    return asyncio.run(run())


async def settled(chooser):
    """Wait until every decision has its reward, if the measure gives one."""
    for _ in range(200):
        outcomes = [outcome for bandit in chooser.bandits.values() for outcome in bandit.recent(1000)]
        if chooser.measure is nothing or all(outcome.reward is not None for outcome in outcomes):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("a reward has not come")


def nothing(record, response, seconds):
    return None


def test_the_quicker_deployment_is_used_and_rewards_are_seconds(address):
    bandit = Bandit(["quick", "slow"], goal="minimise", seed=1)
    routes, chooser = router(address, "quick", "slow"), DeploymentChooser({"chat": bandit}, failure=10.0)
    ask(routes, DeploymentChooser({}, failure=10.0), 1)  # LiteLLM's first call takes seconds
    litellm.logging_callback_manager._reset_all_callbacks()
    answered = ask(routes, chooser, 16)
    assert answered.count("quick") >= 11
    rewards = [(outcome.decision.arm, outcome.reward) for outcome in bandit.recent(100)]
    assert min(reward for arm, reward in rewards if arm == "quick") < 0.3
    assert all(0.3 <= reward < 9.0 for arm, reward in rewards if arm == "slow")


def test_the_cheaper_deployment_is_used_if_cost_is_the_measure(address):
    bandit = Bandit(["quick", "slow"], goal="minimise", seed=1)
    answered = ask(router(address, "quick", "slow"), DeploymentChooser({"chat": bandit}, "cost", failure=1.0), 8)
    assert answered.count("slow") >= 5
    by_arm = {outcome.decision.arm: outcome.reward for outcome in bandit.recent(100)}
    assert by_arm == pytest.approx({"quick": 0.01, "slow": 0.001})


def test_every_attempt_is_a_decision_and_one_that_fails_is_rewarded_as_a_failure(address):
    def quality(record, response, seconds):
        return float(response.choices[0].message.content == ANSWER["content"])

    bandit = Bandit(["quick", "broken"], seed=3)
    routes = router(address, "quick", "broken", num_retries=8)
    answered = ask(routes, DeploymentChooser({"chat": bandit}, quality, failure=0.0), 10)
    assert set(answered) == {"quick"}
    rewards = {(outcome.decision.arm, outcome.reward) for outcome in bandit.recent(100)}
    assert rewards == {("quick", 1.0), ("broken", 0.0)}
    assert len(bandit.recent(100)) > 10


def test_a_program_can_reward_later_by_the_id_in_its_metadata(address):
    bandit = Bandit(["quick"], seed=1)
    metadata = {"user": "me"}
    ask(router(address, "quick"), DeploymentChooser({"chat": bandit}, nothing, failure=0.0), 1, metadata=metadata)
    (outcome,) = bandit.recent()
    assert outcome.reward is None
    assert bandit.reward(metadata["model_info"]["driftbandit"], 0.7) == "learned"
    assert bandit.outcome(outcome.decision.id).reward == 0.7


def test_the_context_comes_from_the_request(address):
    bandit = Bandit(["quick", "slow"], features={"letters": "number"}, goal="minimise", seed=1)
    chooser = DeploymentChooser(
        {"chat": bandit}, failure=9.0, context=lambda messages, request: {"letters": len(messages[0]["content"])}
    )
    ask(router(address, "quick", "slow"), chooser, 1)
    assert bandit.recent()[0].context == {"letters": 1}


def test_only_healthy_deployments_that_are_arms_are_chosen(address):
    bandit = Bandit(["slow", "gone"], goal="minimise", seed=1)
    chooser = DeploymentChooser({"chat": bandit}, failure=9.0)
    assert ask(router(address, "quick", "slow"), chooser, 4) == ["slow"] * 4
    bandit.add_arm("quick")
    bandit.retire_arm("slow")
    chooser.refresh()
    assert ask(router(address, "quick", "slow"), chooser, 2) == ["quick"] * 2


def test_the_router_chooses_where_there_is_no_bandit_or_it_cannot_decide(address, caplog):
    closed = Bandit(["quick"], goal="minimise")
    chooser = DeploymentChooser({"chat": closed, "other": closed}, failure=9.0)
    closed.close()
    chooser.measure = nothing
    with caplog.at_level(logging.WARNING, "driftbandit.adapters"):
        assert ask(router(address, "quick"), chooser, 1) == ["quick"]
    assert "the router chooses" in caplog.text
    unknown = DeploymentChooser({"other": Bandit(["quick"], goal="minimise")}, failure=9.0)
    assert ask(router(address, "quick"), unknown, 1) == ["quick"]


def test_two_choosers_do_not_take_each_others_events(address):
    first, second = (Bandit(["quick", "slow"], goal="minimise", seed=1) for _ in range(2))
    other = DeploymentChooser({"other": first}, failure=9.0)
    first.decide()  # the id that the other bandit's first decision has too

    async def run():
        litellm.callbacks = [other, DeploymentChooser({"chat": second}, failure=9.0)]
        messages = [{"role": "user", "content": "?"}]
        await router(address, "quick", "slow").acompletion(model="chat", messages=messages)
        await settled(litellm.callbacks[1])

    asyncio.run(run())
    assert [bandit.recent()[0].reward is None for bandit in (first, second)] == [True, False]


def test_a_measure_that_is_better_when_small_needs_a_bandit_that_minimises():
    with pytest.raises(ValueError, match="goal='minimise'"):
        DeploymentChooser({"chat": Bandit(["a"])}, "cost", failure=1.0)
    with pytest.raises(ValueError, match="seconds, cost or a function"):
        DeploymentChooser({"chat": Bandit(["a"])}, "latency", failure=1.0)
