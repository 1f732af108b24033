"""The paper's analysis, computable: bounds with their conditions, tuning rules, and the quantities they need.

Start with `diagnosis.diagnose(world)`, give its numbers to `theorem.theorem1` or `theorem2`, and read `Bound.vacuous`
first."""
