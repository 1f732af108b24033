"""The environments of this package as Gymnasium environments: an action is an arm, an observation is the context."""

from typing import Any

import numpy as np

from driftbandit.core.draws import CONTEXT, ENVIRONMENT, REWARD, Stream, stream_key
from driftbandit.core.protocols import Environment
from driftbandit.spec.parse import parse_environment

try:
    import gymnasium
except ImportError as error:
    raise ImportError("This adapter needs Gymnasium: pip install '.[gymnasium]'.", name=error.name) from None

ID = "driftbandit/Bandit-v0"


class BanditEnv(gymnasium.Env[Any, Any]):
    """An environment with arms as actions, given as an object or as a text such as "abrupt(n_arms=3)".

    The observation is the context of the round to come: `n_features` numbers, or a row of them for each arm. In an
    environment without context it is always 0. The episode is truncated at the horizon. `info` has `regret`, the mean
    reward of the best arm in that round less that of the arm played, and `best`, the former.

    `reset(seed=s)` gives run 0 of `lab.simulate(..., seed=s)`: the same means, contexts and rewards."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  Gymnasium declares it so

    def __init__(self, environment: Any = "abrupt") -> None:
        made = parse_environment(environment) if isinstance(environment, str) else environment
        if isinstance(made, type) or not isinstance(made, Environment):
            raise ValueError(f"Expected an environment such as Abrupt() or its text; got {environment!r:.60}.")
        self.environment = made
        self.n_features: int = getattr(made, "n_features", 0)
        self.action_space = gymnasium.spaces.Discrete(made.n_arms)
        shape = (made.n_arms, self.n_features) if getattr(made, "joint", False) else (self.n_features,)
        self.observation_space = (
            gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float64)
            if self.n_features
            else gymnasium.spaces.Discrete(1)
        )
        self._features = np.zeros(shape)
        self._round = made.horizon  # an episode begins with `reset`

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode: without a seed, another one."""
        super().reset(seed=seed)
        seed = int(self.np_random.integers(1 << 62)) if seed is None else seed
        keys = {which: stream_key(seed, 0, which) for which in (ENVIRONMENT, REWARD, CONTEXT)}
        self._run: Any = self.environment.realise(keys[ENVIRONMENT])
        self._rewards, self._contexts = Stream(keys[REWARD]), Stream(keys[CONTEXT])
        self._round = 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play an arm."""
        arm, t, run = int(action), self._round, self._run_or_raise()
        if not 0 <= arm < run.n_arms:
            raise ValueError(f"An action is an arm from 0 to {run.n_arms - 1}; got {action!r:.60}.")
        rng = self._rewards.at(t)
        if self.n_features:
            context = self._features.ravel()
            reward, best = run.pull_in(t, arm, context, rng), run.best_in(t, context)
            mean = run.mean_in(t, arm, context)
        else:
            reward, best, mean = run.pull(t, arm, rng), run.best(t), run.mean(t, arm)
        self._round = t + 1
        over = self._round >= run.horizon
        return self._observe(), float(reward), False, over, {"regret": float(best - mean), "best": float(best)}

    def _run_or_raise(self) -> Any:
        if self._round >= self.environment.horizon:
            raise gymnasium.error.ResetNeeded("The episode is over, or has not begun; call reset().")
        return self._run

    def _observe(self) -> Any:
        """The context of the round to come; after the last round, that of the last."""
        if not self.n_features:
            return 0
        if self._round < self.environment.horizon:
            drawn = [0.0] * self._features.size
            self._run.features(self._round, self._contexts.at(self._round), drawn)
            self._features = np.reshape(drawn, self._features.shape)
        return self._features.copy()


if ID not in gymnasium.registry:
    gymnasium.register(ID, entry_point=f"{__name__}:BanditEnv")
