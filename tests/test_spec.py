"""Names and texts: everything is found, every text is read back, and nothing else is."""

from typing import Annotated, Any, NamedTuple

import pytest

from driftbandit.core.parameters import checked, parameters, within
from driftbandit.environments import Abrupt, Gaussian, PhaseTable, Smooth, phased
from driftbandit.errors import SpecError
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.spec import parse

DISCOVERED = [*parse.policies().values(), *parse.environments().values(), *parse.laws().values()]


def example(cls: type) -> Any:
    """An instance with every parameter that has no default set to something of its type inside its domain."""
    if cls is PhaseTable:
        return PhaseTable(means=((0.25, 0.75), (1.0, 0.0)), starts=(0, 7), horizon=10)
    defaults = cls._field_defaults  # type: ignore[attr-defined]
    given: dict[str, Any] = {}
    for p in parameters(cls):
        if p.name not in defaults:
            choices = {int: [10, 100, 1, 0], float: [0.5, 1.5, 1.0], bool: [True], str: ["text"]}.get(
                p.kind, [DiscountedTS(gamma=0.75)]
            )
            given[p.name] = next(value for value in choices if p.domain is None or p.domain.holds(value))
    return cls(**given)


@pytest.mark.parametrize("cls", DISCOVERED, ids=lambda cls: cls.__name__)
def test_the_text_of_everything_discovered_is_read_back_as_the_same_thing(cls):
    thing = example(cls)
    again = parse.parse(repr(thing))
    assert again == thing
    assert type(again) is type(thing)
    assert [type(value) for value in again] == [type(value) for value in thing]


@pytest.mark.parametrize("cls", DISCOVERED, ids=lambda cls: cls.__name__)
def test_a_class_is_found_by_its_name_in_any_case_and_by_its_short_name(cls):
    for name in {cls.__name__, cls.__name__.upper(), getattr(cls, "short", cls.__name__)}:
        assert parse.find(name) is cls


def test_no_two_classes_share_a_name():
    taken: dict[str, type] = {}
    for cls in DISCOVERED:
        for name in {
            cls.__name__.casefold(),
            getattr(cls, "short", cls.__name__).casefold(),
            *getattr(cls, "aliases", ()),
        }:
            assert taken.setdefault(name, cls) is cls, f"{name} is both {cls.__name__} and {taken[name].__name__}"


def test_a_policy_module_need_not_be_registered_anywhere():
    assert parse.policies()["DiscountedTS"] is DiscountedTS
    assert set(parse.environments()) >= {"Abrupt", "AbruptLimited", "AbruptGap", "AbruptFinite", "PhaseTable", "Smooth"}


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ("ds-ts", DiscountedTS()),
        (" ds-ts( gamma = 0.9 ) ", DiscountedTS(gamma=0.9)),
        ("DS-TS(0.9, 1e-1)", DiscountedTS(0.9, 0.1)),
        ("DiscountedTS(tau_max=1/5)", DiscountedTS(tau_max=0.2)),
        ("ds-ts.half_life(70)", DiscountedTS.half_life(70)),
        ("ds-ts.tuned(horizon=100_000, phases=10)", DiscountedTS(gamma=0.99)),
        ("smooth(sigma=1e-3, law=gaussian(sd=0.5))", Smooth(sigma=0.001, law=Gaussian(sd=0.5))),
        ('abrupt(instance="7")', Abrupt(instance="7")),
        (
            "phases(means=[[0.2, 0.8], [0.9, 0.1]], starts=[0, 5], horizon=9)",
            PhaseTable(((0.2, 0.8), (0.9, 0.1)), (0, 5), 9),
        ),
    ],
)
def test_short_names_lists_fractions_and_named_constructors_are_understood(text, thing):
    assert parse.parse(text) == thing


def test_a_named_constructor_takes_what_is_not_said_from_the_environment():
    environment = Abrupt(horizon=40_000, phases=4)
    assert parse.parse("ds-ts.tuned", environment=environment) == DiscountedTS(gamma=0.99)  # 1 - sqrt(4 / 40000)
    assert parse.parse("ds-ts.tuned(phases=16)", environment=environment) == DiscountedTS(gamma=0.98)


@pytest.mark.parametrize("verb", ["text", "code"])
def test_a_named_constructor_reads_whether_the_environment_drifts(verb):
    drifting = Smooth(n_arms=5, horizon=10_000, sigma=0.001)
    refused = 0
    for cls in parse.policies().values():
        if verb in parse.constructors(cls):
            made = parse.parse(f"{cls.short}.{verb}", environment=drifting)
            assert made == getattr(cls, verb)(10_000, 1, 5, smooth=True), cls
            refused += 1
    assert refused >= 8
    assert parse.parse("sw-ts.text(smooth=True)", environment=drifting) == parse.parse(
        "sw-ts.text", environment=drifting
    )
    with pytest.raises(SpecError, match="drifts and has none"):
        parse.parse("sw-ts.text(smooth=False)", environment=drifting)


