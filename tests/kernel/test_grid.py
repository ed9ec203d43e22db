"""Rows become integers: inside the stated sensitivity whatever they hold, and each row on its own."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array

from kveil.errors import GridOverflow, InvalidValue
from kveil.kernel import grid
from kveil.kernel.grid import Ball, Box, check_sums, per_person

pytestmark = pytest.mark.filterwarnings("error")  # what rows hold may not even warn

ANY = st.floats(allow_nan=True, allow_infinity=True, width=64)
BITS = st.sampled_from([2, 8, 16, 20])


@st.composite
def boxes_and_rows(draw):
    """A box of ordinary width somewhere on the line, and rows that hold anything."""
    d = draw(st.integers(1, 6))
    lower = draw(arrays(np.float64, d, elements=st.floats(-1e6, 1e6)))
    width = draw(arrays(np.float64, d, elements=st.floats(1.0, 1e6)))
    near = st.floats(-2e6, 2e6)
    rows = draw(arrays(np.float64, (draw(st.integers(1, 8)), d), elements=st.one_of(near, ANY)))
    return Box(lower, lower + width, draw(BITS)), rows


@st.composite
def balls_and_rows(draw):
    d = draw(st.integers(1, 6))
    center = draw(arrays(np.float64, d, elements=st.floats(-1e6, 1e6)))
    rows = draw(arrays(np.float64, (draw(st.integers(1, 8)), d), elements=st.one_of(st.floats(-2e6, 2e6), ANY)))
    return Ball(center, draw(st.floats(1e-3, 1e6)), draw(BITS)), rows


def as_integers(codes):
    return [[int(q) for q in row] for row in codes]


@given(boxes_and_rows())
@settings(max_examples=150, deadline=None)
def test_no_row_leaves_the_box_or_its_sensitivity(case):
    box, rows = case
    for row in as_integers(box.encode(rows)):
        assert max(map(abs, row)) <= box.top
        assert sum(map(abs, row)) <= box.l1_sensitivity
        assert sum(q * q for q in row) <= box.l2_sensitivity**2


@given(balls_and_rows())
@settings(max_examples=150, deadline=None)
def test_no_row_leaves_the_ball_or_its_sensitivity(case):
    ball, rows = case
    for row in as_integers(ball.encode(rows)):
        assert sum(q * q for q in row) <= ball.top**2 == ball.l2_sensitivity**2
        assert sum(map(abs, row)) <= ball.l1_sensitivity


@given(boxes_and_rows())
@settings(max_examples=100, deadline=None)
def test_the_ends_of_a_box_are_the_ends_of_the_grid(case):
    box, _ = case
    ends = box.encode(np.stack([box.lower, box.upper, box.center]))
    assert ends.tolist() == [[-box.top] * box.n_columns, [box.top] * box.n_columns, [0] * box.n_columns]
    assert ends.dtype == (np.int16 if box.bits <= 16 else np.int32)


@given(boxes_and_rows())
@settings(max_examples=100, deadline=None)
def test_decoding_a_box_gives_back_the_clipped_row_within_a_step(case):
    """Half a step from rounding; the rest is float64 against a centre up to a million times as far away."""
    box, rows = case
    clipped = np.clip(rows, box.lower, box.upper)
    clipped[~np.isfinite(rows).all(axis=1)] = box.center
    assert (np.abs(box.decode(box.encode(rows)) - clipped) <= 0.51 * box.step + 1e-9).all()


@given(balls_and_rows())
@settings(max_examples=100, deadline=None)
def test_decoding_a_ball_gives_back_an_inner_row_within_a_step(case):
    ball, rows = case
    tame = np.where(np.abs(rows) < 1e7, rows, ball.center)  # NaN compares as False
    inner = tame[np.linalg.norm(tame - ball.center, axis=1) < ball.radius]
    assert (np.abs(ball.decode(ball.encode(inner)) - inner) <= ball.step * (1 + 1e-6) + 1e-9).all()


@pytest.mark.parametrize("bits", [8, 16, 20])
def test_a_row_outside_a_ball_goes_to_the_nearest_point_of_the_sphere_within_a_few_steps(bits):
    """One step from truncation and at most two from the integer shrink, whose divisor passes the norm by at most 2."""
    rng = np.random.default_rng(bits)
    ball = Ball(np.zeros(5), 3.0, bits)
    far = rng.normal(size=(500, 5)) * 10
    far *= np.maximum(1.0, 3.0 / np.linalg.norm(far, axis=1))[:, None]
    on_sphere = 3.0 * far / np.linalg.norm(far, axis=1)[:, None]
    assert (np.abs(ball.decode(ball.encode(far)) - on_sphere) <= 3 * ball.step).all()


def unit_rows(n, d, seed):
    rows = np.random.default_rng(seed).normal(size=(n, d))
    return rows / np.linalg.norm(rows, axis=1)[:, None]


def squared_norms(codes):
    return [sum(int(q) ** 2 for q in row) for row in codes]


@pytest.mark.parametrize("bits", [8, 16, 20])
@pytest.mark.parametrize("d", [1, 2, 3, 10, 100, 784])
def test_points_on_the_sphere_stay_in_the_ball_exactly(d, bits):
    """Rounding to nearest would not: the guard below shows it. Axis points and points one float beyond the sphere too."""
    radius = 0.1
    ball = Ball(np.zeros(d), radius, bits)
    on_sphere = radius * unit_rows(300, d, seed=d)
    axes = radius * np.concatenate([np.eye(d)[:3], -np.eye(d)[:3], np.full((1, d), 1 / math.sqrt(d))])
    codes = ball.encode(np.concatenate([on_sphere, axes, np.nextafter(axes, 2 * axes), 1e9 * axes, on_sphere * (1 + 2**-40)]))
    assert max(squared_norms(codes)) <= ball.top**2
    if d >= 10:
        rounded = np.rint(on_sphere * (ball.top / radius)).astype(np.int64)
        assert max(squared_norms(rounded)) > ball.top**2


def test_truncation_alone_can_leave_the_ball_and_the_integer_shrink_brings_it_back():
    """Pythagorean points land on M**2 exactly, where one unit of float error decides."""
    ball = Ball(np.zeros(2), 1.0, 16)  # M = 32767 = 7 * 31 * 151
    angles = np.linspace(0, 2 * math.pi, 200_001)
    codes = ball.encode(np.column_stack([np.cos(angles), np.sin(angles)]) * (1 + 1e-12)).astype(np.int64)
    assert (codes**2).sum(axis=1).max() <= ball.top**2
    outside = np.array([[ball.top, 1], [-ball.top, ball.top], [ball.top, ball.top]])
    inside = ball._inside(outside, (outside**2).sum(axis=1)[:, None])
    assert max(squared_norms(inside)) <= ball.top**2
    assert (np.sign(inside) * np.sign(outside) >= 0).all()


class HalvedRoots:
    """numpy, except that the first square root taken comes out half as large: a float norm that is badly wrong."""

    def __init__(self):
        self._calls = 0

    def __getattr__(self, name):
        return getattr(np, name)

    def sqrt(self, values):
        self._calls += 1
        return np.sqrt(values) / 2 if self._calls == 1 else np.sqrt(values)


@pytest.mark.parametrize("bits", [8, 16, 20])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_the_ball_holds_in_integers_even_if_the_float_norm_were_wrong(form, bits, monkeypatch):
    """Privacy rests on the integer shrink alone: rows that the float step leaves twice as long are brought back exactly."""
    ball, rows = Ball(np.zeros(10), 1.0, bits), 5 * unit_rows(200, 10, seed=2)
    monkeypatch.setattr(grid, "np", HalvedRoots())
    codes = ball.encode(rows) if form == "dense" else ball.encode_sparse(csr_array(rows)).toarray()
    norms = squared_norms(codes)
    assert max(norms) <= ball.top**2
    assert min(norms) > (0.8 * ball.top) ** 2, "and not to the centre"


WILD = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1.7976931348623157e308, 5e-324, -0.0, 1e300, 1e150, -1e154]


SHAPES = {
    "unit box": lambda: Box([-1.0] * 3, [1.0] * 3),
    "box": lambda: Box([0.0, -5.0, 1e5], [1.0, 7.0, 1e6], 20),
    "unit ball": lambda: Ball([0.0] * 3, 1.0),
    "small ball": lambda: Ball([3.0, -1e6, 0.0], 1e-3, 20),
    "box of seconds since 1970": lambda: Box([0.0] * 3, [4e9] * 3),
    "huge ball": lambda: Ball([0.0] * 3, 1e200, 8),
    "huge box": lambda: Box([-1e299] * 3, [1e299] * 3, 8),
}


@pytest.mark.parametrize("make", SHAPES.values(), ids=SHAPES)
def test_wild_values_give_clipped_codes_or_the_centre_without_a_warning(make):
    domain = make()
    rows = np.array([[a, b, 0.5] for a in WILD for b in WILD])
    codes = domain.encode(rows)
    assert np.abs(codes.astype(np.int64)).max() <= domain.top
    broken = ~np.isfinite(rows).all(axis=1)
    assert broken.any()
    assert (codes[broken] == 0).all()


@pytest.mark.parametrize("half", [1e-3, 1e-4, 1e-9, 1e-100])
@pytest.mark.parametrize("bits", [16, 20])
@pytest.mark.parametrize("make", [lambda half, bits: Box([-half], [half], bits), lambda half, bits: Ball([0.0], half, bits)],
                         ids=["box", "ball"])  # fmt: skip
def test_a_huge_value_in_a_narrow_domain_gives_a_code_without_a_warning(make, half, bits):
    """A warning, or an error where warnings are errors, would tell that someone's row holds 1e308."""
    domain = make(half, bits)
    codes = domain.encode([[1e308], [-1e308], [1e300], [0.0], [half]])
    assert np.abs(codes.astype(np.int64)).max() <= domain.top
    sparse = domain.encode_sparse(csr_array([[1e308], [-1e308], [1e300], [0.0], [half]]))
    assert sparse.toarray().tolist() == codes.tolist()


