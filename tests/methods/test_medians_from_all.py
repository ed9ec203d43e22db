"""Medians drawn from the whole domain: the density of the paper, where it leads, and what is refused."""

import numpy as np
import pytest
from scipy import stats

from kveil import Ledger, PrivateKMedian
from kveil.desk.pool import Pool
from kveil.errors import KveilError
from kveil.kernel.exact import SystemEntropy
from kveil.methods.medians import steps
from kveil.questions.medians import MedianCosts
from kveil.testing import scripted
from kveil.tuning import KMedian

ALL = KMedian(recovery="all")
FALSE_ALARM, N = 1e-6, 1000
ROWS = np.array([[0.5], [0.5], [1.0]])


def drawn_places(monkeypatch):
    """How often each of five places is drawn, with real entropy, by the very draw that a fit makes; and its epsilon."""
    draw, made = Pool._draw, []
    monkeypatch.setattr(steps, "PLACES_OF_ALL", {1: 5})
    monkeypatch.setattr(Pool, "_draw", lambda pool, *terms: (made.append(terms), draw(pool, *terms))[1])
    PrivateKMedian(1, epsilon=4.0, bounds=(-1, 1), init=[[0.0]], tuning=ALL, expected_rows=10).fit(ROWS)
    ((measurement, raw),) = [terms for terms in made if terms[0].charge.label == "medians"]
    found = [int(measurement.draw(SystemEntropy(), raw)[0]) for _ in range(N)]
    return np.bincount(found, minlength=5), float(measurement.charge.epsilon)


def disagrees(counts, epsilon):
    """With P(z) ~ exp(-epsilon F(z)/(2 Lambda)), Lambda = 1, at a false alarm of 1e-6 over all places."""
    weights = np.exp(-epsilon / 2 * np.abs(np.linspace(-1, 1, 5)[:, None] - ROWS.ravel()).sum(axis=1))
    level = FALSE_ALARM / 10
    ends = stats.binom.ppf([[level], [1 - level]], N, weights / weights.sum())
    return bool(((counts < ends[0]) | (counts > ends[1])).any())


@pytest.mark.statistical
def test_medians_follow_the_density_of_the_paper_and_costs_three_times_as_high_are_noticed(monkeypatch):
    """False alarm 1e-6; the twin, most of whose draws are one place, is missed less often than that."""
    assert not disagrees(*drawn_places(monkeypatch))
    raw = MedianCosts.raw
    monkeypatch.setattr(MedianCosts, "raw", lambda self, rows: (3 * raw(self, rows)[0],))
    assert disagrees(*drawn_places(monkeypatch))


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("domain", [{"bounds": (-1, 1)}, {"radius": 2.0}])
def test_with_much_budget_it_is_the_median_up_to_the_grid(d, domain):
    rng = np.random.default_rng(d)
    rows = np.where(rng.random((400, 1)) < 0.7, 0.4 + 0.02 * rng.standard_normal((400, d)), rng.uniform(-1, 1, (400, d)))
    with scripted(0):
        model = PrivateKMedian(1, epsilon=200.0, init=np.zeros((1, d)), tuning=ALL, random_state=0, **domain).fit(rows)
    spacing = 2 * domain.get("radius", 1.0) / (steps.PLACES_OF_ALL[d] - 1)
    assert np.abs(model.cluster_centers_[0] - 0.4).max() <= 0.03 + spacing
    assert [draw.times for draw in model.guarantee_.draws if draw.label == "medians"] == [1]


@pytest.mark.parametrize(("d", "given", "says"), [(4, {}, "at most 3"), (2, {"n_steps": 3}, "n_steps")])
def test_what_cannot_be_is_refused_before_anything_is_spent(d, given, says):
    ledger = Ledger.memory("untouched", 1.0, relation="add-remove")
    with pytest.raises(KveilError, match=says):
        PrivateKMedian(2, bounds=(-1, 1), method="candidates", tuning=ALL, ledger=ledger, **given).fit(np.zeros((5, d)))
    assert ledger.charges() == ()
