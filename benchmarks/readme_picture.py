"""The picture that opens the README: one city without privacy, with kveil, with DP-Lloyd and with diffprivlib.

`.venv-peers/bin/python -m benchmarks.readme_picture measure` fits every cell RUNS times and keeps centres and cost ratios in
docs/images/city.json, with the versions of the libraries. `.venv/bin/python -m benchmarks.readme_picture draw` draws that file.

Rows: the road accidents of Greater London in ../shared/data (UK Department for Transport, Open Government Licence v3). All get
the same public box and number of clusters, and the epsilon that the panel names, with delta 0. Longitudes are multiplied by the
cosine of the latitude, so that distances are those on the ground, and the box is shifted to start at 0. diffprivlib 0.6.6 spends
another epsilon than it is asked for (`benchmarks.peers.swapped_split`): it is asked for as much as makes it spend the epsilon of
the panel. A panel shows the run with the median cost.
"""

import argparse
import json
import textwrap
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin_min

from benchmarks.peers import PEERS, swapped_split
from benchmarks.sets import SHARED

HERE = Path(__file__).parents[1] / "docs" / "images"
FILE = HERE / "city.json"
LOW, HIGH = np.array([-0.51, 51.28]), np.array([0.33, 51.70])  # Greater London, from any map
SQUEEZE = np.array([np.cos(np.deg2rad(51.5)), 1.0]) * 111.2  # kilometres per degree
K, RUNS = 12, 41
CELLS = [("kveil", 1.0), ("kveil", 0.1), ("kveil lloyd", 1.0), ("kveil lloyd", 0.1), ("diffprivlib KMeans", 1.0),
         ("diffprivlib KMeans", 0.1)]  # fmt: skip


def rows() -> np.ndarray:
    """Kilometres east and north of the corner of the box."""
    with np.load(SHARED / "geo_uk_accidents.npz") as file:
        places = file["lonlat_e6"] / 1e6
    inside = ((places >= LOW) & (places <= HIGH)).all(axis=1)
    return np.ascontiguousarray((places[inside] - LOW) * SQUEEZE)


