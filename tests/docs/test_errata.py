"""Every number in docs/errata.md, computed: an entry may show a number only if the code here arrives at it.

`computes(n)` marks what computes entry n. It hands every number that the page may show to `tell`, with the format that the page
uses: inputs of a computation as well as its results. One test then compares the page with what was told.
"""

import importlib.metadata
import itertools
import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid

from kveil import PrivateKMeans
from kveil.collect.forecast import plan
from kveil.collect.hashing import signs
from kveil.collect.lae import collision_chance
from kveil.collect.marker import guesses
from kveil.collect.oracles import variance
from kveil.collect.vector import codebook, signed_sums
from kveil.desk.walk import PlaceCosts
from kveil.kernel.grid import Ball
from kveil.partition.cubes import Cubes
from kveil.partition.hst import Hst
from kveil.partition.lsh import Buckets, RotatedGrid
from kveil.partition.projection import random_axes
from kveil.partition.public_map import PublicMap, side
from kveil.questions.frame import Frame
from kveil.questions.swaps import Loss
from kveil.research.printed_hst import printed_cost, printed_first_level_is_l, printed_root_is_l
from kveil.research.tree_law import Depth, leaf_law, worst_loss
from kveil.seeding import ProductLaplace
from kveil.solve.loss import Loss as SpaceLoss
from kveil.solve.nodes import Node
from kveil.solve.seeding import first_weights
from kveil.space.matrix import Precomputed

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/errata.md").read_text()
PLACES = r"Theorems?|Algorithms?|Definitions?|Lemmas?|Tables?|[Ss]ections?|[Ee]ntry|[Ee]ntries|Rounds?|Steps?|\(errata\.md\)"
QUOTED = [
    r"`[^`]*`",  # code, and formulas that a paper prints
    r'"[^"]*"',  # words and titles of a paper
    rf"(?:{PLACES})\s[A-Z]?\.?\d+(?:\.\d+)*(?:(?:,|\sand|\sor|\sto)\s[A-Z]?\.?\d+(?:\.\d+)*)*",  # where it is printed
    r"\((?:[A-Z]+[A-Za-z]*\s)?(?:19|20)\d\d\)",  # when
]
ALLOWED = {"0", "1"}

COMPUTED: dict[int, list[Callable[[Callable], None]]] = {}


def computes(*entries):
    def mark(function):
        for entry in entries:
            COMPUTED.setdefault(entry, []).append(function)
        return function

    return mark


def entries_of(page: str) -> dict[int, str]:
    """The text of every entry, by its number; headings of groups end an entry."""
    parts = re.split(r"^(?:### (\d+)\. |## )", page, flags=re.M)
    return {int(number): text for number, text in zip(parts[1::2], parts[2::2], strict=True) if number}


def numbers_in(text: str) -> set[str]:
    """Numbers as they stand in a text, thousands joined, without what is quoted."""
    for pattern in QUOTED:
        text = re.sub(pattern, " ", text, flags=re.S)
    text = re.sub(r"(?<=\d)[ \n](?=\d{3}(?!\d))", "", text)
    return set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?", text)) - ALLOWED


def told_for(entry: int) -> set[str]:
    told: set[str] = set()

    def tell(value, form=""):
        told.add(format(value, form))
        return value

    for function in COMPUTED.get(entry, []):
        function(tell)
    return told


ENTRIES = entries_of(PAGE)


@pytest.mark.parametrize("entry", sorted(ENTRIES))
def test_every_number_of_an_entry_is_computed(entry):
    assert numbers_in(ENTRIES[entry]) - told_for(entry) == set()


def test_a_number_that_was_typed_in_is_noticed():
    for text in ENTRIES.values():
        assert text.count("`") % 2 == 0 == text.count('"') % 2  # else the search for quotations would hide numbers
    changed = ENTRIES[27].replace("260 612", "260 613")
    assert numbers_in(changed) - told_for(27) == {"260613"}
    assert numbers_in('Theorem 4 and "the 5" of `6 x` (ICML 2017): 7.5 of 1 000, 8Λ') == {"7.5", "1000", "8"}


def test_entries_are_numbered_without_gaps_and_citations_meet_one_that_stands():
    assert sorted(ENTRIES) == list(range(1, len(ENTRIES) + 1))
    withdrawn = {number for number, text in ENTRIES.items() if "\nwithdrawn:" in text}
    intro = re.sub(r"\s+", " ", PAGE.split("\n## ")[0])
    assert f"{len(ENTRIES)} entries, {len(withdrawn)} of them withdrawn" in intro
    assert f"{len(ENTRIES)} entries, {len(withdrawn)} of them withdrawn" in re.sub(
        r"\s+", " ", (ROOT / "CHANGELOG.md").read_text()
    )
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("src/**/*.py"), *ROOT.glob("tests/**/*.py")]
    cited = set()
    for path in files:
        text = path.read_text()
        for found in re.findall(r"errata\.md\)? (\d+(?:(?:,| and) \d+)*)|[Ee]ntry (\d+) of (?:the \[errata|docs/errata)", text):
            cited |= {int(number) for number in re.findall(r"\d+", " ".join(found))}
    assert cited >= {10, 13, 15, 18}
    assert cited <= set(ENTRIES) - withdrawn


