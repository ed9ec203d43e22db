"""Real sparse rows: texts as unit tf-idf, and who knows whom. Some are read from ../shared/data, one from what is installed."""

import ast
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from benchmarks.sets import SHARED

FEWEST_WORDS, IN_TEXTS = 20, 3  # of a text; texts that a word must be in


def reuters() -> csr_array:
    """News of the R8 split of Reuters-21578: 7 674 texts, 9 077 words."""
    with np.load(SHARED / "text_reuters_r8.npz") as file:
        counts = csr_array(
            (file["counts"].astype(float), file["indices"], file["indptr"]),
            shape=(len(file["indptr"]) - 1, int(file["n_features"])),
        )
    return tf_idf(counts)


def docstrings() -> csr_array:
    """Docstrings of ten Python packages that are installed beside kveil: technical English. Nothing was tuned on them. What
    there is depends on their versions, so figures differ a little from one environment to another."""
    place = Path(np.__file__).parents[1]
    texts = []
    for package in ("numpy", "scipy", "sklearn", "pandas", "matplotlib", "networkx", "dask", "polars", "pyarrow", "numba"):
        for path in sorted((place / package).rglob("*.py")):
            texts += _docstrings(path)
    words = [Counter(re.findall(r"[a-z]{2,}", text.lower())) for text in dict.fromkeys(texts)]
    words = [own for own in words if sum(own.values()) >= FEWEST_WORDS]
    in_texts = Counter(word for own in words for word in own)
    place_of = {word: number for number, word in enumerate(sorted(word for word, n in in_texts.items() if n >= IN_TEXTS))}
    entries = [[(place_of[word], n) for word, n in own.items() if word in place_of] for own in words]
    starts = np.concatenate([[0], np.cumsum([len(own) for own in entries])])
    columns, values = np.array([pair for own in entries for pair in own]).T
    return tf_idf(csr_array((values.astype(float), columns, starts), shape=(len(words), len(place_of))))


def _docstrings(path: Path) -> list[str]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError):
        return []
    kinds = (ast.FunctionDef, ast.ClassDef, ast.Module)
    found = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds)]
    return [text for text in found if text]


def friends() -> csr_array:
    """Who knows whom: the adjacency of 4 039 people, and each with themselves."""
    with np.load(SHARED / "graph_facebook_ego.npz") as file:
        n, edges = int(file["n"]), file["edges"].astype(np.int64)
    one, other = np.concatenate([edges, edges[:, ::-1], np.repeat(np.arange(n), 2).reshape(n, 2)]).T
    return csr_array((np.ones(len(one)), (one, other)), shape=(n, n))


def tf_idf(counts: csr_array) -> csr_array:
    """Counts of words on a log scale, weighed by how rare they are (smoothed idf), rows of length 1."""
    n_texts = np.bincount(counts.indices, minlength=counts.shape[1])
    weighed = counts.copy()
    weighed.data = (1 + np.log(weighed.data)) * (1 + np.log((1 + counts.shape[0]) / (1 + n_texts)))[weighed.indices]
    return unit_rows(weighed)


def unit_rows(rows: csr_array) -> csr_array:
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    return csr_array(
        (rows.data / np.repeat(np.maximum(lengths, 1e-300), np.diff(rows.indptr)), rows.indices, rows.indptr), rows.shape
    )


def cosine_cost(rows: csr_array, centers: np.ndarray) -> float:
    """Of unit rows: the sum of 1 minus the cosine with the nearest centre."""
    lengths = np.maximum(np.linalg.norm(centers, axis=1, keepdims=True), 1e-300)
    return float((1 - np.asarray(rows @ (centers / lengths).T).max(axis=1)).sum())


def without_privacy(rows: csr_array, k: int, starts: int = 10, steps: int = 30) -> float:
    """The least cosine cost of spherical k-means from random rows."""
    costs = []
    for seed in range(starts):
        centers = rows[np.random.default_rng(seed).choice(rows.shape[0], k, replace=False)].toarray()
        for _ in range(steps):
            label = np.asarray(rows @ centers.T).argmax(axis=1)
            belongs = csr_array((np.ones(len(label)), label, np.arange(len(label) + 1)), shape=(len(label), k))
            sums = (belongs.T @ rows).toarray()
            lengths = np.linalg.norm(sums, axis=1, keepdims=True)
            centers = np.where(lengths > 0, sums / np.maximum(lengths, 1e-300), centers)
        costs.append(cosine_cost(rows, centers))
    return min(costs)


if __name__ == "__main__":
    for made in (reuters, docstrings, friends):
        found = made()
        print(made.__name__, found.shape, f"{np.diff(found.indptr).mean():.0f} entries per row", file=sys.stderr)
