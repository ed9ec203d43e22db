"""Which values a point prefers, under a query: the key it has, the vector it carries, and the public hashing of both.

Everything here is arithmetic that decides what a report is likely to be. Nothing here can weaken a guarantee: whatever comes out,
`kernel.response.subset_select` makes it a report whose chances differ by at most e**epsilon.
"""

from __future__ import annotations

import numpy as np

from kveil.arrays import Floats, Integers, Words
from kveil.collect import hashing, vector
from kveil.collect.queries import SHARE_OF_COUNT, SHARE_OF_POINT, Keys, Query
from kveil.kernel.grid import Ball
from kveil.partition.public_map import into_ball
from kveil.space.euclidean import clip

BLOCK = 2**14  # rows, for distances to all centres at once


def into_domain(rows: Floats, domain: Ball) -> Floats:
    """Rows relative to the domain: in the unit ball around 0. A row with NaN or infinity is 0, one outside is clipped."""
    return np.asarray((clip(domain, rows) - domain.center) / domain.radius)


def preferred(query: Query, points: Floats, seeds: Words) -> Integers:
    """(n, kappa) values that points of the unit ball prefer. A function of query, point and seed, row by row."""
    keys = keys_of(query, points)
    if query.kind == "olh":
        return hashing.values(seeds, keys, query.M)[:, None]
    if query.kind == "grr":
        return keys.astype(np.int64)[:, None]
    if query.kind == "hrr":
        return hashing.parities(hashing.rows(seeds, query.key_bits), keys)[:, None]
    signed = hashing.signs(seeds, keys)[:, None] * vectors_of(query, points, keys)
    return vector.best_aligned(seeds, directions(signed, seeds), query.M, query.kappa)


def keys_of(query: Query, points: Floats) -> Keys:
    """The key of every point."""
    whole = whole_keys(query, points)
    if query.fold is None:
        return whole
    bit = (whole >> np.uint64(query.fold.bit)) & np.uint64(1)
    return (hashing.bins(query.fold.seed, whole, query.fold.bins) << np.uint64(1)) | bit


def whole_keys(query: Query, points: Floats) -> Keys:
    """The key of every point by the rule, before any folding."""
    if query.key_rule == "cell":
        return query.maps[0].cells(points, query.depth or 0)
    if query.key_rule == "bucket":
        assert query.buckets is not None
        return query.buckets.place(points)[0]
    if query.key_rule == "product":
        owners = [nearest(one.image(points), some) for one, some in zip(query.maps, query.centres, strict=True)]
        return (owners[0] * len(query.centres[1]) + owners[1]).astype(np.uint64)
    image = query.maps[0].image(points) if query.maps else points
    return nearest(image, query.centres[0]).astype(np.uint64)


def vectors_of(query: Query, points: Floats, keys: Keys) -> Floats:
    """The vector of every point, in the unit ball, before its sign."""
    if query.key_rule == "bucket":
        assert query.buckets is not None
        return into_ball(query.buckets.place(points)[1])
    away = into_ball((points - bases(query, keys, points.shape[1])) / (query.rho or 1.0))
    ones = np.full((len(points), 1), np.sqrt(SHARE_OF_COUNT))
    return np.hstack([np.sqrt(SHARE_OF_POINT) * away, ones])


def bases(query: Query, keys: Keys, n_columns: int) -> Floats:
    """What a vector is relative to, for each key."""
    if query.key_rule == "product":
        assert query.lift is not None
        first, second = np.divmod(keys.astype(np.int64), len(query.centres[1]))
        both = np.hstack([query.centres[0][first], query.centres[1][second]]).astype(np.float64)
        return into_ball(both @ query.lift.astype(np.float64))
    if query.key_rule == "nearest" and not query.maps:
        return query.centres[0][keys.astype(np.int64)].astype(np.float64)
    return np.zeros((len(keys), n_columns))


def directions(vectors: Floats, seeds: Words) -> Floats:
    """Unit vectors u with mean y: u = y/|y| with chance (1 + |y|)/2, else -y/|y|. The coin is a hash of the seed.

    So a report is a function of point and seed up to the randomiser itself, and anyone can check its chances.
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    units = np.where(lengths[:, None] > 0, vectors / np.where(lengths > 0, lengths, 1.0)[:, None], 0.0)
    units[~(lengths > 0), 0] = 1.0
    is_kept = hashing.uniforms(seeds, hashing.DIRECTION) < (1 + np.minimum(lengths, 1.0)) / 2
    return np.asarray(np.where(is_kept, 1.0, -1.0)[:, None] * units)


def nearest(points: Floats, centres: np.ndarray) -> Integers:
    """The nearest centre of every point; every centre is looked at."""
    places = centres.astype(np.float64)
    squares = (places**2).sum(axis=1)
    parts = [
        (squares - 2 * points[start : start + BLOCK] @ places.T).argmin(axis=1) for start in range(0, max(1, len(points)), BLOCK)
    ]
    return np.concatenate(parts).astype(np.int64)
