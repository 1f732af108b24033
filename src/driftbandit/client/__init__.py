"""A bandit that lives in a service: the same names as `driftbandit.Bandit`, over HTTP.

To move a program from an embedded bandit to a served one, change one line: where `Bandit.open` looks.

    bandit = Bandit.open("shop.db", "button", DiscountedTS(), arms=["red", "green"])
    bandit = Bandit.open("http://127.0.0.1:8000", "button", DiscountedTS(), arms=["red", "green"])

Needs `pip install 'driftbandit[client]'`. A key is given by key= or by the environment variable DRIFTBANDIT_KEY."""

from driftbandit.client.bandit import Bandit

__all__ = ["Bandit"]
