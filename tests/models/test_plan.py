"""A plan foretells the noise of a fit exactly, tries public rows alone, and spends nothing."""

import json
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import kveil
from kveil import CuratorPlan, FederatedKMeans, Ledger, PrivacyUnit, PrivateKMeans, PrivateKMedian, plan, read, tuning
from kveil.errors import BoundsRequired, KveilError
from kveil.kernel.loss import zcdp_rho
from kveil.models.plan import non_increasing
from kveil.models.public_rows import PublicRows, public_rows
from kveil.models.trial import Trial, Trials, scaled_epsilon
from kveil.source.local import LocalSource

PERSON = PrivacyUnit("person", 3, "id")


def clusters(n_rows, d, seed=0):
    rng = np.random.default_rng(seed)
    places = np.random.default_rng(1).uniform(-0.7, 0.7, (3, d))
    return np.clip(places[rng.integers(3, size=n_rows)] + 0.05 * rng.standard_normal((n_rows, d)), -1, 1)


def last(fitted, label):
    """The loss of the last draw with this label, as it was charged: epsilon, or rho."""
    charge = [draw for draw in fitted.guarantee_.draws if draw.label == label][-1]
    return float(charge.epsilon or charge.rho)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("d", [1, 2, 3, 6, 20])
def test_figures_are_the_deviations_of_a_fit_with_that_many_rows(d, delta):
    """By the charges of the fit, and the law of its noise written out here."""
    n, k, is_pure = 6000, 3, not delta or d <= 3
    model = PrivateKMeans(k, epsilon=4.0, delta=delta, bounds=(-1, 1), random_state=0)
    told = plan(model, n, d).figures
    fitted = model.fit(clusters(n, d))
    counts, sums, cells = (last(fitted, label) for label in ("cells", "residuals", "cells of the tree"))
    deviations = [sqrt(2) / counts, sqrt(2) / cells] if is_pure else [1 / sqrt(2 * counts), 1 / sqrt(2 * cells)]
    assert told.count_deviation == pytest.approx(deviations[0], rel=1e-6)
    looks = 1.2 if d <= 3 else 1.0  # few columns: said for the most looks that a fit may take before it counts cells
    assert (1 - 1e-6) * deviations[1] <= told.cell_deviation <= (1 + 1e-6) * looks * deviations[1]
    noise = sqrt(d * (d + 1)) / sums if is_pure else sqrt(d / (2 * sums))
    assert told.noise_share == pytest.approx(noise * k / n, rel=1e-3 if is_pure and d > 12 else 1e-6)  # there shares follow n


@pytest.mark.parametrize(
    ("d", "delta", "share"), [(1, 0, 0.03825), (2, 1e-6, 0.03825), (3, 0, 0.11475), (9, 0, 0.18169), (9, 1e-6, 0.2945)]
)
def test_noise_in_a_centre_follows_from_the_last_share(d, delta, share):
    told = plan(PrivateKMeans(10, epsilon=0.5, delta=delta), 20_000, d).figures
    rho = float(zcdp_rho(Fraction(1, 2), Fraction(1e-6)))
    noise = sqrt(d / (2 * share * rho)) if delta and d > 3 else sqrt(d * (d + 1)) / (share * 0.5)
    assert told.noise_share == pytest.approx(noise * 10 / 20_000, rel=1e-4)


def test_people_and_replaced_rows_need_more_noise():
    model, alone = PrivateKMeans(5), plan(PrivateKMeans(5), 1000, 4).figures
    assert plan(model, 1000, 4, unit=PERSON).figures.noise_share == pytest.approx(3 * alone.noise_share)
    replaced = plan(PrivateKMeans(5, relation="replace-one"), 1000, 4).figures
    assert replaced.noise_share == pytest.approx(2 * alone.noise_share)


