"""Two rounds of cells: what is divided, what noise-free answers give, exact laws on tiny inputs, and replay."""

from fractions import Fraction

import numpy as np
import pytest
from exact_answers import Exact

from kveil.collect import protocols
from kveil.collect.campaign import Campaign, promise, protocol_of
from kveil.collect.documents import query_document, read_query
from kveil.collect.encoding import keys_of
from kveil.collect.queries import LARGEST, MOST_CENTRES, Outcome, Terms
from kveil.collect.zoom import DEPTHS, MOST_CELLS, Zoom, onto_total
from kveil.errors import InvalidValue
from kveil.partition.public_map import side

# Two pairs of places, each pair well inside one cell of the first round (of side 0.19), and one far from all others.
PAIRS = np.array([[-0.50, -0.20], [-0.47, -0.17], [0.40, 0.30], [0.43, 0.33], [0.1, -0.7]])
SIZES = [30_000, 30_000, 20_000, 20_000, 20_000]


def zoom(n=sum(SIZES), k=5, d=2, epsilon=4, seed=b"zoom"):
    return Zoom(Terms(n, k, d, Fraction(epsilon)), seed)


def played(protocol, answers):
    """All rounds, and what came out."""
    rounds = [protocol.first()]
    while not isinstance(rounds[-1], Outcome):
        rounds.append(protocol.next(rounds[-1], answers, b"closed %d" % rounds[-1].number))
    return rounds


def test_cells_with_many_people_are_divided_and_no_others():
    protocol = zoom()
    first, second, _ = played(protocol, Exact(PAIRS, SIZES))
    cells, one = np.array(second.state["cells"]), first.queries[0].maps[0]
    keys = np.arange(1 << DEPTHS[2], dtype=np.uint64)
    keys = keys[one.meets_ball(keys, DEPTHS[2])]
    assert len(cells) == len(keys) == len(second.state["people"])
    heavy = np.isin(keys, one.cells(PAIRS, DEPTHS[2]))
    assert (cells[~heavy] == 1).all()
    assert (cells[heavy] == 2 ** (3 * 2)).all()
    assert sum(cells) == len(second.queries[0].centres[0])


@pytest.mark.parametrize("d", [1, 2, 3])
def test_clusters_within_one_cell_of_the_first_round_are_told_apart(d):
    """Without noise every place is found to within a finer cell; one grid of the same depth puts one centre on each pair."""
    places = PAIRS[:, :d] if d < 3 else np.hstack([PAIRS, np.full((5, 1), 0.2)])
    *_, found = played(zoom(d=d), Exact(places, SIZES))
    apart = np.linalg.norm(places[:, None] - found.centres, axis=2).min(axis=1)
    assert apart.max() <= np.sqrt(d) * side(DEPTHS[d] // d + 3)
    assert found.counts.sum() == pytest.approx(sum(SIZES), rel=1e-3)


def test_a_device_answers_the_second_round_by_the_nearest_middle():
    """The very query that a manifest carries: an old client answers it, for it knows this rule."""
    _, second, _ = played(zoom(), Exact(PAIRS, SIZES))
    query = read_query(query_document(second.queries[0]), 2)
    assert (query.kind in ("olh", "grr", "hrr"), query.key_rule, query.maps) == (True, "nearest", ())
    middles = query.centres[0].astype(float)
    expected = ((PAIRS[:, None] - middles) ** 2).sum(axis=2).argmin(axis=1)
    assert keys_of(query, PAIRS).tolist() == expected.tolist()


@pytest.mark.parametrize("epsilon", [4, 10])
def test_however_many_people_the_second_round_fits_into_a_manifest(epsilon):
    spread = np.random.default_rng(0).uniform(-0.7, 0.7, (4000, 2))  # public: of nobody
    crowd = Exact(spread, np.full(len(spread), 500_000), epsilon)
    second = played(zoom(n=2_000_000_000, epsilon=epsilon), crowd)[1]
    assert 1000 < len(second.queries[0].centres[0]) <= MOST_CELLS <= MOST_CENTRES
    read_query(query_document(second.queries[0]), 2)


class Silent(Exact):
    """Nobody answers some of the rounds."""

    def __init__(self, *given, silent):
        super().__init__(*given)
        self.silent = silent

    def received(self, query):
        return 0 if (1 if query.depth else 2) in self.silent else super().received(query)


@pytest.mark.parametrize("silent", [{1}, {2}, {1, 2}])
def test_a_round_that_nobody_answers_leaves_what_the_other_told(silent):
    _, second, found = played(zoom(), Silent(PAIRS, SIZES, silent=silent))
    assert second.state["sd"] <= LARGEST
    assert found.centres.shape == (5, 2)
    assert np.isfinite(found.centres).all()
    if silent != {1, 2}:  # within a cell of the first round, then
        assert np.linalg.norm(PAIRS[:, None] - found.centres, axis=2).min(axis=1).max() < 2 * side(4)


def test_a_stored_campaign_goes_on_with_the_same_bytes():
    """Rounds are rebuilt from manifests alone: the name, the terms and the campaign's hash."""
    header = Campaign("cells", sum(SIZES), 5, 4, [0.0, 0.0], 1.0, "zoom").header("0" * 64)
    assert header.method == "zoom"
    outcomes = [played(protocol_of(header), Exact(PAIRS, SIZES))[-1] for _ in range(2)]
    assert outcomes[0].centres.tobytes() == outcomes[1].centres.tobytes()
    assert isinstance(protocols.rebuild("zoom", Terms(10, 2, 2, Fraction(1)), b""), Zoom)


def test_whoever_answers_both_rounds_is_promised_their_sum():
    """And none of the lines that hold for one report alone: what a shuffler hides of two adds up."""
    once, twice = (
        Campaign("cells", sum(SIZES), 5, 4, [0.0, 0.0], 1.0, "zoom", mode).header("0" * 64)
        for mode in ("one_round", "all_rounds")
    )
    assert [header.epsilon_of(1) for header in (once, twice)] == [4, 2]
    assert [float(promise(header).epsilon) for header in (once, twice)] == pytest.approx([4, 4], rel=1e-6)
    assert promise(once, (40_000, 60_000)).conditional
    assert not promise(twice, (40_000, 60_000)).conditional


def test_more_than_three_columns_are_refused():
    with pytest.raises(InvalidValue, match="at most 3 columns"):
        zoom(d=4)


@pytest.mark.parametrize(
    ("estimates", "total", "expected"),
    [([1, 2, 3], 6, [1, 2, 3]), ([1, 2, 3], 9, [2, 3, 4]), ([-5, 2, 4], 4, [0, 1, 3]), ([-5, -1, 4], 2, [0, 0, 2]),
     ([1, 1], 0, [0, 0]), ([1, 1], -3, [0, 0]), ([7], 3, [3])],
)  # fmt: skip
def test_parts_share_their_total_and_none_is_below_nothing(estimates, total, expected):
    assert onto_total(np.array(estimates, dtype=float), float(total)).tolist() == pytest.approx(expected)


def test_the_nearest_shares_are_those_of_a_brute_force_search():
    """Three parts of a total of 10 in steps of one: none of all 66 ways is nearer to what noise left."""
    estimates = np.array([6.2, -1.4, 3.1])
    ways = [(i, j, 10 - i - j) for i in range(11) for j in range(11 - i)]
    best = min(((np.array(way) - estimates) ** 2).sum() for way in ways)
    assert ((onto_total(estimates, 10.0) - estimates) ** 2).sum() <= best
