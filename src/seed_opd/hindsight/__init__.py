"""Hindsight: a finished episode is read back, and one sentence is written that would have helped: a skill."""
