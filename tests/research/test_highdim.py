"""The high-dimensional figures: who takes part, on which rows, and what the tables and labels say."""

from __future__ import annotations

import csv
import io
from itertools import pairwise
from math import log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kveil.errors import SourceError
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import floor_delta, floor_epsilon, zcdp_rho
from kveil.models.private_kmeans import METHODS
from kveil.research.contest import NOT_PRIVATE, Cell, Contestant, Setting, absent, cost, half_of, run
from kveil.research.highdim import FIGURES, Outcome, Panel, Size, gaussians, panels, play, read_images
from kveil.research.highdim_methods import DEFAULT, ONE_MEAN, PAPER, SULQ, TRIALS, contestants, variants
from kveil.research.records import as_csv
from kveil.research.seeders import SEEDERS
from kveil.research.tables import as_markdown, records, runs_words
from kveil.research.verdicts import verdict_table, verdicts

pytestmark = pytest.mark.research

TINY = Size(rows=150, small=120, runs=2, clusters=(2, 3), epsilons=(0.5, 1.0))
IMAGES = np.random.default_rng(0).random((150, 9))


@pytest.fixture
def plane():
    return Setting(np.random.default_rng(0).uniform(-0.5, 0.5, (200, 2)), {"radius": 1.0}, 0.0, 2)


@pytest.fixture
def told():
    """An outcome made by hand: two methods at two k."""
    setting = Setting(np.zeros((10, 4)), {"radius": 1.0}, 1e-6, 2)
    panel = Panel("2a", "A question?", setting, (2, 4), (1.0,), contestants(8, None))
    ordinary = [Cell(NOT_PRIVATE, 2, None, (1.0, 3.0), 0.1), Cell(NOT_PRIVATE, 4, None, (1.0, 1.0), 0.1)]
    private = [Cell("DP-Lloyd", 2, 1.0, (4.0, 4.0), 0.1), Cell("DP-Lloyd", 4, 1.0, (1.5, 2.5), 0.1)]
    return Outcome(panel, (*ordinary, *private), {"uniform grid": "it is too wide."})


class TestWhoTakesPart:
    def test_a_method_that_this_version_lacks_is_left_out_by_name(self, plane):
        why = absent(Contestant("to come", "no-such-method", "#000000"), plane, 2)
        assert why == 'this version of kveil has no method "no-such-method".'

    def test_a_method_joins_in_as_soon_as_it_is_registered(self, plane, monkeypatch):
        someone = Contestant("to come", "no-such-method", "#000000")
        monkeypatch.setitem(METHODS, "no-such-method", METHODS["mean"])
        assert absent(someone, plane, 2) is None
        assert len(run(someone, plane, 2, 1.0).costs) == 2

    def test_a_method_that_refuses_so_many_columns_is_left_out_in_its_own_words(self):
        wide = Setting(np.zeros((100, 7)), {"radius": 1.0}, 0.0, 1)
        assert "at most 3 features" in absent(Contestant("grid", "grid", "#000000"), wide, 2)

    def test_every_contestant_plays_or_is_named_with_a_reason(self):
        outcome = play(panels(TINY, 1e-6, None)[-1], lambda *step: None)
        played, everyone = {cell.name for cell in outcome.cells}, contestants(8, None)
        assert played | set(outcome.left_out) == {someone.name for someone in everyone}
        assert not played & set(outcome.left_out)
        lacking = {someone.name for someone in everyone if someone.method not in (None, "auto", *METHODS, *SEEDERS)}
        assert lacking <= set(outcome.left_out)
        assert "private k-variates++" in played

    @pytest.mark.parametrize("everyone", [contestants(8, None), variants(8)], ids=["contestants", "variants"])
    def test_names_and_colours_are_each_used_once(self, everyone):
        assert len({someone.name for someone in everyone}) == len(everyone)
        assert len({someone.colour for someone in everyone}) == len(everyone)

    @pytest.mark.parametrize("of", [lambda steps: contestants(steps, None), variants])
    def test_without_steps_after_it_no_line_has_them(self, of):
        assert any(someone.sulq_steps == 3 for someone in of(3))
        assert not any(someone.sulq_steps for someone in of(0))

    def test_slow_ones_that_are_far_off_run_less_often_and_the_words_say_so(self, plane):
        few = next(someone for someone in contestants(8, 1) if someone.method == "variates")
        cells = (run(few, plane, 2, 1.0), Cell(NOT_PRIVATE, 2, None, (1.0, 1.0), 0.1))
        assert len(cells[0].costs) == 1
        outcome = Outcome(Panel("2a", "", plane, (2,), (1.0,), (few,)), cells, {})
        assert runs_words(outcome) == "2 runs, of private k-variates++ 1"