def test_far_rows_are_clipped_to_the_side_they_are_on():
    assert Box([-1.0], [1.0]).encode([[1e308], [-1e308], [7.0]]).tolist() == [[32767], [-32767], [32767]]
    assert Ball([0.0, 0.0], 1.0).encode([[1e308, 0.0], [0.0, -1e308]]).tolist() == [[32767, 0], [0, -32767]]


DOMAINS = [
    Box(np.full(33, -3.0), np.full(33, 3.0)), Box(np.arange(33) - 40.0, np.arange(33) + 0.5, 20), Ball(np.zeros(33), 1.0),
    Ball(np.arange(33) / 7, 5.0, 20),
]  # fmt: skip


@pytest.mark.parametrize("domain", DOMAINS, ids=["box", "skew box", "ball", "off-centre ball"])
def test_a_code_depends_on_its_own_row_alone(domain):
    """Dropping, adding, permuting and re-laying other rows changes no bit of a row's code: a neighbour cannot move others."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(1003, 33)) * 2
    rows[10, 3], rows[20, 5] = np.nan, 1e308
    codes = domain.encode(rows)
    keep = np.delete(np.arange(1003), 501)
    order = rng.permutation(1003)
    assert (domain.encode(rows[keep]) == codes[keep]).all()
    assert (domain.encode(rows[order]) == codes[order]).all()
    assert (domain.encode(np.asfortranarray(rows)) == codes).all()
    assert (domain.encode(rows[::-1]) == codes[::-1]).all()
    assert (domain.encode(np.repeat(rows, 2, axis=1)[:, ::2]) == codes).all()  # strided
    assert (domain.encode(rows.tolist()) == codes).all()
    assert (np.concatenate([domain.encode(rows[i : i + 1]) for i in range(1003)]) == codes).all()
    assert all((domain.encode(rows[i : i + 7]) == codes[i : i + 7]).all() for i in range(0, 1003, 7))


def four_squares(n):
    """Integers whose squares add up to n."""
    for a in range(math.isqrt(n), -1, -1):
        for b in range(math.isqrt(n - a * a), -1, -1):
            for c in range(math.isqrt(n - a * a - b * b), -1, -1):
                d = math.isqrt(n - a * a - b * b - c * c)
                if a * a + b * b + c * c + d * d == n:
                    return [a, b, c, d]
    raise AssertionError("Lagrange was wrong")


def rows_on_the_edge(n):
    """Rows outside the unit ball whose codes at 17 bits are all on the step between two integers.

    An integer vector of norm 255 is 257 times itself on the sphere of M = 65535; scaled by any factor, the last bit of the
    float norm decides whether a code is that integer or one less.
    """
    rng = np.random.default_rng(7)
    heads = rng.integers(-40, 41, size=(n, 29))
    rows = np.array([[*head, *four_squares(255**2 - int(head @ head))] for head in heads])
    return rows * (1 + rng.random((n, 1))) / 255


def test_a_row_on_the_edge_of_a_code_has_one_code_whatever_surrounds_it():
    """The sharpest form of the test above: a norm summed in another order, as numpy's own would be, moves many of these codes."""
    ball, rows = Ball(np.zeros(33), 1.0, 17), rows_on_the_edge(300)
    codes = ball.encode(rows)
    assert (ball.encode(np.asfortranarray(rows)) == codes).all()
    assert (ball.encode(rows[::-3]) == codes[::-3]).all()
    assert (np.concatenate([ball.encode(rows[i : i + 1]) for i in range(300)]) == codes).all()
    assert (ball.encode(np.concatenate([rows, rows]))[300:] == codes).all()
    assert (ball.encode_sparse(csr_array(rows)).toarray() == codes).all()

    scale = ball.top / np.sqrt((rows**2).sum(axis=1))  # the guard: a norm by numpy's pairwise sum
    assert (np.trunc(rows * scale[:, None]) != codes).any(axis=1).sum() > 20


