"""Words for the clusters of a release: private counts of public keywords in each, charged like an evaluation."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack, issparse

from kveil.desk.fixed import Fixed
from kveil.errors import InvalidType, InvalidValue
from kveil.kernel.ledger import Ledger
from kveil.kernel.loss import floor_delta, guarantee
from kveil.methods.task import check_count
from kveil.models.evaluate import account_of, budgets_of, has_names, rows_for, scale_of
from kveil.models.evaluation import Noise
from kveil.models.paying import receipt_of
from kveil.models.themes import Themes, themes
from kveil.questions.keywords import SIZES, SQUARED, Keywords, Worded, keyword_part
from kveil.release import Release
from kveil.release.answers import scaling_of
from kveil.source import Source, read
from kveil.source.guard import quietly
from kveil.space.euclidean import Centers

SHARES = {"keywords": Fraction(9, 10), "sizes": Fraction(1, 10)}
MOST_COUNTS = 2**24  # clusters times keywords: each gets noise
WORD = re.compile(r"\w+")


def describe(
    release: Release,
    data: Any,
    keywords: Any,
    epsilon: float,
    *,
    ledger: Ledger | str | os.PathLike[str],
    vocabulary: Sequence[str] | None = None,
    per_row: int = 5,
    delta: float = 0.0,
) -> Themes:
    """Which keywords the rows of each cluster have, as noisy numbers with intervals, so that clusters of text get words.

    Parameters
    ----------
    release : Release
        Centres in space.
    data : table, path or Source
        Rows with the columns of the release, these or others, as for `evaluate`.
    keywords : list
        Names of columns of `data`, one per keyword, after those of the release (frames and files: by name); or, with
        `vocabulary`, what the rows of `data` say, row by row: a table of numbers, dense or sparse, with a column per
        keyword, or a list with a text, or a list of words, per row. In texts, words are runs of letters and digits, in
        lower case.
    vocabulary : list of str, optional
        The keywords that are counted: PUBLIC words, such as the terms of a public corpus. Never words picked from the
        rows. What rows say besides is not looked at.
    per_row : int, default 5
        How many keywords of a row count at most: those of the largest value (of a text: the most frequent), ties to the
        first of the vocabulary. A value of 0 or less, or a missing one, is no keyword. Noise is `per_row` times as wide
        as for one (Gaussian: its root).
    epsilon : float
        The whole cost.
    ledger : Ledger or path
        The budget of the people in `data`; its relation decides who is hidden.
    delta : float, default 0.0
        Used only where the ledger adds zCDP, as in `evaluate`.

    Notes
    -----
    - Private: the rows, their keywords and their number.  Public: the release, the vocabulary, per_row, epsilon and delta.
    - Neighbours: those of the ledger; a person has at most m rows.
    - Sensitivity: `kveil.questions.keywords.Keywords`: a row adds at most `per_row` ones to counts of its own cluster, and 1 to
      the size of it. Which keywords of a row count depends on that row alone.
    - Cost: epsilon, by two charges: 90 % for the counts, 10 % for the sizes of clusters.
    - Not covered: running time.

    Examples
    --------
    >>> import numpy as np
    >>> from kveil import Ledger, PrivateKMeans, describe
    >>> X = np.repeat([[-4.0, 0.0], [4.0, 1.0]], 5000, axis=0)
    >>> texts = ["fields of corn"] * 5000 + ["oil prices"] * 5000
    >>> people = Ledger.memory("people", 2.0, relation="add-remove")
    >>> model = PrivateKMeans(2, epsilon=1.0, bounds=(-5, 5), ledger=people, random_state=0).fit(X)
    >>> found = describe(model.release_, X, texts, 1.0, ledger=people, vocabulary=["corn", "oil", "tin", "wheat"])
    >>> sorted(theme.words[0].name for theme in found.clusters)
    ['corn', 'oil']
    """
    if not isinstance(release, Release):
        raise InvalidType("describe takes a release: model.release_, or kveil.load(folder).")
    domain, scaling, account = release.domain(), scaling_of(release.parameters), account_of(ledger)
    most = check_count("per_row", per_row)
    names = check_vocabulary(keywords if vocabulary is None else vocabulary, len(release.centers))
    source, is_dense = _worded(release, data, names) if vocabulary is None else _joined(release, data, keywords, names)
    grid = Worded(domain, len(names), most, is_dense)
    source.check(grid)
    part = keyword_part(most, is_squared=False)
    law, budgets = budgets_of(epsilon, delta, account, source, SHARES, "keywords", part)
    is_squared = law.kind == "zcdp"
    part = keyword_part(most, is_squared=is_squared)
    charges = law.charges((part, SIZES), 1, (budgets["keywords"], budgets["sizes"]))
    plan = Fixed(law, charges, delta=floor_delta(delta)).plan()
    assert plan is not None
    question = Keywords(Centers.of(release.centers, domain, scaling), len(names), most, is_squared, is_dense)
    with account.reserve(plan) as ticket, np.errstate(all="ignore"):
        desk = Fixed(law, charges).open(source, grid, ticket)
        counts, sizes = desk.draw(question, budgets["keywords"], budgets["sizes"])  # public, charged
    unit = SQUARED if is_squared else 1
    noise = Noise(is_squared, scale_of(law, part, budgets["keywords"]) / unit)
    found = themes(
        counts.reshape(len(release.centers), len(names)) / unit, sizes.astype(np.float64), noise,
        Noise(is_squared, scale_of(law, SIZES, budgets["sizes"])), names,
    )  # fmt: skip
    notes = () if any(theme.words for theme in found) else ("no keyword stands out of the noise. Use a larger epsilon.",)
    return Themes(
        found, names, most, noise.deviation, guarantee(plan, trust="curator", receipts=ticket.receipts, reasons=ticket.reasons),
        receipt_of(ticket, account), notes,
    )  # fmt: skip


def check_vocabulary(given: Any, n_clusters: int) -> tuple[str, ...]:
    """Different words, not too many of them."""
    is_list = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str | bytes)
    names = tuple(given) if is_list else ()
    if not names or not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise InvalidValue(
            "the vocabulary must be a list of different words, from public knowledge. Pass vocabulary=[...] beside what rows "
            "say, or keywords=[...] where data has a column for each."
        )
    if len(names) * n_clusters > MOST_COUNTS:
        raise InvalidValue(
            f"{len(names)} keywords in {n_clusters} clusters are more counts than {MOST_COUNTS}. Use a shorter vocabulary."
        )
    return tuple(str(name) for name in names)


def _worded(release: Release, data: Any, names: tuple[str, ...]) -> tuple[Source, bool]:
    """Rows whose last columns are keywords, and whether the others are dense."""
    if release.features is not None and has_names(data):
        both = set(release.features) & set(names)
        if both:
            raise InvalidValue(f"{sorted(both)[0]!r} is a keyword and a column of the release. Give one of them another name.")
        source = read(data, columns=[*release.features, *names])
    else:
        source = read(data)
    assert release.n_features is not None
    if source.n_columns != release.n_features + len(names):
        raise InvalidValue(
            f"data must have the {release.n_features} columns of the release and then one per keyword, {len(names)} of them. "
            "Pass vocabulary=[...] where keywords are what rows say."
        )
    if source.names is not None and source.names[release.n_features :] != names:
        raise InvalidValue("the columns of this source do not end with the keywords, in order. Choose them with columns=[...].")
    return source, not source.is_sparse


def _joined(release: Release, data: Any, keywords: Any, names: tuple[str, ...]) -> tuple[Source, bool]:
    """Rows and what they say, side by side."""
    if not (issparse(data) or isinstance(data, np.ndarray)) or data.ndim != 2:
        raise InvalidType(
            "with vocabulary=[...] data must be an array or a sparse matrix, so that rows can be matched with what they say. For "
            "files, frames and people with several rows put a column per keyword into the table, and name these as keywords."
        )
    own, said = _sound("data", data), _table(keywords, names)
    rows_for(release, own)
    if own.shape[1] != release.n_features:
        raise InvalidValue(
            f"data has {own.shape[1]} column(s) and the release {release.n_features}. Pass the columns of the release."
        )
    if said.shape[0] != own.shape[0]:
        raise InvalidValue("data and keywords have different numbers of rows. Pass, for every row, what that row says.")
    if said.shape[1] != len(names):
        raise InvalidValue(f"keywords has {said.shape[1]} column(s) and the vocabulary {len(names)} word(s). Pass one for each.")
    if not issparse(own) and not issparse(said):
        return read(np.hstack([own, said])), True
    return read(csr_array(hstack([csr_array(own), csr_array(said)], format="csr"))), not issparse(own)


def _table(keywords: Any, names: tuple[str, ...]) -> Any:
    """What rows say as a table of numbers, a column per word. Entries that are neither a text nor words say nothing."""
    if issparse(keywords) or (isinstance(keywords, np.ndarray) and keywords.ndim == 2 and keywords.dtype.kind in "biuf"):
        return _sound("keywords", keywords)
    if not isinstance(keywords, Sequence | np.ndarray) or isinstance(keywords, str | bytes):
        raise InvalidType("keywords must be a table of numbers with a column per word, or a list with a text or words per row.")
    place = {name: column for column, name in enumerate(names)}
    starts, columns, counts = [0], list[int](), list[int]()
    for said in keywords:
        found = Counter(place[word] for word in _words(said) if word in place)
        columns += found.keys()
        counts += found.values()
        starts.append(len(columns))
    values = np.array(counts, dtype=np.float64), np.array(columns, dtype=np.int64), starts
    return csr_array(values, shape=(len(starts) - 1, len(names)))


def _sound(what: str, table: Any) -> Any:
    """A table of numbers that can be joined with another: types and indices are looked at, and no value."""
    if table.dtype.kind not in "biuf":
        raise InvalidType(f"{what} must hold numbers, and has another type. Turn it into float64 first.")
    if not issparse(table):
        return table.astype(np.float64)
    if hasattr(table, "check_format"):  # joining would read wherever its indices point
        quietly(lambda: table.check_format(full_check=True), f"{what} is a damaged sparse matrix: an index points outside of it.")
    return csr_array(table).astype(np.float64)


def _words(said: Any) -> Iterable[str]:
    if isinstance(said, str):
        return WORD.findall(said.lower())
    if isinstance(said, np.ndarray):
        return _words(said.ravel().tolist())  # one without a length cannot be gone through
    return (word for word in said if isinstance(word, str)) if isinstance(said, list | tuple | set | frozenset) else ()
