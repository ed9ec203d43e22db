"""Private fits on tiny universes: the exact log-ratio of whatever they release never passes what was promised.

The laws of the private walk are enumerated to the last outcome. Whole fits are replayed: the outcomes of a fit to one demand
are forced on a fit to its neighbour, and the ratio of their probabilities is what the guarantee speaks about.
"""

from fractions import Fraction
from math import isqrt

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from universe_laws import outputs, small_demands, walk_law, watched_fit, worst_losses

import kveil
from kveil import Graph, Ledger, Precomputed, PrivateKMedian
from kveil.audit import exact
from kveil.auditing.moving import length
from kveil.desk.fixed import FixedDesk
from kveil.desk.walk import PlaceCosts
from kveil.kernel import choice
from kveil.kernel.exact import SystemEntropy
from kveil.kernel.loss import floor_delta, zcdp_rho
from kveil.methods.universe import counts as counts_module
from kveil.methods.universe.task import UniverseTask
from kveil.questions import demand as demand_module
from kveil.questions.base import Noisy
from kveil.questions.demand import PATH, DemandSize
from kveil.solve.loss import Loss
from kveil.space.places import Places
from kveil.testing import scripted
from kveil.tuning import Counts

ETA = 1.0
RNG = np.random.default_rng(11)


def random_universe(n):
    places = RNG.integers(0, 40, (n, 2))
    return Precomputed(np.abs(places[:, None] - places).sum(axis=2))


# --- the walk, enumerated ---------------------------------------------------------------------------------------------

CASES = [(5, 1, 1), (5, 2, 1), (4, 2, 2), (4, 1, 2), (3, 2, 2)]  # points, centres, steps


@pytest.mark.parametrize("objective", ["k-median", "k-means"])
@pytest.mark.parametrize(("n", "k", "n_steps"), CASES, ids=str)
def test_the_law_of_a_walk_stays_within_the_sum_of_its_choices(n, k, n_steps, objective):
    """Adding a row, and replacing one (twice the window): whole walks and released centres, for random universes."""
    worst = {1: 0.0, 2: 0.0}
    space, start = random_universe(n), np.arange(k)
    loss = Loss.within(space.diameter, objective, 2**40)
    for base in (np.zeros(n, dtype=np.int64), RNG.integers(0, 3, n), 50 * RNG.integers(0, 2, n)):
        added = [base + row for row in np.eye(n, dtype=np.int64)]
        for window in (1, 2):
            laws = [walk_law(space, loss, counts, start, n_steps, ETA, window) for counts in added]
            others = [walk_law(space, loss, base, start, n_steps, ETA, window)] if window == 1 else laws
            losses = [worst_losses(law, other) for law in laws for other in others if law is not other]
            worst[window] = max(worst[window], *(max(pair) for pair in losses))
    allowed = (n_steps + 1) * ETA
    assert 0 < worst[1] <= allowed * (1 + 1e-9)
    assert 0 < worst[2] <= allowed * (1 + 1e-9)


def test_one_choice_spends_all_of_its_budget_where_demand_is_heavy():
    """One centre, two others to choose from, a heavy demand on one of them: adding a row there costs exactly eta."""
    space = Precomputed([[0, 9, 3], [9, 0, 6], [3, 6, 0]])
    loss, start = Loss.within(space.diameter, "k-median", 2**40), np.array([2])
    heavy, more = np.array([10_000, 0, 0]), np.array([10_001, 0, 0])
    laws = [walk_law(space, loss, counts, start, 1, ETA, 1) for counts in (heavy, more)]
    first, other = (outputs(law, lambda outcomes, centers: outcomes[0]) for law in laws)  # the swap alone
    assert max(abs(first[swap] - other[swap]) for swap in first) == pytest.approx(ETA, abs=1e-9)


class OverDemand:
    """The universe as a careless search would see it: ranges over occupied points only."""

    def __init__(self, space, counts):
        self.space, self.occupied = space, counts > 0

    def nearest(self, centers):
        owner, first, second, runner = self.space.nearest(centers)
        return owner, np.where(self.occupied, first, 0), np.where(self.occupied, second, 0), runner


