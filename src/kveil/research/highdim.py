"""Figure 2 of "Differentially Private Clustering in High-Dimensional Euclidean Spaces" (ICML 2017), drawn anew.

With corrected calibrations and on data made as described, so no number here is the paper's own. Its method is "candidates"; its
baselines are SuLQ with 20 steps, sample-and-aggregate, and k-variates++ for small k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kveil.errors import SourceError
from kveil.research.contest import NOT_PRIVATE, Cell, Contestant, Rows, Setting, absent, run
from kveil.tuning import Lloyd

CONTESTANTS = (
    Contestant(NOT_PRIVATE, None, "#000000"),
    Contestant("kveil's default", "auto", "#0072B2"),
    Contestant("the paper's method, corrected", "candidates", "#D55E00"),
    Contestant("SuLQ, 20 steps", "lloyd", "#56B4E9", {"n_steps": 20, "tuning": Lloyd(reseed=False)}),
    Contestant("DP-Lloyd", "lloyd", "#009E73"),
    Contestant("sample and aggregate", "sample-aggregate", "#E69F00"),
    Contestant("private k-variates++", "variates", "#8A6D00"),
    Contestant("uniform grid", "grid", "#CC79A7"),
    Contestant("one private mean", "mean", "#777777"),
)
CLUSTERS = (2, 4, 8, 16, 32, 64)
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
SEED = 2017  # of the made-up rows; the noise has none


@dataclass(frozen=True)
class Panel:
    """One figure: the same rows at several k, or at several epsilon."""

    name: str
    title: str
    setting: Setting
    clusters: tuple[int, ...]
    epsilons: tuple[float, ...]

    @property
    def is_sweep(self) -> bool:
        return len(self.epsilons) > 1


@dataclass(frozen=True)
class Outcome:
    """What a panel showed, and who was left out of it and why."""

    panel: Panel
    cells: tuple[Cell, ...]
    left_out: dict[str, str]


@dataclass(frozen=True)
class Size:
    """How large a reproduction is. `small` is the size of the three-dimensional one."""

    rows: int = 100_000
    small: int = 20_000
    runs: int = 5
    clusters: tuple[int, ...] = CLUSTERS
    epsilons: tuple[float, ...] = EPSILONS


QUICK = Size(rows=10_000, small=5_000, runs=2, clusters=(4, 16, 64), epsilons=(0.25, 1.0, 4.0))


def panels(size: Size, delta: float, images: Rows | None) -> list[Panel]:
    """The figures that can be drawn: (a), (d) and the small one always, (c) if there are images."""
    ball = {"radius": 1.0}
    mixture = Setting(gaussians(size.rows, 100, 64, 0.05), ball, delta, size.runs)
    space = Setting(gaussians(size.small, 3, 8, 0.05), ball, delta, size.runs)
    drawn = [Panel("2a", "What does privacy cost on 64 Gaussians in 100 dimensions?", mixture, size.clusters, (1.0,))]
    if images is not None:
        some = Setting(images[: size.rows], {"bounds": (0.0, 1.0)}, delta, size.runs)
        drawn.append(Panel("2c", "What does privacy cost on images of digits?", some, size.clusters, (1.0,)))
    sweep = Panel(
        "2d", "What does a smaller ε cost on 64 Gaussians in 100 dimensions?", mixture, (max(size.clusters),), size.epsilons
    )
    small = Panel("small", "What does privacy cost on 8 Gaussians in 3 dimensions?", space, (2, 4, 8), (1.0,))
    return [*drawn, sweep, small]


def gaussians(n: int, d: int, k: int, deviation: float) -> Rows:
    """A mixture with its centres on the sphere of radius 0.7, drawn back into the unit ball."""
    rng = np.random.default_rng(SEED)
    places = rng.standard_normal((k, d))  # made-up places
    places *= 0.7 / np.linalg.norm(places, axis=1, keepdims=True)
    rows = places[rng.integers(0, k, n)] + deviation * rng.standard_normal((n, d))  # made-up rows, not noise for privacy
    return np.asarray(rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True)))


def read_images(path: Path) -> Rows:
    """The rows of an .npz file with an array x: whole pixels from 0 to 255, or numbers from 0 to 1; public data, shuffled."""
    try:
        with np.load(path, allow_pickle=False) as file:
            found = file["x"]
    except Exception:  # a parser fed with foreign bytes may raise anything
        found = None
    if found is None or found.ndim < 2 or found.dtype.kind not in "uif" or len(found) < max(CLUSTERS) or not found.size:
        raise SourceError(
            f"{path} cannot be used as images: an .npz file with an array x of numbers is needed, one row an image, at least "
            f"{max(CLUSTERS)} of them. Leave out --data to draw the other figures."
        )
    pixels = found.reshape(len(found), -1)
    rows = pixels / np.float32(255) if pixels.dtype.kind in "ui" else np.nan_to_num(pixels)
    return np.random.default_rng(SEED).permutation(np.clip(rows, 0, 1).astype(np.float32))


def play(panel: Panel, on_step: Callable[[str, int, int], None]) -> Outcome:
    """Run everyone who can, cell by cell."""
    widest = max(panel.clusters)
    why = {someone.name: absent(someone, panel.setting, widest) for someone in CONTESTANTS}
    tasks = list(_tasks(panel, [someone for someone in CONTESTANTS if why[someone.name] is None]))
    cells = []
    for number, (someone, k, epsilon) in enumerate(tasks, start=1):
        on_step(f"figure {panel.name}: {someone.name}", number, len(tasks))
        cells.append(run(someone, panel.setting, k, epsilon))
    return Outcome(panel, tuple(cells), {name: reason for name, reason in why.items() if reason is not None})


def _tasks(panel: Panel, present: list[Contestant]) -> Iterator[tuple[Contestant, int, float]]:
    for someone in present:
        epsilons = panel.epsilons if someone.method is not None else panel.epsilons[:1]  # without privacy there is none to vary
        yield from ((someone, k, epsilon) for k in panel.clusters for epsilon in epsilons)
