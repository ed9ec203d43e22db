"""A frame keeps every row inside its ball, also where a square would not fit into 63 bits."""

import math

import numpy as np

from kveil.kernel.grid import Box
from kveil.partition.projection import AXIS_BITS, random_axes
from kveil.questions.frame import Frame, blocks, whole_steps


def test_a_row_along_a_stretched_axis_stays_in_the_ball():
    """Its projection is sqrt(d) times as long as the ball is wide: its square passes 2**64, and would wrap to a small one."""
    d = 2**15
    domain = Box(np.full(d, -1.0), np.full(d, 1.0), 19)
    axes = random_axes(d, 2, np.random.default_rng(0), stretch=(d / 2) ** 0.5)
    whole = Frame.of(domain, None)
    frame = Frame(None, whole.middle, whole.radius, axes, whole.radius)
    corner = np.where(axes[:, :1].T >= 0, domain.top, -domain.top)
    longest = int((((corner @ axes) >> AXIS_BITS).astype(object) ** 2).sum())
    assert longest > 2**64
    for part in (2**64 / longest) ** 0.5 * (1 + np.arange(64) * 2.0**-17):
        seen = frame.projected(frame.centred((corner * part).astype(np.int64)))
        assert int((seen.astype(object) ** 2).sum()) <= whole.radius**2


def test_whole_steps_are_inside_the_ball():
    points = np.array([[3.4, -4.4], [30.0, 40.0], [0.0, 0.0]])
    steps = whole_steps(points, 5)
    assert steps.dtype == np.int64
    assert steps[0].tolist() == [3, -4]
    assert (np.linalg.norm(steps, axis=1) <= 5).all()


def test_rows_are_moved_into_the_ball_as_integers_say():
    """The largest coordinates that a domain has, about a middle at its rim: products and quotients of floats are exact."""
    rng = np.random.default_rng(0)
    for d, bits in ((1, 26), (2, 25), (32, 23), (512, 22)):
        top = 2 ** (bits - 1) - 1
        rows = rng.choice([-top, -top + 1, top - 1, top], (40, d))
        middle = np.zeros(d, dtype=np.int64)
        middle[0] = -int(d**0.5 * top)
        for radius in (1, 3, top // 3, top, int(1.9 * d**0.5 * top)):
            away = [[int(x) - int(m) for x, m in zip(row, middle, strict=True)] for row in rows]
            assert Frame(None, middle, radius).centred(rows.astype(np.int32)).tolist() == [inside(row, radius) for row in away]


def test_projected_rows_at_the_rim_are_cut_as_integers_say():
    """Floats tell of nearly all rows that they are short; of one that is as long as the ball is wide they say nothing."""
    rng = np.random.default_rng(0)
    for d, p, bits in ((14, 12, 22), (40, 2, 23), (5, 4, 16)):
        domain = Box(np.full(d, -1.0), np.full(d, 1.0), bits)
        whole, axes = Frame.of(domain, None), random_axes(d, p, rng)
        rows = rng.integers(-domain.top, domain.top + 1, (20, d))
        parts = [[sum(int(x) * int(a) for x, a in zip(row, axis, strict=True)) >> AXIS_BITS for axis in axes.T] for row in rows]
        for row, part in zip(rows, parts, strict=True):
            length = math.isqrt(sum(x * x for x in part))
            for reach in (length // 3, length - 1, length, length + 1):
                frame = Frame(None, whole.middle, whole.radius, axes, reach)
                cut = [min(max(x, -2 * reach), 2 * reach) for x in part]
                assert frame.projected(frame.centred(row[None].astype(np.int32))).tolist() == [inside(cut, reach)]


def inside(row, radius):
    square = sum(x * x for x in row)
    divisor = int(math.sqrt(float(square))) + 2
    return [(-1 if x < 0 else 1) * (abs(x) * radius // divisor) for x in row] if square > radius * radius else row


def test_the_last_block_is_not_a_few_rows():
    assert [len(block) for block in blocks(np.zeros((2049, 4)))] == [2049]
    sizes = [len(block) for block in blocks(np.zeros((2621, 100)))]
    assert sizes == [1310, 1311]
    assert not list(blocks(np.zeros((0, 4))))
