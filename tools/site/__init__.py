"""What the documentation's site is made of that no hand writes: a card for every policy, and the pictures."""