def test_a_range_taken_over_the_demand_is_caught():
    """The guard: many rows close together and one far away that is added. With the range over the universe all is well."""
    line = np.array([0, 1, 2, 1000])
    space, start = Precomputed(np.abs(line[:, None] - line)), np.array([1, 2])
    loss = Loss.within(space.diameter, "k-median", 2**40)
    base, far = np.array([300, 300, 300, 0]), np.array([300, 300, 300, 1])
    sound = [walk_law(space, loss, counts, start, 1, ETA, 1) for counts in (base, far)]
    broken = [walk_law(space, loss, counts, start, 1, ETA, 1, OverDemand(space, counts)) for counts in (base, far)]
    assert max(worst_losses(*sound)) <= 2 * ETA * (1 + 1e-9)
    assert max(worst_losses(*broken)) > 20 * ETA


@pytest.mark.statistical
def test_swaps_are_drawn_by_their_exact_law():
    """Eight swaps of one centre on a line, 70 000 draws with real entropy: chi-square with a false alarm of 1e-9.

    It catches a parameter 5 % off with probability above 1 - 1e-6: the statistic is then non-central, by more than 150.
    """
    line = np.arange(9)
    space, n, eta = Precomputed(np.abs(line[:, None] - line)), 70_000, 8
    costs = PlaceCosts(space, np.eye(9, dtype=np.int64)[0], line, Loss.within(8, "k-median", 2**40))
    raw = costs.swaps(np.array([8]))[0, :8]
    draw, source = choice.selection("swap", space.diameter, Fraction(eta)).draw, SystemEntropy()
    hits = np.bincount([draw(source, raw) for _ in range(n)], minlength=8)

    def statistic(parameter):
        weights = np.exp(-raw * parameter / 8)
        expected = n * weights / weights.sum()
        return ((hits - expected) ** 2 / expected).sum()

    limit = stats.chi2.isf(1e-9, 7)
    assert statistic(eta) < limit
    assert statistic(1.05 * eta) > limit


# --- whole fits, replayed ---------------------------------------------------------------------------------------------

TOWN = Graph.from_edges([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0], [4, 5]], lengths=[2, 3, 2, 4, 3, 9])
TREE = Counts(partition="hst")
FITS = {
    "counts": {},
    "counts, declared": {"expected_rows": 50},
    "counts of a tree": {"tuning": TREE},
    "counts, k-means": {"objective": "k-means"},
    "search from a tree": {"method": "local-search", "n_steps": 2},
    "search from public points": {"method": "local-search", "init": "k-median++", "n_steps": 2},
    "search at random, k-means": {"method": "local-search", "init": "random", "n_steps": 1, "objective": "k-means"},
}
DEMANDS = [np.array([], dtype=np.int64), np.array([0, 0, 5])]


def model(relation="add-remove", ledger=None, **parameters):
    given = {"n_clusters": 2, "universe": TOWN, "epsilon": 1.0, "random_state": 0, "relation": relation, "ledger": ledger}
    return PrivateKMedian(**{**given, **parameters})


def largest_loss(relation="add-remove", **parameters):
    """By one path of every table: added to each of the demands, and replaced there."""
    points = np.arange(6)[:, None]
    return exact(model(relation, **parameters), points, bases=DEMANDS, most_outcomes=0, samples=1)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("parameters", FITS.values(), ids=FITS)
