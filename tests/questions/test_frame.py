"""A frame keeps every row inside its ball, also where a square would not fit into 63 bits."""

import numpy as np

from kveil.kernel.grid import Box
from kveil.partition.projection import AXIS_BITS, random_axes
from kveil.questions.frame import Frame, whole_steps


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
