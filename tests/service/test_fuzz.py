"""Every operation, fuzzed from the service's own description: no answer is 5xx. The long form: fuzzing.py."""

import pytest

pytest.importorskip("schemathesis", reason="pip install schemathesis makes the requests")
from service.conftest import BANNER, BUTTON
from service.fuzzing import fuzz


@pytest.mark.long
def test_no_request_is_answered_by_a_fault(service):
    for bandit in (BUTTON, BANNER):
        service.post("/v1/bandits", bandit)
    statuses, faults = fuzz(service.url, 400)
    assert faults == []
    assert statuses[200] > 20
    assert statuses[422] > 20
