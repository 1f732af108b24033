"""Questions answered by many simulations: how fast to forget, how regret grows, who is best where."""
