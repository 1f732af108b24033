"""Linear policies with upper confidence bounds: LinUCB, and ways to let it forget."""

import math
from typing import Annotated, Any, NamedTuple

from driftbandit.core.primitives import argmax_fair, compilable
from driftbandit.policies.forgetting import DISCOUNT
from driftbandit.policies.linear.least_squares import (
    add,
    add_product,
    discount,
    predict_arm,
    second_variance,
)
from driftbandit.policies.linear.linear_policy import (
    ALPHA,
    DELTA,
    LAM,
    SD,
    LinearState,
    dimension,
    linear,
    memory,
    radius,
)

INDEX = r"a = \operatorname{argmax}_i\ x_i^\top \hat\theta + \beta \sqrt{x_i^\top V^{-1} x_i}"
RADIUS = r"""\beta = \sqrt{\lambda}
        + \sigma \sqrt{2 \ln \tfrac{1}{\delta} + d \ln\bigl(1 + \tfrac{n}{\lambda d}\bigr)}"""


@compilable
def second_bound_scores(state: Any, lam: Any, width: Any) -> None:
    """The same with the standard deviation that weighted rewards really have."""
    for arm in range(len(state.scores)):
        mean = predict_arm(state, arm)
        state.scores[arm] = mean + width * math.sqrt(max(second_variance(state, arm, lam), 0.0))


@linear(
    short="lin-ucb",
    family="never forgets",
    formula=rf"""
        {INDEX}
        {RADIUS}, \quad n = t
        V \leftarrow V + x x^\top, \quad b \leftarrow b + r x, \quad \hat\theta = V^{{-1}} b
    """,
    reference="Abbasi-Yadkori, Pál, Szepesvári 2011",
)
class LinUCB(NamedTuple):
    """Ridge regression of rewards on features, and the arm whose confidence bound is highest.

    With `alpha` > 0 the bound is alpha sd standard deviations wide. With 0 it is the radius of the theory, which is
    cautious and assumes coefficients and features of norm at most 1. Without features this is UCB with a prior. Suited
    to rewards that do not change.

    Reference: Abbasi-Yadkori, Pál and Szepesvári 2011, "Improved algorithms for linear stochastic bandits"; with
    coefficients per arm Li, Chu, Langford and Schapire 2010."""

    lam: Annotated[float, LAM] = 1.0  # ridge: the weight of the prior
    sd: Annotated[float, SD] = 1.0  # standard deviation of the noise
    delta: Annotated[float, DELTA] = 0.01  # probability that the radius of the theory is too small
    alpha: Annotated[float, ALPHA] = 0.0  # width of the bound in units of sd; 0: the radius of the theory


@linear(
    short="lb-weight-ucb",
    family="discounts",
    formula=rf"""
        {INDEX}
        {RADIUS}, \quad n = \tfrac{{1 - \gamma^{{2t}}}}{{1 - \gamma^2}}
        V \leftarrow \gamma V + x x^\top + (1 - \gamma) \lambda I
        b \leftarrow \gamma b + r x, \quad \hat\theta = V^{{-1}} b
    """,
    reference="Wang, Zhao, Zhou 2023",
)
class WeightedLinUCB(NamedTuple):
    """LinUCB whose rewards lose a factor `gamma` each round (LB-WeightUCB).

    D-LinUCB without its second matrix: simpler and cheaper, with the same regret bound, of order P**(1/4) T**(3/4) for
    a total change P of the coefficients at gamma = 1 - max(1/T, sqrt(P/(dT))), which `tuned` computes. Unconfirmed:
    this gamma and the theory's lam = d.

    Reference: Wang, Zhao and Zhou 2023, "Revisiting weighted strategy for non-stationary parametric bandits"."""

    gamma: Annotated[float, DISCOUNT] = 0.99  # discount per round
    lam: Annotated[float, LAM] = 1.0  # ridge: the weight of the prior
    sd: Annotated[float, SD] = 1.0  # standard deviation of the noise
    delta: Annotated[float, DELTA] = 0.01  # probability that the radius of the theory is too small
    alpha: Annotated[float, ALPHA] = 0.0  # width of the bound in units of sd; 0: the radius of the theory

    @classmethod
    def tuned(
        cls,
        horizon: int,
        phases: int,
        n_arms: int = 0,
        n_features: int = 0,
        joint: bool = False,
        variation: float = 0.0,
    ) -> "WeightedLinUCB":
        """gamma = 1 - max(1/T, sqrt(variation / (d T))), lam = d, delta = 0.01 / horizon."""
        size = dimension(n_arms, n_features, joint)
        rounds = min(float(horizon), memory(horizon, phases, size, variation) ** 0.75)
        return cls(max(0.5, 1.0 - 1.0 / rounds), lam=size, delta=0.01 / horizon)


