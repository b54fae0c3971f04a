"""How good a policy is: fixed panels, success per category, and how sure we are of it."""
