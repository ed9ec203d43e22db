"""What a release answers afterwards, for no charge: other numbers of clusters, a curve, made-up rows, a map."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import kveil
from kveil import PrivateKMeans, PrivateKMedian
from kveil.desk import base
from kveil.errors import InvalidValue
from kveil.kernel import gate
from kveil.kernel.ledger import Ledger
from kveil.release.check import check_release
from kveil.release.recluster import RECLUSTERED, is_reclustered
from kveil.solve.again import shifted
from kveil.solve.placed import Placed
from kveil.solve.synopsis import Synopsis, UniverseSynopsis, mean_cost
from kveil.testing import scripted


def mixture(d: int, k: int, n: int = 20_000) -> np.ndarray:
    rng = np.random.default_rng([d, k])
    return np.clip(rng.uniform(-0.7, 0.7, (k, d))[rng.integers(k, size=n)] + 0.05 * rng.standard_normal((n, d)), -1, 1)


MADE = {  # columns, clusters, centres, and how
    "1 column": (1, 4, 6, {}),
    "2 columns": (2, 8, 10, {}),
    "2 columns, scaled": (2, 8, 10, {"bounds": ([-1, -10], [1, 10]), "scaling": "bounds"}),
    "3 columns": (3, 8, 10, {}),
    "grid": (2, 8, 10, {"method": "grid"}),
    "6 columns": (6, 8, 12, {"delta": 1e-6}),
    "20 columns": (20, 5, 10, {"delta": 1e-6}),
}


@pytest.fixture(scope="module")
def releases():
    """Fits at epsilon 0.5, by name, each with its rows in the distance of the model."""
    made = {}
    with scripted(7):
        for name, (d, true, k, options) in MADE.items():
            rows = mixture(d, true)
            wide = np.array([1.0, 10.0]) if "scaling" in options else 1.0
            model = PrivateKMeans(k, epsilon=0.5, random_state=0, **{"bounds": (-1, 1), **options}).fit(rows * wide)
            made[name] = model.release_, rows, wide
    return made


def cost(rows: np.ndarray, centers: np.ndarray) -> float:
    return float(((rows[:, None] - centers) ** 2).sum(axis=2).min(axis=1).mean())


@pytest.fixture
def nothing_else(monkeypatch):
    """Whoever asks a desk, draws noise, reads rows or reserves budget in this test fails."""

    def refuse(*_, **__):
        raise AssertionError("this needs rows, noise or a ledger")

    for owner, name in ((gate, "run"), (gate, "secret_words"), (base, "read_rows"), (Ledger, "reserve")):
        monkeypatch.setattr(owner, name, refuse)


@pytest.mark.parametrize("name", MADE)
def test_everything_afterwards_needs_neither_rows_nor_a_ledger_and_keeps_the_guarantee(name, releases, tmp_path, nothing_else):
    release = kveil.load(releases[name][0].save(tmp_path / "out"))
    again = release.recluster(3)
    assert (again.guarantee, again.receipt) == (release.guarantee, release.receipt)
    assert again.parameters == release.parameters | {"n_clusters": 3}
    assert again.method["used"] == release.method["used"]
    assert "clustered again" in again.method["why"]
    assert again.notes == (*release.notes, RECLUSTERED)
    assert is_reclustered(again)
    assert not is_reclustered(release)
    assert again.centers.shape == (3, release.n_features)
    assert again.weights.sum() == pytest.approx(1)
    assert (again.errors >= 0).all()
    assert kveil.load(again.save(tmp_path / "again")).centers.tobytes() == again.centers.tobytes()
    curve, rows = release.cost_curve((1, 6)), release.sample(100)
    assert curve.k.tolist() == [1, 2, 3, 4, 5, 6]
    assert 2 <= curve.suggested <= 6
    assert json.loads(json.dumps(curve.to_dict()))["suggested"] == curve.suggested
    assert str(curve).count("\n") == 7
    assert curve._repr_html_() == f"<pre>{curve}</pre>".replace("<- s", "&lt;- s")
    assert release.verdict()._repr_html_() == f"<pre>{release.verdict()}</pre>"
    assert rows.shape == (100, release.n_features)
    assert (np.abs(rows) <= np.abs(release.domain().upper)).all()
    if release.n_features <= 2:
        assert release.density(16).shape == (16,) * release.n_features


@pytest.mark.parametrize("name", [name for name in MADE if "6" not in name and "20" not in name])
def test_cells_clustered_again_at_the_same_k_cost_what_the_centres_do(name, releases, tmp_path):
    release, rows, wide = releases[name]
    again = kveil.load(release.save(tmp_path / "out")).recluster(len(release.centers))
    assert cost(rows, again.centers / wide) <= 1.04 * cost(rows, release.centers / wide)


WORSE = {"2 columns": 1.04, "2 columns, scaled": 1.04, "3 columns": 1.04, "6 columns": 1.08, "20 columns": 1.08}


@pytest.mark.parametrize(("name", "most"), WORSE.items())
def test_fewer_centres_afterwards_cost_what_a_fresh_fit_does(name, most, releases):
    """The large table is `python -m benchmarks judge synopsis`."""
    release, rows, wide = releases[name]
    _, _, k, options = MADE[name]
    fewer = int(0.7 * k)
    with scripted(8):
        fresh = PrivateKMeans(fewer, epsilon=0.5, random_state=0, **{"bounds": (-1, 1), **options}).fit(rows * wide)
    assert cost(rows, release.recluster(fewer).centers / wide) <= most * cost(rows, fresh.cluster_centers_ / wide)


def test_leaves_are_moved_to_where_the_steps_found_their_means(releases):
    """More centres than the fit's come from leaves; the means of those near a fitted centre are moved there."""
    release, rows, _ = releases["6 columns"]
    again = release.recluster(14)
    assert "leaves" in again.method["why"]
    assert cost(rows, again.centers) <= 1.25 * cost(rows, release.centers)
    assert "centres of the fit" in release.recluster(12).method["why"]
    fitted = Placed(np.array([[0.0, 1.0], [5.0, 5.0], [9.0, 9.0]]), np.array([10.0, 20.0, 0.0]), np.ones(3))
    points, of = shifted(np.array([[0.0, 0.0], [1.0, 0.0], [6.0, 6.0], [8.0, 8.0]]), np.array([1.0, 3.0, 1.0, 1.0]), fitted)
    assert points.tolist() == [[-0.75, 1.0], [0.25, 1.0], [4.0, 4.0], [6.0, 6.0]]
    assert of.tolist() == [0, 0, 1, 1]  # a centre without rows moves nothing


