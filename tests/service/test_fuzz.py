"""Every operation, fuzzed from the service's own description: no answer is 5xx. The long form: fuzzing.py."""

import pytest

pytest.importorskip("schemathesis", reason="pip install schemathesis makes the requests")
from service.fuzzing import fuzz


@pytest.mark.long
def test_no_request_is_answered_by_a_fault(service):
    statuses, faults = fuzz(service.url, 400)
    assert faults == []
    assert statuses[200] > 20
    assert statuses[422] > 20
