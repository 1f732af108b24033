"""The messages of the API. These types check the input, and /openapi.json is made from them."""

from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from driftbandit.bandit.effects import BelievedGain, BestArms, Effects, FeatureEffect
from driftbandit.bandit.inputs import to_json_arm
from driftbandit.bandit.reporting import Uplift
from driftbandit.policies.drift.belief import Expected, Explanation

# The library checks ids and names, with a clearer message than a pattern gives; the pattern is for readers.
Id = Annotated[str, Meta(extra_json_schema={"pattern": "^[A-Za-z0-9_.:~-]{1,128}$"}, description="a decision's id")]
Name = Annotated[
    str, Meta(extra_json_schema={"pattern": "^[A-Za-z0-9_][A-Za-z0-9_.:~-]{0,127}$"}, description="a bandit's name")
]
LONGEST_ARM, MOST_ARMS = 200, 1000
Label = Annotated[str, Meta(min_length=1, max_length=LONGEST_ARM)]
Whole = Annotated[int, Meta(ge=-(2**53), le=2**53)]
# An arm is a text or a number; {"tuple": [...]} is how JSON holds the tuple that a program may use as a name.
Arm = Label | Whole | float | bool | dict[str, list[str | Whole | float | bool | None]]
PolicyText = Annotated[
    str, Meta(min_length=1, max_length=500, description='a policy of the library, "ds-ts(gamma=0.99)"')
]
Duration = Annotated[str, Meta(min_length=1, max_length=40, description='a duration, "6 h" or "15 min"')]
Share = Annotated[float, Meta(ge=0.0, lt=1.0)]
Learn = Annotated[str, Meta(pattern="^(wait|arrival)$", description="when rewards are learned, where wait is set")]
Arms = Annotated[list[Arm], Meta(min_length=1, max_length=MOST_ARMS)]
# So are the numbers of levels, features and candidates, where the library's message gives the count and the way out.
Kind = Annotated[list[str], Meta(extra_json_schema={"minItems": 1, "maxItems": 64})] | str
FeatureKinds = Annotated[
    dict[str, Kind],
    Meta(extra_json_schema={"maxProperties": 64}, description='{"device": ["tv"], "basket": "number"}'),
]
_VALUES = dict[str, str | float | bool | None]
Context = Annotated[_VALUES, Meta(extra_json_schema={"maxProperties": 64}, description='{"device": "mobile"}')]
Candidates = Annotated[
    dict[str, _VALUES],
    Meta(extra_json_schema={"minProperties": 1, "maxProperties": 100}, description='{"offer-17": {"price": 9.9}}'),
]
Labels = Annotated[dict[str, str], Meta(extra_json_schema={"maxProperties": 16}, description='{"country": "de"}')]
Who = Annotated[str, Meta(max_length=200, description="who changes it; kept in the journal")]