class TestThePapersSettings:
    def test_figure_2d_is_ten_clusters_of_the_images_at_several_epsilon(self):
        sweep = next(panel for panel in panels(TINY, 1e-6, IMAGES) if panel.name == "2d")
        assert sweep.clusters == (10,)
        assert sweep.epsilons == TINY.epsilons
        assert np.array_equal(sweep.setting.rows, IMAGES)

    def test_figures_of_images_need_images(self):
        assert tuple(panel.name for panel in panels(TINY, 1e-6, IMAGES)) == FIGURES
        assert [panel.name for panel in panels(TINY, 1e-6, None)] == ["2a", "small"]
        assert [panel.name for panel in panels(TINY, 1e-6, IMAGES, only=("2d",))] == ["2d"]

    def test_repetitions_follow_k(self, plane):
        someone = next(someone for someone in variants(8) if someone.name == "k repetitions")
        assert [someone.options(plane, k, 0)["tuning"].repetitions for k in (2, 7)] == [2, 7]

    def test_sulq_starts_anew_every_run_and_not_at_the_centres_of_the_mixture(self):
        """The rows' seed once gave both: the start then was the answer."""
        setting = Setting(gaussians(500, 100, 64, 0.05), {"radius": 1.0}, 1e-6, 1)
        sulq = next(someone for someone in contestants(8, None) if someone.name == SULQ)
        first, second = (sulq.options(setting, 64, number)["init"] for number in (0, 1))
        assert not np.allclose(first, second)
        for start in (first, second):
            assert cost(setting.rows, start) > cost(setting.rows, np.zeros((1, 100)))  # blind: one point in the middle is nearer

    def test_thresholds_of_the_paper_and_of_its_code_are_those_on_the_page(self):
        """Of MNIST, k = 10, epsilon 1, a chance of failure of 0.05, one trial; log is natural."""
        n, k, chance = 70_000, 10, 0.05
        share = 1 / 6 / k  # Algorithm 4 gives the candidates 1/6, Algorithm 2 every repetition 1/k of that, with delta/k
        printed = 20 / (share / (2 * log(n))) * log(n * k / chance)
        coded = 2 * log(n) / (2 / 3 / 2 / (2 * log(n)))  # candidate.m: 2/3 of epsilon for T = 2
        page = (Path(__file__).parents[2] / "docs" / "reproduction.md").read_text(encoding="utf-8")
        assert n < printed
        assert f"{printed:,.0f}".replace(",", " ") in page
        assert f"epsilon': {coded:.0f} |" in page
        assert round(2 * log(1 / chance)) == TRIALS
        top = 2e12 / n / 255**2  # the end of the printed axis, in mean squared distances of pixels up to 1
        assert f"that is {top:.0f} on this page. One mean for all rows is at {52.75 / top:.0%}".replace("%", " %") in page

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_steps_afterwards_and_the_method_are_paid_from_one_budget(self, plane, delta, monkeypatch):
        ledgers, make = [], Ledger.memory
        monkeypatch.setattr(Ledger, "memory", lambda *a, **b: ledgers.append(make(*a, **b)) or ledgers[-1])
        setting = Setting(plane.rows, plane.domain, delta, 1)
        run(Contestant("both", "candidates", "#000000", sulq_steps=2), setting, 2, 0.7)
        both = next(ledger for ledger in ledgers if ledger.name == "both")
        assert (both.epsilon, both.delta) == (floor_epsilon(0.7), floor_delta(delta))
        assert len(both.charges()) == 2
        assert 0.69 < both.spent().epsilon <= 0.7

    @pytest.mark.parametrize("epsilon", [0.05, 0.1, 1.0, 4.0])
    def test_two_halves_are_the_whole(self, epsilon):
        delta = floor_delta(1e-6)
        halves = 2 * zcdp_rho(floor_epsilon(half_of(epsilon, 1e-6)), delta)
        whole = zcdp_rho(floor_epsilon(epsilon), delta)
        assert 0.99999 * whole <= halves <= whole
        assert half_of(epsilon, 0.0) == epsilon / 2