# About privacy


@computes(1)
def recovery(tell):
    """Algorithm 4: 1/6 each for candidates and swaps, 1/24 and sqrt(d)/24 for sizes and sums, 1/3 for the choice of a trial."""
    tell(24)
    rest = Fraction(1, 6) + Fraction(1, 6) + Fraction(1, 24) + Fraction(1, 3)
    slack = (Fraction(1, 6) + Fraction(1, 6) + Fraction(1, 3)) / 2 + Fraction(1, 24)
    assert (rest, slack) == (Fraction(tell(17), 24), Fraction(tell(9), 24))
    for d, form in [(100, ".3f"), (784, ".3f")]:
        root = math.isqrt(tell(d))
        tell(float(rest + Fraction(root, 24)), form)
        tell(float(slack + Fraction(root, 24)), ".2f")
    for share in (rest, slack):
        d = tell(int((24 * (1 - share)) ** 2))
        assert share + Fraction(math.isqrt(d), 24) == 1
    record = np.full((1, 784), 1 / 28)
    assert np.linalg.norm(record) == pytest.approx(1)
    assert np.abs(record).sum() == pytest.approx(28)
    grid = Ball(np.zeros(784), 1.0)
    codes = grid.encode(record).astype(np.int64)
    assert np.abs(codes).sum() > 27 * grid.l2_sensitivity  # Laplace noise would need 28 times the radius
    assert (codes**2).sum() <= grid.l2_sensitivity**2  # K-norm noise needs the radius


@computes(1)
def one_trial_attains_it(tell):
    """k = 1, one trial, rows at 0 and another at (1, ..., 1)/sqrt(d): log-densities of -t (1, ..., 1), over the noisy size."""
    assert 2 * math.log(1 / tell(math.exp(-0.5), ".2f")) == pytest.approx(1)
    d, t, scale = 784, 1000.0, 24.0
    size = np.linspace(1, 400, 4001)

    def log_density(n, mean):
        logs = d * np.log(size) - d * (size * t + mean) / scale
        top = logs[0]
        at_one = 0.5 * math.exp(-(n - 1) / scale)
        return top + math.log(trapezoid(np.exp(logs - top - np.abs(size - n) / scale) / (2 * scale), size) + at_one)

    loss = log_density(tell(10), 0.0) - log_density(11, 1 / math.sqrt(d))
    assert loss == pytest.approx((1 + math.sqrt(d)) / 24, abs=1e-6)
    tell(loss, ".2f")
    assert (1 + math.isqrt(tell(529))) / 24 == 1


@pytest.mark.parametrize("d", [2, 100, 784])
def test_our_whole_run_spends_its_budget_and_no_more(d):
    """The regression: by the printed constants it would be up to (17 + sqrt(d))/24, which is above 1 for d > 49."""
    rows = np.random.default_rng(0).random((300, d))
    model = PrivateKMeans(3, epsilon=1.0, bounds=(0, 1), method="candidates").fit(rows)
    assert model.guarantee_.epsilon == 1
    assert float(sum(draw.pure() for draw in model.guarantee_.draws)) == pytest.approx(1, abs=1e-9)


@computes(3)
def depth_by_the_exact_n(tell):
    """Levels that get a coin: the loop runs while a <= log n, from a = 0, and puts the centres of level a into the output."""

    def deepest(n):
        return max(a for a in range(100) if a <= math.log(n))

    assert (deepest(tell(20)), deepest(tell(21))) == (tell(2), tell(3))


@computes(6)
def centres_outside_of_the_ball(tell):
    p = tell(9)
    record, inside, outside = np.full(p, -1 / 3), np.full(p, -1 / 3), np.full(p, 2.0)
    assert np.linalg.norm(record) == pytest.approx(1)
    assert np.linalg.norm(outside) == pytest.approx(2 * math.sqrt(p)) == pytest.approx(tell(6))
    rises = np.array([((record - place) ** 2).sum() for place in (inside, outside)])
    assert rises == pytest.approx([0, tell(49)])
    others = 100 * rises  # rows at the first candidate: the second is rare
    logs = [-costs[1] / 8 - np.logaddexp(*(-costs / 8)) for costs in (others, others + rises)]
    assert logs[0] - logs[1] == pytest.approx(49 / tell(8))
    tell(49 / 8, ".1f")
    loss = Loss.within(1000, "k-means", 2**20)
    assert loss.highest == tell(4) * 1000**2 + 1  # ours, for candidates that were clipped: 1/(4 radius^2) in the exponent
    tell(2), tell(3)  # of the places (2, ..., 2) and (1/3, ..., 1/3)


