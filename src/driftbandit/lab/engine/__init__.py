"""The simulator: one loop, and what turns a policy's source into machine code."""
