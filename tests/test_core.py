"""Parameters are brought to their type, kept inside their domain, and refused in one sentence that helps."""

import copy
import math
import pickle
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandit.core.parameters import Domain, checked, parameters, within
from driftbandit.core.protocols import Environment, Policy
from driftbandit.environments import Smooth
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.drift import DriftTS


@checked
class Sample(NamedTuple):
    share: Annotated[float, within("(0, 1]", "Try 0.5.")] = 0.5
    count: Annotated[int, within(">= 1")] = 3
    level: Annotated[float, within("any")] = 0.0
    free: float = 1.0
    on: bool = False
    word: str = "a"
    anything: Any = None

    def validate(self) -> None:
        if self.share * self.count > 100:
            raise ValueError("Sample needs share * count <= 100.")


def sentence(error: pytest.ExceptionInfo) -> str:
    """The message, after checking that it is short, on one line, and ends as a sentence does."""
    message = str(error.value)
    assert "\n" not in message
    assert 10 < len(message) < 300
    assert message.endswith((".", "?"))
    return message


@pytest.mark.parametrize("value", [1, 1.0, np.float64(1), np.float32(1), np.int64(1), np.uint8(1)])
def test_every_way_to_write_a_number_gives_the_same_type_and_the_same_policy(value):
    made = Sample(share=value, count=value)
    assert type(made.share) is float
    assert type(made.count) is int
    assert made == Sample(share=1.0, count=1)
    assert repr(made) == repr(Sample(share=1.0, count=1))


def test_numpy_truth_values_and_whole_floats_are_taken_for_what_they_mean():
    made = Sample(on=np.bool_(True), count=7.0)
    assert made.on is True
    assert made.count == 7


BAD = [
    ("share", 0.0),
    ("share", -0.1),
    ("share", 1.0000001),
    ("share", math.nan),
    ("share", math.inf),
    ("share", -math.inf),
    ("share", "0.5"),
    ("share", None),
    ("share", True),
    ("share", 0.5 + 0j),
    ("share", [0.5]),
    ("share", np.array([0.5])),
    ("share", 10**400),
    ("count", 0),
    ("count", 2.5),
    ("count", math.nan),
    ("count", math.inf),
    ("count", "3"),
    ("count", False),
    ("count", 10**400),
    ("count", 2**63),  # compiled code has 64 bits
    ("level", math.nan),
    ("level", math.inf),
    ("level", -math.inf),
    ("free", math.nan),
    ("free", "x"),
    ("on", 1),
    ("on", "yes"),
    ("word", 3),
    ("word", None),
]


@pytest.mark.parametrize(("name", "value"), BAD, ids=lambda value: repr(value)[:20])
def test_a_bad_parameter_is_refused_in_one_sentence_that_names_it(name, value):
    with pytest.raises(ValueError, match=rf"^Sample needs {name}\b.*; got ") as error:
        Sample(**{name: value})
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 300


def test_the_message_has_the_error_and_the_remedy():
    with pytest.raises(ValueError, match="Sample needs") as error:
        Sample(share=1.2)
    assert str(error.value) == "Sample needs share in (0, 1]; got 1.2. Try 0.5."
    with pytest.raises(ValueError, match="Sample needs") as error:
        Sample(count=2.5)
    assert str(error.value) == "Sample needs count >= 1, a whole number; got 2.5."
    with pytest.raises(ValueError, match="DiscountedTS needs gamma") as error:
        DiscountedTS(gamma=1.2)
    assert "tuned(horizon, phases)" in sentence(error)


def test_conditions_between_parameters_are_checked_too():
    with pytest.raises(ValueError, match=r"^Sample needs share \* count <= 100.$"):
        Sample(share=1.0, count=101)


def test_an_unknown_or_superfluous_parameter_is_refused_with_the_list_of_those_there_are():
    for build in (lambda: Sample(shares=0.5), lambda: Sample(*range(1, 20)), lambda: Sample(0.5, share=0.5)):
        with pytest.raises(TypeError, match=r"^Sample takes the parameters \(share, count, ") as error:
            build()
        assert "__new__" not in sentence(error)
    with pytest.raises(TypeError, match=r"^DriftTS takes no parameters: got an unexpected keyword argument 'gamma'\.$"):
        DriftTS(gamma=0.9)


def test_copies_and_pickles_are_equal_and_their_text_gives_them_back():
    policy = DiscountedTS(gamma=0.7, tau_max=1 / 3)
    assert copy.copy(policy) == policy
    assert copy.deepcopy(policy) == policy
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert eval(repr(policy)) == policy
    assert hash(policy) == hash(DiscountedTS(gamma=0.7, tau_max=1 / 3))


def test_parameters_lists_names_types_domains_and_defaults():
    declared = parameters(DiscountedTS)
    assert [p.name for p in declared] == ["gamma", "tau_max", "forget_below", "weight"]
    assert {p.kind for p in declared} == {float}
    assert declared[0].domain is not None
    assert declared[0].domain.text == "(0, 1]"
    assert declared[1].default == 0.2


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_domains_hold_exactly_the_numbers_they_say(x):
    finite = math.isfinite(x)
    assert Domain("any").holds(x) == finite
    assert Domain("> 0").holds(x) == (finite and x > 0)
    assert Domain(">= 1").holds(x) == (finite and x >= 1)
    assert Domain("(0, 1]").holds(x) == (0 < x <= 1)
    assert Domain("[0, 1)").holds(x) == (0 <= x < 1)
    assert Domain("[0, inf]").holds(x) == (x >= 0)


@given(st.floats() | st.integers() | st.text(max_size=5) | st.none() | st.booleans())
def test_whatever_is_given_for_gamma_is_a_discount_or_refused(value):
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and 1e-100 <= value <= 1:
        policy = DiscountedTS(gamma=value)
        assert type(policy.gamma) is float
        assert policy.gamma == value
    else:
        with pytest.raises(ValueError, match=r"^DiscountedTS needs gamma (in \(0, 1\]|to be 0 or between .*); got "):
            DiscountedTS(gamma=value)


def test_policies_and_environments_are_distinguished():
    assert isinstance(DiscountedTS(), Policy)
    assert not isinstance(DiscountedTS(), Environment)
    assert isinstance(Smooth(), Environment)
    assert not isinstance(Smooth(), Policy)
    assert not isinstance(Sample(), Policy | Environment)
