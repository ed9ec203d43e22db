"""Centres from a proxy of the data, and centres moved to where signed sums of vectors say that people are."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from kveil.arrays import Floats
from kveil.collect import vector
from kveil.collect.encoding import bases, nearest
from kveil.collect.queries import SHARE_OF_COUNT, SHARE_OF_POINT, Answers, Keys, Query, Terms
from kveil.partition.public_map import into_ball
from kveil.solve.wkmeans import thorough_kmeans

FEWEST = 0.05  # of an equal share of people: a cluster's count is taken to be at least that
FILLING = 0.7  # radius of the ball that missing centres are drawn from


def weighted_centres(points: Floats, weights: Floats, k: int, rng: np.random.Generator) -> tuple[Floats, int]:
    """k centres by weighted k-means, and how many of them are mere filling because there were fewer points."""
    is_heavy = weights > 0
    points, weights = points[is_heavy], weights[is_heavy]
    if len(points) > k:
        return thorough_kmeans(points, weights, k, rng), 0
    missing = k - len(points)
    direction = rng.standard_normal((missing, points.shape[1]))  # public randomness, no noise
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    filling = FILLING * direction * rng.random((missing, 1)) ** (1 / points.shape[1])
    return np.vstack([points, filling]), missing


def spread(points: Floats, weights: Floats, centres: Floats) -> float:
    """Weighted root mean squared distance of points to their nearest centre."""
    apart = ((points[:, None, :] - centres[None]) ** 2).sum(axis=2).min(axis=1)
    return sqrt(float(weights @ apart / weights.sum())) if weights.sum() > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Moved:
    """What a vector query told of each key: where its people are, how many of those who answered, and how sure that is.

    sd_point: of a coordinate of a sum; sd_count: of a count; both in people of this query.
    left: about how far people are from the places, noise of these aside.
    """

    places: Floats
    counts: Floats
    sd_point: float
    sd_count: float
    received: int
    left: float


def counted(answers: Answers, query: Query, keys: Keys, terms: Terms) -> tuple[Floats, float]:
    """People of each key among those who answered, and the standard deviation."""
    book = vector.codebook(terms.n_columns + 1, terms.epsilon)
    told = vector.released(answers.sums(query, keys, terms.n_columns), book)
    return told.sums[:, 0] / sqrt(SHARE_OF_COUNT), float(told.sd[0]) / sqrt(SHARE_OF_COUNT)


def moved(answers: Answers, query: Query, keys: Keys, terms: Terms, *, pull: bool = True, hemisphere: bool = False) -> Moved:
    """Each key's base, moved by the mean of its vectors: pulled back by as much as noise explains, and at most by rho."""
    d, rho = terms.n_columns, query.rho or 1.0
    book = vector.codebook(d + 1, terms.epsilon, hemisphere=hemisphere)
    told = vector.released(answers.sums(query, keys), book)
    received = answers.received(query)
    sums, counts = rho * told.sums[:, :d] / sqrt(SHARE_OF_POINT), told.sums[:, d] / sqrt(SHARE_OF_COUNT)
    sd_point = rho * sqrt(float((told.sd[:d] ** 2).mean()) / SHARE_OF_POINT)
    squares, kept = _pulled(sums, sd_point)
    people = np.maximum(counts, max(FEWEST * received / query.n_keys, 1e-9))
    explained = float((kept * squares / people).sum()) / max(1, received)  # mean squared length that the steps take away
    steps = sums / people[:, None] * (kept if pull else np.ones(len(keys)))[:, None]
    places = into_ball(bases(query, keys, d) + _cut(steps, rho))
    before = rho * reported_length(float(told.sd[d]) ** 2 / max(1, received), received, book)
    left = sqrt(max(before**2 - explained, before**2 / 4))
    return Moved(places, counts, sd_point, float(told.sd[d]) / sqrt(SHARE_OF_COUNT), received, left)


