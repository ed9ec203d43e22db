"""The HST figures: the universes and demands they are drawn from, the printed search, the numbers, and what the report says."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from kveil import Graph, Precomputed
from kveil.errors import SourceError
from kveil.partition.hst import Hst
from kveil.research import median_methods
from kveil.research.hst_claims import COMPARISONS, CORRECTED, PRINTED, Verdict, farthest_apart, verdicts
from kveil.research.hst_figures import QUICK, Cell, Outcome, Size, play
from kveil.research.hst_report import as_markdown, records, timing_records
from kveil.research.hst_times import FIXED, Timing, timings
from kveil.research.median_cases import GROUPS, KINDS, Images, cases, clustered_graph, read_digits, timed_universes
from kveil.research.median_methods import METHODS, Round, Run, corrected_seeds
from kveil.research.printed_hst import printed_cost
from kveil.research.printed_seeds import printed_seeds, printed_seeds_cost, rates
from kveil.research.records import as_csv
from kveil.solve.hst import seeds_from_counts
from kveil.testing import scripted

pytestmark = pytest.mark.research

TINY = Size(200, 200, 40, 2, (2, 3), (2, FIXED), (100, 200))
NAMES = [method.name for method in METHODS]


@pytest.fixture(scope="module")
def graph_case():
    return next(case for case in cases(200, 200, None) if case.name == "graph-r1")


@pytest.fixture(scope="module")
def line():
    """Points whose distances double: a tree of them is as deep as it may be."""
    places = 2 ** np.arange(9)
    return Precomputed(np.abs(places[:, None] - places).astype(np.int32))


class TestUniverses:
    def test_a_graph_has_ten_equal_clusters_that_r_moves_apart(self):
        (near, group), (far, same) = clustered_graph(400, 1), clustered_graph(400, 100)
        assert np.array_equal(group, same)
        assert np.bincount(group).tolist() == [400 // GROUPS] * GROUPS
        inside = np.flatnonzero(group == 0)
        outside = np.flatnonzero(group == 1)
        assert far.distances(inside, inside).mean() < 0.5 * far.distances(inside, outside).mean()
        assert (near.distances(inside, outside) * near.step).min() >= 0.5
        assert far.distances(inside, outside).mean() * far.step > 2 * near.distances(inside, outside).mean() * near.step

    @pytest.mark.parametrize("n", [200, 333, 1000])
    def test_small_graphs_do_not_fall_apart(self, n):
        assert clustered_graph(n, 100)[0].n_points == n

    def test_a_table_holds_the_distances_of_its_universe_in_its_unit(self, graph_case):
        graph, _ = clustered_graph(200, 1)
        assert np.array_equal(graph_case.space.distances([7]), graph.distances([7]))
        assert graph_case.unit == graph.step

    def test_a_balanced_demand_is_drawn_from_all_and_an_imbalanced_one_from_two_clusters(self, graph_case):
        everywhere, somewhere = (graph_case.demand(kind, 30, 0) for kind in KINDS)
        assert len(set(everywhere.tolist())) == len(set(somewhere.tolist())) == 30
        assert len(set(graph_case.group[everywhere])) > 2
        assert set(graph_case.group[somewhere]) == {0, 1}
        assert not np.array_equal(everywhere, graph_case.demand("balanced", 30, 1))
        assert len(graph_case.demand("imbalanced", 100, 0)) == 40  # all there are

    def test_images_keep_their_digits(self, tmp_path):
        digits = np.arange(70) % 10
        np.savez(tmp_path / "images.npz", x=np.repeat(digits, 6).reshape(70, 2, 3).astype(np.uint8), y=digits)
        images = read_digits(tmp_path / "images.npz")
        assert (images.pixels == images.digits[:, None]).all()
        l1, l2, *graphs = cases(66, 200, images)
        assert (l1.space.n_points, l1.two, len(graphs)) == (66, (0, 8), 2)
        apart = abs(int(images.digits[0]) - int(images.digits[1]))
        assert l1.space.distances([0], [1]) * l1.unit == 6 * apart
        assert l2.space.distances([0], [1]) * l2.unit == pytest.approx(np.sqrt(6) * apart, rel=1e-3)

    def test_other_labels_than_digits_have_two_first_ones(self):
        images = Images(np.random.default_rng(0).random((80, 2)), np.repeat([3, 5, 7, 9], 20))
        assert next(cases(80, 200, images)).two == (3, 5)

    @pytest.mark.parametrize(
        ("x", "y"),
        [
            (np.zeros((80, 2)), None),
            (np.zeros((80, 2)), np.zeros(79, dtype=int)),
            (np.zeros((80, 2)), np.zeros(80)),
            (np.zeros((63, 2)), np.zeros(63, dtype=int)),
            (np.zeros(80), np.zeros(80, dtype=int)),
            (np.full((80, 2), np.nan), np.zeros(80, dtype=int)),
            (np.full((80, 2), "a"), np.zeros(80, dtype=int)),
        ],
    )
    def test_what_is_no_images_with_digits_is_refused(self, tmp_path, x, y):
        np.savez(tmp_path / "images.npz", **({"x": x} if y is None else {"x": x, "y": y}))
        with pytest.raises(SourceError, match="cannot be used as images"):
            read_digits(tmp_path / "images.npz")


class TestPrintedSeeds:
    def test_seeds_without_noise_are_those_of_the_tree(self, line):
        tree = Hst.of(line, beta=1.0, random_state=0)
        counts = np.array([9, 0, 0, 5, 0, 0, 4, 0, 7])
        seeds = printed_seeds(tree, counts, 3, 1e12, np.random.default_rng(1))
        assert np.array_equal(seeds, seeds_from_counts(tree, tree.sums(counts), 3))

    def test_noise_doubles_from_level_to_level_and_costs_more_than_is_claimed(self, line):
        tree = Hst.of(line, beta=1.0, random_state=0)
        found = rates(tree, 1.0)
        radii = tree.gap[1:] / (tree.diameter / 2)  # of the first partition, 1
        assert found == pytest.approx(radii)  # noise of scale 1, 2, 4, ... where the radius is 1, 1/2, 1/4, ...
        worst = 0.0
        for node in tree.leaves.tolist():
            paid, above = 0.0, node
            while above:
                paid, above = paid + found[above - 1], int(tree.parent[above])
            worst = max(worst, paid)
        assert printed_seeds_cost(tree, 1.0) == pytest.approx(worst)
        assert 1 < worst <= printed_cost(tree.n_levels, base=2, first=0)
        assert printed_seeds_cost(tree, 0.5) == pytest.approx(worst / 2)


class TestMethods:
    @pytest.fixture
    def demand(self, graph_case):
        return Round(graph_case, graph_case.demand("imbalanced", 40, 0), 1.0, 0)

    def test_names_are_each_used_once_and_what_is_invalid_says_so(self):
        assert len(set(NAMES)) == len(NAMES)
        assert [name for name in NAMES if "invalid" in name] == ["DP-HST, as printed (invalid)"]
        assert {name for comparison in COMPARISONS for name in (comparison.one, comparison.other)} <= set(NAMES)
        assert {*PRINTED, *CORRECTED} == set(NAMES[3:9])

    def test_a_search_without_privacy_never_ends_above_its_seeds(self, demand):
        for method in METHODS[:3]:
            run = demand.run(method, 3)
            assert 0 < run.final <= run.seeds
            assert run.paid is None

    def test_who_starts_from_public_seeds_starts_alike(self, demand):
        for start in ("random", "k-median++"):
            printed, corrected = (
                demand.run(method, 3).seeds
                for method in METHODS
                if method.start == start and method.way in ("printed", "corrected")
            )
            assert printed == corrected

    def test_every_private_method_says_what_it_pays(self, demand):
        paid = {method.name: demand.run(method, 2).paid for method in METHODS[3:]}
        assert paid["DP-rand, as printed"] == paid["DP-k-median++, as printed"] == 0.25
        assert 0.75 < paid["DP-HST, as printed (invalid)"] <= 1.25
        assert {paid[name] for name in NAMES[6:]} == {1.0}

    def test_a_printed_search_has_iterates_and_a_pull_that_is_far_from_enough(self, demand):
        run = demand.run(METHODS[4], 3)
        assert len(run.walk) == len(run.aimless) == median_methods.STEPS
        assert 0 < run.pull < np.log(3 * 200)
        assert demand.run(METHODS[7], 3).pull is None

    def test_as_many_steps_as_asked_for_are_measured(self, graph_case):
        short = Round(graph_case, graph_case.demand("balanced", 40, 0), 1.0, 0, n_steps=6)
        for method in METHODS[3:9]:
            run = short.run(method, 3)
            assert len(run.walk) == 6
            assert run.best == min(run.walk) <= run.iterates
            assert run.steps in (1, 2)
            assert run.steps_with_seeds in (1, 2, 3)
        assert short.run(METHODS[-1], 3).best is None

    def test_a_pull_is_by_how_much_the_best_swap_is_likelier_than_the_mean_one(self, graph_case, demand):
        seeds = np.array([5, 50])
        offered = [
            demand.swaps.cost([*(seeds[:x]), *(seeds[x + 1 :]), y])
            for x in range(2)
            for y in range(200)
            if y not in seeds.tolist()
        ]
        rate = 1.0 / (4 * graph_case.space.diameter * 21)
        expected = rate * (np.mean(offered) - np.min(offered))
        assert demand._printed(seeds, 0.0, np.random.default_rng(0)).pull == pytest.approx(expected)

    def test_public_seeds_leave_the_whole_budget_and_private_ones_half_of_it(self, demand, monkeypatch):
        given = []
        real = median_methods.PrivateKMedian

        def model(k, **how):
            given.append(how["epsilon"])
            return real(k, **how)

        monkeypatch.setattr(median_methods, "PrivateKMedian", model)
        for method in METHODS[6:]:
            demand.run(method, 2)
        assert given == [1.0, 1.0, 0.5, 1.0]

    def test_corrected_seeds_for_a_large_budget_are_those_of_exact_counts(self, graph_case):
        tree = Hst.of(graph_case.space, random_state=0)
        counts = np.random.default_rng(0).integers(0, 10**6, 200)  # no ties, which noise would break
        with scripted(0):
            seeds = corrected_seeds(tree, counts, 4, 1000.0, np.random.default_rng(0))
            other = corrected_seeds(tree, counts, 4, 1e-6, np.random.default_rng(0))
        assert np.array_equal(seeds, seeds_from_counts(tree, tree.sums(counts), 4))
        assert not np.array_equal(seeds, other)


@pytest.fixture
def told():
    """An outcome made by hand: everybody costs 10 in three runs, but for what a test is about."""

    def cell(method, k):
        has_steps = method.way in ("printed", "corrected")
        way = {"walk": (9.0, 11.0, 9.0, 11.0, 10.0, 10.0), "aimless": (10.0,) * 6} if has_steps else {}
        private = {"paid": 1.25, "pull": 0.1, **way} if method.way == "printed" else way
        seeds = {"DP-HST, as printed (invalid)": (1.0, 2.0, 1.5), "NDP-HST": (1.0, 19.0, 9.0)}.get(method.name, (10.0, 11.0, 9.0))
        final = 20.0 if method.name == "NDP-rand" and k == 4 else 10.0
        return Cell(method, k, tuple(Run(final, None if method.start is None else cost, **private) for cost in seeds))

    cells = tuple(cell(method, k) for method in METHODS for k in (2, 4))
    return Outcome("graph-r1", "a graph", "balanced", 100, 30, 1.0, 6, cells)


class TestNumbers:
    def test_everybody_plays_everywhere(self, graph_case):
        steps = []
        with scripted(0):
            outcomes = play(graph_case, TINY, 1.0, lambda *step: steps.append(step))
        assert [outcome.kind for outcome in outcomes] == list(KINDS)
        assert [(cell.method.name, cell.k) for cell in outcomes[0].cells] == [(name, k) for name in NAMES for k in (2, 3)]
        assert {len(cell.runs) for cell in outcomes[1].cells} == {2}
        assert len(steps) == 4
        assert len(as_csv(records(outcomes)).splitlines()) == 1 + 2 * len(NAMES) * 2

    def test_a_verdict_needs_a_difference_beyond_its_spread(self, told):
        found = {verdict.claim: verdict for verdict in verdicts([told])}
        claim = "private seeds as printed: HST under k-median++"
        assert found[claim] == Verdict(claim, "graph-r1", "balanced", 2, 0, 0)
        claim = "seeds without privacy: HST under k-median++"
        assert found[claim] == Verdict(claim, "graph-r1", "balanced", 0, 0, 2)
        claim = "as printed: steps, on average, under their HST seeds"
        assert found[claim] == Verdict(claim, "graph-r1", "balanced", 0, 2, 0)

    def test_a_single_run_decides_nothing(self, told):
        once = replace(told, cells=tuple(Cell(cell.method, cell.k, cell.runs[:1]) for cell in told.cells))
        assert {(verdict.lower, verdict.higher) for verdict in verdicts([once])} == {(0, 0)}

    def test_starts_without_privacy_are_held_against_each_other(self, told):
        assert farthest_apart([told]) == 1.0

    def test_records_hold_means_deviations_and_ratios(self, told):
        line = next(line for line in records([told]) if (line["method"], line["k"]) == ("DP-HST, as printed (invalid)", 2))
        assert (line["mean_seeds"], line["sd_seeds"], line["mean_final"], line["ratio_to_non_private"]) == (1.5, 0.5, 10.0, 1.0)
        assert (line["epsilon_claimed"], line["epsilon_paid"], line["mean_iterates"]) == (1.0, 1.25, 10.0)
        measured = [line[name] for name in ("steps", "mean_steps", "mean_steps_with_seeds", "mean_aimless_steps", "mean_best")]
        assert measured == [6, 1.0, 1.0, 1.0, 9.0]
        ours = records([told])[-1]
        assert (ours["method"], ours["mean_seeds"], ours["mean_iterates"]) == ("kveil's default", None, None)

    def test_the_report_says_what_it_is_not_and_what_the_printed_noise_costs(self, told):
        times = [Timing("graph-r1", 100, 20, 0.001, 0.004, 0.0005), Timing("graph-r1", 100, 50, 0.008, 0.004, 0.0005)]
        report = as_markdown([told], times, ["Images were skipped."])
        assert "none of these numbers is the paper's own" in report
        assert "DP-HST as printed costs up to 1.25 for a claimed 1" in report
        assert "| DP-HST, as printed (invalid) | 1.5 ± 0.5 | 1.5 ± 0.5 |" in report
        assert "| graph-r1 | 100 | 20 | 1 | 4.5 | 0.5 |" in report
        assert "quicker than k-median++ of the k tried first at 50; ln n is 4.6." in report
        assert "at no k tried" in as_markdown([told], times[:1], [])
        line = next(line for line in report.splitlines() if line.startswith("| graph-r1, balanced |"))
        assert line.count("1.00 to 1.00") == 7
        assert report.endswith("Images were skipped.\n")

    def test_sizes_are_cut_to_what_is_asked(self):
        assert Size().within(None, None, None) == Size()
        assert Size().within(None, None, None, 7) == replace(Size(), steps=7)
        few = Size().within(500, 100, 3)
        assert (few.points, few.vertices, few.rows, few.runs, few.timed_points) == (500, 500, 100, 3, (500,))
        assert QUICK.within(50, None, None).rows == 50
        assert max(Size().within(100, None, None).timed_clusters) <= 100

    def test_times_are_taken_over_k_and_over_points(self):
        few = Images(np.random.default_rng(0).random((120, 3)), np.zeros(120, dtype=np.int64))
        found = timings(timed_universes(few), TINY, lambda *step: None)
        tried = {name: [(t.points, t.k) for t in found if t.universe == name] for name in ("graph-r1", "mnist-l2")}
        assert tried["graph-r1"] == [(100, FIXED), (200, 2), (200, FIXED)]
        assert tried["mnist-l2"] == [(100, FIXED), (120, 2), (120, FIXED)]  # no more images than there are
        assert all(min(timing[3:]) >= 0 for timing in found)
        assert len(list(csv.DictReader(io.StringIO(as_csv(timing_records(found)))))) == 6


class TestFigure:
    @pytest.fixture
    def figure(self, monkeypatch):
        matplotlib = pytest.importorskip("matplotlib")
        from kveil.research import hst_figure

        monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")  # text as text
        return hst_figure

    def test_names_stand_beside_lines_and_the_caption_carries_the_promise(self, figure, told):
        drawn = figure.svg(told).decode()
        for text in (*NAMES, "3 run(s)", "ε = 1, δ = 0", "not the paper's own numbers", "no promise", "balanced demand"):
            assert text in drawn, text
        assert drawn.count("DP-k-median++, corrected") == 1  # its seeds are those of the printed method
        assert drawn.count("DP-HST, corrected") == 2

    def test_figures_5_and_6_show_imbalanced_demands_and_what_swaps_do_that_look_at_nothing(self, figure, told):
        from kveil.research import hst_walk_figure

        two = [replace(told, name=name, kind=kind) for name in ("one", "other") for kind in KINDS]
        steps, best = (hst_walk_figure.svg(two, what).decode() for what in ("steps", "best"))
        for name in (*PRINTED, *CORRECTED):
            assert steps.count(f" {name}<") == best.count(f" {name}<") == 2  # a panel per universe, none for balanced demands
        assert steps.count(f"··· {hst_walk_figure.AIMLESS}<") == 2
        assert hst_walk_figure.AIMLESS not in best
        assert "T = 6 steps" in steps
        assert "NDP-HST" not in steps

    def test_figure_3_shows_five_vertices_of_every_cluster(self, figure):
        from kveil.research import graph_figure

        graph, group = clustered_graph(400, 1)
        chosen = graph_figure.excerpt(graph, group)
        assert np.bincount(group[chosen]).tolist() == [5] * GROUPS
        assert len(set(chosen.tolist())) == graph_figure.SHOWN
        drawn = graph_figure.svg(400).decode()
        for text in ("r = 1", "r = 100", "50 of 400 vertices", "ten links between two clusters, which it leaves open"):
            assert text in drawn, text

    def test_mean_distances_leave_out_a_vertex_and_itself(self, figure):
        from kveil.research import graph_figure

        path = Graph.from_edges([[0, 1], [1, 2], [2, 3]], lengths=[1, 5, 3])
        assert graph_figure.mean_distances(path, np.array([0, 0, 1, 1])) == (2.0, 7.0)  # 1, 3; 6, 9, 5, 8

    def test_places_on_a_plane_keep_distances_that_fit_there(self, figure):
        from kveil.research import graph_figure

        corners = np.array([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0], [1.0, 7.0]])
        apart = np.linalg.norm(corners[:, None] - corners, axis=2)
        places = graph_figure.on_a_plane(apart)
        assert np.allclose(np.linalg.norm(places[:, None] - places, axis=2), apart)

    def test_times_are_drawn_for_one_universe(self, figure):
        some = [Timing("graph-r1", n, k, 0.001, 0.002, 0.0) for n, k in ((100, FIXED), (200, 2), (200, FIXED))]
        drawn = figure.times_svg([*some, Timing("other", 54321, FIXED, 1.0, 1.0, 1.0)], "graph-r1").decode()
        assert "HST, tree kept" in drawn
        assert "200 points" in drawn
        assert "54321" not in drawn