class Strict(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A message to the service. An unknown field is an error, so that a misspelt one is noticed."""


class BanditOptions(Strict):
    """The options of a bandit that can be changed later."""

    policy: PolicyText | UnsetType | None = UNSET
    half_life: Duration | UnsetType | None = UNSET
    first: bool | UnsetType | None = UNSET
    floor: Share | UnsetType | None = UNSET
    holdback: Share | UnsetType | None = UNSET
    baseline: Arm | UnsetType | None = UNSET
    learn_holdback: bool | UnsetType | None = UNSET
    wait: Duration | UnsetType | None = UNSET
    default: float | UnsetType | None = UNSET
    learn: Learn | UnsetType | None = UNSET
    features: FeatureKinds | UnsetType | None = UNSET
    retention: Duration | UnsetType | None = UNSET
    labels: Labels | UnsetType | None = UNSET


class NewBandit(BanditOptions, kw_only=True):
    """A new bandit. Without a policy it plays drift-auto, or drift-lin-ts if it has features; null is the default of
    an option. With candidates, every decision brings its own arms, and there are none here."""

    name: Name
    arms: Arms | None = None
    candidates: bool | UnsetType | None = UNSET
    reward_range: tuple[float, float] | UnsetType | None = UNSET
    goal: Annotated[str, Meta(pattern="^(maximise|minimise)$")] | UnsetType | None = UNSET
    seed: Annotated[int, Meta(ge=0, le=2**53)] | UnsetType | None = UNSET


class Templates(Struct):
    """What new bandits are made like, by the beginning of their names."""

    templates: list[NewBandit]


class Changes(BanditOptions, kw_only=True):
    """What to change; null removes half_life, wait, features, retention and labels, and is refused for other options.
    A new policy, half-life or features learn the whole journal again, unless from_now is true."""

    add_arm: Arm | UnsetType = UNSET
    retire_arm: Arm | UnsetType = UNSET
    from_now: bool = False
    who: Who = ""


class Nothing(Strict):
    """A message without content; `who` is optional."""

    who: Who = ""


class OneArm(Nothing, kw_only=True):
    """An arm to retire or fix."""

    arm: Arm


class NewArm(OneArm, kw_only=True):
    """An arm to add, and what is known of it: as of another, or a mean reward and how many observations it is worth."""

    like: Arm | None = None
    mean: float | None = None
    worth: float | None = None


class Greedy(Strict):
    """A question for the best arm in a context, or for the best candidate."""

    context: Context | None = None
    candidates: Candidates | None = None
    available: Arms | None = None


class Ask(Greedy, kw_only=True):
    """A request for a decision. The same id again gives the same decision."""

    id: Id | None = None
    probability: bool = False


class AskMany(Strict):
    """Several decisions: a number, or one for each id; in one context or in one each, and so with candidates."""

    count: Annotated[int, Meta(ge=1, le=1000)] | None = None
    ids: Annotated[list[Id], Meta(min_length=1, max_length=1000)] | None = None
    context: Context | Annotated[list[Context], Meta(min_length=1, max_length=1000)] | None = None
    candidates: Candidates | Annotated[list[Candidates], Meta(min_length=1, max_length=1000)] | None = None
    available: Arms | None = None
    probability: bool = False


class WhatIf(Greedy):
    """A question about a context, in which what is left out counts as its mean so far; or about candidates."""

    draws: Annotated[int, Meta(ge=1, le=10_000)] = 2000  # for probabilities that have no formula


class OneReward(Strict):
    """The outcome of a decision; or a part of it, with an id, so that sending it again counts once."""

    id: Id
    reward: float
    part: Id | None = None


class Reward(OneReward):
    """The outcome of a decision; with add, a part of it. Parts are added up until the decision is `wait` old."""

    add: bool = False


class Rewards(Strict):
    """The outcomes of several decisions, or with add parts of them; each gets its own verdict."""

    rewards: Annotated[list[OneReward], Meta(min_length=1, max_length=1000)]
    add: bool = False


class Made(Struct):
    """A decision. `at` is in microseconds since 1970; `known` is the number of events its decider had folded."""

    id: str
    arm: Any
    at: int
    known: int
    how: str
    probability: float | None = None


class MadeMany(Struct):
    """Decisions, in the order of the request."""

    decisions: list[Made]


class RewardVerdict(Struct, omit_defaults=True):
    """ "learned", "waiting" (it is learned when its decision is `wait` old), "again" (it was there already) or "late"
    (stored, not learned); or the error this reward met."""

    id: str
    verdict: str | None = None
    error: str | None = None
    kind: str | None = None


class Verdicts(Struct):
    """One verdict for each reward, in the order of the request."""

    verdicts: list[RewardVerdict]


class Record(Struct):
    """A decision and its outcome."""

    decision: Made
    outcome: str | None
    reward: float | None
    late: float | None
    came: int | None
    waiting: bool
    context: dict[str, Any] | None
    added: float | None  # the sum of the parts of its reward so far


class Records(Struct):
    """Decisions, newest first."""

    decisions: list[Record]


class BanditInfo(BanditOptions, kw_only=True):
    """All settings of a bandit."""

    name: str
    arms: list[Any]
    retired: list[Any]
    reward_range: tuple[float, float] | None
    goal: str
    fixed: Any
    candidates: bool
    archived: int | None = None  # when, in microseconds since 1970


class Erased(Struct):
    """Whether the id had not been erased before."""

    erased: bool


class Names(Struct):
    """Bandits that the key may read, and the name after which the next page begins; null on the last page."""

    bandits: list[str]
    next: str | None


class ArmInfo(Struct):
    """An arm now: the probability that it is chosen, and the policy's belief about its mean reward. `weight` is the
    effective number of observations of that belief."""

    arm: Any
    retired: bool
    probability: float
    mean: float | None
    spread: float | None
    weight: float | None


class ArmsInfo(Struct):
    """All arms now; `error` bounds the error of the probabilities, and `believes` is false for a policy that expects no
    rewards. Before the first reward, an expected one is null."""

    arms: list[ArmInfo]
    error: float
    believes: bool = True


class GreedyInfo(Struct):
    """The arm with the best believed mean reward."""

    arm: Any


class AuditInfo(Struct):
    """The last audit: every decision and the state recomputed. `state` is "never", "running", "proved", "proved in
    part", "differs" or "failed"; `unproved` lists what this version cannot recompute."""

    state: str
    at: int | None = None
    decisions: int = 0
    events: int = 0
    snapshots: int = 0
    differences: list[str] = []
    unproved: list[str] = []


class ChangeInfo(Struct):
    """A change of configuration in the journal."""

    at: int
    what: str
    who: str


class ChangesInfo(Struct):
    """All changes, oldest first."""

    changes: list[ChangeInfo]


class HealthInfo(Struct):
    """Counts and lags of one bandit; lags are null where this process only reads the journal. `waiting` counts outcomes
    that are learned when their decision is old enough, `late` rewards that came after `wait`. `plays` is the policy
    that decides now, where it depends on the rewards; `cut` counts absurdly large rewards that it cut. Of the contexts
    learned, `missing` counts those without a feature, `undeclared` those with a level that was not declared."""

    decisions: int
    rewards: int
    defaults: int
    late: int
    waiting: int
    events: int
    plays: str
    cut: int
    delays: str | None
    warnings: list[str]
    missing: dict[str, int]
    undeclared: dict[str, dict[str, int]]
    queued: int | None = None
    lag_seconds: float | None = None
    clock_set_back_seconds: float | None = None
    clock_ahead_seconds: float | None = None


class Score(Struct):
    """An arm in a decision: the number that the policy compared, if it compares numbers."""

    arm: Any
    score: float | None
    probability: float


class WhyInfo(Struct):
    """Why an arm was chosen, recomputed from the journal."""

    decision: Made
    proved: bool
    scores: list[Score]
    error: float
    text: str


class SettledInfo(Struct):
    """How many defaults were written."""

    defaults: int


class ClockInfo(Struct):
    """By how much the times of a bandit are ahead of the clock."""

    ahead_seconds: float


class Error(Struct, omit_defaults=True):
    """What was wrong, in one sentence."""

    error: str
    kind: str


# ---- messages with the fields of the library's own answers -----------------------------------------------------------

_Number = float | None  # null where it is not known: NaN in the library


def message_of(answer: Any, **others: Any) -> Any:
    """The type of a message with the fields of a named tuple. `others` are fields of another type, or more of them."""
    kinds = get_type_hints(answer) | others
    fields = [(name, kind, *([answer._field_defaults[name]] if name in answer._field_defaults else []))
              for name, kind in kinds.items()]  # fmt: skip
    return msgspec.defstruct(answer.__name__, fields, namespace={"__doc__": answer.__doc__}, kw_only=True)


def to_plain(answer: Any) -> Any:
    """An answer of the library as JSON has it: named tuples by their fields, other tuples as names of arms."""
    if hasattr(answer, "_asdict"):
        return {name: to_plain(value) for name, value in answer._asdict().items()}
    if isinstance(answer, list):
        return [to_plain(value) for value in answer]
    return to_json_arm(answer) if isinstance(answer, tuple) else answer


UpliftInfo = message_of(
    Uplift, text=str, **dict.fromkeys(("policy", "baseline", "difference", "low", "high"), _Number)
)  # fmt: skip
EffectsInfo = message_of(
    Effects, features=list[message_of(FeatureEffect)], best=message_of(BestArms) | None,  # type: ignore[misc]
    gain=message_of(BelievedGain) | None,
)  # fmt: skip
ExpectedInfo = message_of(Expected, arm=Any, mean=_Number, sd=_Number)
Explained = message_of(
    Explanation, text=str, **dict.fromkeys(("arms", "environment_arms"), list[ExpectedInfo]),  # type: ignore[valid-type]
    features=dict[str, list[str]] | None, last_change=int | None, memory=int | None, learned=int | None,
    **dict.fromkeys(("stationary", "jumps", "drifts", "common_drift"), _Number),
)  # fmt: skip
encode = msgspec.json.Encoder().encode
