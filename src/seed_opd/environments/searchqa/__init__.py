"""Search-QA: questions answered by searching an encyclopaedia, in the form of Search-R1."""

from seed_opd.environments.searchqa.environment import SearchEnvironment

__all__ = ["SearchEnvironment"]
