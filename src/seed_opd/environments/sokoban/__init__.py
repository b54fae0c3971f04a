"""Sokoban: boxes pushed onto targets, read as text or seen as pictures."""

from seed_opd.environments.sokoban.environment import SokobanEnvironment

__all__ = ["SokobanEnvironment"]
