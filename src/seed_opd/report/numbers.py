"""How numbers are written on the page."""

from __future__ import annotations

import math


def percent(value: float, step: float = 0.01) -> str:
    """A rate in percent, as fine as `step`: whole percents, or more digits for finer ticks."""
    return f"{100 * value:.{_decimals(100 * step)}f}%"


def percent_fine(value: float) -> str:
    return percent(value, 0.001)


def number(value: float, step: float | None = None) -> str:
    """Three significant digits, or as fine as `step`; thousands and millions as k and M."""
    for limit, unit, suffix in ((1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if abs(value) >= limit:
            return f"{value / unit:.3g}{suffix}".replace("-", "−")
    if step is not None and step >= 1e-4:
        text = f"{value:.{_decimals(step)}f}"
    else:
        text = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return text.replace("e-0", "e-").replace("-", "−")


def points(value: float) -> str:
    """A difference of two rates, in percentage points, with its sign."""
    return f"{100 * value:+.1f}".replace("-", "−")


def duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(math.floor(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def probability(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _decimals(step: float) -> int:
    return max(0, -math.floor(math.log10(step) + 1e-9))