def coin(m: int, epsilon: float, cut: float) -> float:
    """P(m + Laplace(1/epsilon) > cut)."""
    gap = epsilon * (cut - m)
    return 0.5 * math.exp(-gap) if gap > 0 else 1 - 0.5 * math.exp(gap)


@computes(7)
def slack_of_the_levels(tell):
    ratio = coin(1, tell(0.7), 5.0) / coin(0, 0.7, 5.0)
    assert 3 * math.log(ratio) == pytest.approx(tell(2.1))
    for n in (50, 1000, 10**6):
        assert math.floor(math.log(n)) / (2 * math.log(n)) <= 1 / tell(2)


@computes(8)
def sparse_means(tell):
    """Algorithm 5 with epsilon 1: scores and values of a coordinate move by eta/(4 s) of it, in 2 s/eta steps."""
    for s, eta in itertools.product((1, 3), (Fraction(1, 2), Fraction(1))):
        a_coordinate, steps = eta / (4 * s), 2 * s / eta
        assert steps * (2 * a_coordinate + a_coordinate) == Fraction(3, 2)
        assert s * a_coordinate + s * a_coordinate + steps * a_coordinate == (1 + eta) / tell(2)
    tell(1.5)
    worst = max(abs(math.log(a / b)) for a, b in zip(*map(chosen_pairs, ([3, 1, 0], [3, 2, 0])), strict=True))
    assert worst + 1 / 4 <= 1  # eta = s = 1: what is chosen, and the value of the one coordinate that moved

    def log_density(v, sums, n):
        return sum(math.log(n / 8) - abs(n * v - total) / 4 for total in sums)

    at = tell(20)
    loss = log_density(at, [1, 0], 1) - log_density(at, [1, 1], 2)
    tell(loss, ".1f")
    assert log_density(400, [1, 0], 1) - log_density(400, [1, 1], 2) > 20 * loss  # linear in the value, so without a bound


def chosen_pairs(sums):
    """P(two coordinates are chosen) of three, one after the other, by exp(|sum| / 4)."""
    weight = [math.exp(abs(total) / 4) for total in sums]
    total = sum(weight)
    return [
        weight[i] * weight[j] / total * (1 / (total - weight[i]) + 1 / (total - weight[j])) for i, j in ((0, 1), (0, 2), (1, 2))
    ]


def spread(rows: np.ndarray) -> float:
    """delta_w of Definition 7 for k = 2 and the diameter 2: over every row as the one centre, without the farthest row."""
    squares = (rows[:, None] - rows) ** 2
    return 4 / float((squares.sum(axis=1) - squares.max(axis=1)).min())


@computes(9)
def a_scale_from_the_secret(tell):
    """Equation 18 for k = 2, epsilon 1, R = 1, delta_s = f = 1."""

    def scale(rows):
        delta_w = spread(rows)
        return 2 / math.log((math.e - (1 + delta_w)) / (2 * delta_w))

    tell(2)
    rows = np.linspace(-1, 1, tell(400))
    moved = np.append(rows[:-1], 0.0)
    b, other = tell(scale(rows), ".4f"), tell(scale(moved), ".4f")
    for x in (tell(200), tell(2000)):
        tell(abs(math.log(other / b) + x * (1 / other - 1 / b)), ".2f")


@computes(13)
def a_tree_whose_levels_are_numbered_twice(tell):
    tell(2), tell(4)
    for height in (1, 2, 5):
        assert printed_cost(height, base=2, first=0) == 2 - 2.0 ** (1 - height)
        assert printed_cost(height, base=2, first=1) == 1 - 2.0**-height
    tell(printed_cost(200, base=math.sqrt(2), first=0), ".2f")
    two, three = [0, 20, 60, 60], [0, 25, 25, 30, 60, 60, 60, 60]
    tell(20), tell(60)
    for counts in (two, three):
        height = len(counts).bit_length() - 1
        first, root = (fine(noise(height, 1.0)) for noise in (printed_first_level_is_l, printed_root_is_l))
        tell(worst_loss(leaf_law(counts, first), leaf_law([1, *counts[1:]], first)), ".2f")
        replaced = [1, *counts[1:-1], counts[-1] - 1]
        tell(worst_loss(leaf_law(counts, root), leaf_law(replaced, root)), ".2f")
        assert worst_loss(leaf_law(counts, root), leaf_law([1, *counts[1:]], root)) <= 1  # add-remove, the sound numbering
    tell(6)
    without, one = (first_leaf(n, 4, 6, 2) for n in (0, 1))
    tell(without, ".4f"), tell(one, ".4f")
    loss = tell(math.log(one / without), ".2f")
    runs = 10**6
    assert (loss - 1) / math.sqrt(1 / (runs * without) + 1 / (runs * one)) > tell(8)  # standard errors above the claim


