"""A made-up city to play with: crowds of uneven size, a river with no one in it, a stadium. Nobody in it is real.

The random numbers here make people up; they hide nobody, and have a fixed seed, so that everybody meets the same city.
"""

from __future__ import annotations

from typing import Any, NamedTuple

WIDTH, HEIGHT = 16.0, 10.0  # kilometres
BOUNDS = [(0.0, WIDTH), (0.0, HEIGHT)]
NAMES = ("east_km", "north_km")
RIDERS = 30_000
RIVER_HALF = 0.3  # kilometres on either side of its middle


class Quarter(NamedTuple):
    """Where people start: the middle of a crowd, how far it reaches east and north, and its share of the riders."""

    name: str
    east: float
    north: float
    reach_east: float
    reach_north: float
    share: float


QUARTERS = (
    Quarter("old town", 7.2, 6.4, 0.7, 0.5, 0.22),
    Quarter("station", 9.3, 7.3, 0.3, 0.3, 0.13),
    Quarter("university", 4.2, 7.8, 0.5, 0.4, 0.11),
    Quarter("stadium", 12.6, 2.2, 0.12, 0.12, 0.08),
    Quarter("harbour", 2.2, 3.4, 0.8, 0.4, 0.08),
    Quarter("south bank", 7.6, 3.0, 1.0, 0.6, 0.15),
    Quarter("garden suburb", 13.4, 7.6, 1.1, 0.9, 0.11),
)  # the rest lives anywhere


def riders() -> Any:
    """One row per rider, (30 000, 2): where their trip starts, in kilometres."""
    import numpy as np

    rng = np.random.default_rng(2026)  # makes people up, hides nobody
    crowds = np.array([quarter[1:5] for quarter in QUARTERS])
    shares = np.array([quarter.share for quarter in QUARTERS])
    home = rng.choice(len(QUARTERS) + 1, size=4 * RIDERS, p=[*shares, 1 - shares.sum()])
    anywhere = rng.uniform((0, 0), (WIDTH, HEIGHT), (len(home), 2))
    near = crowds[np.minimum(home, len(QUARTERS) - 1)]
    places = near[:, :2] + rng.standard_normal((len(home), 2)) * near[:, 2:]  # made-up riders, not noise for privacy
    places = np.where((home < len(QUARTERS))[:, None], places, anywhere)
    inside = ((places >= 0) & (places <= (WIDTH, HEIGHT))).all(axis=1)
    dry = np.abs(places[:, 1] - river(places[:, 0])) > RIVER_HALF
    return np.round(places[inside & dry][:RIDERS], 3)


def river(east: Any) -> Any:
    """How far north the middle of the river is."""
    import numpy as np

    return 4.7 + 0.7 * np.sin(east / 2.3) + 0.12 * (east - WIDTH / 2)
