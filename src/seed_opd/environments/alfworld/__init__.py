"""ALFWorld: household tasks in text, played natively from their game files."""

from seed_opd.environments.alfworld.environment import AlfworldEnvironment

__all__ = ["AlfworldEnvironment"]
