"""Exponents of the local protocols' error: fitted to what is known, made-up places as the text says, and a table of them."""

import numpy as np
import pytest

from kveil.research.local_slopes import BESIDE, BETWEEN, Cell, Size, hardest, measure, pairs, slope
from kveil.research.slopes_report import as_markdown, records, slopes, svg

pytestmark = pytest.mark.research

TINY = Size(people=(600, 1200), clusters=(4, 2), factors=(0.0, 4.0), runs=2)


@pytest.fixture(scope="module")
def measured():
    return measure(TINY, lambda text, number, total: None)


def grown(power, noise, runs=400):
    """Costs that grow with that power of people."""
    rng = np.random.default_rng(1)
    return [
        Cell("lae", n, 4, 8.0, tuple(3 * n**power * np.exp(noise * rng.standard_normal(runs)))) for n in (2**12, 2**14, 2**16)
    ]


def test_a_slope_is_the_power_and_its_error_covers_it():
    assert slope(grown(0.5, 0.0, 3), "people") == pytest.approx((0.5, 0.0), abs=1e-9)
    fit = slope(grown(0.7, 1.0), "people")
    assert 0.005 < fit.error < 0.05
    assert abs(fit.exponent - 0.7) < 5 * fit.error


def test_the_hardest_size_is_the_one_of_the_greatest_median():
    cells = [
        Cell("lae", 100, 4, factor, costs) for factor, costs in ((0.0, (99.0,)), (4.0, (1.0,)), (8.0, (3.0,)), (16.0, (2.0,)))
    ]
    assert hardest(cells)["lae", 100, 4].factor == 8.0
    assert hardest(cells, is_equal=True)["lae", 100, 4].factor == 0.0


def test_places_come_in_pairs_and_pairs_are_apart():
    places = pairs(4, np.random.default_rng(0))
    assert places.shape == (8, 3)
    assert np.linalg.norm(places, axis=1).max() <= 1
    away = np.linalg.norm(places[:, None] - places, axis=2)
    assert away[np.arange(0, 8, 2), np.arange(1, 8, 2)] == pytest.approx([BESIDE] * 4)
    others = away[~np.kron(np.eye(4, dtype=bool), np.ones((2, 2), dtype=bool))]
    assert others.min() >= BETWEEN


def test_every_protocol_is_measured_and_every_number_is_in_the_table(measured):
    assert {(cell.protocol, cell.people, cell.k) for cell in measured} >= {
        ("lae", 600, 4),
        ("lma", 1200, 2),
        ("lae-paper", 1200, 4),
    }
    assert all(min(cell.costs) > 0 for cell in measured)
    text = as_markdown(measured, 0.9)
    for line in slopes(measured):
        assert f"{line['exponent']} ± {line['standard_error']}" in text
    assert {line["along"] for line in slopes(measured)} == {"people", "k"}
    assert len(records(measured)) == len(measured)


def test_the_picture_names_everyone_and_the_promise(measured):
    pytest.importorskip("matplotlib")
    drawn = svg(measured, 0.9).decode()
    assert drawn == svg(measured, 0.9).decode()
    for text in ("LAE, four rounds", "refinement in rounds", "slope of LAE", "local model", "clusters k"):
        assert text in drawn