def test_the_log_ratio_of_a_whole_fit_never_passes_epsilon(parameters, relation):
    found = largest_loss(relation, **parameters)
    assert found.outcome == "consistent"
    assert found.loss <= 1 + 1e-9
    assert found.loss > 0.05  # the check would notice a fit that ignores its rows


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("is_zcdp", [False, True], ids=["pure", "zcdp"])
@pytest.mark.parametrize("parameters", FITS.values(), ids=FITS)
def test_what_reaches_the_gate_moves_by_at_most_its_stated_sensitivity(parameters, is_zcdp, relation, monkeypatch):
    """People with up to 3 rows each: the rows of one are added, or replaced by others."""
    unit = kveil.PrivacyUnit("person", 3, "who")
    worst = 0.0
    for seed in range(2):
        rng = np.random.default_rng(seed)
        crowd = pd.DataFrame({"who": rng.integers(0, 9, 30), "home": rng.integers(0, 6, 30)})
        n_rows = rng.integers(1, 4, 2)
        mine, yours = (pd.DataFrame({"who": [99] * n, "home": rng.integers(0, 6, n)}) for n in n_rows)
        tables = [crowd, pd.concat([crowd, mine])] if relation == "add-remove" else [pd.concat([crowd, p]) for p in (mine, yours)]
        sources = [kveil.read(table, person="who", max_rows_per_person=3) for table in tables]
        terms = {"epsilon": 1.0, "delta": 1e-6 if is_zcdp else 0.0, **parameters}
        ledgers = [Ledger.memory("all", 1.0, terms["delta"], relation=relation, unit=unit) for _ in sources]
        first = watched_fit(model(relation, ledgers[0], **terms), sources[0])
        again = watched_fit(model(relation, ledgers[1], **terms), sources[1], first.values)
        assert again.charges == first.charges
        for charge, raw, other in zip(first.charges, first.secrets, again.secrets, strict=True):
            apart = length(charge, (raw - other).astype(object))
            assert apart <= charge.sensitivity * (1 + 1e-12), charge.label
            worst = max(worst, apart / charge.sensitivity)
    assert worst > 0.1


def test_a_tree_with_budgets_that_depend_on_the_leaf_is_noticed(monkeypatch):
    """The guard: every leaf given the whole weight of a path and inner nodes theirs on top, which is twice too much."""
    real = demand_module.tree_weights
    monkeypatch.setattr(demand_module, "tree_weights", lambda tree, **more: 2 * real(tree, **more))
    assert largest_loss(tuning=TREE).loss > 1.1


# --- what the vault is asked for --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("relation", "window"), [("add-remove", 1), ("replace-one", 2)])
@pytest.mark.parametrize("q", [1, 3])
def test_a_choice_is_as_sharp_as_its_share_and_the_range_over_the_universe_allow(relation, window, q, monkeypatch):
    """select gets exactly eta / (s q R), R the largest distance to the second nearest centre, or between the sets at the end."""
    rates, real = [], choice.select
    monkeypatch.setattr(choice, "select", lambda source, costs, rate: rates.append(rate) or real(source, costs, rate))
    frame = pd.DataFrame({"who": np.arange(40), "home": RNG.integers(0, 6, 40)})
    source = kveil.read(frame, person="who", max_rows_per_person=q) if q > 1 else frame[["home"]]
    ranges, nearest = [], type(TOWN).nearest
    monkeypatch.setattr(type(TOWN), "nearest", lambda s, centers: ranges.append(nearest(s, centers)[2]) or nearest(s, centers))
    with scripted(3):
        model(relation, method="local-search", init=[0, 3], n_steps=2).fit(source)
    eta = Fraction(1, 3)
    assert len(rates) == 3
    for rate, differ in zip(rates[:2], (int(ranges[0].max()), int(ranges[2].max())), strict=True):
        assert rate <= eta / (window * q * differ)
        assert float(rate * window * q * differ) == pytest.approx(float(eta), rel=1e-9)
    assert all(rate.numerator > 0 for rate in rates)


def test_where_nobody_can_tell_the_choices_apart_nothing_is_drawn_and_all_is_charged():
    same_place = Precomputed(np.zeros((5, 5)))
    full = Precomputed([[0, 1], [1, 0]])
    for universe in (same_place, full):
        ledger = Ledger.memory("all", 1.0, relation="add-remove")
        made = model(ledger=ledger, universe=universe, method="local-search", init="random")
        seen = watched_fit(lambda demand, made=made: {"centers": made.fit(demand).release_.centers}, np.array([0, 1, 1]))
        assert not seen.charges
        assert ledger.remaining().epsilon == 0.0