def test_a_named_constructor_counts_the_phases_of_an_environment_that_only_has_breakpoints():
    environment = phased([[0.2, 0.8], [0.6, 0.4], [0.1, 0.2], [0.3, 0.9]], [0, 5, 20, 30], 40_000)
    table = PhaseTable(((0.2, 0.8), (0.6, 0.4), (0.1, 0.2), (0.3, 0.9)), (0, 5, 20, 30), 40_000)
    for one in (environment, table):
        assert parse.parse("ds-ts.tuned", environment=one) == DiscountedTS(gamma=0.99)
        assert parse.parse("ds-ts.text", environment=one) == DiscountedTS(gamma=0.99)


def test_what_a_drifting_environment_cannot_say_is_asked_for_in_a_sentence():
    with pytest.raises(SpecError, match=r"drifts and has none.*ds-ts\.tuned\(phases=10\)"):
        parse.parse("ds-ts.tuned", environment=Smooth())
    assert parse.parse("ds-ts.tuned(phases=4)", environment=Smooth(horizon=40_000)) == DiscountedTS(gamma=0.99)
    assert parse.parse("sw-osub.tuned_smooth", environment=Smooth(sigma=0.001)).window > 0


@checked
class Mine(NamedTuple):
    """A user's own policy, which may hold another."""

    base: Any = None
    factor: Annotated[float, within("> 0")] = 1.0

    def init(self, n_arms):
        return self.base.init(n_arms)

    def choose(self, state, t, rng):
        return self.base.choose(state, t, rng)

    def learn(self, state, t, arm, reward):
        self.base.learn(state, t, arm, reward * self.factor)


def test_a_users_own_class_is_read_when_given_also_around_ours():
    policy = Mine(base=DiscountedTS(gamma=0.5), factor=2.0)
    extra = {"Mine": Mine, "my-own": Mine, "ready": policy}
    assert parse.parse(repr(policy), extra=extra) == policy
    assert parse.parse("my-own(base=ds-ts(gamma=0.5), factor=2)", extra=extra) == policy
    assert parse.parse_policy("ready", extra=extra) is policy
    with pytest.raises(SpecError, match="no policy, environment or reward law named 'Mine'"):
        parse.parse("Mine()")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ds-tss", "did you mean ds-ts"),
        ("DiscountTS", "did you mean DiscountedTS"),
        ("abrupt(law=Bernouli)", "did you mean Bernoulli"),
        ("ds-ts(gama=0.9)", "did you mean gamma"),
        ("ds-ts.tund(horizon=10)", "did you mean tuned"),
        ("ds-ts.tuned(horizon=10)", "missing a required argument: 'phases'"),
        ("phases(horizon=3)", "missing a required argument: 'means'"),
        ("ds-ts(1, 1, 1, 1, 1)", "too many positional arguments"),
        ("ds-ts(0.5, gamma=0.5)", "multiple values for argument 'gamma'"),
        ("ds-ts(gamma=0.5, gamma=0.6)", "given twice"),
        ("ds-ts(gamma=1.2)", r"gamma in \(0, 1\]; got 1.2"),
        ("ds-ts(gamma=nan)", "got nan"),
        ("ds-ts(gamma=1/0)", "divides by zero"),
        ("ds-ts(gamma=-'a')", "for numbers"),
        ("ds-ts(", "Cannot read"),
        ("", "given by its text"),
        ("3.5", "neither a policy nor an environment"),
        ("((1, 2), 3)", "neither a policy nor an environment"),
        ("(" * 5000, "Cannot read"),
        ("[" * 90 + "]" * 90, "neither a policy nor an environment"),
        ("\0", "Cannot read"),
    ],
)
def test_a_wrong_text_is_refused_in_one_sentence_with_the_nearest_right_one(text, says):
    with pytest.raises(ValueError, match=says) as caught:
        parse.parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "ds-ts.__class__",
        "ds-ts._make((1, 2, 3, 4))",
        "ds-ts(gamma=open('x'))",
        "ds-ts(**{})",
        "[p for p in (1, 2)]",
        "lambda: 1",
        "ds-ts if 1 else ts",
        "ds-ts(gamma=10**10**10)",
        "f'{1}'",
        "ds-ts()()",
    ],
)
def test_text_is_never_run(text):
    with pytest.raises(SpecError):
        parse.parse(text)


def test_an_environment_is_no_policy_and_a_policy_no_environment():
    with pytest.raises(SpecError, match="Expected a policy"):
        parse.parse_policy("smooth")
    with pytest.raises(SpecError, match="Expected an environment"):
        parse.parse_environment("ds-ts")
