"""EZPoints: a formula of two cards, read as text or seen in a picture."""

from seed_opd.environments.ezpoints.environment import EzpointsEnvironment

__all__ = ["EzpointsEnvironment"]
