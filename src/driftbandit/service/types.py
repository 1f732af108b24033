"""The messages of the API. These types check the input, and /openapi.json is made from them."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

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
Time = Annotated[str, Meta(min_length=1, max_length=40, description='a duration, "6 h" or "15 min"')]
Share = Annotated[float, Meta(ge=0.0, lt=1.0)]
Learn = Annotated[str, Meta(pattern="^(wait|arrival)$", description="when rewards are learned, where wait is set")]
Arms = Annotated[list[Arm], Meta(min_length=1, max_length=MOST_ARMS)]
Who = Annotated[str, Meta(max_length=200, description="who changes it; kept in the journal")]


class Strict(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A message to the service. An unknown field is an error, so that a misspelt one is noticed."""


class NewBandit(Strict):
    """A new bandit."""

    name: Name
    arms: Arms
    policy: PolicyText = "drift-ts"
    half_life: Time | None = None
    floor: Share | None = None
    holdback: Share | None = None
    baseline: Arm | None = None
    learn_holdback: bool | None = None
    wait: Time | None = None
    default: float | None = None
    learn: Learn | None = None
    reward_range: tuple[float, float] | None = None
    outside: Annotated[str, Meta(pattern="^(refuse|clip|allow)$")] | None = None
    seed: Annotated[int, Meta(ge=0, le=2**53)] | None = None


class Changes(Strict):
    """What to change; null removes half_life and wait. A new policy or half-life learns the whole journal again, unless
    from_now is true."""

    policy: PolicyText | UnsetType = UNSET
    half_life: Time | UnsetType | None = UNSET
    floor: Share | UnsetType = UNSET
    holdback: Share | UnsetType = UNSET
    baseline: Arm | UnsetType = UNSET
    learn_holdback: bool | UnsetType = UNSET
    wait: Time | UnsetType | None = UNSET
    default: float | UnsetType = UNSET
    add_arm: Arm | UnsetType = UNSET
    retire_arm: Arm | UnsetType = UNSET
    learn: Learn | UnsetType = UNSET
    from_now: bool = False
    who: Who = ""


class OneArm(Strict):
    """An arm to add, retire or fix."""

    arm: Arm
    who: Who = ""


class Nothing(Strict):
    """A message without content; `who` is optional."""

    who: Who = ""


class Ask(Strict):
    """A request for a decision. The same id again gives the same decision."""

    id: Id | None = None
    available: Arms | None = None
    probability: bool = False


class AskMany(Strict):
    """Several decisions in one commit: a number of them, or one for each id."""

    count: Annotated[int, Meta(ge=1, le=1000)] | None = None
    ids: Annotated[list[Id], Meta(min_length=1, max_length=1000)] | None = None
    available: Arms | None = None
    probability: bool = False


class Reward(Strict):
    """The outcome of a decision."""

    id: Id
    reward: float


class Rewards(Strict):
    """The outcomes of several decisions; each gets its own verdict."""

    rewards: Annotated[list[Reward], Meta(min_length=1, max_length=1000)]


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
    """ "learnt", "waiting" (it is learned when its decision is `wait` old), "again" (it was reported before) or "late"
    (stored, not learned); or the error of this reward."""

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


class Records(Struct):
    """Decisions, newest first."""

    decisions: list[Record]


class BanditInfo(Struct):
    """All settings of a bandit."""

    name: str
    policy: str
    arms: list[Any]
    retired: list[Any]
    half_life: str | None
    floor: float
    holdback: float
    baseline: Any
    learn_holdback: bool
    wait: str | None
    default: float
    learn: str
    reward_range: tuple[float, float]
    outside: str
    fixed: Any
    changes: int


class Names(Struct):
    """The bandits that the key may read."""

    bandits: list[str]


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
    """All arms now; `error` bounds the error of the probabilities."""

    arms: list[ArmInfo]
    error: float


class HistoryInfo(Struct):
    """Counts over time, one row per interval and one column per arm; times in microseconds since 1970. With `wait`, an
    outcome counts at the time when its decision is that old."""

    starts: list[int]
    width: int
    arms: list[Any]
    decisions: list[list[int]]
    outcomes: list[list[int]]
    rewards: list[list[float]]


class UpliftInfo(Struct):
    """What the policy gains over the baseline; null where there are too few outcomes yet."""

    policy: float | None
    baseline: float | None
    difference: float | None
    low: float | None
    high: float | None
    n_policy: int
    n_baseline: int
    confidence: float
    periods: int
    left_out: int
    holdback: float
    text: str


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
    """Counts and lags of one bandit; null where this process only reads the journal. `waiting` counts outcomes
    that are learned when their decision is old enough, `late` rewards that came after `wait`."""

    decisions: int
    rewards: int
    defaults: int
    late: int
    waiting: int
    events: int
    clipped: int
    delays: str | None
    warnings: list[str]
    queued: int | None
    lag_ms: float | None
    clock_set_back_s: float | None


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


class ExpectedInfo(Struct):
    """The expected reward of an arm, and its standard deviation."""

    arm: Any
    mean: float
    sd: float


class Explained(Struct):
    """What the policy believes about the environment: the probabilities that it is stationary (`still`), jumps, drifts
    or has common drift (`tides`); how many rounds ago it last changed, and how many rounds it uses."""

    still: float
    jumps: float
    drifts: float
    tides: float
    last_change: int | None
    memory: int
    learnt: int
    arms: list[ExpectedInfo]
    text: str


class BeliefSeries(Struct):
    """Beliefs over time: rows are times (microseconds), columns arms; null where there is no belief."""

    times: list[int]
    mean: list[list[float | None]]
    spread: list[list[float | None]]
    weight: list[list[float | None]]


class Mark(Struct):
    """A change of configuration, or an alarm of a policy that detects changes."""

    at: int
    kind: str
    text: str


class Delays(Struct):
    """The delays of rewards of the last decisions: a histogram with edges in seconds, the number of decisions that are
    old enough and have no reward, and a sentence about all rewards."""

    edges: list[float]
    counts: list[int]
    none: int
    wait: float | None
    text: str


class Density(Struct):
    """The belief of each arm now, as densities over reward."""

    at: list[float]
    density: list[list[float]]


class ChartsInfo(Struct):
    """Everything the page of one bandit draws."""

    arms: list[Any]
    retired: list[int]
    fixed: int | None
    since: int
    until: int
    first: int | None
    history: HistoryInfo
    beliefs: BeliefSeries
    marks: list[Mark]
    delays: Delays
    densities: Density | None
    truth: list[list[float]] | None = None  # in a demonstration: the true means at `beliefs.times`
    filling: float | None = None  # the part of an older journal that has been read so far


class WhatIf(Struct):
    """The same journal folded with another policy. `state` is "running", "done" or "failed"."""

    state: str
    progress: float
    policy: str
    half_life: str | None
    beliefs: BeliefSeries | None = None
    text: str = ""


class Error(Struct, omit_defaults=True):
    """What was wrong, in one sentence."""

    error: str
    kind: str


encode = msgspec.json.Encoder().encode
