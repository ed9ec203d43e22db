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
from importlib.metadata import version
from pathlib import Path
from typing import Any

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
    """The picture, for light and for dark pages."""
    from kveil.release.look import DARK, LIGHT

    told = json.loads(FILE.read_text(encoding="utf-8"))
    for name, look in (("light", LIGHT), ("dark", DARK)):
        _picture(told, look).savefig(HERE / f"city-{name}.png", format="png", dpi=170, pil_kwargs={"optimize": True})


NAMES = {"kveil": "kveil", "kveil lloyd": "DP-Lloyd", "diffprivlib KMeans": "diffprivlib"}
PANELS = [(0, 1, "kveil", 1.0), (0, 2, "kveil", 0.1), (1, 1, "kveil lloyd", 0.1), (1, 2, "diffprivlib KMeans", 0.1)]


def _picture(told: dict[str, Any], look: Any) -> Any:
    from kveil.release.numbers import TIMES
    from kveil.release.sheet import new_sheet, settings

    cells = {(cell["method"], cell["epsilon"]): cell for cell in told["cells"]}
    with settings():
        sheet = new_sheet(
            look, 9.6, 6.9, is_adaptive=False
        )  # shown at about 830 pixels: text of 10 points is then 12 pixels high
        sheet.suptitle(_headline(cells, told["runs"]), x=0.005, ha="left", fontsize=15, fontweight="bold", color=look.ink)
        panels = sheet.subplots(2, 3)
        _map(panels[0, 0], told, told["without"], look)
        panels[0, 0].set_title("without privacy", color=look.ink, loc="left", fontsize=12)
        for row, column, name, epsilon in PANELS:
            cell = cells[name, epsilon]
            _map(panels[row, column], told, cell["centers"], look)
            ratio = cell["ratios"][told["runs"] // 2]
            title = f"{NAMES[name]}, ε = {epsilon:g}: cost {TIMES} {ratio:.{3 if ratio < 1.05 else 2}f}"
            panels[row, column].set_title(
                title, color=look.ink, loc="left", fontsize=12, fontweight="bold" if name == "kveil" else None
            )
        _costs(panels[1, 0], told, look)
        sheet.supxlabel(_caption(told), x=0.005, ha="left", fontsize=9.5, color=look.muted)
        return sheet


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


def _costs(axes: Any, told: dict[str, Any], look: Any) -> None:
    """Every run of every method: the cost over that without privacy."""
    from kveil.release.numbers import TIMES
    from kveil.release.sheet import dress

    dress(axes, look)
    axes.set_title(f"cost, {TIMES} that without privacy", color=look.ink, loc="left", fontsize=12)
    for place, cell in enumerate(reversed(told["cells"])):
        ratios = np.array(cell["ratios"])
        heights = place + 0.16 * np.sin(np.arange(len(ratios)) * 2.4)  # spread by a fixed rule, so that dots do not hide others
        axes.scatter(ratios, heights, s=9, color=look.mark, alpha=0.5, linewidth=0)
        axes.plot([ratios[len(ratios) // 2]] * 2, [place - 0.24, place + 0.24], color=look.ink, linewidth=1.8)
        label = f"{NAMES[cell['method']]}, ε = {cell['epsilon']:g}"
        weight = "bold" if cell["method"] == "kveil" else None
        axes.text(1.02, place + 0.27, label, color=look.ink, fontsize=9.5, fontweight=weight, va="bottom")
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


def _caption(told: dict[str, Any]) -> str:
    """What is seen; the README says how it was measured."""
    return (
        f"{told['k']} centres of road accidents in Greater London (UK Department for Transport, OGL v3). "
        f"Rings: without privacy.\nOrange: the centres of the run with the median cost, of {told['runs']}. "
        "Dots, lower left: all runs; lines: medians. Pure ε."
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readme_picture", description=__doc__)
    parser.add_argument("what", choices=("measure", "draw"))
    {"measure": measure, "draw": draw}[parser.parse_args().what]()


if __name__ == "__main__":
    main()
