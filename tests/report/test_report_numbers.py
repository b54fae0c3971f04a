import pytest

from seed_opd.report.numbers import duration, number, percent, percent_fine, points, probability


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (percent(0.664), "66%"),
        (percent(0.005, 0.005), "0.5%"),
        (percent_fine(0.6786), "67.9%"),
        (number(0), "0"),
        (number(-0.01958), "−0.0196"),
        (number(6378.4), "6378"),
        (number(41_000), "41 k"),
        (number(6_610_000), "6.61 M"),
        (number(1.005, 0.005), "1.005"),
        (number(30, 10), "30"),
        (number(2e-6, 1e-6), "2e−6"),
        (number(0.0, 1e-6), "0"),
        (number(2.234e-5), "2.23e−5"),
        (points(0.121), "+12.1"),
        (points(-0.04), "−4.0"),
        (duration(56.24), "56.2 s"),
        (duration(257), "4 min 17 s"),
        (duration(7380), "2 h 03 min"),
        (probability(0.0004), "< 0.001"),
        (probability(0.0291), "0.029"),
    ],
)
def test_written(text: str, expected: str) -> None:
    assert text == expected