@pytest.mark.parametrize(("d", "delta"), [(2, 0), (9, 0), (9, 1e-6), (40, 1e-6)])
def test_the_least_numbers_are_where_the_word_turns_good(d, delta):
    told = plan(PrivateKMeans(10, epsilon=0.02, delta=delta), 2000, d).figures
    assert told.word == "noise"
    for epsilon, rows in ((0.02, told.least_rows), (told.least_epsilon, 2000)):
        words = [plan(PrivateKMeans(10, epsilon=epsilon * by, delta=delta), rows * by, d).figures.word for by in (0.99, 1.01)]
        assert words == ["rough", "good"]


def test_a_case_that_looked_good_is_called_noise():
    assert plan(PrivateKMeans(10, epsilon=0.02, delta=1e-6), 20_000, 9).figures.word == "noise"


def test_the_page_shows_what_is_printed():
    page = (Path(__file__).parents[2] / "docs/choose-epsilon.md").read_text(encoding="utf-8")
    told = str(plan(PrivateKMeans(10, epsilon=0.02, delta=1e-6), 20_000, 9))
    assert " ".join(told.split()) in " ".join(page.split())


def test_where_nobody_measured_there_is_no_word():
    silent = [
        plan(PrivateKMeans(5), 1000, 13),  # pure noise in many columns
        plan(PrivateKMeans(5, tuning=tuning.Tree(steps=3)), 1000, 5),
        plan(PrivateKMeans(5, delta=1e-6, ledger=Ledger.memory("a", 9, 1e-5, relation="add-remove", rule="zcdp")), 1000, 2),
    ]
    for found in silent:
        assert found.figures.word is found.figures.least_rows is found.figures.least_epsilon is None
        assert "nobody measured" in str(found)


def test_centres_that_cannot_be_told_apart_are_said_to_be():
    found = plan(PrivateKMeans(10, epsilon=0.01, delta=1e-6), 1000, 100)
    assert found.figures.word == "noise"
    assert "one mean, repeated" in str(found)


@pytest.mark.parametrize(("d", "delta"), [(20, 1e-6), (14, 0.0)])
def test_one_centre_that_gets_no_tree_is_planned_as_one_mean(d, delta):
    planned = plan(PrivateKMeans(1, epsilon=0.01, delta=delta, bounds=(-1, 1)), 100, d)
    assert any("the mean of all rows" in note for note in planned.notes)


def test_a_hundred_million_rows_are_planned():
    sample = clusters(300, 2)
    model = PrivateKMeans(3, epsilon=0.5, bounds=(-1, 1))
    found = plan(model, 10**8, sample=sample, n_runs=1)
    assert found.figures.word == "good"
    assert 2**16 <= found.figures.cells < 1.25 * 2**16  # as many as there may be of the grid, and coarse ones beside them
    assert found.trials[-1].used == 1024
    assert found.trials[-1].is_cut
    assert "where budgets end" in str(found)
    assert found.ratio < 1.1


def test_budgets_grow_with_the_factor_and_those_of_zcdp_with_its_square():
    """0.3 and five times the rows: epsilon 1.67, not 1.5; 1 and 80 times: 246, not 80."""
    pure, gaussian = PrivateKMeans(epsilon=0.3, bounds=(0, 1)), PrivateKMeans(epsilon=0.3, delta=1e-6, bounds=(0, 1))
    assert scaled_epsilon(pure, 6, 5.0) == (pytest.approx(1.5), False)
    assert scaled_epsilon(gaussian, 2, 5.0)[0] == pytest.approx(1.5)  # few columns: pure noise
    assert scaled_epsilon(gaussian, 6, 5.0)[0] == pytest.approx(1.67, abs=0.005)
    assert scaled_epsilon(PrivateKMeans(delta=1e-6, bounds=(0, 1)), 6, 80.0)[0] == pytest.approx(246, abs=0.5)
    used = scaled_epsilon(gaussian, 6, 7.0)[0]
    totals = [model.prepared(6)[1].budget.total for model in (gaussian, PrivateKMeans(epsilon=used, delta=1e-6, bounds=(0, 1)))]
    assert float(totals[1] / totals[0]) == pytest.approx(49, rel=1e-6)
    assert scaled_epsilon(gaussian, 6, 5000.0) == (1024, True)


