"""What an operator watches: metrics that alerts and the dashboard name, and the lines of the log."""

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from driftbandit.service.auth import Keys

yaml = pytest.importorskip("yaml")
DEPLOY = Path(__file__).parents[2] / "deploy"
NEW = {"name": "quick", "policy": "ts", "reward_range": [0, 1], "arms": ["a", "b"], "wait": "200 ms"}


def alert_rules():
    (group,) = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"]
    return group["rules"]


def dashboard_queries():
    board = json.loads((DEPLOY / "grafana.json").read_text())
    places = [tuple(panel["gridPos"].values()) for panel in board["panels"]]
    assert len(set(places)) == len(places)
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]] + [
        one["query"] for one in board["templating"]["list"]
    ]


def test_a_running_service_has_every_metric_and_label_that_the_alerts_and_the_dashboard_name(fresh):
    import time

    assert fresh.post("/v1/bandits", NEW).status_code == 201
    made = fresh.post("/v1/bandits/quick/decisions", {}).json()
    paid = fresh.post("/v1/bandits/quick/decisions", {}).json()
    fresh.post("/v1/bandits/quick/rewards", {"id": paid["id"], "reward": 1})
    time.sleep(0.5)
    late = {"rewards": [{"id": made["id"], "reward": 1}, {"id": "nothing", "reward": 1}]}
    assert fresh.post("/v1/bandits/quick/rewards/batch", late).json()["verdicts"][0]["verdict"] == "late"
    text = fresh.get("/metrics").text
    queries = [rule["expr"] for rule in alert_rules()] + dashboard_queries()
    named = {name for query in queries for name in re.findall(r"driftbandit_\w+", query)}
    assert len(named) >= 14
    for name in sorted(named):
        assert re.search(rf"^{name}(\{{| )", text, re.MULTILINE), name
    for name, selector in re.findall(r"(driftbandit_\w+)\{(\w+)", " ".join(queries)):
        assert re.search(rf"^{name}\{{.*\b{selector}=", text, re.MULTILINE), (name, selector)
    for verdict in ("late", "refused"):
        assert f'verdict="{verdict}"' in text


def test_the_alerts_are_about_what_the_page_promises():
    named = {rule["alert"] for rule in alert_rules()}
    assert {
        f"Driftbandit{word}" for word in ("NoRewards", "NoRewardsAtAll", "LateRewards", "Lag", "Refused", "Disk")
    } <= named
    for rule in alert_rules():
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, which Prometheus brings")
def test_prometheus_accepts_the_alerts():
    subprocess.run(["promtool", "check", "rules", DEPLOY / "alerts.yml"], check=True)


def test_every_start_stop_change_and_refused_write_is_one_line_of_json(tmp_path):
    key = Keys(tmp_path / "keys.json").add("boss", ["admin", "read", "decide", "reward"])
    command = [sys.executable, "-m", "driftbandit", "serve", "--port", "0", "--log-format", "json"]
    command += [str(tmp_path / "journal.db"), "--keys", str(tmp_path / "keys.json")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        start = json.loads(process.stderr.readline())
        with httpx.Client(base_url=start["address"], headers={"authorization": f"Bearer {key}"}) as client:
            assert client.post("/v1/bandits", json=NEW).status_code == 201
            assert client.post("/v1/bandits/quick/fix", json={"arm": "a"}).status_code == 200
            assert client.post("/v1/bandits/quick/decisions").status_code == 200
            assert client.post("/v1/bandits/quick/rewards", json={"id": "x\ny", "reward": 1}).status_code == 422
            bad = {"rewards": [{"id": "nothing", "reward": 1}]}
            assert client.post("/v1/bandits/quick/rewards/batch", json=bad).status_code == 200
            wrong = {"authorization": "Bearer drb_aaaaaaaa_secret"}
            assert client.post("/v1/bandits/quick/fix", json={"arm": "b"}, headers=wrong).status_code == 401
            assert client.get("/v1/bandits/none").status_code == 404  # not a write
    finally:
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=60)[1]
    lines = [start, *map(json.loads, rest.splitlines())]
    shown = [(line["message"], line.get("operation"), line.get("bandit"), line.get("key")) for line in lines]
    assert shown == [
        ("start", None, None, None),
        ("change", "create", "quick", "boss"),
        ("change", "fix", "quick", "boss"),
        ("refused write", "reward", "quick", "boss"),
        ("refused write", "reward_many", "quick", "boss"),
        ("refused write", "fix", "quick", None),
        ("stop", None, None, None),
    ]
    assert "There is no decision 'nothing'" in lines[4]["error"]
    assert key not in rest
    assert "drb_aaaaaaaa" not in rest


def test_as_text_a_line_has_the_same_fields_and_no_password(serve, tmp_path):
    served = serve(tmp_path / "journal.db")
    served.post("/v1/bandits", NEW)
    served.post("/v1/bandits/quick/rewards", {"id": "nothing", "reward": 1})
    served.stop()
    text = "".join(served.lines)
    assert re.search(r'info change operation="create" bandit="quick" key="local" status=201\n', text)
    assert re.search(
        r'warning refused write operation="reward" bandit="quick" key="local" status=404 error="There', text
    )
    assert (text.count(" info start "), text.count(" info stop ")) == (1, 1)