def test_encoding_does_not_change_the_rows():
    rows = np.array([[np.nan, 1.0], [2.0, 3.0]])
    before = rows.copy()
    for domain in (Box([0.0, 0.0], [1.0, 1.0]), Ball([1.0, 1.0], 1.0)):
        domain.encode(rows)
        assert np.array_equal(rows, before, equal_nan=True)
    sparse = csr_array(np.array([[5.0, np.inf], [0.0, 3.0]]))
    Ball([0.0, 0.0], 1.0).encode_sparse(sparse)
    Box([-1.0, -1.0], [1.0, 1.0]).encode_sparse(sparse)
    assert sparse.data.tolist() == [5.0, np.inf, 3.0]


@pytest.mark.parametrize("bits", [8, 16, 20])
@pytest.mark.parametrize("kind", ["box", "ball"])
def test_sparse_codes_are_the_dense_codes(kind, bits):
    half = np.arange(40.0, 0.0, -1.0) / 9 + 0.1
    domain = Box(-half, half, bits) if kind == "box" else Ball(np.zeros(40), 2.5, bits)
    rng = np.random.default_rng(bits)
    rows = rng.normal(size=(400, 40)) * (rng.random((400, 40)) < 0.2) * 3
    rows[1, 2], rows[3, 4], rows[5, 6], rows[7] = np.nan, np.inf, -1e308, 0.0
    rows[8] *= 1e-5  # well inside
    sparse = domain.encode_sparse(csr_array(rows))
    assert sparse.dtype == domain.dtype
    assert (sparse.toarray() == domain.encode(rows)).all()


