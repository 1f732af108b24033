"""Keys, limits, and what a page of another site or a hostile text can do: nothing."""

import json
import os
import stat
import subprocess
import sys
import time

import httpx
import pytest

from driftbandit.cli._main import main
from driftbandit.service.auth import Access, Keys, StoredKey
from driftbandit.service.bandits import library_policy
from driftbandit.service.problems import HttpProblem
from service.conftest import Served

AT = "/v1/bandits/button"
NEW = {"name": "button", "policy": "ds-ts", "arms": ["red", "green"]}


def bearer(key):
    return {"headers": {"authorization": f"Bearer {key}"}}


@pytest.fixture(scope="module")
def with_keys(tmp_path_factory):
    """One service with keys."""
    folder = tmp_path_factory.mktemp("guarded")
    keys = Keys(folder / "keys.json")
    maker = keys.add("maker", ["admin"])
    served = Served("serve", folder / "journal.db", "--keys", keys.path, "--port", 0)
    served.keys = keys
    assert served.post("/v1/bandits", NEW, **bearer(maker)).status_code == 201
    yield served
    served.stop()


@pytest.fixture
def guarded(with_keys):
    """The service with keys, and new keys for this test."""
    keys = with_keys.keys
    scopes = {"boss": ["admin", "read", "decide", "reward"], "app": ["decide"], "joiner": ["reward"]}
    with_keys.whole = {name: keys.add(name, words) for name, words in scopes.items()}
    with_keys.whole["other"] = keys.add("other", ["decide", "read"], ["another"])
    yield with_keys
    for key in keys.all():
        keys.revoke(key.prefix)


def test_a_key_allows_its_scopes_on_its_bandits_and_no_more(guarded):
    key = guarded.whole
    assert guarded.post(f"{AT}/decisions").status_code == 401
    assert guarded.post(f"{AT}/decisions", **bearer("drb_00000000_nonsense")).status_code == 401
    assert guarded.post(f"{AT}/decisions", **bearer(key["app"][:-1] + "x")).status_code == 401
    made = guarded.post(f"{AT}/decisions", **bearer(key["app"])).json()
    reward = {"id": made["id"], "reward": 1}
    assert guarded.post(f"{AT}/rewards", reward, **bearer(key["app"])).status_code == 403
    assert guarded.post(f"{AT}/rewards", reward, **bearer(key["joiner"])).status_code == 200
    assert guarded.post(f"{AT}/decisions", **bearer(key["other"])).status_code == 403
    assert guarded.get(AT, **bearer(key["app"])).status_code == 403
    assert guarded.post(f"{AT}/fix", {"arm": "red"}, **bearer(key["app"])).status_code == 403
    assert guarded.get("/v1/bandits", **bearer(key["other"])).json() == {"bandits": [], "next": None}
    assert guarded.get("/metrics").status_code == 401
    assert guarded.get("/livez").status_code == guarded.get("/readyz").status_code == 200


def test_two_keys_live_side_by_side_until_the_old_one_is_revoked(guarded):
    second = guarded.keys.add("app", ["decide"])
    for key in (guarded.whole["app"], second):
        assert guarded.post(f"{AT}/decisions", **bearer(key)).status_code == 200
    with pytest.raises(ValueError, match="has 2 live keys"):
        guarded.keys.add("app", ["decide"])
    guarded.keys.revoke(guarded.whole["app"].split("_")[1])
    assert guarded.post(f"{AT}/decisions", **bearer(guarded.whole["app"])).status_code == 401
    assert guarded.post(f"{AT}/decisions", **bearer(second)).status_code == 200


def test_the_file_holds_no_key_and_only_its_owner_can_read_it(tmp_path):
    keys = Keys(tmp_path / "keys.json")
    whole = keys.add("app", ["decide"], days=1)
    text = keys.path.read_text()
    assert whole not in text
    assert whole.split("_", 2)[2] not in text
    assert stat.S_IMODE(os.stat(keys.path).st_mode) == 0o600
    assert keys.check(whole).name == "app"
    dead = keys.all()[0]._replace(expires=time.time() - 1)
    keys._write([dead])
    assert keys.check(whole) is None


def test_a_key_with_too_many_requests_is_refused():
    access = Access(None, b"x")
    key = StoredKey("app", "p", "", ["decide"], ["*"], 0.0, rate=5.0)
    refused = 0
    for _ in range(20):
        try:
            access.spend(key)
        except HttpProblem as error:
            refused += error.status == 429
    assert refused in (14, 15)


def run(*words):
    return subprocess.run(
        [sys.executable, "-m", "driftbandit", *map(str, words)], capture_output=True, text=True, timeout=60
    )


def test_a_public_address_without_keys_is_refused(tmp_path):
    done = run("serve", tmp_path / "x.db", "--host", "0.0.0.0", "--port", 0)
    assert done.returncode == 2
    assert "there are no keys" in done.stderr
    assert not (tmp_path / "x.db").exists()