def measure() -> None:
    """Fit every cell, and keep what the picture shows."""
    table, box = rows(), {"bounds": (np.zeros(2), (HIGH - LOW) * SQUEEZE)}
    best = min((KMeans(K, n_init=1, random_state=seed).fit(table) for seed in range(20)), key=lambda model: model.inertia_)
    floor = _cost(table, best.cluster_centers_)
    peers = {peer.name: peer for peer in PEERS}
    found = []
    for name, epsilon in CELLS:
        runs, asked = [], epsilon / peers[name].factor(box, 2)
        for seed in range(RUNS):
            centers = np.asarray(peers[name].fit(table, K, asked, 0.0, box, seed))
            runs.append((_cost(table, centers) / floor, centers.tolist()))
        runs.sort(key=lambda run: run[0])
        ratios = [round(ratio, 4) for ratio, _ in runs]
        found.append({"method": name, "epsilon": epsilon, "ratios": ratios, "centers": _rounded(runs[RUNS // 2][1])})
        print(name, epsilon, ratios[RUNS // 2], ratios[0], ratios[-1], flush=True)
    shade, _, _ = np.histogram2d(*table.T, bins=(120, 96), range=np.stack(box["bounds"]).T)
    told = {
        "libraries": {name: version(name) for name in ("kveil", "diffprivlib", "scikit-learn")},
        "diffprivlib_spends": round(swapped_split(box, 2), 3),
        "k": K, "runs": RUNS, "high": _rounded((HIGH - LOW) * SQUEEZE), "without": _rounded(best.cluster_centers_),
        "cells": found, "shade": shade.astype(int).tolist(),
    }  # fmt: skip
    HERE.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(told) + "\n", encoding="utf-8")


def _cost(table: np.ndarray, centers: np.ndarray) -> float:
    return float((pairwise_distances_argmin_min(table, centers)[1] ** 2).sum())


def _rounded(numbers: Any) -> Any:
    return np.round(np.asarray(numbers, dtype=float), 3).tolist()


def draw() -> None:
    """The picture, for light and for dark pages, and a tall one of each for phones."""
    from kveil.release.look import DARK, LIGHT

    told = json.loads(FILE.read_text(encoding="utf-8"))
    for name, look in (("light", LIGHT), ("dark", DARK)):
        for shape in (WIDE, TALL):
            path = HERE / f"city-{shape.name}{name}.png"
            _picture(told, look, shape).savefig(path, format="png", dpi=shape.dpi, pil_kwargs={"optimize": True})


class Shape(NamedTuple):
    """Panels in the order of PANELS, with the costs at one place; inches, and points of text. 10 points are 11 to 12 pixels."""

    name: str
    rows: int
    columns: int
    costs_at: int
    wide: float
    high: float
    dpi: int
    title: float
    text: float
    below_each_other: bool  # name and cost in a title
    dot: float  # half the height that the dots of a method take, of the distance between methods

    @property
    def characters(self) -> int:
        """That stand side by side in small text."""
        return int(self.wide * 14)


WIDE = Shape("", 2, 3, 3, 9.6, 6.9, 170, 12, 9.5, False, 0.16)  # shown at about 830 pixels
TALL = Shape("tall-", 3, 2, 5, 4.7, 8.3, 170, 10.5, 8.5, True, 0.09)  # shown at about 360 pixels
NAMES = {"kveil": "kveil", "kveil lloyd": "DP-Lloyd", "diffprivlib KMeans": "diffprivlib"}
PANELS = [("kveil", 1.0), ("kveil", 0.1), ("kveil lloyd", 0.1), ("diffprivlib KMeans", 0.1)]


def _picture(told: dict[str, Any], look: Any, shape: Shape) -> Any:
    from kveil.release.sheet import new_sheet, settings

    cells = {(cell["method"], cell["epsilon"]): cell for cell in told["cells"]}
    headline = textwrap.fill(_headline(cells, told["runs"]), int(shape.wide * 9))
    with settings():
        sheet = new_sheet(look, shape.wide, shape.high, is_adaptive=False)
        sheet.suptitle(headline, x=0.005, ha="left", fontsize=1.25 * shape.title, fontweight="bold", color=look.ink)
        panels = list(sheet.subplots(shape.rows, shape.columns).flat)
        _costs(panels.pop(shape.costs_at), told, look, shape)
        _map(panels[0], told, told["without"], look)
        _entitle(panels[0], "without privacy", look, shape)
        for axes, (name, epsilon) in zip(panels[1:], PANELS, strict=True):
            _map(axes, told, cells[name, epsilon]["centers"], look)
            _entitle(axes, _named(cells[name, epsilon], told["runs"], shape), look, shape, is_ours=name == "kveil")
        sheet.supxlabel(_caption(told, shape), x=0.005, ha="left", fontsize=shape.text, color=look.muted)
        return sheet


def _entitle(axes: Any, text: str, look: Any, shape: Shape, *, is_ours: bool = False) -> None:
    axes.set_title(text, color=look.ink, loc="left", fontsize=shape.title, fontweight="bold" if is_ours else None)


def _named(cell: dict[str, Any], runs: int, shape: Shape) -> str:
    from kveil.release.numbers import TIMES

    ratio = cell["ratios"][runs // 2]
    end = "\n" if shape.below_each_other else ": "
    return f"{NAMES[cell['method']]}, ε = {cell['epsilon']:g}{end}cost {TIMES} {ratio:.{3 if ratio < 1.05 else 2}f}"


def _map(axes: Any, told: dict[str, Any], centers: Any, look: Any) -> None:
    """Crowds in blue, centres as discs, and rings where they are without privacy."""
    from kveil.release.look import ORANGE
    from kveil.release.map_figure import HEAT

    shade = np.sqrt(np.array(told["shade"], dtype=float))
    right, top = told["high"]
    axes.imshow(np.minimum(shade / np.quantile(shade, 0.995), 1).T, extent=(0, right, 0, top), origin="lower", cmap=HEAT)
    axes.scatter(*np.array(told["without"]).T, s=95, facecolor="none", edgecolor=look.ink, linewidth=1.1, zorder=3)
    axes.scatter(*np.array(centers).T, s=42, color=ORANGE, edgecolor=look.paper, linewidth=0.7, zorder=4)
    axes.set(xlim=(0, right), ylim=(0, top), xticks=[], yticks=[])
    axes.set_facecolor("none")
    for side in axes.spines.values():
        side.set_color(look.faint)


def _costs(axes: Any, told: dict[str, Any], look: Any, shape: Shape) -> None:
    """Every run of every method: the cost over that without privacy."""
    from kveil.release.numbers import TIMES
    from kveil.release.sheet import dress

    dress(axes, look)
    end = "\n" if shape.below_each_other else " "
    _entitle(axes, f"cost, {TIMES} that{end}without privacy", look, shape)
    for place, cell in enumerate(reversed(told["cells"])):
        ratios = np.array(cell["ratios"])
        heights = place + shape.dot * np.sin(
            np.arange(len(ratios)) * 2.4
        )  # spread by a fixed rule, so that dots do not hide others
        axes.scatter(ratios, heights, s=56 * shape.dot, color=look.mark, alpha=0.5, linewidth=0)
        axes.plot(
            [ratios[len(ratios) // 2]] * 2, [place - 1.5 * shape.dot, place + 1.5 * shape.dot], color=look.ink, linewidth=1.8
        )
        label = f"{NAMES[cell['method']]}, ε = {cell['epsilon']:g}"
        weight = "bold" if cell["method"] == "kveil" else None
        axes.text(1.02, place + 1.7 * shape.dot, label, color=look.ink, fontsize=shape.text, fontweight=weight, va="bottom")
    axes.set(yticks=[], ylim=(-0.4, len(told["cells"]) - 0.3))
    axes.spines["left"].set_visible(False)
    axes.set_box_aspect(told["high"][1] / told["high"][0])
    axes.axvline(1.0, color=look.muted, linewidth=0.8, linestyle="--")
    axes.set_xscale("log")
    marks = [mark for mark in (1.0, 1.2, 1.5, 2.0, 3.0) if mark <= max(max(cell["ratios"]) for cell in told["cells"]) * 1.05]
    axes.set_xticks(marks, [f"{mark:g}" for mark in marks])
    axes.set_xticks([], minor=True)


def _headline(cells: dict[Any, Any], runs: int) -> str:
    more = {epsilon: 100 * (cells["kveil", epsilon]["ratios"][runs // 2] - 1) for epsilon in (1.0, 0.1)}
    return f"Private centres cost {more[1.0]:.1f} % more at ε = 1, and {more[0.1]:.0f} % more at ε = 0.1"


def _caption(told: dict[str, Any], shape: Shape) -> str:
    """What is seen; the README says how it was measured."""
    text = (
        f"{told['k']} centres of road accidents in Greater London (UK Department for Transport, OGL v3). "
        f"Rings: without privacy. Orange: the centres of the run with the median cost, of {told['runs']}. "
        "Small dots: all runs; lines: medians. Pure ε."
    )
    return textwrap.fill(text, shape.characters)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readme_picture", description=__doc__)
    parser.add_argument("what", choices=("measure", "draw"))
    {"measure": measure, "draw": draw}[parser.parse_args().what]()


if __name__ == "__main__":
    main()