@dataclass(frozen=True, eq=False)
class Seeds:
    """People of each seed in the whole campaign, as the round before told, and the standard deviation of that."""

    people: Floats
    sd: float


def merged(answers: Answers, query: Query, before: Seeds, terms: Terms, rng: np.random.Generator) -> tuple[Floats, Seeds, Floats]:
    """k means of residuals around more seeds than that: their places, people, and the standard deviation of a coordinate.

    Seeds that were moved are clustered by their people, of whom both rounds tell; then the sums of each cluster's seeds are one
    sum, pulled back by its own noise.
    """
    d, k, rho = terms.n_columns, terms.k, query.rho or 1.0
    keys, received = np.arange(query.n_keys, dtype=np.uint64), max(1, answers.received(query))
    told = vector.released(answers.sums(query, keys), vector.codebook(d + 1, terms.epsilon))
    sums, base = rho * told.sums[:, :d] / sqrt(SHARE_OF_POINT), bases(query, keys, d)
    sd_point = rho * sqrt(float((told.sd[:d] ** 2).mean()) / SHARE_OF_POINT)
    scale, sd_count = terms.n / received, terms.n / received * float(told.sd[d]) / sqrt(SHARE_OF_COUNT)
    trust = sd_count**2 / max(sd_count**2 + before.sd**2, 1e-300)  # in the round before
    people = trust * before.people + (1 - trust) * scale * told.sums[:, d] / sqrt(SHARE_OF_COUNT)
    here = np.maximum(people / scale, FEWEST * received / len(keys))
    seeds = base + _cut(sums / here[:, None] * _pulled(sums, sd_point)[1][:, None], rho)
    centres, _ = weighted_centres(into_ball(seeds), here, k, rng)
    is_in = nearest(seeds, centres) == np.arange(k)[:, None]  # (k, seeds)
    noise, mass = sd_point * np.sqrt(is_in.sum(axis=1)), np.maximum(is_in @ here, 1e-9)
    steps = _cut((is_in @ sums) / mass[:, None] * _pulled(is_in @ sums, noise)[1][:, None], rho)
    places = np.where(is_in.any(axis=1)[:, None], (is_in @ (here[:, None] * base)) / mass[:, None] + steps, centres)
    both = Seeds(is_in @ people, sqrt(trust) * before.sd * sqrt(max(1, is_in.sum(axis=1).max())))
    return into_ball(places), both, np.asarray(noise / mass)


def _pulled(sums: Floats, sd: float | Floats) -> tuple[Floats, Floats]:
    """Squared lengths of sums, and the part of each that is kept: noise explains the rest."""
    squares = np.maximum((sums**2).sum(axis=1), 1e-300)
    return squares, np.maximum(0.0, 1 - sums.shape[1] * sd**2 / squares)  # James-Stein: a step of noise alone is no step


def _cut(steps: Floats, rho: float) -> Floats:
    """Steps no longer than rho."""
    lengths = np.linalg.norm(steps, axis=1)
    return np.asarray(steps * (np.minimum(lengths, rho) / np.maximum(lengths, 1e-300))[:, None])


def reported_length(square: float, received: int, book: vector.Codebook) -> float:
    """Typical length of the points in reports, over rho, from the mean square of their count coordinates alone.

    Noise is longer along the released vector (t2) than across it, so the mean square tells how much the vectors point along the
    count's axis: 0.2/(0.2 + 0.8 s**2) of their squared length, for points of length s. Two deviations are taken off, so where
    reports tell little, points count as long. Nobody is asked anything for it.
    """
    across = (1 / book.m**2 - book.along) / (book.dim - 1)
    contrast = book.along - across
    deviation = 1.5 * book.variance / sqrt(max(1, received)) / contrast
    share = min(1.0, max(SHARE_OF_COUNT, (square - across) / contrast - 2 * deviation))
    return sqrt(SHARE_OF_COUNT / SHARE_OF_POINT * (1 / share - 1))