def test_several_workers_on_sqlite_are_refused(tmp_path):
    done = run("serve", tmp_path / "x.db", "--workers", 2)
    assert done.returncode == 2
    assert "postgresql" in done.stderr


def test_the_command_makes_shows_and_revokes_keys(tmp_path, capsys):
    def keys(*words):
        main(["keys", *map(str, words)])
        return capsys.readouterr()

    whole = keys("add", tmp_path / "k.json", "app", "--scopes", "decide,read").out.strip()
    assert Keys(tmp_path / "k.json").check(whole).scopes == ["decide", "read"]
    shown = keys("show", tmp_path / "k.json").out
    assert whole not in shown
    assert whole.split("_")[1] in shown
    keys("revoke", tmp_path / "k.json", whole.split("_")[1])
    assert Keys(tmp_path / "k.json").check(whole) is None
    assert "Scopes are" in keys("add", tmp_path / "k.json", "app", "--scopes", "everything").err


def test_a_page_of_another_site_is_refused(small):
    """A browser says where a request comes from; and a foreign name that points at this machine is not this machine."""
    foreign = {"origin": "http://evil.example"}
    assert small.post(f"{AT}/fix", {"arm": "red"}, headers=foreign).status_code == 403
    assert small.get(AT, headers={"host": "evil.example"}).status_code == 403
    assert small.get("/", headers={"host": "evil.example"}).status_code == 403
    own = {"origin": small.url}
    assert small.post(f"{AT}/fix", {"arm": "red"}, headers=own).status_code == 200


def test_every_answer_forbids_inline_script_and_frames(small):
    for path in ("/", "/bandits/button", "/api", "/livez", AT, "/v1/nothing", "/static/page.css"):
        headers = small.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_sizes_are_limited(small):
    with httpx.Client() as client:
        large = client.post(f"{small.url}{AT}/decisions", content=b" " * 300_000)
        assert large.status_code == 413

        def endless():
            for _ in range(300):
                yield b" " * 1000

        assert client.post(f"{small.url}{AT}/decisions", content=endless()).status_code == 413
        deep = client.post(f"{small.url}{AT}/decisions", content=b'{"available":' + b"[" * 60_000)
        assert deep.status_code == 422
    many = {"name": "many", "policy": "ts", "reward_range": [0, 1], "arms": list(range(1001))}
    assert small.post("/v1/bandits", many).status_code == 422
    assert small.post("/v1/bandits", {**NEW, "name": "x" * 129}).status_code == 422
    assert small.post("/v1/bandits", {**NEW, "name": "b", "arms": ["x" * 201]}).status_code == 422
    assert small.get("/v1/bandits").json() == {"bandits": ["button"], "next": None}


@pytest.mark.parametrize(
    "text",
    [
        "evil.py:Evil",
        "os:system",
        "driftbandit.policies.exp3:EXP3S",
        "ds-ts(gamma=__import__('os'))",
        "Restart(evil.py:X)",
    ],
)
def test_a_policys_text_loads_nothing(small, tmp_path, text):
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    answer = small.call("PATCH", AT, {"policy": text.replace("evil.py", str(tmp_path / "evil.py"))})
    assert answer.status_code == 422
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("text", "arms"), [("sw-ts(window=1000000000000)", 3), ("sw-ts(window=900000)", 1_000_000)])
def test_a_policy_that_would_fill_the_memory_is_refused(text, arms):
    with pytest.raises(ValueError, match=r"keeps .* numbers; the limit"):
        library_policy(text, arms)


@pytest.mark.parametrize(
    "text", ['table("/etc/shadow")', "table(stretch=2e7)", "delayed(base=ts, rounds=1000)", "oracle"]
)
def test_environments_and_policies_of_the_simulator_are_refused_over_http(small, text):
    began = time.monotonic()
    answers = [
        small.call("PATCH", AT, {"policy": text}),
        small.post("/v1/bandits", {**NEW, "name": "other", "policy": text}),
    ]
    assert [answer.status_code for answer in answers] == [422] * 2
    assert len({answer.json()["error"] for answer in answers}) == 1
    assert time.monotonic() - began < 5
    assert small.get("/v1/bandits").json() == {"bandits": ["button"], "next": None}


def test_metrics_show_the_bandits_that_the_key_may_read(guarded):
    key = guarded.whole
    guarded.post("/v1/bandits", {**NEW, "name": "another"}, **bearer(key["boss"]))
    for name in ("button", "another"):
        made = guarded.post(f"/v1/bandits/{name}/decisions", **bearer(key["boss"])).json()
        guarded.post(f"/v1/bandits/{name}/rewards", {"id": made["id"], "reward": 1}, **bearer(key["boss"]))
    assert 'bandit="button"' in guarded.get("/metrics", **bearer(key["boss"])).text
    shown = guarded.get("/metrics", **bearer(key["other"])).text
    assert 'bandit="another"' in shown
    assert "button" not in shown


