"""The parts of policies and environments: random numbers, states, parameters, beliefs, discounts."""