def test_a_sample_is_fitted_with_the_noise_of_the_whole(monkeypatch):
    """What is charged in a fit of the sample, against its rows, is what is charged in a fit of all rows, against them."""
    seen, fit = [], PrivateKMeans.fit
    monkeypatch.setattr(PrivateKMeans, "fit", lambda model, X: seen.append((model.epsilon, model.expected_rows)) or fit(model, X))
    model = PrivateKMeans(3, epsilon=0.25, bounds=(-1, 1), expected_rows=4000)
    plan(model, 4000, sample=clusters(500, 2), n_runs=2, epsilons=(0.5, 1))
    assert len(seen) == 2 * 7
    assert seen[0] == (pytest.approx(8 * 0.25), 500)
    seen.clear()
    plan(model, 4000, sample=clusters(500, 2), n_runs=1, unit=PERSON)
    assert (pytest.approx(8 * 0.25 / 3), pytest.approx(1500)) in seen


def test_with_hardly_any_noise_the_ratio_is_one_and_with_much_it_is_not():
    found = plan(
        PrivateKMeans(3, epsilon=20.0, bounds=(-1, 1)), 900, sample=clusters(900, 2), random_state=0, epsilons=(0.001, 20)
    )
    assert found.trials[-1].ratio == pytest.approx(1, abs=0.05)
    assert found.trials[0].ratio > 3  # one mean costs 20 times as much
    assert found.ratio == found.trials[-1].ratio
    assert found.epsilon_for(2.0) < 20


def test_ratios_are_measured_in_the_distance_of_the_model():
    rows = clusters(600, 2) * [1, 100]
    by_name = {"a": (-1, 1), "b": (-100, 100)}
    model = PrivateKMeans(3, epsilon=20.0, bounds=by_name, scaling="bounds")
    found = plan(model, 600, sample=pd.DataFrame(rows, columns=["a", "b"]), n_runs=1, epsilons=(10, 20))
    assert found.ratio == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    "model",
    [
        PrivateKMedian(3, epsilon=5.0, bounds=(-1, 1)),
        PrivateKMeans(3, epsilon=5.0, bounds=(-1, 1), method="lloyd"),
        PrivateKMeans(3, epsilon=5.0, bounds=(-1, 1), method="mean"),
    ],
    ids=lambda model: f"{type(model).__name__} {model.method}",
)
def test_other_methods_are_tried_but_have_no_figures(model):
    found = plan(model, 2000, sample=clusters(400, 2), n_runs=1, epsilons=(4, 8), random_state=0)
    assert found.figures is None
    assert (found.ratio > 5) == (model.method == "mean")
    with pytest.raises(KveilError, match=r"pass sample=\.\.\., public rows"):
        plan(model, 2000, 2)


def test_medians_are_judged_by_distances_and_not_by_squares():
    """A sixth of the rows at 1, the others at 0. The median, 0, is best by distances; by squares it costs 1.2 times the mean."""
    rows = np.repeat([[0.0], [1.0]], [250, 50], axis=0)
    found = plan(PrivateKMedian(1, epsilon=50.0, bounds=(-1, 1)), 300, sample=rows, n_runs=1, epsilons=(40, 60))
    assert found.ratio == pytest.approx(1, abs=0.03)


def made(*ratios):
    epsilons = np.geomspace(0.1, 0.1 * 10 ** (len(ratios) - 1), len(ratios))
    trials = tuple(Trial(float(e), float(e), False, (r,), (0.0,)) for e, r in zip(epsilons, ratios, strict=True))
    return CuratorPlan("PrivateKMeans", "tree", 3, 2, 100.0, 0.1, 0.0, None, trials, 10, ())


def test_epsilon_for_a_ratio_is_linear_in_the_logarithm():
    found = made(3.0, 2.0, 1.0)
    assert found.epsilon_for(2.5) == pytest.approx(0.1 * 10**0.5)
    assert found.epsilon_for(1.0) == pytest.approx(10)
    assert found.epsilon_for(3.0) == pytest.approx(0.1)
    assert found.epsilon_for(3.1) is None
    assert found.epsilon_for(0.9) is None


