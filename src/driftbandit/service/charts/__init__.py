"""What the page draws: beliefs and counts over time. `recorder` keeps them as cells in the journal, `series` answers
for any time range, and `jobs` folds a journal again in the background."""