def test_clustering_again_twice_is_clustering_again_once(releases):
    for name in ("2 columns", "6 columns", "20 columns"):
        release = releases[name][0]
        twice, once = release.recluster(5).recluster(3), release.recluster(3)
        assert twice.centers.tobytes() == once.centers.tobytes()
        assert twice.notes == once.notes


def test_errors_of_scaled_columns_are_in_the_units_that_a_fit_states_them_in(releases):
    """A column ten times as wide makes the stated length larger by the root mean square of 1 and 10."""
    plain, scaled = releases["2 columns"][0].recluster(8), releases["2 columns, scaled"][0].recluster(8)
    assert np.median(scaled.errors) / np.median(plain.errors) == pytest.approx(np.sqrt(50.5), rel=0.4)


def test_a_median_is_clustered_again_by_distances():
    rows = np.vstack([np.tile([[0.5, 0.5]], (9000, 1)), np.tile([[-0.5, -0.5]], (9000, 1)), np.tile([[-0.9, 0.9]], (1500, 1))])
    with scripted(3):
        release = PrivateKMedian(4, epsilon=1.0, bounds=(-1, 1), random_state=0).fit(rows).release_
    one = release.recluster(1).centers[0]
    assert np.abs(one - rows.mean(axis=0)).max() > 0.2  # a mean would lie between the two places
    assert release.synopsis.kind == "leaves"
    assert release.synopsis.steps[-1].distances is not None


def test_what_has_no_cells_is_refused_with_the_reason(make):
    rows = mixture(2, 3, 2000)
    street = kveil.Graph.from_edges([[i, i + 1] for i in range(29)])
    with scripted(5):
        lloyd = PrivateKMeans(3, bounds=(-1, 1), method="lloyd", random_state=0).fit(rows).release_
        noise = PrivateKMeans(3, bounds=(-1, 1), epsilon=1e-3, random_state=0).fit(mixture(20, 3, 200)).release_
        places = PrivateKMedian(2, universe=street, random_state=0).fit(np.repeat([3, 20], 400)).release_
    assert isinstance(places.synopsis, UniverseSynopsis)
    for release, why in ((lloyd, "lloyd"), (noise, "told no clusters apart"), (places, "universe"), (make(), "has none")):
        for ask in (lambda r: r.recluster(2), lambda r: r.cost_curve(), lambda r: r.sample(5), lambda r: r.density()):
            with pytest.raises(InvalidValue, match=why):
                ask(release)


def test_numbers_that_make_no_sense_are_refused(releases):
    flat, deep = releases["2 columns"][0], releases["6 columns"][0]
    for k in (0, -1, True, 2.0, "2", 10**6):
        with pytest.raises(InvalidValue):
            flat.recluster(k)
    with pytest.raises(InvalidValue, match="one or two features"):
        deep.density()
    for wrong in (0, 2**40, 1.5, True):
        with pytest.raises(InvalidValue):
            flat.sample(wrong)
        with pytest.raises(InvalidValue):
            flat.density(wrong)
    with pytest.raises(InvalidValue):
        flat.cost_curve((3, 3))
    with pytest.raises(InvalidValue):
        flat.recluster(2, random_state=True)


