"""A run as one self-contained HTML page."""

from seed_opd.report.page import build

__all__ = ["build"]