def test_the_rate_of_a_key_covers_pages(guarded):
    slow = guarded.keys.add("slow", ["read"], rate=0.1)
    codes = [guarded.get(path, **bearer(slow)).status_code for path in ("/", "/bandits/button", "/api", "/", "/")]
    assert codes[0] == 200
    assert 429 in codes


def test_no_address_redirects_to_the_host_that_a_request_names(small):
    for path in ("/v1/bandits/button/", "/api/", "/bandits/button/", "/metrics/", "//evil.example/.."):
        answer = small.get(path, headers={"host": "evil.example"}, follow_redirects=False)
        assert answer.status_code in (403, 404)
        assert "location" not in answer.headers


def test_a_field_or_a_parameter_given_twice_is_refused(small):
    with httpx.Client(base_url=small.url) as client:
        made = client.post(f"{AT}/decisions").json()["id"]
        for body in (
            f'{{"id": "{made}", "reward": 0, "reward": 1}}',
            f'{{"reward": 1, "id": "{made}", "\u0072eward": 0}}',
        ):
            answer = client.post(f"{AT}/rewards", content=body)
            assert answer.status_code == 422
            assert "twice" in answer.json()["error"]
        batch = f'{{"rewards": [{{"id": "{made}", "reward": 0, "reward": 1}}]}}'
        assert client.post(f"{AT}/rewards/batch", content=batch).status_code == 422
        assert client.get(f"{AT}/history?points=3&points=4").status_code == 422
        assert client.get(f"{AT}/decisions/{made}").json()["outcome"] is None


def test_a_session_of_the_page_is_not_the_key_and_dies_with_it(guarded):
    with httpx.Client(base_url=guarded.url) as client:
        assert client.get("/").status_code == 401
        wrong = client.post("/login", data={"key": "drb_x_y"})
        assert wrong.status_code == 401
        assert "not one of our keys" in wrong.text
        done = client.post("/login", data={"key": guarded.whole["boss"], "to": "//evil.example/"})
        assert done.headers["location"] == "/"
        cookie = done.headers["set-cookie"]
        assert guarded.whole["boss"] not in cookie
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert client.get("/").status_code == 200
        assert client.get(AT).json()["name"] == "button"
        assert (
            client.post(f"{AT}/fix", json={"arm": "red"}, headers={"origin": "http://evil.example"}).status_code == 403
        )
        prefix, until, seal = client.cookies["driftbandit"].split(".")
        forged = {"cookie": f"driftbandit={prefix}.{int(until) + 9999}.{seal}"}
        assert httpx.get(guarded.url + AT, headers=forged).status_code == 401
        guarded.keys.revoke(prefix)
        assert client.get(AT).status_code == 401


@pytest.mark.long
def test_a_session_is_known_to_other_processes_and_after_a_restart(serve, store, tmp_path):
    keys = Keys(tmp_path / "keys.json")
    boss = keys.add("boss", ["admin", "read"])
    words = (store, "--keys", keys.path)
    first = serve(*words)
    cookie = httpx.post(first.url + "/login", data={"key": boss}).headers["set-cookie"].split(";")[0]
    if not str(store).startswith("postgresql"):
        first.stop()  # a file has one writing process
    second = serve(*words)
    assert second.get("/", headers={"cookie": cookie}).status_code == 200
    assert second.get("/", headers={"cookie": cookie[:-1] + "x"}).status_code == 401
    other = Keys(tmp_path / "other.json")  # the journal by itself is not enough to forge one
    other.add("boss", ["admin", "read"])
    data = other.path.read_text().replace(other.all()[0].prefix, keys.all()[0].prefix)
    other.path.write_text(data)
    second.stop()
    first.stop()
    third = serve(store, "--keys", other.path)
    assert third.get("/", headers={"cookie": cookie}).status_code == 401


def test_the_log_never_holds_a_key(guarded):
    guarded.get(AT, **bearer(guarded.whole["app"]))
    guarded.stop()
    text = "".join(guarded.lines)
    assert all(key not in text for key in guarded.whole.values())


def test_a_hostile_arm_name_is_text_everywhere(small):
    name = "<img src=x onerror=alert(1)>"
    small.post(
        "/v1/bandits",
        {"name": "hostile", "policy": "ts", "reward_range": [0, 1], "arms": [name, "\"'><script>alert(2)</script>"]},
    )
    small.post("/v1/bandits/hostile/decisions")
    for path in ("/", "/bandits/hostile"):
        text = small.get(path).text
        assert "<img src=x" not in text
        assert "<script>alert" not in text
    assert json.dumps(name)[1:-1] in small.get("/v1/bandits/hostile/arms").text
