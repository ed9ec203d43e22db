"""Figure 3 and Table 2 of the k-variates++ paper: the rows they are drawn from, the numbers, and what the report says."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from kveil.errors import SourceError
from kveil.research.contest import Setting
from kveil.research.kvariates_report import as_markdown, entry_records, point_records
from kveil.research.peers import Crowd, Point, figure_3, peers, scatter
from kveil.research.records import as_csv
from kveil.research.seed_table import CONDITIONAL, FITTED, NO_DATA, SEEDED, Case, Entry, cases, mixture, read_places, table_2
from kveil.research.seeders import SEEDERS, conditional_seeds, private_seeds
from kveil.research.theorems import Measured
from kveil.testing import scripted

pytestmark = pytest.mark.research

TINY = Crowd(peers=4, rows=200, columns=3, clusters=(2, 3), moved=(0.0, 0.5), tables=2, seeds=2)


class TestPeers:
    def test_all_rows_are_there_and_the_same_ones_whoever_holds_them(self):
        still, mixed = peers(TINY, 0.0, 0), peers(TINY, 0.5, 0)
        assert [len(part) for part in still] == [50] * 4
        assert np.array_equal(np.sort(np.concatenate(still), axis=0), np.sort(np.concatenate(mixed), axis=0))
        assert scatter(mixed) > 3 * scatter(still)
        assert np.ptp(still[0], axis=0).max() <= 0.3

    def test_half_of_the_rows_move_and_none_stays_that_was_to_go(self):
        crowd = Crowd(peers=2, rows=2000, columns=1)
        still, mixed = peers(crowd, 0.0, 1), peers(crowd, 1.0, 1)
        assert np.array_equal(np.sort(still[0], axis=0), np.sort(mixed[1], axis=0))

    def test_a_point_for_every_pick_rival_k_and_share(self):
        steps = []
        points = figure_3(TINY, lambda *step: steps.append(step))
        assert len(points) == 2 * 2 * 2 * 2
        assert [number for _, number, _ in steps] == [1, 2, 3, 4]
        assert {point.scatter for point in points if point.moved == 0} == {1.0}
        assert all(np.isfinite(point.percent) and point.error >= 0 for point in points)


class TestTable:
    @pytest.fixture
    def case(self):
        return Case("tiny", Setting(mixture(300, 2, 3), {"radius": 1.0}, 0.0, 2), 3, 4.5)

    def test_everyone_takes_part_once(self, case):
        entries = table_2(case, 1.0, lambda *step: None)
        names = [entry.method for entry in entries]
        assert len(set(names)) == len(names)
        assert {CONDITIONAL, NO_DATA, *SEEDED, *(someone.name for someone in FITTED)} < set(names)
        runs = {entry.method: len(entry.inside) for entry in entries}
        assert runs.pop(NO_DATA) == 1
        assert set(runs.values()) == {2}
        without = table_2(Case("tiny", case.setting, 3, None), 1.0, lambda *step: None)
        assert CONDITIONAL not in {entry.method for entry in without}

    def test_sizes_are_the_paper_s_up_to_the_most_rows(self):
        found = cases(1000, 1, {"geo_uk": np.zeros((50, 2)), "other": np.zeros((2000, 2))})
        assert [len(case.setting.rows) for case in found] == [1000] * 10 + [50, 1000]
        assert [case.k for case in found] == [3, 2, 3, 5, 15] * 2 + [5, 5]
        assert found[-2].setting.domain != found[-1].setting.domain
        for order, some in ((2, found[:5]), (1, found[5:10])):
            assert all(np.linalg.norm(case.setting.rows, order, axis=1).max() <= 1 + 1e-12 for case in some)
            assert [case.of_seeds for case in some] == [{"radius" if order == 2 else "l1_radius": 1.0}] * 5
        assert np.linalg.norm(found[0].setting.rows, 1, axis=1).max() > 1.5  # the balls are not the same one

    def test_places_are_even_in_either_ball(self):
        """A ball of half the radius holds 2^-d of it, so 1/8 of the places in three columns; five deviations, public seeds."""
        for order in (1, 2):
            many = np.concatenate([mixture(1, 3, k, order) for k in range(1, 1200)])
            inner = np.mean(np.linalg.norm(many, order, axis=1) < 0.4)
            assert abs(inner - 1 / 8) < 5 * np.sqrt(1 / 8 * 7 / 8 / 1199)

    def test_seeds_are_k_points_of_the_domain_with_narrower_noise_for_more_budget(self):
        rows = mixture(2000, 2, 2)
        for how in SEEDERS:
            with scripted(1):
                near = private_seeds(how, rows, 2, 100.0, {"radius": 1.0})
                far = private_seeds(how, rows, 2, 0.001, {"radius": 1.0})
            assert near.drawn.shape == near.inside.shape == (2, 2)
            assert (np.linalg.norm(far.inside, axis=1) <= 1 + 1e-9).all()
            assert np.abs(near.drawn).max() < 2 < np.abs(far.drawn).max()
        with scripted(1):
            assert np.abs(conditional_seeds(rows, 2, 400.0, {"bounds": (-1, 1)}).drawn).max() <= 1

    def test_places_are_read_in_degrees_or_millionths(self, tmp_path):
        degrees = np.random.default_rng(0).uniform(-10, 10, (100, 2)).round(6)
        np.savez(tmp_path / "a.npz", x=degrees)
        np.savez(tmp_path / "b.npz", lonlat_e6=np.rint(degrees * 1e6).astype(np.int32))
        assert np.allclose(read_places(tmp_path / "a.npz"), read_places(tmp_path / "b.npz"), atol=1e-9)

    @pytest.mark.parametrize("x", [np.zeros((99, 2)), np.zeros((100, 3)), np.zeros(100), np.full((100, 2), "a")])
    def test_arrays_that_are_no_places_are_refused(self, tmp_path, x):
        np.savez(tmp_path / "a.npz", x=x)
        with pytest.raises(SourceError, match="cannot be used as places"):
            read_places(tmp_path / "a.npz")


class TestReport:
    @pytest.fixture
    def told(self):
        points = [
            Point(pick, rival, 5, moved, 3.0, 1.0, 1 + 10 * moved)
            for pick in ("uniform", "d2") for rival in ("k-means++", "k-means‖") for moved in (0.0, 0.5)
        ]  # fmt: skip
        entries = [
            Entry("a", CONDITIONAL, (2.0, 4.0), (10.0, 10.0), "here"),
            Entry("a", "Forgy-DP", (5.0, 5.0), (1000.0, 3000.0), "here"),
            Entry("a", "GUPT", (1.0, 3.0), None, "here"),
            Entry("b", "GUPT", (2.0,), None, "here"),
            Entry("a", "GUPT", (7.0,), None, "there"),
        ]
        return points, entries

    def test_it_holds_means_errors_and_the_ratios_as_printed(self, told):
        claims = [Measured("Theorem 2", 10, 3, 0.25, 0.5)]
        report = as_markdown(TINY, *told, claims, 1.0, ["Nothing was given."])
        assert "| Theorem 2 | 10 | 3 | 0.25 | 0.5 |" in report
        slope = (64 / 2 ** (2 / 3)) ** 2 / 34112  # of g in the ratio, at d = 3 and k = 2
        granted = np.log((np.e - 1 - 4 / 34112**0.5) / slope)
        assert f"| 34112 x 3, k = 2 | {np.sqrt(8 / np.sqrt(34112)):.2g} | {granted:.2g} | 7.9 |" in report
        assert "| 26733 x 10, k = 3 | 0.27 | none | 4.5 |" in report
        assert "| 5 | +3.0 ± 1.0 | +3.0 ± 1.0 |" in report
        assert "| sigma_1, conditional | 3 ± 1 | - |" in report
        assert "| GUPT | 2 ± 1 | 2 ± 0 |" in report
        assert "- a: Forgy-DP 200, GUPT 0.2" in report
        assert report.index("### Rows here") < report.index("| GUPT | 2 ± 1") < report.index("### Rows there")
        assert "| method | a |\n| --- | ---: |\n| GUPT | 7 ± 0 |" in report
        assert "1.0 at 0%, 6.0 at 50%" in report
        assert "none of these numbers is the paper's own" in report
        assert report.endswith("Nothing was given.\n")

    def test_csv_and_records_say_the_same(self, told):
        points, entries = told
        saved = list(csv.DictReader(io.StringIO(as_csv(entry_records(entries)))))
        assert [float(line["ratio"]) for line in saved] == [3.0, 5.0, 2.0, 2.0, 7.0]
        assert [line["ratio_as_drawn"] for line in saved] == ["10.0", "2000.0", "", "", ""]
        assert [line["domain"] for line in saved] == ["here"] * 4 + ["there"]
        assert len(list(csv.DictReader(io.StringIO(as_csv(point_records(points)))))) == 8

    def test_a_line_a_k_and_the_caption_says_what_it_is(self, told, monkeypatch):
        matplotlib = pytest.importorskip("matplotlib")
        from kveil.research.kvariates_figure import svg

        monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")  # text as text
        drawn = svg(told[0], TINY, "k-means‖").decode()
        for text in ("cost over k-means‖?", "k = 5", "not the paper's own numbers", "200 rows, 3 columns, 4 peers"):
            assert text in drawn, text