class TestRows:
    def test_the_mixture_lies_in_the_public_ball_around_a_sphere(self):
        rows = gaussians(2000, 100, 64, 0.05)
        norms = np.linalg.norm(rows, axis=1)
        assert norms.max() <= 1 + 1e-12
        assert np.sqrt(0.7**2 + 100 * 0.05**2) == pytest.approx(norms.mean(), abs=0.01)

    def test_the_same_rows_are_made_every_time(self):
        assert np.array_equal(gaussians(50, 3, 8, 0.05), gaussians(50, 3, 8, 0.05))

    @pytest.mark.parametrize("top", [np.uint8(255), np.float64(1.0)])
    def test_images_are_brought_to_the_unit_cube(self, tmp_path, top):
        np.savez(tmp_path / "images.npz", x=np.full((64, 2, 3), top))
        rows = read_images(tmp_path / "images.npz")
        assert rows.shape == (64, 6)
        assert (rows == 1).all()

    @pytest.mark.parametrize("x", [np.zeros(64), np.zeros((63, 2)), np.zeros((64, 0)), np.full((64, 2), "a")])
    def test_arrays_that_are_no_images_are_refused(self, tmp_path, x):
        np.savez(tmp_path / "images.npz", x=x)
        with pytest.raises(SourceError, match="cannot be used as images"):
            read_images(tmp_path / "images.npz")


