"""The image of deploy/Containerfile is built and run, alone and by deploy/compose.yml with PostgreSQL.

Both need podman as root, and the base images. Where those cannot be pulled, other ones do:

DRIFTBANDIT_BUILD="--build-arg BASE=localhost/python" python -m pytest tests/service/test_container.py

`localhost/python` stands for an image with Python 3.11 or later and pip. More words for `podman build` may follow, such
as `--volume` for a folder of wheels and `--volume` for the /etc/pip.conf that names it."""

import os
import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from driftbandit.service.auth import Keys
from service.test_deploy import DEPLOY, free_port

BUILD = os.environ.get("DRIFTBANDIT_BUILD")
IMAGE = "localhost/driftbandit-test"
PYTHON = re.search(r"ARG BASE=(\S+)", (DEPLOY / "Containerfile").read_text())[1]
POSTGRES = re.search(r"image: (\S+postgres\S*)", (DEPLOY / "compose.yml").read_text())[1]

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("podman") is None or os.geteuid() != 0, reason="needs podman, as root"),
]


def podman(*words, command="podman", **more):
    found = subprocess.run([command, *map(str, words)], capture_output=True, text=True, timeout=900, **more)
    assert found.returncode == 0, f"{words}: {found.stdout[-1000:]} {found.stderr[-3000:]}"
    return found.stdout.strip()


def need_image(name):
    if subprocess.run(["podman", "image", "exists", name]).returncode == 0:
        return
    pulled = subprocess.run(["podman", "pull", "-q", name], capture_output=True, text=True)
    if pulled.returncode:
        pytest.skip(f"{name} cannot be pulled: {pulled.stderr[-200:]}")


@pytest.fixture(scope="module")
def image():
    """The image, which must build if its base is there."""
    if BUILD is None:
        need_image(PYTHON)
    words = ["--format", "docker", "-q", "-t", IMAGE, "-f", DEPLOY / "Containerfile", *shlex.split(BUILD or "")]
    podman("build", *words, DEPLOY.parent)
    return IMAGE


@pytest.fixture
def boss(tmp_path):
    """A key; its file is tmp_path/keys.json."""
    return Keys(tmp_path / "keys.json").add("boss", ["admin", "read", "decide", "reward"])


def wait_until_ready(client, seconds=60):
    until = time.monotonic() + seconds
    while True:
        try:
            if client.get("/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < until, "the service in the container is not ready"
        time.sleep(0.2)


def check_restart(client, container, running="true"):
    """It decides; it ends in time on SIGTERM; and after a new start, the same id is the same decision."""
    new = {"name": "button", "arms": ["red", "green", "blue"]}
    assert client.post("/v1/bandits", json=new).status_code == 201
    made = {n: client.post("/v1/bandits/button/decisions", json={"id": f"d{n}"}).json()["arm"] for n in range(20)}
    for n in made:
        reward = {"id": f"d{n}", "reward": n % 2}
        assert client.post("/v1/bandits/button/rewards", json=reward).json()["verdict"] == "learned"
    began = time.monotonic()
    podman("stop", "--time", "40", container)
    assert time.monotonic() - began < 30
    assert podman("inspect", container, "--format", "{{.State.ExitCode}}") == "0"
    podman("start", container)
    wait_until_ready(client)
    for n, arm in made.items():
        assert client.post("/v1/bandits/button/decisions", json={"id": f"d{n}"}).json()["arm"] == arm
    assert client.get("/v1/bandits/button/health").json()["rewards"] == 20


def test_the_image_serves_a_journal_on_a_volume(image, tmp_path, boss):
    name, port = f"driftbandit-test-{os.getpid()}", free_port()
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"authorization": f"Bearer {boss}"}, timeout=30)
    podman("secret", "create", name, tmp_path / "keys.json")
    try:
        secret = f"{name},target=/keys.json,uid=10001,mode=0400"
        words = ["-d", "--name", name, "-p", f"127.0.0.1:{port}:8000", "-v", f"{name}:/data", "--secret", secret]
        podman("run", *words, image)
        wait_until_ready(client)
        assert podman("exec", name, "id", "-u") == "10001"
        podman("healthcheck", "run", name)
        assert httpx.get(f"http://127.0.0.1:{port}/v1/bandits").status_code == 401
        check_restart(client, name)
        assert "all proved" in podman("exec", name, "driftbandit", "audit", "/data/driftbandit.db")
    finally:
        for words in (("rm", "-f", "-t", "5", name), ("volume", "rm", "-f", name), ("secret", "rm", name)):
            subprocess.run(["podman", *words], capture_output=True)


@pytest.mark.skipif(shutil.which("podman-compose") is None, reason="needs podman-compose")
def test_compose_starts_the_service_with_postgresql(image, tmp_path, boss):
    need_image(POSTGRES)
    project, port, password = f"driftbandit{os.getpid()}", free_port(), "not a secret"
    file = tmp_path / "deploy" / "compose.yml"
    file.parent.mkdir()
    text = (DEPLOY / "compose.yml").read_text()
    for old, new in (("localhost/driftbandit", image), ("127.0.0.1:8000:8000", f"127.0.0.1:{port}:8000")):
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
    (tmp_path / "password.txt").write_text(password)
    (tmp_path / "pgpass").write_text(f"database:5432:driftbandit:driftbandit:{password}\n")
    for path in (tmp_path / "keys.json", tmp_path / "pgpass", tmp_path / "password.txt"):  # as its first lines say
        path.chmod(0o400)
        if path.name != "password.txt":
            os.chown(path, 10001, -1)
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"authorization": f"Bearer {boss}"}, timeout=30)

    def compose(*words):
        podman("-p", project, "-f", file, *words, command="podman-compose", cwd=Path(file).parent)

    try:
        compose("up", "-d", "--no-build")
        wait_until_ready(client)
        check_restart(client, f"{project}_bandits_1")
    finally:
        compose("down", "-v")
