"""The high-dimensional figures: who takes part, on which rows, and what the tables and labels say."""

from __future__ import annotations

import csv
import io
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kveil.errors import SourceError
from kveil.models.private_kmeans import METHODS
from kveil.research.contest import NOT_PRIVATE, Cell, Contestant, Setting, absent, cost, run
from kveil.research.highdim import CONTESTANTS, Outcome, Panel, Size, gaussians, panels, play, read_images
from kveil.research.records import as_csv
from kveil.research.seeders import SEEDERS
from kveil.research.tables import as_markdown, records

pytestmark = pytest.mark.research

TINY = Size(rows=150, small=120, runs=2, clusters=(2, 3), epsilons=(0.5, 1.0))


@pytest.fixture
def plane():
    return Setting(np.random.default_rng(0).uniform(-0.5, 0.5, (200, 2)), {"radius": 1.0}, 0.0, 2)


@pytest.fixture
def told():
    """An outcome made by hand: two methods at two k."""
    setting = Setting(np.zeros((10, 4)), {"radius": 1.0}, 1e-6, 2)
    panel = Panel("2a", "A question?", setting, (2, 4), (1.0,))
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
        played = {cell.name for cell in outcome.cells}
        assert played | set(outcome.left_out) == {someone.name for someone in CONTESTANTS}
        assert not played & set(outcome.left_out)
        lacking = {someone.name for someone in CONTESTANTS if someone.method not in (None, "auto", *METHODS, *SEEDERS)}
        assert lacking <= set(outcome.left_out)
        assert "private k-variates++" in played

    def test_names_and_colours_are_each_used_once(self):
        assert len({someone.name for someone in CONTESTANTS}) == len(CONTESTANTS)
        assert len({someone.colour for someone in CONTESTANTS}) == len(CONTESTANTS)


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
        sweep = next(panel for panel in panels(TINY, 1e-6, None) if panel.is_sweep)
        outcome = play(sweep, lambda *step: None)
        assert [cell.epsilon for cell in outcome.cells if cell.name == NOT_PRIVATE] == [None]
        assert [cell.epsilon for cell in outcome.cells if cell.name == "DP-Lloyd"] == [0.5, 1.0]
        line = next(line for line in as_markdown([outcome], []).splitlines() if line.startswith(f"| {NOT_PRIVATE}"))
        assert line.count("±") == 2

    def test_tables_hold_means_deviations_and_ratios(self, told):
        private = [record for record in records([told]) if record["method"] == "DP-Lloyd"]
        assert [record["mean_cost"] for record in private] == [4.0, 2.0]
        assert [record["ratio_to_non_private"] for record in private] == [2.0, 2.0]
        assert private[1]["sd_cost"] == pytest.approx(np.sqrt(0.5))
        assert "| DP-Lloyd | 4 ± 0 | 2 ± 0.71 |" in as_markdown([told], [])
        assert len(list(csv.DictReader(io.StringIO(as_csv(records([told])))))) == 4

    def test_the_report_says_what_it_is_not_and_who_was_left_out(self, told):
        report = as_markdown([told], ["Figure 2c was skipped."])
        assert "none of these numbers is the paper's own" in report
        assert "- left out: uniform grid, since it is too wide." in report
        assert report.endswith("Figure 2c was skipped.\n")


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
        for text in ("A question?", NOT_PRIVATE, "DP-Lloyd", "2 run(s)", "ε = 1, δ = 1e-06", "not the paper's own numbers"):
            assert text in drawn, text

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