def test_ratios_that_rise_by_chance_are_pooled():
    assert non_increasing([3.0, 1.0, 2.0, 1.0, 1.9]) == [3.0, 1.5, 1.5, 1.45, 1.45]
    assert made(3.0, 1.0, 2.0, 1.0).epsilon_for(1.5) == pytest.approx(1.0)


def test_an_epsilon_for_a_ratio_needs_trials():
    with pytest.raises(KveilError, match="needs trials"):
        plan(PrivateKMeans(3), 1000, 2).epsilon_for(1.1)
    for bad in (True, "1", float("nan")):
        with pytest.raises(KveilError, match="ratio must be a number"):
            made(2.0, 1.0).epsilon_for(bad)


@pytest.mark.parametrize("rule", ["approx", "zcdp"])
def test_no_ledger_is_touched(rule, tmp_path):
    ledger = Ledger.create(tmp_path / "people.db", "people", 1000.0, 0.5, relation="add-remove", rule=rule)
    before = (tmp_path / "people.db").read_bytes()
    model = PrivateKMeans(3, epsilon=9.0, delta=1e-6, bounds=(-1, 1), ledger=tmp_path / "people.db")
    plan(model, 500, sample=clusters(300, 4), n_runs=1, epsilons=(1, 2))
    kveil.compare(model, clusters(300, 4), methods=["mean"], n_runs=1)
    assert ledger.charges() == ()
    assert (tmp_path / "people.db").read_bytes() == before


def marked(rows, **terms):
    table = np.column_stack([np.arange(len(rows)), rows])
    return read(table, person=0) if terms.get("person") else read(rows, private=True)


@pytest.mark.parametrize("person", [False, True], ids=["marked", "person ids"])
def test_what_is_private_is_refused_unread(person, monkeypatch):
    def look(self):
        raise AssertionError("a row was read")

    monkeypatch.setattr(LocalSource, "raw_blocks", look)
    monkeypatch.setattr(LocalSource, "map_reduce", look)
    source, model = marked(clusters(300, 2), person=person), PrivateKMeans(3, bounds=(-1, 1))
    with pytest.raises(KveilError, match="this source is private"):
        plan(model, 1000, sample=source)
    with pytest.raises(KveilError, match="this source is private"):
        kveil.compare(model, source)


def test_a_marked_source_is_fitted_like_any_other():
    rows = clusters(900, 2)
    assert PrivateKMeans(3, epsilon=50.0, bounds=(-1, 1)).fit(read(rows, private=True)).release_.guarantee.valid
    assert not read(rows).is_private
    with pytest.raises(KveilError, match="private must be True or False"):
        read(rows, private="yes")
    with pytest.raises(KveilError, match="source already"):
        read(read(rows), private=True)


@pytest.mark.parametrize(
    ("model", "terms", "says"),
    [
        (FederatedKMeans(3, bounds=(0, 1)), {"n_features": 2}, "PrivateKMeans or a PrivateKMedian"),
        (PrivateKMedian(3, universe=kveil.Euclidean(np.eye(4))), {"n_features": 1}, "universes are not supported"),
        (PrivateKMeans("auto"), {"n_features": 2}, "depends on the rows"),
        (PrivateKMeans(3, epsilon=float("inf")), {"n_features": 2}, "nothing to plan"),
        (PrivateKMeans(3), {}, "how many columns"),
        (PrivateKMeans(3, bounds=[(0, 1)] * 3), {"n_features": 2}, "must agree"),
        (PrivateKMeans(3, bounds=(0, 1)), {"sample": csr_array(np.eye(9))}, "must be dense"),
        (PrivateKMeans(3, bounds=(0, 1)), {"sample": np.empty((0, 2))}, "no rows"),
        (PrivateKMeans(3, bounds=(0, 1)), {"sample": np.eye(3)}, "different ones"),
        (PrivateKMeans(3), {"sample": clusters(50, 2)}, "bounds is missing"),
        (PrivateKMeans(3), {"n_features": 2, "epsilons": (1, 0.1)}, "low < high"),
        (PrivateKMeans(3), {"n_features": 2, "n_runs": 0}, "n_runs"),
    ],
)  # fmt: skip
def test_what_cannot_be_planned_is_refused_with_a_reason(model, terms, says):
    with pytest.raises(KveilError, match=says):
        plan(model, 1000, **terms)


