"""Erasing and archiving over HTTP, and by the client."""

import pytest

from driftbandit.errors import Archived, NotFound


def test_an_id_is_erased_and_a_bandit_archived_over_http(service) -> None:
    from driftbandit.bandit import Bandit

    with Bandit.open(service.url, "gone", arms=["red", "green"]) as bandit:
        decision = bandit.decide("person-1")
        bandit.reward("person-1", 1.0)
        assert bandit.erase("person-1")
        assert not bandit.erase("person-1")
        with pytest.raises(NotFound):
            bandit.outcome("person-1")
        with pytest.raises(NotFound):
            bandit.erase("person-2")
        assert bandit.decide("person-1").arm == decision.arm
        assert "person-1" not in service.get("/v1/bandits/gone/decisions?limit=10").text
        bandit.archive()
        assert service.call("POST", "/v1/bandits/gone/decisions", {}).status_code == 410
        with pytest.raises(Archived):
            bandit.decide()
        assert "gone" not in service.get("/v1/bandits").json()["bandits"]
        bandit.unarchive()
        assert bandit.decide("person-1").arm == decision.arm
        assert "gone" in service.get("/v1/bandits").json()["bandits"]
