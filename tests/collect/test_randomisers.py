"""Every kind of report, its seed fixed and all its outputs enumerated: no input makes any of them e**epsilon times likelier."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from kveil.collect import device, vector
from kveil.collect.encoding import into_domain, keys_of, preferred
from kveil.collect.queries import Fold, Query
from kveil.collect.vector import codebook
from kveil.kernel.grid import Ball
from kveil.kernel.loss import response_weights
from kveil.kernel.response import _subsets, chosen
from kveil.partition.lsh import BallLattice, Buckets, RotatedGrid
from kveil.partition.public_map import PublicMap, joint_lift

EPSILON = Fraction(2)
D = 3
RNG = np.random.default_rng(5)
MAP = PublicMap.drawn(D, 2, RNG)
OTHER = PublicMap.drawn(D, 2, RNG)
CENTRES = RNG.uniform(-0.5, 0.5, (6, D)).astype(np.float32)
SMALL = RNG.uniform(-0.5, 0.5, (3, 2)).astype(np.float32)
BUCKETS = Buckets(MAP, 2, 1, np.array([0, 3], dtype=np.uint64), np.array([13], dtype=np.uint64), RotatedGrid.drawn(2, 1.0, RNG))
BALLS = replace(BUCKETS, lsh=BallLattice.drawn(2, 0.5, RNG))
BOOK, SHORT = codebook(D + 1, EPSILON), codebook(2, EPSILON)
VECTOR = {"kind": "vec", "M": BOOK.M, "kappa": BOOK.kappa, "rho": 0.5}

QUERIES = {
    "randomised response": Query(id=0, kind="grr", M=2, kappa=1, key_rule="nearest", centres=(CENTRES[:2],)),
    "k-ary response": Query(id=0, kind="grr", M=6, kappa=1, key_rule="nearest", centres=(CENTRES,)),
    "hashed cell": Query(id=0, kind="olh", M=8, kappa=1, key_rule="cell", maps=(MAP,), depth=6),
    "hashed bucket": Query(id=0, kind="olh", M=8, kappa=1, key_rule="bucket", buckets=BUCKETS),
    "hashed ball": Query(id=0, kind="olh", M=8, kappa=1, key_rule="bucket", buckets=BALLS),
    "hashed bit of a bucket": Query(id=0, kind="olh", M=8, kappa=1, key_rule="bucket", buckets=BUCKETS, fold=Fold(7, 4, 2)),
    "Hadamard bit": Query(id=0, kind="hrr", M=2, kappa=1, key_rule="cell", maps=(MAP,), depth=6),
    "residual": Query(id=0, key_rule="nearest", centres=(CENTRES,), **VECTOR),
    "sum of an image's centre": Query(id=0, key_rule="nearest", maps=(MAP,), centres=(SMALL,), **VECTOR),
    "sum of a cell": Query(id=0, key_rule="cell", maps=(MAP,), depth=4, **VECTOR),
    "product": Query(
        id=0, key_rule="product", maps=(MAP, OTHER), centres=(SMALL, SMALL), lift=joint_lift([MAP.axes, OTHER.axes]), **VECTOR
    ),
    "offset in a bucket": Query(id=0, kind="vec", M=SHORT.M, kappa=SHORT.kappa, key_rule="bucket", buckets=BUCKETS),
}

# Missing values, the middle, far outliers, the surface, a centre itself, borders of cells, and some more.
ROWS = np.vstack(
    [
        [np.nan, 0.0, 0.0], [np.inf, 1.0, -np.inf], [0.0, 0.0, 0.0], [1e300, -1e300, 1e300], [5e-324, 0.0, 0.0], [1.0, 0.0, 0.0],
        [-1.0, 0.0, 0.0], CENTRES[0], MAP.axes.T[0] * 0.75, *np.random.default_rng(6).uniform(-1, 1, (12, D)),
    ]
)  # fmt: skip


def weights_of(query, row, seed, a, b):
    """The weight of every output: each owns one run of the uniform draw, both ends of which are tried."""
    points = into_domain(np.asarray(row, dtype=float)[None, :], Ball(np.zeros(D), 1.0))
    subset = _subsets(preferred(query, points, np.array([seed], dtype=np.uint64)), 1, query.M, query.kappa)
    inside = np.arange(query.kappa) * a
    starts = np.concatenate([inside, query.kappa * a + np.arange(query.M - query.kappa) * b])
    widths = np.repeat([a, b], [query.kappa, query.M - query.kappa])
    first, last = (chosen(ends, np.repeat(subset, len(ends), axis=0), a, b) for ends in (starts, starts + widths - 1))
    assert (first == last).all()
    assert sorted(first) == list(range(query.M))
    law = np.empty(query.M, dtype=object)
    law[first] = [int(width) for width in widths]
    return law


def worst_ratio(laws):
    """The largest ratio of any output between any two inputs."""
    totals = {sum(law) for law in laws}
    assert len(totals) == 1
    return max(Fraction(max(column), min(column)) for column in np.array(laws).T)


def bound():
    """A lower bound of e**epsilon, by its series."""
    term = total = Fraction(1)
    for i in range(1, 60):
        term *= EPSILON / i
        total += term
    return total


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("seed", [0, 2**64 - 1, 12345])
def test_no_input_makes_any_output_more_than_e_to_the_epsilon_times_likelier(name, seed):
    a, b = response_weights(EPSILON)
    laws = [weights_of(QUERIES[name], row, seed, a, b) for row in ROWS]
    assert worst_ratio(laws) <= Fraction(a, b) <= bound()


def test_the_inputs_tell_apart_what_a_leak_would_tell_apart():
    """Otherwise the test above could not fail."""
    for query in QUERIES.values():
        points = into_domain(ROWS, Ball(np.zeros(D), 1.0))
        assert len(np.unique(preferred(query, points, np.full(len(ROWS), 12345, dtype=np.uint64)), axis=0)) > 1
    keys = keys_of(QUERIES["hashed bucket"], into_domain(ROWS, Ball(np.zeros(D), 1.0)))
    assert 0 in keys
    assert len(np.unique(keys)) > 2


@pytest.mark.parametrize("name", QUERIES)
def test_a_weight_that_is_one_too_large_would_be_noticed(name):
    a, b = response_weights(EPSILON)
    laws = [weights_of(QUERIES[name], row, 12345, a + 1, b) for row in ROWS]
    assert worst_ratio(laws) > bound()


@pytest.mark.parametrize("name", ["hashed bucket", "offset in a bucket"])
def test_a_device_that_keeps_silent_outside_of_medium_cells_would_be_noticed(name):
    """Silence is an output, too: with chance 1 for some points and 0 for others."""
    query = QUERIES[name]
    a, b = response_weights(EPSILON)
    keys = keys_of(query, into_domain(ROWS, Ball(np.zeros(D), 1.0)))
    total = query.kappa * a + (query.M - query.kappa) * b
    silent = [*([0] * query.M), total]
    laws = [silent if key == 0 else [*weights_of(query, row, 3, a, b), 0] for row, key in zip(ROWS, keys, strict=True)]
    assert min(law[-1] for law in laws) == 0 < max(law[-1] for law in laws)


@pytest.mark.parametrize("name", QUERIES)
def test_floats_that_are_a_little_off_move_accuracy_only(name, monkeypatch):
    """Maps, centres and, by turning vectors against it, the codebook."""
    query = QUERIES[name]
    off = np.float32(1e-3)
    exact = vector.best_aligned
    maps = tuple(PublicMap(one.axes + off, one.shift - off) for one in query.maps)
    moved = replace(query, maps=maps, centres=tuple(some + off for some in query.centres))
    if query.buckets is not None:
        moved = replace(moved, buckets=replace(query.buckets, map=PublicMap(MAP.axes + off, MAP.shift + off)))
    a, b = response_weights(EPSILON)
    laws = [weights_of(query, row, 9, a, b) for row in ROWS]
    monkeypatch.setattr(vector, "best_aligned", lambda seeds, units, M, kappa: exact(seeds, units + off, M, kappa))
    laws += [weights_of(moved, row, 9, a, b) for row in ROWS]
    assert worst_ratio(laws) <= Fraction(a, b)


BROKEN = {
    "centres that are no numbers": replace(QUERIES["residual"], centres=(np.full((6, D), np.nan, dtype=np.float32),)),
    "huge centres": replace(QUERIES["residual"], centres=(np.full((6, D), 3e38, dtype=np.float32),)),
    "a tiny radius": replace(QUERIES["residual"], rho=1e-30),
    "no radius": replace(QUERIES["residual"], rho=0.0),
    "no centres": replace(QUERIES["residual"], centres=()),
    "a map of other columns": replace(QUERIES["hashed cell"], maps=(PublicMap(np.eye(7, dtype=np.float32), np.zeros(7)),)),
    "a map that is no number": replace(QUERIES["hashed cell"], maps=(PublicMap(MAP.axes * np.nan, MAP.shift),)),
    "more cells than bits": replace(QUERIES["hashed cell"], depth=400),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_query_that_was_made_to_break_devices_is_answered_all_the_same(name):
    """A manifest like these is refused before a point is read; should one come through, no point decides who answers."""
    points = into_domain(ROWS, Ball(np.zeros(D), 1.0))
    values, receipt = device.reports(BROKEN[name], points, np.arange(len(points), dtype=np.uint64), EPSILON)
    assert values.shape == (len(points),)
    assert ((values >= 0) & (values < BROKEN[name].M)).all()
    assert receipt.secure


def test_one_report_is_paid_by_its_person_and_no_more():
    points = np.zeros((2, D))
    values, receipt = device.reports(QUERIES["residual"], points, np.arange(2, dtype=np.uint64), Fraction(1, 3))
    assert receipt.charge.pure() == Fraction(1, 3)
    assert len(values) == 2


def test_secret_bits_are_uniform_enough_to_pick_every_query():
    """256 picks among 3 miss one of them with a chance below 1e-44."""
    assert {device.secret_below(3) for _ in range(256)} == {0, 1, 2}
    assert len(device.secret_bytes(16)) == 16 != len(device.secret_bytes(5))
    assert device.secret_bytes(16) != device.secret_bytes(16)