@pytest.mark.parametrize("rows", [0, -5, float("nan"), float("inf"), True, "many", 2.0**50])
def test_a_number_of_rows_is_a_public_number(rows):
    with pytest.raises(KveilError, match="rows must be a public number"):
        plan(PrivateKMeans(3), rows, 2)


def test_a_sample_without_bounds_is_refused_as_a_fit_would():
    with pytest.raises(BoundsRequired):
        plan(PrivateKMeans(3), 1000, sample=clusters(50, 2))


def test_no_more_rows_than_the_table_has_are_used_and_all_blocks_are_seen():
    rng, rows = np.random.default_rng(0), np.arange(400_000.0).reshape(-1, 1)
    found = public_rows(rows, 1000, rng).rows.ravel()
    assert len(found) == len(np.unique(found)) == 1000
    assert (np.diff(found) > 0).all()
    assert 0.4 < found.mean() / 400_000 < 0.6  # false alarm below 1e-20: 11 deviations
    assert plan(PrivateKMeans(2, bounds=(0, 300)), 40, sample=rows[:300], n_runs=1, epsilons=(1, 2)).sample_rows == 40


def test_a_plan_is_told_in_words_json_and_pictures(tmp_path):
    found = plan(PrivateKMeans(3, epsilon=1.0, bounds=(-1, 1)), 2000, sample=clusters(400, 2), n_runs=2, epsilons=(0.1, 4))
    words = str(found)
    assert "2 000 rows, 2 column(s), epsilon 1" in words
    assert "mean of 2 run(s)" in words
    assert "ratio     error" in words
    assert "error" not in str(replace(found, trials=tuple(replace(one, ratios=one.ratios[:1]) for one in found.trials)))
    assert found._repr_html_().startswith("<pre>PrivateKMeans, 3 clusters")
    assert "<- this model" in words
    assert "must be public" in words
    assert "fewer than 1000 rows" in words
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["trials"][0]["ratio"] == pytest.approx(np.mean(plain["trials"][0]["ratios"]))
    assert plain["figures"]["word"] == found.figures.word
    pytest.importorskip("matplotlib")
    for name, shown in (("with.svg", found), ("without.svg", replace(found, trials=()))):
        assert shown.save(tmp_path / name).read_text(encoding="utf-8").lstrip().startswith("<?xml")
    with pytest.raises(KveilError, match=r"\.svg or \.png"):
        found.save(tmp_path / "plan.txt")


def test_an_error_of_a_mean_is_its_standard_error():
    trial = Trial(1.0, 1.0, False, (1.0, 2.0, 3.0), (0.1, 0.1, 0.1))
    assert (trial.ratio, trial.error) == (2.0, pytest.approx(1 / sqrt(3)))
    assert Trial(1.0, 1.0, False, (1.0,), (0.1,)).error is None


def test_noise_that_would_change_its_kind_with_the_sample_is_refused():
    """DP-Lloyd takes the smaller of two kinds of noise: in 3 columns pure noise for one step, Gaussian for a smaller budget."""
    model = PrivateKMeans(2, epsilon=0.5, delta=1e-6, bounds=(-1, 1), method="lloyd", n_steps=20)
    kinds = {
        e: PrivateKMeans(2, epsilon=e, delta=1e-6, bounds=(-1, 1), method="lloyd", n_steps=20).prepared(4)[1] for e in (0.5, 500)
    }
    assert len({method.budget.law.kind for method in kinds.values()}) == 2
    trials = Trials(PublicRows(clusters(200, 4), None), 1000.0, 1, np.random.default_rng(0))
    with pytest.raises(KveilError, match="picks another"):
        trials.run(model)