def test_sparse_points_on_the_sphere_stay_in_the_ball_exactly():
    ball = Ball(np.zeros(784), 1.0, 20)
    rows = csr_array(unit_rows(200, 784, seed=1) * (1 + 1e-12))
    assert max(squared_norms(ball.encode_sparse(rows).toarray())) <= ball.top**2


def test_sparse_rows_need_a_domain_centred_at_zero():
    rows = csr_array(np.eye(2))
    for domain in (Box([0.0, -1.0], [1.0, 1.0]), Ball([0.0, 1e-9], 1.0)):
        with pytest.raises(InvalidValue, match="centred at 0"):
            domain.encode_sparse(rows)


@pytest.mark.parametrize(("bits", "most"), [(8, 2**37), (16, 2**21), (20, 2**13), (24, 32), (25, 8), (26, 2)])
def test_every_pair_of_bits_and_features_that_breaks_exact_distances_is_refused(bits, most):
    """4 d 4**(bits-1) <= 2**53, decided before a row is read."""
    assert 4 * most * 4 ** (bits - 1) == 2**53
    if most <= 2**21:
        assert Box(np.zeros(most), np.ones(most), bits).top == 2 ** (bits - 1) - 1
        with pytest.raises(GridOverflow, match="fewer bits"):
            Box(np.zeros(most + 1), np.ones(most + 1), bits)
        with pytest.raises(GridOverflow, match="fewer bits"):
            Ball(np.zeros(most + 1), 1.0, bits)


