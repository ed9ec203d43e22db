"""Who stands beside the default in a cell: other methods of kveil, and other libraries of `benchmarks/peers.py`."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import PEERS, Peer
from benchmarks.peers_kmeans import Cell, ask, costs_of
from kveil import PrivateKMeans
from kveil.tuning import Lloyd

FEW_RUNS = 2
MOST_NUMBERS = 12_000_000  # of a table; beyond, the candidates with their dozens of passes get but a few runs
PYTHON = Path(".venv-peers/bin/python")  # `make bench-peers` makes it: diffprivlib needs an older scikit-learn


def ratios(rows: np.ndarray, k: int, floor: float, method: str, runs: int = 10, **parameters: Any) -> np.ndarray:
    """Costs of a method over the floor, one for every run."""
    models = (PrivateKMeans(k, method=method, random_state=seed, **parameters).fit(rows) for seed in range(runs))
    return np.array([-model.score(rows) / floor for model in models])


def own(rows: np.ndarray, k: int, floor: float, runs: int, delta: float, **given: Any) -> dict[str, np.ndarray]:
    """Other methods of kveil with the same budget. The improved DPLloyd is pure whatever delta is."""
    plain = {"tuning": Lloyd(noise="coordinates", reseed=False), "delta": 0.0}
    few = runs if rows.size <= MOST_NUMBERS else min(runs, FEW_RUNS)
    asked: dict[str, tuple[str, int, dict[str, Any]]] = {
        "lloyd": ("lloyd", runs, {}),
        "improved DPLloyd": ("lloyd", runs, plain),
        "mean": ("mean", runs, {}),
        "candidates": ("candidates", few, {}),
    }
    if rows.shape[1] <= 3:
        asked["grid"] = ("grid", runs, {})
    return {
        label: ratios(rows, k, floor, method, n, **given, **({"delta": delta} | more))
        for label, (method, n, more) in asked.items()
    }


def peers(rows: np.ndarray, k: int, floor: float, runs: int, delta: float, **given: Any) -> dict[str, np.ndarray | str]:
    """Other libraries, each asked for so much that it spends the epsilon of the cell; or why there are no numbers."""
    others = [peer for peer in PEERS if peer.module not in ("sklearn", "kveil")]
    if not PYTHON.exists():
        return {peer.name: "no .venv-peers" for peer in others}
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "rows.npy")
        np.save(place, rows)
        return {peer.name: _asked(peer, place, rows, k, floor, runs, delta, given) for peer in others if _can(peer, delta)}


def _can(peer: Peer, delta: float) -> bool:
    return "pure" in peer.kinds or delta > 0


def _asked(
    peer: Peer, place: str, rows: np.ndarray, k: int, floor: float, runs: int, delta: float, given: dict[str, Any]
) -> np.ndarray | str:
    domain = {name: value for name, value in given.items() if name != "epsilon"}
    epsilon = given["epsilon"] / peer.factor(domain, rows.shape[1])
    chance = delta if "approximate" in peer.kinds else 0.0
    answer = ask(Cell(place, k, domain, peer.name, epsilon, chance, runs, ()), str(PYTHON.absolute()))
    return answer.get("trouble") or np.array(costs_of(rows, answer)) / floor