def fine(depths, step=8):
    """Steps of 1/8 in place of 1: the law differs from that of continuous noise by less than the page shows."""
    return tuple(Depth(depth.rate / step, step) for depth in depths)


def first_leaf(*counts):
    """P(the first of four leaves is released) with continuous noise of scale 1 on two nodes, scale 2 on leaves, k = 1.

    A node has score 4 times its noisy count, a leaf 2 times. The first leaf is released if its score is best, or if that of its
    node is and it has the larger count of the two.
    """
    x = np.linspace(-120, 140, 52_001)
    nodes, leaves = (
        [stats.laplace(counts[0] + counts[1], 1), stats.laplace(counts[2] + counts[3], 1)],
        [stats.laplace(n, 2) for n in counts],
    )
    below = [leaf.cdf(x) for leaf in leaves]
    itself = leaves[0].pdf(x) * below[1] * below[2] * below[3] * nodes[0].cdf(x / 2) * nodes[1].cdf(x / 2)
    ahead = leaves[0].pdf(x) * below[1]
    larger = np.concatenate([[0.0], np.cumsum((ahead[1:] + ahead[:-1]) / 2 * (x[1] - x[0]))])  # P(it is larger, and at most x)
    by_node = nodes[0].pdf(x / 2) / 2 * nodes[1].cdf(x / 2) * below[2] * below[3] * larger
    return float(trapezoid(itself + by_node, x))


def test_the_two_ways_to_compute_the_law_of_continuous_noise_agree():
    law = leaf_law([0, 4, 6, 2], fine(printed_first_level_is_l(2, 1.0), 64))
    assert law[0] == pytest.approx(first_leaf(0, 4, 6, 2), rel=0.02)
    assert sum(first_leaf(*some) for some in ([0, 4, 6, 2], [4, 0, 6, 2], [6, 2, 0, 4], [2, 6, 0, 4])) == pytest.approx(
        1, abs=1e-5
    )


