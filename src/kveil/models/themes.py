"""What noisy counts of keywords tell about clusters: which words stand out in each, with intervals that hold what noise does."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kveil import _pictures
from kveil.arrays import Floats
from kveil.kernel.loss import Guarantee
from kveil.models.evaluation import MISS, Estimate, Noise, from_zero
from kveil.release.words import printable

SHOWN = 10  # words of a cluster, at most
WIDTH = 24  # of a word in a table


class Word(NamedTuple):
    """A keyword of a cluster. Each interval holds its exact number with a chance of at least 95 %.

    rows: how many rows of the cluster have it. share: the share of the cluster's rows that have it.
    lift: that share over the share of all rows that have it.
    """

    name: str
    rows: Estimate
    share: Estimate
    lift: Estimate


class Theme(NamedTuple):
    """One cluster: how many rows it has, and the keywords that stand out of the noise and are more frequent in it
    than in all rows, by falling lower end of their lift."""

    size: Estimate
    words: tuple[Word, ...]


@dataclass(frozen=True, eq=False)
class Themes:
    """Keywords of the clusters of a release, as noisy numbers that were charged for. All of it may be shared.

    Attributes
    ----------
    clusters : tuple[Theme, ...]
        One theme per centre, in the order of the release.
    vocabulary : list of str
        The public keywords.
    per_row : int
        How many of a row counted at most.
    deviation : float
        Standard deviation of the noise in each count of a cluster and a keyword.
    guarantee, receipt : Guarantee, Receipt or dict
        What was promised and charged for this description alone. Whoever sees the release, too, has the sum.
    notes : tuple of str
        What a reader should know besides.

    Notes
    -----
    A word is listed only if its count stands out: the chance that any word is listed that no row of its cluster has is at most
    5 %, for all words and clusters together.
    """

    clusters: tuple[Theme, ...]
    vocabulary: tuple[str, ...]
    per_row: int
    deviation: float
    guarantee: Guarantee
    receipt: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = []
        for number, theme in enumerate(self.clusters):
            lines.append(f"cluster {number}: {theme.size.value:.0f} rows ({theme.size.low:.0f} to {theme.size.high:.0f})")
            lines += [f"  {_row(word)}" for word in theme.words] or ["  no keyword stands out of the noise"]
        return "\n".join(
            [
                *lines,
                *(f"Note: {note}" for note in self.notes),
                f"At most {self.per_row} keyword(s) of a row count. Numbers are noisy; brackets hold the exact ones with a "
                "chance of 95 % each.",
                "",
                str(self.guarantee),
            ]
        )

    def to_json(self) -> str:
        """All of it as JSON; one object."""
        clusters = [{"size": theme.size._asdict(), "words": [_plain(word) for word in theme.words]} for theme in self.clusters]
        told = {"clusters": clusters, "vocabulary": list(self.vocabulary), "per_row": self.per_row, "deviation": self.deviation}
        guarantee = json.loads(self.guarantee.to_json())
        return json.dumps({**told, "guarantee": guarantee, "receipt": dict(self.receipt), "notes": list(self.notes)})

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Draw it into an SVG or PNG file, by its suffix; needs matplotlib: pip install "kveil[report]"."""
        return _pictures.save("kveil.models.themes_figure", self, Path(path))


def themes(counts: Floats, sizes: Floats, noise: Noise, of_sizes: Noise, vocabulary: tuple[str, ...]) -> tuple[Theme, ...]:
    """Themes of clusters from noisy counts (k, words) and sizes (k,). Post-processing.

    An interval that rests on several noisy numbers gives each an equal part of what it may miss.
    """
    k, n_words = counts.shape
    stand_out = noise.half_width(MISS / max(4, k * n_words))
    totals, n = counts.sum(axis=0), sizes.sum()
    found = []
    for row, size in zip(counts, sizes, strict=True):
        own = from_zero(float(size), of_sizes.half_width(MISS))
        in_share, in_lift = (from_zero(float(size), of_sizes.half_width(MISS / parts)) for parts in (2, 4))
        of_all = from_zero(float(n), of_sizes.half_width_of_sum(k, MISS / 4))
        words = []
        for place in np.flatnonzero(row > stand_out):
            count = float(row[place])
            share = _quotient(from_zero(count, noise.half_width(MISS / 2)), in_share, most=1.0)
            part = _quotient(from_zero(count, noise.half_width(MISS / 4)), in_lift, most=1.0)
            total = from_zero(float(totals[place]), noise.half_width_of_sum(k, MISS / 4))
            least = max(total.low, count - noise.half_width(MISS / 4))  # all rows with the word are no fewer than these
            whole = _quotient(total._replace(value=max(total.value, count), low=least), of_all, most=1.0)
            lift = _quotient(part, whole)
            if lift.value > 1:
                words.append(Word(vocabulary[place], from_zero(count, noise.half_width(MISS)), share, lift))
        words.sort(key=lambda word: (-word.lift.low, -word.lift.value, word.name))
        found.append(Theme(own, tuple(words[:SHOWN])))
    return tuple(found)


def _quotient(above: Estimate, below: Estimate, most: float | None = None) -> Estimate:
    """One noisy number over another, neither negative; `most` where the exact one cannot be larger."""
    tiny = 1e-12
    value, low = above.value / max(below.value, tiny), above.low / max(below.high, tiny)
    high = above.high / max(below.low, tiny)
    return Estimate(*(x if most is None else min(x, most) for x in (min(max(value, low), high), low, high)))


def _row(word: Word) -> str:
    share, lift = (tuple(100 * x for x in word.share), word.lift)
    return (
        f"{printable(word.name, WIDTH):<{WIDTH}}  {share[0]:5.1f} % of rows ({share[1]:.1f} to {share[2]:.1f})  "
        f"lift {lift.value:.1f} ({lift.low:.1f} to {lift.high:.1f})"
    )


def _plain(word: Word) -> dict[str, Any]:
    return {"name": word.name, **{name: getattr(word, name)._asdict() for name in ("rows", "share", "lift")}}