@linear(
    short="d-lin-ucb",
    second=True,
    family="discounts",
    formula=rf"""
        a = \operatorname{{argmax}}_i\ x_i^\top \hat\theta
        + \beta \sqrt{{x_i^\top V^{{-1}} \tilde V V^{{-1}} x_i}}
        {RADIUS}, \quad n = \tfrac{{1 - \gamma^{{2t}}}}{{1 - \gamma^2}}
        V \leftarrow \gamma V + x x^\top + (1 - \gamma) \lambda I
        \tilde V \leftarrow \gamma^2 \tilde V + x x^\top + (1 - \gamma^2) \lambda I
        b \leftarrow \gamma b + r x, \quad \hat\theta = V^{{-1}} b
    """,
    reference="Russac, Vernade, Cappé 2019",
)
class DiscountedLinUCB(NamedTuple):
    """LinUCB whose rewards lose a factor `gamma` each round (D-LinUCB), with the variance that weighted rewards have.

    With a total change B of the coefficients in T rounds the paper requires gamma = 1 - (B/(dT))**(2/3), which `tuned`
    computes. Its time-uniform radius is wrong: it holds for each round, not for all of them together. `tuned` therefore
    divides delta by the horizon. `form="code"` is the authors' code, which computes the second matrix from the first
    in every round, as gamma**2 V + x x' + (1 - gamma**2) lam I with the new V. Their figures were made with it.

    Reference: Russac, Vernade and Cappé 2019, "Weighted linear bandits for non-stationary environments"; the radius:
    arXiv 2608.19643."""

    gamma: Annotated[float, DISCOUNT] = 0.99  # discount per round
    lam: Annotated[float, LAM] = 1.0  # ridge: the weight of the prior
    sd: Annotated[float, SD] = 1.0  # standard deviation of the noise
    delta: Annotated[float, DELTA] = 0.01  # probability that the radius of the theory is too small
    alpha: Annotated[float, ALPHA] = 0.0  # width of the bound in units of sd; 0: the radius of the theory
    form: str = "paper"  # or "code": the second matrix from the first

    def validate(self) -> None:
        if self.form not in ("paper", "code"):
            raise ValueError(f"DiscountedLinUCB needs form to be 'paper' or 'code'; got {self.form!r:.60}.")

    def choose(self, state: LinearState, t: int, rng: Any) -> Any:
        second_bound_scores(state, self.lam, radius(self, state))
        return argmax_fair(state.scores, rng)

    def discount(self, state: LinearState, factor: float) -> None:
        """Discount the sums. The code multiplies the first matrix by gamma again and calls it the second."""
        discount(state, factor)
        if self.form == "code":
            for i in range(len(state.gram)):
                state.second[i] = factor * factor * state.gram[i]

    def add(self, state: LinearState, group: Any, reward: Any, weight: float) -> None:
        """Add a reward to the sums. The code's second matrix has it twice: its own, and that of the first matrix."""
        add(state, group, reward, weight)
        if self.form == "code":
            n = len(state.u)
            add_product(state.second, group * n * n, state.x, n, weight * self.gamma * self.gamma)


@linear(
    short="d-rand-lin-ucb",
    draws="one",
    second=True,
    family="discounts",
    formula=r"""
        a = \operatorname{argmax}_i\ x_i^\top \hat\theta
        + \tfrac{|Z|}{2.5} \beta \sqrt{x_i^\top V^{-1} \tilde V V^{-1} x_i}, \quad Z \sim \mathcal{N}(0, 1)
        V, \tilde V, b, \beta \text{ as in D-LinUCB}
    """,
    reference="Kim, Tewari 2020",
)
class DiscountedRandLinUCB(NamedTuple):
    """D-LinUCB with a random width (D-RandLinUCB): one normal Z per round, the same for all arms, multiplies the radius
    by |Z| / 2.5.

    It explores less than D-LinUCB in most rounds and keeps its regret bound.

    Reference: Kim and Tewari 2020, "Randomized exploration for non-stationary stochastic linear bandits"."""

    gamma: Annotated[float, DISCOUNT] = 0.99  # discount per round
    lam: Annotated[float, LAM] = 1.0  # ridge: the weight of the prior
    sd: Annotated[float, SD] = 1.0  # standard deviation of the noise
    delta: Annotated[float, DELTA] = 0.01  # probability that the radius of the theory is too small
    alpha: Annotated[float, ALPHA] = 0.0  # width of the bound in units of sd; 0: the radius of the theory

    def choose(self, state: LinearState, t: int, rng: Any) -> Any:
        rng.normals(state.draws)
        second_bound_scores(state, self.lam, abs(state.draws[0]) / 2.5 * radius(self, state))
        return argmax_fair(state.scores, rng)