@pytest.mark.parametrize("bits", [27, 28, 32])
def test_more_than_26_bits_never_give_exact_distances(bits):
    with pytest.raises(GridOverflow):
        Box([0.0], [1.0], bits)


@pytest.mark.parametrize("bits", [1, 0, -5, 33, 64])
def test_bits_outside_2_to_32_are_refused(bits):
    with pytest.raises(InvalidValue, match="between 2 and 32"):
        Box([0.0], [1.0], bits)


@pytest.mark.parametrize(("bits", "d"), [(16, 2**21), (20, 2**13), (24, 32)])
def test_the_largest_allowed_distances_are_exact_in_float64(bits, d):
    """|x|^2 - 2 x.c + |c|^2 at opposite corners, and one step from them, as a matrix product."""
    top = 2 ** (bits - 1) - 1
    x, c = np.full((1, d), float(top)), np.full((2, d), -float(top))
    c[1, d // 2] += 1
    got = (x * x).sum(axis=1)[:, None] - 2 * x @ c.T + (c * c).sum(axis=1)
    assert got.tolist() == [[d * (2 * top) ** 2, (d - 1) * (2 * top) ** 2 + (2 * top - 1) ** 2]]


@pytest.mark.parametrize(("bits", "most"), [(8, 2**55), (16, 2**47), (20, 2**43), (26, 2**37)])
def test_sums_that_could_overflow_int64_are_refused_from_public_bounds(bits, most):
    domain = Box([0.0], [1.0], bits)
    check_sums(domain, most)
    check_sums(domain, 1)
    assert domain.top * most < 2**63
    for refused in (most + 1, 2**62, 2**80):
        with pytest.raises(InvalidValue):
            check_sums(domain, refused)
    with pytest.raises(GridOverflow, match="fewer bits or max_rows"):
        check_sums(domain, most + 1)


@pytest.mark.parametrize("max_rows", [0, -1])
def test_max_rows_must_be_positive(max_rows):
    with pytest.raises(InvalidValue, match="max_rows"):
        check_sums(Box([0.0], [1.0]), max_rows)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 17, 784])
def test_sensitivities_are_the_integers_of_the_proof(d):
    box, ball = Box(np.zeros(d), np.ones(d)), Ball(np.zeros(d), 1.0)
    top = 32767
    assert box.l1_sensitivity == d * top
    assert (box.l2_sensitivity - 1) ** 2 < d * top**2 <= box.l2_sensitivity**2  # the least integer not below sqrt(d) M
    assert ball.l2_sensitivity == top
    assert ball.l1_sensitivity**2 <= d * top**2 < (ball.l1_sensitivity + 1) ** 2  # the greatest not above it
    corner = box.encode(np.ones((1, d))).astype(np.int64)
    assert np.abs(corner).sum() == box.l1_sensitivity