def two_cells(make, **changes) -> kveil.Release:
    """Three rows of four in the lower left quarter of a square, one in the upper half; and a cell that noise emptied."""
    points, half = np.array([[-2.0, -2.0], [0.0, 2.0], [2.0, -2.0]]), np.array([[2.0, 2.0], [4.0, 2.0], [2.0, 2.0]])
    synopsis = Synopsis("cells", points, np.array([30.0, 10.0, -5.0]), np.array([True, True, True]), half, 1.0, 40.0, 1.0)
    return make(centers=[[0.0, 0.0]], weights=None, errors=None, synopsis=synopsis, **changes)


def test_a_map_spreads_every_cell_evenly(make):
    release = two_cells(make)
    assert release.density(2).tolist() == [[0.75, 0.125], [0.0, 0.125]]
    assert release.density(1).tolist() == [[1.0]]
    assert release.density(7).sum() == pytest.approx(1)


def test_made_up_rows_are_in_cells_as_often_as_counts_say_and_evenly_there(make):
    rows = two_cells(make).sample(4000, random_state=1)
    lower = rows[rows[:, 1] < 0]
    assert (lower[:, 0] <= 0).all()  # none in the cell without rows
    assert len(lower) / 4000 == pytest.approx(0.75, abs=0.04)  # 5.8 deviations
    assert np.histogram(lower[:, 0], 4, (-4, 0))[0] / len(lower) == pytest.approx(np.full(4, 0.25), abs=0.05)
    assert not np.array_equal(rows, two_cells(make).sample(4000, random_state=2))
    assert np.array_equal(two_cells(make).sample(9), two_cells(make).sample(9))


def test_made_up_rows_of_many_columns_have_the_spread_of_the_table(releases):
    for name in ("6 columns", "20 columns"):
        release, rows, _ = releases[name]
        made = release.sample(5000)
        assert made.mean(axis=0) == pytest.approx(rows.mean(axis=0), abs=0.05)
        assert made.std(axis=0) == pytest.approx(rows.std(axis=0), rel=0.25)


def test_estimated_costs_come_near_the_true_ones(releases):
    """Of one mean by distances about the middle; of the centres by distances before the last step; of a curve by cells."""
    for name in ("6 columns", "20 columns"):
        release, rows, _ = releases[name]
        assert mean_cost(release.synopsis.total).value == pytest.approx(rows.var(axis=0).sum(), rel=0.15)
        assert mean_cost(release.synopsis.steps[-1].distances).value == pytest.approx(cost(rows, release.centers), rel=0.2)
    release, rows, wide = releases["2 columns, scaled"]
    again = release.recluster(4)
    assert release.cost_curve().cost[3] == pytest.approx(cost(rows, again.centers / wide), rel=0.1)
    assert releases["20 columns"][0].cost_curve().cost is None  # a projection tells how many, and not what they cost


def test_a_count_far_out_that_noise_explains_does_not_decide_the_cost():
    outer, counts = 8 * 2.0 ** (-np.arange(40) / 4), np.zeros(40)
    counts[20], counts[0] = 1000.0, 40.0  # 4 deviations, in the farthest of 40 bins
    from kveil.solve.synopsis import Distances

    found = mean_cost(Distances(counts, 10.0, outer, is_pure=True))
    assert found.value == pytest.approx(Distances(counts, 10.0, outer, True).middles[20] ** 2)
    assert mean_cost(Distances(counts, 10.0, outer, is_pure=False)).value > 10 * found.value  # Gaussian noise is not so far out
    assert mean_cost(Distances(counts, 1e3, outer, True)) is None
    assert mean_cost(None) is None


def test_a_release_that_was_clustered_again_passes_its_check(tmp_path):
    """With real noise: scripted noise has no valid guarantee to check."""
    release = PrivateKMeans(4, bounds=(-1, 1), random_state=0).fit(mixture(2, 4, 3000)).release_
    check_release(release.recluster(2).save(tmp_path / "out"))
    assert len(replace(release, synopsis=None).centers) == 4


def test_a_curve_is_drawn_with_the_guarantee_below_it(releases, tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("2 columns", "20 columns"):
        path = releases[name][0].cost_curve().save(tmp_path / "curve.svg")
        text = path.read_text()
        assert "epsilon" in text or "&#949;" in text or "<svg" in text
    with pytest.raises(InvalidValue, match="svg"):
        releases["2 columns"][0].cost_curve().save(tmp_path / "curve.txt")
