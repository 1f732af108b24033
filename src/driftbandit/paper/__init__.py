"""The reproduction of the paper: its items, its claims, its theory, and the report.

`items` has the figures and tables, `claims` the sentences that the runs decide, `theory` the bounds; `reproduction`
computes everything and `report` writes the page."""
