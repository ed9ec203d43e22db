"""Numbers as people write them: 12 400 and 0.31, not 1.24e+04; a column with one number of decimals, rounded by its error."""

from __future__ import annotations

import re
from itertools import pairwise
from math import floor, isfinite, log10
from typing import Any

import numpy as np

SPACE, MINUS, TIMES = "\u202f", "\u2212", "\u00d7"  # a narrow space that breaks no line; a minus as wide as a plus
SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
LARGEST, SMALLEST = 1e12, 1e-4  # beyond them digits are no longer counted at a glance
GROUPED = 10_000  # below it digits are counted at a glance, and years stay years
DIGITS, MOST_DECIMALS = 3, 8


def readable(value: float, digits: int = DIGITS) -> str:
    """One number with `digits` significant digits.

    >>> readable(12437.2).replace(SPACE, " "), readable(0.3123), readable(-0.5), readable(0), readable(31)
    ('12 400', '0.312', '−0.5', '0', '31')
    >>> readable(1.234e-7), readable(2e15), readable(1e-6)
    ('1.23 × 10⁻⁷', '2 × 10¹⁵', '10⁻⁶')
    """
    if not isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    if not SMALLEST <= abs(value) < LARGEST:
        power = floor(log10(abs(value)))
        factor = readable(value / 10.0**power if power > -300 else value * 1e300 / 10.0 ** (power + 300), digits)
        return ("" if factor == "1" else f"{factor} {TIMES} ") + f"10{str(power).translate(SUPERSCRIPT)}"
    text = rounded(value, digits - 1 - floor(log10(abs(value))))
    return text.rstrip("0").rstrip(".") if "." in text else text


def rounded(value: float, decimals: int) -> str:
    """A number with so many decimals; negative ones round before the point.

    >>> rounded(12437.2, -2).replace(SPACE, " "), rounded(0.126, 2), rounded(-0.001, 2)
    ('12 400', '0.13', '0.00')
    """
    group = "," if abs(value) >= GROUPED else ""
    text = f"{round(value, decimals):{group}.{max(decimals, 0)}f}".replace(",", SPACE)
    return text.replace("-", "" if float(text.replace(SPACE, "")) == 0 else MINUS)


def with_powers(text: str) -> str:
    """A sentence whose numbers like 1e-06 are written out.

    >>> with_powers("delta 1e-06, at most 2.37e-06")
    'delta 10⁻⁶, at most 2.37 × 10⁻⁶'
    """
    return re.sub(r"\b\d+(\.\d+)?e[+-]\d+\b", lambda found: readable(float(found[0])), text)


def percents(shares: Any, error: float | None = None) -> list[str]:
    """Shares as percentages: whole ones, but for those below 1 %, which have no more digits than their error allows.

    >>> percents([0.314, 0.0021, 0.0, 1.0]), percents([0.00003], error=0.003)
    (['31 %', '0.2 %', '0 %', '100 %'], ['0 %'])
    """
    most = MOST_DECIMALS + 2 if error is None else max(2, decimals_of([error]))
    settled = [round(share, most) for share in map(float, shares)]
    return [f"{readable(100 * share, 1) if abs(share) < 0.01 else rounded(100 * share, 0)} %" for share in settled]


def of_level(value: float, error: float | None, high: float) -> str:
    """A number of a column that stands for one level of a category and ends at `high`, as the share of rows with that level.

    >>> of_level(0.7063, 0.0021, 0.7071), of_level(-0.0001, 0.0021, 0.7071)
    ('100 %', '0 %')
    """
    return percents([min(max(value / high, 0.0), 1.0)], None if error is None else error / high)[0]


def column(values: Any, errors: Any = None) -> list[str]:
    """Numbers that stand below each other: three digits of each, and of their range, unless the error of such a number is larger.

    >>> column([28.31, 45.12, 61.0]), column([28.31, 45.12, 61.0], errors=[2.1, 1.7, 3.0])
    (['28.3', '45.1', '61.0'], ['28', '45', '61'])
    >>> column([2001.21, 2001.93]), column([470.2, 99320.0])[0]
    (['2001.210', '2001.930'], '470')
    """
    table = np.asarray(values, dtype=np.float64)
    largest = float(np.abs(table).max(initial=0.0))
    spread = float(table.max(initial=-np.inf) - table.min(initial=np.inf)) if len(table) > 1 else 0.0
    by_range = _digits(spread if spread > 1e-9 * largest else largest)
    if largest >= LARGEST or by_range > MOST_DECIMALS:
        return [readable(value) for value in table.tolist()]
    most = MOST_DECIMALS if errors is None else decimals_of(errors)
    return [rounded(value, min(max(by_range, min(_digits(abs(value)), by_range + 3)), most)) for value in table.tolist()]


def with_error(value: float, error: float | None) -> str:
    """A number and its standard error, which has two digits; the number as many decimals as that.

    >>> with_error(12437.2, 231.0).replace(SPACE, " "), with_error(0.3123, 0.0042), with_error(5.0, None)
    ('12 440 ± 230', '0.3123 ± 0.0042', '5')
    >>> with_error(8.90301, 0.00996)
    '8.903 ± 0.010'
    """
    if error is None or not isfinite(error) or error <= 0:
        return readable(value, 4)
    decimals = decimals_of_two_digits(error)
    if decimals > MOST_DECIMALS or max(abs(value), error) >= LARGEST:
        return f"{readable(value, 4)} ± {readable(error, 2)}"
    return f"{rounded(value, decimals)} ± {rounded(error, decimals)}"


def decimals_of_two_digits(error: float) -> int:
    """How many decimals leave two significant digits: of 0.00996 it is three, since it is rounded to 0.010."""
    return 1 - int(f"{error:.1e}".partition("e")[2])


def decimals_of(errors: Any) -> int:
    """How many decimals are worth writing beside a typical one of these errors."""
    known = np.asarray(errors, dtype=np.float64)
    known = known[np.isfinite(known) & (known > 0)]
    return -floor(log10(float(np.median(known)))) if len(known) else MOST_DECIMALS


def ticks(values: Any) -> list[str]:
    """Marks on an axis: as few decimals as tell all of them apart, and the same for all.

    >>> ticks([48.0, 50.0, 52.0]), ticks([0.0, 0.25, 0.5]), ticks([0.0, 20000.0])[1].replace(SPACE, " ")
    (['48', '50', '52'], ['0.00', '0.25', '0.50'], '20 000')
    """
    table = [float(value) for value in values]
    largest = max(map(abs, table), default=0.0)
    step = min((abs(b - a) for a, b in pairwise(table) if b != a), default=largest)
    if largest >= LARGEST or not step >= 1e-8:
        return [readable(value, 4) for value in table]
    decimals = next((n for n in range(MOST_DECIMALS) if all(abs(round(v, n) - v) <= 1e-6 * step for v in table)), MOST_DECIMALS)
    return [rounded(value, decimals) for value in table]


def _digits(size: float) -> int:
    """Decimals that leave three significant digits of a number of this size."""
    return DIGITS - 1 - floor(log10(size)) if isfinite(size) and size > 0 else 0