def test_the_papers_tree_of_a_universe_can_have_such_leaves():
    """Four groups of places: 1 within a group, 2 between the first two and the last two, 4 else. L = log2(4) = 2 levels."""
    group = np.repeat(np.arange(4), [1, 20, 60, 60])
    matrix = np.where(group[:, None] == group, 1, np.where(group[:, None] // 2 == group // 2, 2, 4))
    np.fill_diagonal(matrix, 0)
    tree = Hst.of(Precomputed(matrix), levels=2, beta=1.0, random_state=0)
    assert tree.height == 2
    assert sorted(np.bincount(tree.leaf)[tree.leaves]) == [1, 20, 60, 60]


@computes(16)
def a_promise_that_nobody_checks(tell):
    for k, e, form in [(3, 4.5, ".1f"), (2.5, 7.9, ".2f"), (5, 13.0, ".0f")]:
        tell(k), tell(e)
        tell(k * e, form)
    for m in (100, tell(1000)):
        halves = np.repeat([-1.0, 1.0], m // 2)
        assert spread(halves) < 3 / m
        assert spread(np.append(halves[1:], 0.0)) / spread(halves) == pytest.approx(tell(2))
    m, e = tell(26_733), 4.5
    places, near = np.array([-1, -0.98, 1.0]), np.array([m // 2, m - m // 2, 0])
    far = near + np.array([-1, 0, 1])
    tell(0.02)
    tell(0.99)
    tell(4 / ((m // 2 - 1) * 0.02**2), ".2f")  # delta_w: all rows at the other place but the farthest
    tell((math.e - 1) / (1 + math.exp(e)), ".3f")  # the largest that gives e at all, with f(2) = 1 and delta_s = 0
    first, second = np.linspace(-7, 7, 2801), np.linspace(-7, 7, 701)

    def density(x):
        return np.exp(-np.abs(x[:, None] - places) * e / 2) * e / 4

    def joint(counts, x):
        weight = counts * (x[:, None] - places) ** 2
        return (density(x) @ (counts / m))[:, None] * (weight / weight.sum(axis=1, keepdims=True) @ density(second).T)

    without, with_far = joint(near, first), joint(far, first)
    tell(trapezoid(trapezoid(np.maximum(with_far - math.e * without, 0), second, axis=1), first), ".3f")
    at = np.searchsorted(second, 1.0)
    for away in (0.0, 0.1, 0.3):
        tell(away)
        x = np.array([-0.99 + away])
        at_end = [(w := counts * (x - places) ** 2) @ density(second[at : at + 1])[0] / w.sum() for counts in (near, far)]
        tell(math.log(at_end[1] / at_end[0]), ".2f")


# About cost bounds


def kept_share(p):
    """How much of the unit ball a cube [-1, 1]^p with a random shift of up to 1 holds: E prod (1 - |x_i|/2), term by term."""

    def moment(j):
        """E |x_1 ... x_j|: of the radius, and of a direction."""
        return p / (p + j) * math.gamma(p / 2) / math.gamma((p + j) / 2) / math.pi ** (j / 2)

    return sum(math.comb(p, j) * (-0.5) ** j * moment(j) for j in range(p + 1))


@computes(4)
def a_cube_that_misses_rows(tell):
    record, shift = np.array([-0.5, 0.0]), np.array([1.0, 1.0])
    assert np.abs(record - shift).max() > 1
    for p in (tell(2), tell(5)):
        tell(kept_share(p), ".2f")
    for v in (-7, 0, 7):
        cubes = Cubes(np.array([v - 14]), 29, 7, (), np.zeros((1, 1), dtype=np.int64))
        assert cubes.low[0] <= -7 < 7 < cubes.low[0] + cubes.side


@computes(5)
def the_scale_of_a_projection(tell):
    n, d = tell(70_000), tell(784)
    p = tell(int(math.log(n) / tell(2)))
    tell(math.sqrt(p / d), ".2f")
    tell(d / p, ".0f")
    tell(stats.chi2.sf(p, p), ".2f")
    assert stats.chi2.sf(d, p) < 1e-100  # with the printed scale no record leaves the ball
    rows = np.full((1, d), 1000)
    axes = random_axes(d, p, np.random.default_rng(1), stretch=math.sqrt(d / p))
    axes[:, 0] = 2**14  # a direction that the record lies in
    frame = Frame(None, np.zeros(d, dtype=np.int64), 28_000, axes, 28_000)
    centred = frame.centred(rows)
    assert np.linalg.norm(centred @ axes / 2**14) > 28_000
    assert np.linalg.norm(frame.projected(centred)) <= 28_000


@computes(14)
def a_score_unlike_its_bound(tell):
    (rows, level), (fewer, higher) = (tell(5), 1), (tell(2), 2)
    assert tell(rows * 2**level) > tell(fewer * 2**higher)
    assert tell(rows * 4**level) < tell(fewer * 4**higher)


@computes(15)
def a_fixed_radius(tell):
    n, diameter = tell(100), tell(2000)
    matrix = np.full((n, n), diameter)
    matrix[0, 1:] = matrix[1:, 0] = diameter // 2
    matrix[1, 2:] = matrix[2:, 1] = diameter // 2 + 1
    matrix[0, 1] = matrix[1, 0] = 1
    np.fill_diagonal(matrix, 0)
    space = Precomputed(matrix)
    for seed in range(60):
        tree = Hst.of(space, levels=1, beta=1.0, random_state=seed)
        comes_first = np.random.default_rng(seed).permutation(n)[0]
        assert (tree.leaf[0] != tree.leaf[1]) == (comes_first > 1)
        random = Hst.of(space, levels=1, random_state=seed)
        if not diameter / 2 <= random.factor * diameter / 2 < diameter / 2 + 1:
            assert random.leaf[0] == random.leaf[1]
    tell((n - tell(2)) / n, ".2f")
    tell(math.log2(1001 / 1000), ".4f")  # of a factor between 1 and 1.001
    tell(3), tell(4)  # of the ends 3/4 and 3/2 that kveil draws it from


@computes(18)
def bounds_on_noisy_seeds(tell):
    """Theorem 12 by Theorem 2: the trace of product Laplace noise of scale b is 2 d b**2, and b = 2 k R / epsilon."""
    d, away, b = tell(3), tell(0.1), 2.0
    assert ProductLaplace(b).variance(np.zeros((1, d)))[0] == 2 * d * b**2
    rows = np.zeros((2, d))
    rows[:, 0] = [-away, away]
    least = (rows**2).sum() / 2
    apart = np.mean([((a - c) ** 2).sum() for a in rows for c in rows])
    truth, printed, ours = apart + 2 * d * b**2, tell(2) * tell(8) * (least + 1), 2 * 8 * (least + 2 * d)
    assert printed < truth <= ours
    tell(truth, ".2f"), tell(printed, ".2f")


@computes(18)
def the_bias_of_synopses(tell):
    rows, synopses, best = np.array([0.0, 2.0]), np.array([-1.0, 3.0]), 1.0
    tell(3)
    least, s = ((rows - best) ** 2).sum(), ((rows - synopses) ** 2).sum()
    assert ((synopses - best) ** 2).sum() == tell(8) == 2 * least + 2 * s
    assert (least, s) == (2, 2)
    tell(6 + 2 * 2), tell(2 * 2)  # by Theorem 2: 6 + 4 eta, twice the bias
    # k = 1: the expected cost is least + bias, sqrt(bias) <= sqrt(least) + sqrt(s), and the bound is 2 (8 least + 2 s)
    root = np.linspace(0, 10, 100_001)  # of least, with s = 1
    ratio = (root**2 + (root + 1) ** 2) / (2 * (8 * root**2 + 2))
    tell(ratio.max(), ".2f")


@computes(26)
def a_uniform_first_draw(tell):
    """k = 1, one row at 1 and 999 at 0: exact expectations over the first node, and over the first synopsis."""
    sizes, places = np.array([tell(1), tell(999)]), np.array([1.0, 0.0])
    costs = np.array([(sizes * (places - place) ** 2).sum() for place in places])
    least = sizes @ places**2 - (sizes @ places) ** 2 / sizes.sum()
    tell(least, ".3f"), tell(2)
    expected = {first: costs @ (w := first_weights(sizes.astype(float), first)) / w.sum() for first in ("paper", "weighted")}
    assert expected["paper"] == tell(500)
    tell(expected["weighted"], ".3f")
    for factor in (tell(10), tell(8)):
        tell(2 * factor * least, ".2f")
        assert expected["weighted"] < 2 * factor * least < expected["paper"]


class Cell:
    """A node of a 2-HST. A leaf holds `rows` points; the edge above a node of level h is 2**h long."""

    def __init__(self, level, *children, rows=1):
        self.level, self.children = level, children
        self.rows = sum(child.rows for child in children) if children else rows

    @property
    def below(self):
        return [self, *(node for child in self.children for node in child.below)]

    @property
    def leaves(self):
        return [node for node in self.below if not node.children]

    def found_leaf(self):
        return max(self.children, key=lambda child: child.rows).found_leaf() if self.children else self

    def under(self, level):
        """The node, with one node above it on every level up to `level`."""
        return self if self.level == level else Cell(self.level + 1, self).under(level)


def hst_seeds(root, k, base):
    """Algorithms 4 and 5 with score rows * base**level; the root is no candidate."""
    chosen = []
    for node in sorted(root.below[1:], key=lambda node: -node.rows * base**node.level):
        chosen = [other for other in chosen if node not in other.below]
        chosen += [] if any(other in node.below for other in chosen) else [node]
        if len(chosen) == k:
            break
    return [node.found_leaf() for node in chosen]


def tree_cost(node, centres):
    """Squared tree distances of the points in a node that holds a centre."""
    here = [centre for centre in centres if centre in node.leaves]
    down, total = min(2**node.level - 2**centre.level for centre in here), 0
    for child in node.children:
        if any(centre in child.leaves for centre in here):
            total += tree_cost(child, here)
        else:
            total += sum(leaf.rows * (2**node.level - 2**leaf.level + down) ** 2 for leaf in child.leaves)
    return total


@computes(27)
def the_score_for_k_means(tell):
    top, points, many = tell(8), tell(65), tell(129)
    tell(2), tell(4), tell(34)
    assert points * 2 == tell(130) > tell(128) == 2 ** tell(7)

    def costs(top, group, lone):
        """Of the printed seeds, and the least."""
        one, other = group(), group()
        root = Cell(top, Cell(one.level + 1, one, other).under(top - 1), lone.under(top - 1))
        kinds = {*one.leaves[:2], other.leaves[0], lone}  # leaves of a node are alike
        best = min(tree_cost(root, pair) for pair in itertools.combinations(kinds, 2))
        printed, squared = (tree_cost(root, hst_seeds(root, 2, base)) for base in (2, 4))
        assert printed > 34 * best
        assert squared == best
        return printed, best

    def of_points():
        return Cell(1, *(Cell(0) for _ in range(points)))

    found = [costs(top, of_points, Cell(0)), costs(top, of_points, Cell(7)), costs(top, lambda: Cell(0, rows=many), Cell(0))]
    for printed, best in found:
        tell(printed), tell(best), tell(printed / best, ".0f")
    points = 129
    printed, best = costs(9, of_points, Cell(0))
    assert printed / best > 1.9 * found[0][0] / found[0][1]  # larger L are worse


# About missing or ambiguous definitions


@computes(17)
def exact_totals(tell):
    rows, center = np.array([[0.1], [0.7]]), np.array([0.0])
    joined = np.vstack([rows, [[tell(0.5)]]])
    assert Node(joined).update(center) - Node(rows).update(center) == pytest.approx(tell(0.25))
    near, far = (d**2 / (d**2 + 1) for d in (tell(0.01), float(tell(2))))
    tell(near, ".4f"), tell(far, ".1f")
    tell(math.log(far / near), ".1f")


@computes(20)
def a_range_over_the_demand(tell):
    """Places 0, 0.01 and 1 of a line, the centre at 0.01; swaps for 0 and for 1."""
    tell(0.01)
    places = np.array([0, 1, 100])
    space = Precomputed(np.abs(places[:, None] - places))
    logs = []
    for people in (np.array([10, 0, 0]), np.array([10, 0, 1])):
        costs = PlaceCosts(space, people, np.array([0, 2]), SpaceLoss.within(space.diameter, "k-median", 2**40))
        over_demand = 100 if people[2] else 1
        scores = -costs.swaps(np.array([1]))[0] / over_demand
        logs.append(scores[1] - np.logaddexp(*scores))
    assert logs == pytest.approx([-tell(1000), -tell(9)], abs=0.01)
    tell(logs[1] - logs[0], ".0f")
    tell(2)  # s of replaced rows


@computes(20)
def a_printed_choice_costs_half(tell):
    """One centre, swaps for either end of a line, a heavy demand on one end: the worst case, one diameter of change."""
    rate = 1.0 / (4 * 9 * 2)  # epsilon 1, one step, diameter 9
    costs = {n: np.array([0, 9 * n]) for n in (1000, 1001)}
    scores = {n: -rate * cost for n, cost in costs.items()}
    logs = [score[1] - np.logaddexp(*score) for score in scores.values()]
    assert abs(logs[0] - logs[1]) == pytest.approx(rate * 9)
    assert rate * 9 * 2 == pytest.approx(1 / 4)  # charged: epsilon / (2 (T + 1))


@computes(21)
def one_sum_for_all_clusters(tell):
    points = np.repeat([-1.0, 1.0], tell(50))
    assert points.sum() == 0
    assert [points[points < 0].sum(), points[points > 0].sum()] == [-50, 50]
    seeds, keys = np.arange(4000, dtype=np.uint64), np.repeat([0, 1], 2000).astype(np.uint64)
    words = (signs(seeds, keys) * np.where(keys == 0, -1, 1))[:, None].astype(np.int64)  # what devices without noise would send
    told = signed_sums(seeds, words, np.array([0, 1], dtype=np.uint64)).sums[:, 0]
    assert abs(told - [-2000, 2000]).max() < 6 * math.sqrt(2000)


@computes(22)
def releases_of_a_user(tell):
    n, k, d = 10**6, tell(8), 4
    tell(math.log2(n / math.sqrt(n * k)), ".1f")
    levels = tell(math.ceil(math.log2(n)))
    scales = tell(math.ceil(1 + math.log2(d**1.5 * math.sqrt(levels))))
    repeats = tell(math.ceil(math.log(k * levels**2 / 0.1) / collision_chance(d, 4.0)))
    tell(0.1), tell(2), tell(3)
    families = tell(len(guesses(n, k))) * levels * scales * repeats
    releases = tell(levels + 2 * families + 3)
    each = variance("hrr", 2, Fraction(1, releases)) ** 0.5  # the best order for so small an epsilon: 2/epsilon
    tell(round(each, -3), ".0f")
    tell(each**2 / 1e9, ".1f")  # n at which the deviation is n itself
    one = variance("olh", 4, Fraction(1)) ** 0.5
    tell(one, ".2f")
    needed = 2 * families * 3.5**2 * one**2 / 0.02**2 * 4
    tell(needed / 1e9, ".0f")
    tell(plan(n, k, d, 1, "lae", "paper").people_needed / 1e9, ".1f")


@computes(25)
def a_root_that_misses_points(tell):
    point = np.array([0.5, 0.0]) + 0.5
    tell(2), tell(3)
    assert point.tolist() == [1.0, 0.5]
    assert not (point < 1).all()
    tell(np.linalg.norm(point), ".2f")
    assert np.linalg.norm(point) > 1
    assert np.linalg.norm(np.full(4, 0.5)) == 1 < np.linalg.norm(np.full(5, 0.5))  # the longest shifts
    assert np.abs(np.array([1.0, 0.0]) + 0.5).max() <= side(0) / 2 == 3 / 2
    one = PublicMap(np.eye(2, dtype=np.float32), np.full(2, 0.5, dtype=np.float32))
    root, nothing = np.zeros(1, dtype=np.uint64), np.zeros(0, dtype=np.uint64)
    buckets = Buckets(one, 1, 1, root, nothing, RotatedGrid.drawn(2, 1.0, np.random.default_rng(0)))
    offset = one.image(np.array([[0.7, 0.7]])) - one.middles(root, 0)
    assert np.linalg.norm(offset) > 1
    assert np.linalg.norm(buckets.place(np.array([[0.7, 0.7]]))[1]) <= 1


# About programs and common practice


@computes(2)
def empty_cells(tell):
    epsilon, cut = 0.5, 3.0
    with_record, without_if_counted, without_if_skipped = coin(1, epsilon, cut), coin(0, epsilon, cut), 0.0
    assert with_record > 0 == without_if_skipped
    assert math.log(with_record / without_if_counted) <= epsilon + 1e-12


@computes(10)
def an_accountant_that_drops_a_count(tell):
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    tell(re.match(r"\d+\.\d+", importlib.metadata.version("dp-accounting"))[0])
    event, relation = dp_accounting.RandomizedResponseDpEvent(0.5, 2), dp_accounting.NeighboringRelation.REPLACE_ONE
    one, fifty = (PLDAccountant(neighboring_relation=relation) for _ in range(2))
    one.compose(event)
    fifty.compose(event, 50)
    assert fifty.get_epsilon(1e-6) == pytest.approx(one.get_epsilon(1e-6))


@computes(11)
def steps_by_the_exact_n(tell):
    k, d, epsilon = tell(15), tell(2), 1.0
    c = (4 * d * 0.225**2) ** (1 / 3)

    def steps(n):
        return int(min(7, max(2, epsilon / (math.sqrt(500 * k**3 * (d + c) ** 3) / n))))

    assert (steps(tell(17674)), steps(tell(17675))) == (tell(2), tell(3))
    assert (round(tell(107) ** tell(0.4)), round(tell(108) ** 0.4)) == (tell(6), tell(7))


@computes(12)
def blocks_by_place(tell):
    rows = [0, 0, 1, 1, 0, 0, 1, 1]

    def results(table):
        return [min(table[i : i + 2]) for i in range(0, 8, 2)]

    assert results(rows) == [0, 1, 0, 1]
    assert results([0, *rows]) == [0, 0, 0, 0]
    assert sum(results(rows)) - sum(results([0, *rows])) == tell(2)


@computes(19)
def with_and_without_replacement(tell):
    for (m, s, e0), form in [((5, 2, 3), ".2f"), ((50, 10, 5), ".1f"), ((5000, 60, 8), ".1f")]:
        tell(m), tell(s), tell(e0)
        tell(s * math.log(1 + math.expm1(e0) / m), form)
        tell(math.log(1 + s / m * math.expm1(e0)), ".2f")
    m, s, e0 = 5, 2, 3  # attained: all records at one end, or one at the other, and every output there
    at_end, elsewhere = 1.0, math.exp(-e0)
    ratio = ((1 / m * at_end + (1 - 1 / m) * elsewhere) / elsewhere) ** s
    assert math.log(ratio) == pytest.approx(s * math.log(1 + math.expm1(e0) / m))


@computes(24)
def noise_along_a_release(tell):
    book = codebook(tell(11), Fraction(tell(4)))
    tell(book.dim * book.t2, ".2f")
    tell(math.sqrt(book.along / book.variance), ".2f")
    across = (1 / book.m**2 - book.along) / 10
    assert (book.along + 10 * across) / 11 == pytest.approx(book.variance)


@computes(28)
def what_the_reference_code_spends(tell):
    """Shares that clustering.m hands on: candidates, swaps, recovery, three further steps."""
    candidates, others = Fraction(2, 3), Fraction(1, 12) + Fraction(1, 6) + 3 * Fraction(1, 6)
    assert candidates + others == Fraction(tell(17), tell(12))
    tell(float(candidates + others), ".2f")
    three_halves = candidates * 3 / 2  # three partitions, each with half of the share
    tell(float(three_halves + others), ".2f")
    n = tell(70_000)
    levels = sum(1 for depth in range(1, 100) if depth < math.log(n)) - 1  # coins of the last round are not put out
    tell(float(three_halves) * levels / (2 * math.log(n)) + float(others), ".2f")
    rows = np.array([-1.0] * tell(9) + [1.0])  # in the ball of radius 1, as the README asks
    tell(np.abs(rows - rows.mean()).max(), ".1f")
    assert np.abs(rows[:-1] - rows[:-1].mean()).max() == 0
    tell(2), tell(3), tell(6)
    scales = [6 / tell(count) for count in (10, 11)]
    at = tell(20)
    tell(abs(math.log(scales[1] / scales[0]) + at * (1 / scales[1] - 1 / scales[0])), ".1f")
