"""Whatever a process has told NumPy to do at floating-point errors, what rows hold raises nothing in a private path."""

import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from kveil import (
    Euclidean,
    FederatedKMeans,
    Ledger,
    LocalKMeans,
    Manhattan,
    PrivateKMeans,
    PrivateKMedian,
    StreamKMeans,
    find_bounds,
    private_candidates,
    read,
    tuning,
)
from kveil.errors import BoundsNotFound, NoisyResultWarning, ScaleWarning

BOX, BALL = {"bounds": (0, 1)}, {"center": 0.0, "radius": 2.0}
LEAST, MOST = 5e-324, np.finfo(np.float64).max
ORDINARY = np.random.default_rng(0).random((40, 3))
ODD = np.array(
    [
        [np.nan, 1, 2], [np.inf, 0, 0], [-np.inf, 1, 1], [1e308, -1e308, 1e308], [LEAST, -LEAST, 2e-308], [-0.0, 0.0, -0.0],
        [1e-310, 1e-160, 1e160], [MOST] * 3, [1e-300, 1e300, 1],
    ]
)  # fmt: skip
TINY = np.full((9, 3), LEAST)
TABLES = {"ordinary": ORDINARY, "hostile": np.vstack([ODD, TINY])}
UNIVERSES = {"euclidean": Euclidean(ORDINARY), "manhattan": Manhattan(ORDINARY)}


def means(make=lambda rows: rows, **given):
    return lambda rows: PrivateKMeans(2, random_state=0, **{**BOX, **given}).fit(make(rows))


def medians(**given):
    return lambda rows: PrivateKMedian(2, random_state=0, **given).fit(rows)


def bounds(make=lambda rows: rows, **given):
    def search(rows):
        with suppress(BoundsNotFound):  # by noisy counts alone
            find_bounds(make(rows), 1.0, ledger=Ledger.memory("t", 1.0, relation="add-remove"), **given)

    return search


def people(rows):
    return read(np.column_stack([rows, np.arange(len(rows)) // 2]), person=3, max_rows_per_person=2)


FAR = {"center": [1.0, -1e290, 1e-300], "exponents": (-900, 900)}
IN_BALL = {"bounds": None, **BALL}
ASKED = {
    **{f"{method} {delta}": means(method=method, delta=delta)
       for method in ("tree", "lloyd", "grid", "sample-aggregate", "mean", "candidates") for delta in (0.0, 1e-6)},
    **{f"{method} in a ball": means(method=method, **IN_BALL) for method in ("tree", "lloyd", "candidates")},
    **{f"start by {init}": means(method="lloyd", init=init) for init in ("noisy-sample", "variates")},
    "start by laplace": means(method="lloyd", init="variates", tuning=tuning.Lloyd(seeds="laplace")),
    "unequal columns": means(bounds=([0, -1e10, 0], [1, 1e10, 1e-2])),
    "scaled columns": means(bounds=([0, -1e10, 0], [1, 1e10, 1e-2]), scaling="bounds"),
    "hybrid": means(method="grid", tuning=tuning.Grid(hybrid=True)),
    "many columns": means(lambda rows: np.hstack([rows] * 7), delta=1e-6),
    "principal axes": means(lambda rows: np.hstack([rows] * 7), delta=1e-6, tuning=tuning.Tree(frame="pca")),
    "sparse": means(sp.csr_array, bounds=(-1, 1)),
    "directions": means(sp.csr_array, metric="cosine", bounds=None, method="spherical", delta=1e-6, epsilon=100.0),
    "dense directions": means(np.asarray, metric="cosine", bounds=None),
    "sparse in a ball": means(lambda rows: sp.csr_array(np.hstack([rows] * 7)), **IN_BALL),
    "sparse candidates": means(lambda rows: sp.csr_array(np.hstack([rows] * 7)), method="candidates", **IN_BALL),
    "sparse columns": means(sp.csr_array, method="candidates", bounds=(-1, 1),
                            tuning=tuning.Candidates(nonzeros=1, recovery="columns")),
    "candidates alone": lambda rows: private_candidates(rows, 1.0, ledger=Ledger.memory("t", 1.0, relation="add-remove"), **BOX),
    "people": means(people, method="mean"),
    "frame": means(pd.DataFrame, method="mean"),
    "long double": means(lambda rows: rows.astype(np.longdouble), method="mean"),
    "objects": means(lambda rows: rows.astype(object), method="mean"),
    "no noise": means(epsilon=np.inf),
    **{f"k-median {method}": medians(method=method, **BOX) for method in ("tree", "candidates", "weiszfeld")},
    "k-median by draws": medians(tuning=tuning.KMedian(recovery="grid"), **BOX),
    "k-median by draws from all": medians(tuning=tuning.KMedian(recovery="all"), **BOX),
    **{f"{name} {method}": medians(universe=space, method=method)
       for name, space in UNIVERSES.items() for method in ("counts", "local-search")},
    "hst": medians(universe=UNIVERSES["euclidean"], tuning=tuning.Counts(partition="hst")),
    "stream": lambda rows: StreamKMeans(2, epsilon=1.0, memory=64, random_state=0, **BOX).fit(rows),
    "gaussian stream": lambda rows: StreamKMeans(2, epsilon=1.0, delta=1e-6, memory=64, random_state=0, **BOX).fit(rows),
    **{f"bounds of a {shape}": bounds(shape=shape) for shape in ("box", "cube", "ball")},
    **{f"bounds of a far {shape}": bounds(shape=shape, **FAR) for shape in ("box", "cube", "ball")},
    "bounds of sparse rows": bounds(sp.csr_array, shape="ball"),
    **{f"federation by {way}": lambda rows, way=way: FederatedKMeans(2, epsilon=1.0, protocol=way, random_state=0, **BOX).fit(
        [rows, ORDINARY]) for way in ("cells", "sample", "pdk")},
    **{f"local {way}": lambda rows, way=way: LocalKMeans(2, epsilon=2.0, radius=2.0, protocol=way, random_state=0).fit(rows)
       for way in ("refine", "zoom", "grid", "lae", "lma")},
}  # fmt: skip


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_no_row_raises_or_warns_where_numpy_is_told_to_raise(asked):
    for rows in TABLES.values():
        with warnings.catch_warnings(), np.errstate(all="raise"):
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", NoisyResultWarning)  # by released values
            warnings.simplefilter("ignore", ScaleWarning)  # by public widths, whatever rows hold
            warnings.filterwarnings("ignore", message="LocalKMeans: ")  # by public facts
            asked(rows)


def test_dask_keeps_silent_too():
    da = pytest.importorskip("dask.array")
    with np.errstate(all="raise"):
        bounds(lambda rows: da.from_array(rows, chunks=(20, 3)), shape="ball")(TABLES["hostile"])
