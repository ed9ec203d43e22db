"""Figure 2 of "Differentially Private Clustering in High-Dimensional Euclidean Spaces" (ICML 2017), drawn anew.

With corrected calibrations, so no number here is the paper's own. Its method is "candidates", followed by 8 steps of SuLQ
k-means; its baselines are SuLQ with 20 steps, sample-and-aggregate, and k-variates++ for small k.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kveil.errors import SourceError
from kveil.research.contest import Cell, Contestant, Rows, Setting, absent, run
from kveil.research.highdim_methods import PAPER_STEPS, contestants, variants

CLUSTERS = (2, 4, 8, 16, 32, 64)
EPSILONS = (0.05, 0.1, 0.4, 1.0)  # the paper's axis ends at 1
DIGITS = 10  # k of figure 2d
SEED = 2017  # of the made-up rows; the noise has none


@dataclass(frozen=True)
class Panel:
    """One figure: the same rows at several k, or at several epsilon."""

    name: str
    title: str
    setting: Setting
    clusters: tuple[int, ...]
    epsilons: tuple[float, ...]
    contestants: tuple[Contestant, ...]

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


QUICK = Size(rows=10_000, small=5_000, runs=2, clusters=(4, 16, 64), epsilons=(0.1, 0.4, 1.0))


FIGURES = ("2a", "2c", "2d", "settings", "small")


def panels(
    size: Size, delta: float, images: Rows | None, sulq_steps: int = PAPER_STEPS, only: Collection[str] = FIGURES
) -> list[Panel]:
    """Those of `FIGURES` that are asked for and can be drawn: (c), (d) and the settings need images."""
    ball, everyone = {"radius": 1.0}, contestants(sulq_steps, runs_far_off=1)
    mixture = Setting(gaussians(size.rows, 100, 64, 0.05), ball, delta, size.runs)
    space = Setting(gaussians(size.small, 3, 3, 0.05), ball, delta, size.runs)
    title = "What does privacy cost on 64 Gaussians in 100 dimensions?"
    drawn = [Panel("2a", title, mixture, size.clusters, (1.0,), everyone)]
    if images is not None:
        some, ends = Setting(images[: size.rows], {"bounds": (0.0, 1.0)}, delta, size.runs), (0.1, 1.0)
        drawn += [
            Panel("2c", "What does privacy cost on images of digits?", some, size.clusters, (1.0,), everyone),
            Panel("2d", "What does a smaller ε cost on images of digits?", some, (DIGITS,), size.epsilons, everyone),
            Panel("settings", "What do the paper's settings change?", some, (DIGITS,), ends, variants(sulq_steps)),
        ]
    title, everyone = "What does privacy cost on 3 Gaussians in 3 dimensions?", contestants(sulq_steps, runs_far_off=None)
    drawn.append(Panel("small", title, space, (2, 3, 4, 8), (1.0,), everyone))
    return [panel for panel in drawn if panel.name in only]


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
            f"{path} cannot be used as images. An .npz file with an array x of numbers is needed: one row per image, at least "
            f"{max(CLUSTERS)} of them. Leave out --data to draw the other figures."
        )
    pixels = found.reshape(len(found), -1)
    rows = pixels / np.float32(255) if pixels.dtype.kind in "ui" else np.nan_to_num(pixels)
    return np.random.default_rng(SEED).permutation(np.clip(rows, 0, 1).astype(np.float32))


def play(panel: Panel, on_step: Callable[[str, int, int], None]) -> Outcome:
    """Run everyone who can, cell by cell."""
    widest = max(panel.clusters)
    why = {someone.name: absent(someone, panel.setting, widest) for someone in panel.contestants}
    tasks = list(_tasks(panel, [someone for someone in panel.contestants if why[someone.name] is None]))
    cells = []
    for number, (someone, k, epsilon) in enumerate(tasks, start=1):
        on_step(f"figure {panel.name}: {someone.name}", number, len(tasks))
        cells.append(run(someone, panel.setting, k, epsilon))
    return Outcome(panel, tuple(cells), {name: reason for name, reason in why.items() if reason is not None})


def _tasks(panel: Panel, present: list[Contestant]) -> Iterator[tuple[Contestant, int, float]]:
    for someone in present:
        epsilons = panel.epsilons if someone.method is not None else panel.epsilons[:1]  # without privacy there is none to vary
        yield from ((someone, k, epsilon) for k in panel.clusters for epsilon in epsilons)