def test_a_person_with_m_rows_counts_m_times_and_twice_when_replaced():
    assert per_person(7, 1, "add-remove") == 7
    assert per_person(7, 3, "add-remove") == 21
    assert per_person(7, 3, "replace-one") == 42


@given(boxes_and_rows(), st.integers(1, 4), st.data())
@settings(max_examples=60, deadline=None)
def test_one_person_moves_a_sum_by_at_most_the_stated_sensitivity(case, max_rows, data):
    box, rows = case
    theirs = data.draw(arrays(np.float64, (max_rows, box.n_columns), elements=ANY))
    before = box.encode(rows).astype(np.int64).sum(axis=0)
    after = box.encode(np.concatenate([rows, theirs])).astype(np.int64).sum(axis=0)
    moved = [int(v) for v in after - before]
    assert sum(map(abs, moved)) <= per_person(box.l1_sensitivity, max_rows, "add-remove")
    assert sum(v * v for v in moved) <= per_person(box.l2_sensitivity, max_rows, "add-remove") ** 2


@pytest.mark.parametrize(("lower", "upper", "words"), [
    ([0.0], [0.0], "low < high"), ([1.0], [0.0], "low < high"), ([np.nan], [1.0], "finite"), ([0.0], [np.inf], "finite"),
    ([0.0, 0.0], [1.0], "equal length"), ([], [], "equal length"), (0.0, 1.0, "equal length"), ([[0.0]], [[1.0]], "equal length"),
    ([-1e308], [1e308], "rescale"), ([0.0], [1e-320], "rescale"), ([0.0], [5e-324], "rescale"),
])  # fmt: skip
def test_bounds_that_cannot_be_used_are_refused_with_the_reason(lower, upper, words):
    with pytest.raises(InvalidValue, match=words):
        Box(lower, upper)


@pytest.mark.parametrize(("center", "radius", "words"), [
    ([0.0], 0.0, "radius"), ([0.0], -1.0, "radius"), ([0.0], np.nan, "radius"), ([0.0], np.inf, "radius"),
    ([np.nan], 1.0, "center"), ([], 1.0, "center"), (0.0, 1.0, "center"),
    ([1e305], 1.0, "rescale"), ([0.0], 1e305, "rescale"), ([0.0], 5e-324, "rescale"),
])  # fmt: skip
def test_balls_that_cannot_be_used_are_refused_with_the_reason(center, radius, words):
    with pytest.raises(InvalidValue, match=words):
        Ball(center, radius)


def test_a_domain_cannot_be_changed_after_it_was_checked():
    box = Box([0.0], [1.0])
    for array in (box.center, box.half, box.step):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5.0
    bounds = np.array([0.0])
    box = Box(bounds, [1.0])
    bounds[0] = -100.0
    assert box.encode([[0.0]]).tolist() == [[-32767]]


def test_four_points_by_hand():
    """bits = 4: M = 7, the box [0, 14] has centre 7 and step 1."""
    box = Box([0.0, 0.0], [14.0, 14.0], 4)
    assert box.encode([[0.0, 14.0], [7.0, 7.4], [7.6, -3.0], [np.nan, 1.0]]).tolist() == [[-7, 7], [0, 0], [1, -7], [0, 0]]
    ball = Ball([0.0, 0.0], 7.0, 4)
    assert ball.encode([[7.0, 0.0], [3.9, -3.9], [30.0, 40.0], [np.inf, 0.0]]).tolist() == [[7, 0], [3, -3], [4, 5], [0, 0]]
    assert box.decode([[-7, 7], [0, 1]]).tolist() == [[0.0, 14.0], [7.0, 8.0]]
    assert Fraction(box.l2_sensitivity) == 10  # ceil(7 sqrt 2)