# --- the default: cells from released or declared sizes alone ---------------------------------------------------------


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("q", [1, 4])
@pytest.mark.parametrize("declared", [None, 1000])
@pytest.mark.parametrize("tuning", [None, TREE, Counts(cells=3)], ids=str)
def test_the_charges_add_up_to_epsilon_for_every_relation_unit_and_size_rule(relation, q, declared, tuning):
    unit = kveil.PrivacyUnit("person", q, "who") if q > 1 else kveil.PrivacyUnit()
    given = model(relation, expected_rows=declared, tuning=tuning).guarantee(unit=unit)
    assert sum(charge.epsilon for charge in given.charges) == 1
    asks = declared is None and tuning is None
    assert len(given.charges) == 1 + asks
    weight = PATH if tuning is TREE else 1
    assert given.charges[-1].sensitivity == weight * q * (2 if relation == "replace-one" else 1)
    if asks:
        assert given.charges[0].epsilon == Fraction(1, 20)
        assert given.charges[0].sensitivity == q


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("q", [1, 5])
def test_gaussian_counts_are_calibrated_to_rho(relation, q):
    terms, unit = (Fraction(1), floor_delta(1e-6)), kveil.PrivacyUnit("person", q)
    method = counts_module.Counts(
        UniverseTask(2, *terms, Places(TOWN, 1), "k-median", relation, unit, Counts(), 2**40, is_zcdp=True)
    )
    size, counts = method.budget.charges
    assert size.rho + counts.rho == zcdp_rho(*terms)
    assert (size.rho, counts.rho) == (method.of_size, method.of_counts)
    l2 = q if relation == "add-remove" else isqrt(2 * q * q - 1) + 1
    assert (size.sensitivity, counts.sensitivity) == (q, l2)
    assert method.scale == pytest.approx(l2 / (2 * float(counts.rho)) ** 0.5 / 2**0.5)


def partitions(monkeypatch, demands, **parameters):
    """The cells of a fit to each demand."""
    made, real = [], counts_module.voronoi
    monkeypatch.setattr(counts_module, "voronoi", lambda *terms: made.append(real(*terms)) or made[-1])
    for demand in demands:
        model(**parameters).fit(demand)
    return made


@pytest.mark.parametrize("rule", ["declared", "released"])
def test_the_partition_depends_on_the_released_or_declared_size_alone(rule, monkeypatch):
    if rule == "released":  # |D| changes, its noisy value does not
        real, told = FixedDesk.ask, (Noisy(np.array([40.0]), 1.0),)
        monkeypatch.setattr(FixedDesk, "ask", lambda desk, q, *b: told if isinstance(q, DemandSize) else real(desk, q, *b))
    demands = [np.array([], dtype=np.int64), RNG.integers(0, 6, 1000), np.array([-4, 77, 2])]
    made = partitions(monkeypatch, demands, expected_rows=40 if rule == "declared" else None)
    for cells in made[1:]:
        assert (cells.owner == made[0].owner).all()
        assert (cells.sites == made[0].sites).all()
        assert (cells.groups == made[0].groups).all()


@pytest.mark.parametrize("row", [-1.0, 6.0, 2.5, np.nan, np.inf, 1e300])
def test_a_row_that_is_no_index_changes_one_count(row, monkeypatch):
    base = np.array([1.0, 2.0, 2.0])
    for parameters in FITS.values():
        first = watched_fit(model(**parameters), base[:, None])
        again = watched_fit(model(**parameters), np.append(base, row)[:, None], first.values)
        zero = watched_fit(model(**parameters), np.append(base, 0.0)[:, None], first.values)
        assert all((a == b).all() for a, b in zip(again.secrets, zero.secrets, strict=True))


def test_the_law_of_every_small_demand_is_a_law():
    """Probabilities of a walk add up to 1, whatever the demand."""
    space = Precomputed([[0, 2, 5], [2, 0, 4], [5, 4, 0]])
    loss = Loss.within(space.diameter, "k-median", 2**40)
    for counts in small_demands(3, (0, 1, 7)):
        law = walk_law(space, loss, counts, np.array([0]), 2, ETA, 1)
        assert sum(np.exp(log) for log in law.values()) == pytest.approx(1.0)
