"""The registry of peers: who is left out and why, and what diffprivlib really spends."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import peers

    return peers


@pytest.fixture
def bench(peers):
    from benchmarks import peers_kmeans

    return peers_kmeans


@pytest.mark.parametrize(("d", "factor"), [(2, 0.905), (5, 1.003), (64, 2.28), (100, 2.66), (784, 5.38)])
def test_the_swapped_split_spends_so_many_times_what_is_asked(peers, d, factor):
    """Parts drawn over parts asked for: one for the count and c for each of d coordinates, over d and c."""
    assert peers.swapped_split({"bounds": (0, 7)}, d) == pytest.approx(factor, rel=2e-3)


def test_bounds_around_zero_spend_less_because_a_row_moves_a_sum_by_half_the_width(peers):
    c = np.cbrt(4 * 8 * 0.225**2)
    assert peers.swapped_split({"radius": 2.0}, 8) == pytest.approx((1 + 4 * c) / (8 + c))
    assert peers.swapped_split({"bounds": (-2, 2)}, 8) == peers.swapped_split({"radius": 2.0}, 8)


def test_a_peer_that_cannot_be_imported_is_named_with_the_reason(peers, monkeypatch, tmp_path):
    absent = peers.Peer("absent", "no_such_module_anywhere.part", None, ("pure",))
    assert peers.missing(absent) == "not installed"
    (tmp_path / "too_old_a_peer.py").write_text("from math import no_such_name_in_math")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "does not import beside these libraries (math)" in peers.missing(peers.Peer("old", "too_old_a_peer", None, ("pure",)))
    assert peers.missing(peers.Peer("there", "kveil", None, ("pure",))) is None


def test_a_peer_whose_epsilon_is_not_true_gets_a_line_at_each_of_the_two(bench):
    peer = bench.Peer("odd", "kveil", None, ("pure",))
    asked, true = bench._promises("rows", peer, 1.0, 1e-6, 2.0)
    assert (asked.epsilon_asked, asked.epsilon_spent) == (1.0, 2.0)
    assert (true.epsilon_asked, true.epsilon_spent) == (0.5, 1.0)
    assert "at asked epsilon 1: spends 2" in asked.promise
    assert "at true epsilon 1: asked for 0.5" in true.promise


def test_a_library_that_can_do_both_is_shown_at_delta_zero_and_above(bench):
    peer = bench.Peer("both", "kveil", None, ("pure", "approximate"))
    assert [line.delta for line in bench._promises("rows", peer, 1.0, 1e-6, 1.0)] == [0.0, 1e-6]
    assert [line.delta for line in bench._promises("rows", peer, 1.0, 0.0, 1.0)] == [0.0]


@pytest.mark.parametrize("name", ["scikit-learn KMeans", "kveil", "kveil lloyd"])
def test_a_cell_returns_centres_time_and_memory_of_every_run(bench, tmp_path, name):
    rows = np.random.default_rng(0).uniform(0, 1, (600, 2))
    np.save(tmp_path / "rows.npy", rows)
    answer = bench._run_cell(bench.Cell(str(tmp_path / "rows.npy"), 3, {"bounds": (0, 1)}, name, 1.0, 0.0, 2, ()))
    assert np.shape(answer["centers"]) == (2, 3, 2)
    assert len(answer["cpu"]) == 2
    assert answer["extra_mb"] >= 0
    line = bench._line(bench.Line("rows", name, "x"), rows, answer, floor=min(bench.costs_of(rows, answer)), seconds=1.0)
    assert line.runs == 2
    assert line.cost_ratio >= 1


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="elsewhere the peak cannot be started anew")
def test_memory_is_what_was_added_even_if_more_was_used_and_freed_before(bench):
    del_me = np.ones(20_000_000)
    del del_me  # 160 MB, given back before the count starts
    memory = bench._Memory()
    kept = np.ones(10_000_000)
    assert kept.nbytes / 2**20 * 0.8 <= memory.added() <= kept.nbytes / 2**20 * 1.5


def test_trouble_in_another_library_is_a_line_and_not_the_end(bench, tmp_path, monkeypatch):
    def fit(*arguments):
        raise ZeroDivisionError("theirs")

    (tmp_path / "mine.py").write_text("PEERS = []")
    monkeypatch.syspath_prepend(str(tmp_path))
    import mine

    monkeypatch.setattr(mine, "PEERS", [bench.Peer("odd", "kveil", fit, ("pure",))])
    np.save(tmp_path / "rows.npy", np.zeros((9, 1)))
    answer = bench._run_cell(bench.Cell(str(tmp_path / "rows.npy"), 2, {"bounds": (0, 1)}, "odd", 1.0, 0.0, 1, ("mine",)))
    assert answer == {"trouble": "failed: ZeroDivisionError"}
    assert bench._line(bench.Line("rows", "odd", "x"), np.zeros((9, 1)), answer, 1.0, 1.0).trouble == answer["trouble"]


def test_a_peer_that_wants_rows_around_the_origin_gets_them_and_its_centres_are_moved_back(peers, monkeypatch):
    """A stand-in with the signature of Google's library, which is on no package index."""
    seen = {}

    def cluster(k, data, promise):
        seen.update(low=data.rows.min(), radius=data.radius, promise=promise)
        return SimpleNamespace(centers=data.rows[:k])

    package, algorithm, params = (ModuleType(f"clustering{part}") for part in ("", ".clustering_algorithm", ".clustering_params"))
    algorithm.private_lsh_clustering = cluster
    params.Data = lambda rows, radius: SimpleNamespace(rows=rows, radius=radius)
    params.DifferentialPrivacyParam = lambda epsilon, delta: (epsilon, delta)
    for module in (package, algorithm, params):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    rows = np.array([[0.0, 0.0], [1.0, 1.0], [0.5, 0.0]])
    assert np.allclose(peers._google(rows, 2, 1.0, 1e-6, {"bounds": (0, 1)}, 0), rows[:2])
    assert seen["low"] == -0.5
    assert seen["radius"] == pytest.approx(np.sqrt(2) / 2)
    assert seen["promise"] == (1.0, 1e-6)
