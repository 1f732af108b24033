"""What the paper's text claims, made decidable and decided."""