class TestNumbers:
    def test_the_cost_is_the_mean_squared_distance_to_the_nearest_centre(self):
        assert cost(np.array([[0.0], [1.0], [4.0]]), np.array([[0.0], [3.0]])) == pytest.approx((0 + 1 + 1) / 3)

    def test_without_privacy_epsilon_is_not_swept(self):
        sweep = next(panel for panel in panels(TINY, 1e-6, IMAGES) if panel.is_sweep)
        outcome = play(sweep, lambda *step: None)
        assert [cell.epsilon for cell in outcome.cells if cell.name == NOT_PRIVATE] == [None]
        assert [cell.epsilon for cell in outcome.cells if cell.name == "DP-Lloyd"] == [0.5, 1.0]
        line = next(line for line in as_markdown([outcome], []).splitlines() if line.startswith(f"| {NOT_PRIVATE}"))
        assert line.count("±") == 2

    def test_verdicts_count_what_the_runs_tell_apart(self, told):
        low, high, loose = (1.0, 1.1, 1.2), (2.0, 2.1, 2.2), (0.0, 1.0, 9.0)
        cells = [Cell(PAPER, k, 1.0, costs, 0.1) for k, costs in enumerate((low, low, high, loose), start=2)]
        cells += [Cell(SULQ, k, 1.0, costs, 0.1) for k, costs in enumerate((high, high, low, low), start=2)]
        outcome = Outcome(told.panel, tuple(cells), {})
        assert [tuple(verdict) for verdict in verdicts([outcome])] == [(PAPER, SULQ, "2a", 2, 1, 1)]
        assert f"| {PAPER} | {SULQ} | 2 / 1 / 1 |" in verdict_table([outcome])

    def test_one_run_gives_no_verdict(self, told):
        cells = [Cell(name, 2, 1.0, (height,), 0.1) for name, height in ((DEFAULT, 1.0), (PAPER, 2.0), (ONE_MEAN, 9.0))]
        found = verdicts([Outcome(told.panel, tuple(cells), {})])
        assert {(verdict.first, verdict.second) for verdict in found} == {(DEFAULT, PAPER), (PAPER, ONE_MEAN)}
        assert {verdict[3:] for verdict in found} == {(0, 0, 1)}

    def test_tables_hold_means_deviations_and_ratios(self, told):
        private = [record for record in records([told]) if record["method"] == "DP-Lloyd"]
        assert [record["mean_cost"] for record in private] == [4.0, 2.0]
        assert [record["ratio_to_non_private"] for record in private] == [2.0, 2.0]
        assert private[1]["sd_cost"] == pytest.approx(np.sqrt(0.5))
        assert "| DP-Lloyd | 4 ± 0 | 2 ± 0.5 |" in as_markdown([told], [])
        assert len(list(csv.DictReader(io.StringIO(as_csv(records([told])))))) == 4

    def test_the_report_says_what_it_is_not_and_who_was_left_out(self, told):
        report = as_markdown([told], ["Figure 2c was skipped."])
        assert "none of these numbers is the paper's own" in report
        assert "- left out: uniform grid, since it is too wide." in report
        assert report.endswith("Figure 2c was skipped.\n")
        assert "2 runs. Mean squared distance" in report


class TestFigure:
    @pytest.fixture
    def figure(self):
        pytest.importorskip("matplotlib")
        from kveil.research import figure

        return figure

    def test_names_stand_beside_lines_and_the_caption_carries_the_promise(self, figure, told, monkeypatch):
        import matplotlib

        monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")  # text as text
        drawn = figure.svg(told).decode()
        for text in ("A question?", NOT_PRIVATE, "DP-Lloyd", "2 runs", "ε = 1, δ = 1e-06", "not the paper's own numbers"):
            assert text in drawn, text

    def test_a_method_far_above_one_mean_is_named_in_the_caption_and_not_drawn(self, figure, told):
        near = [Cell(ONE_MEAN, 2, 1.0, (5.0,), 0.1), Cell(ONE_MEAN, 4, 1.0, (5.0,), 0.1)]
        rather = [Cell(PAPER, 2, 1.0, (5.5,), 0.1), Cell(PAPER, 4, 1.0, (9.0,), 0.1)]
        far = [Cell("sample and aggregate", k, 1.0, (cost,), 0.1) for k, cost in ((2, 40.0), (4, 30.0))]
        outcome = Outcome(told.panel, (*told.cells, *near, *rather, *far), {})
        assert figure.far_off(outcome) == ["sample and aggregate"]
        caption = figure._caption(outcome, ["sample and aggregate"])
        assert "Far above the picture: sample and aggregate (30 to 40)." in caption
        assert figure.far_off(told) == []

    def test_a_band_spans_all_of_few_runs_and_percentiles_of_many(self, figure):
        assert figure._band(Cell("x", 2, 1.0, (1.0, 2.0, 9.0), 0.0)) == (1.0, 9.0)
        low, high = figure._band(Cell("x", 2, 1.0, tuple(range(101)), 0.0))
        assert (low, high) == (5.0, 95.0)

    @given(st.lists(st.floats(-1, 2), min_size=1, max_size=9))
    def test_names_keep_their_order_and_their_distance(self, heights):
        pytest.importorskip("matplotlib")
        from kveil.research.figure import LINE, _apart

        placed = _apart(sorted(heights))
        assert max(placed) <= 1
        assert all(upper - lower >= LINE - 1e-9 for lower, upper in pairwise(placed))
