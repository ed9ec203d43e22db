"""Methods side by side on rows that may be looked at: cost over the cost without privacy, and processor time."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kveil._pages import Preformatted
from kveil.errors import InvalidType, InvalidValue
from kveil.methods.task import check_count
from kveil.models.curator import CuratorModel
from kveil.models.paying import public_generator
from kveil.models.public_rows import PublicRows, public_rows
from kveil.models.trial import MOST_ROWS, Trial, Trials, check_model, error_cell, stand_in
from kveil.release import Release

CHOOSING = (
    "CHOOSING A METHOD OR A PARAMETER ON PRIVATE ROWS IS ITSELF A RELEASE, and no promise covers it. Compare on public rows, or "
    "on the sample of a release, which its own promise covers."
)


def compare(
    model: Any,
    data: Any,
    *,
    methods: Sequence[str] | None = None,
    rows: float | None = None,
    n_runs: int = 5,
    random_state: Any = None,
) -> Comparison:
    """Cost ratios and times of several methods on the same rows, which must be PUBLIC, or of a release.

    Choosing a method, k or epsilon by how it does on private rows is itself a release of these rows, and no promise covers it:
    whoever sees the choice learns something about them. So this function looks at public rows, or at the synthetic rows of a
    release, which are post-processing of what was charged already. A source with person ids, or one read with
    `kveil.read(..., private=True)`, is refused.

    Parameters
    ----------
    model : Any
        A PrivateKMeans or PrivateKMedian, not fitted, of which every method is tried; or {name: model}, to compare these.
    data : table, path or Source
        Public rows, in any form that `fit` takes; or a `Release`, whose `sample` is drawn. At most 20 000 rows are used.
    methods : Sequence[str] or None
        Names of methods of `model`; default all that it has.
    rows : float or None
        About how many rows the table will have, a public figure: then noise is as large beside these rows as it would be
        beside that many, as in `kveil.plan`. Default: as many as `data` has.
    n_runs : int, default 5
        Fits of each method, with fresh noise.
    random_state : int, Generator or None
        Steers public choices, never noise.

    Notes
    -----
    A ratio is the cost over that of scikit-learn's k-means (for PrivateKMedian: of a k-median), both not private, on the same
    clipped rows in the model's own distance. Costs on the synthetic rows of a release are those of round blobs: they tell
    methods apart, and no more. Nothing is charged to a ledger.

    Examples
    --------
    >>> import kveil
    >>> import numpy as np
    >>> public = np.random.default_rng(0).normal([[-3.0, 0.0], [3.0, 1.0]], 0.5, (2000, 2, 2)).reshape(-1, 2)
    >>> model = kveil.PrivateKMeans(2, epsilon=1.0, bounds=(-5, 5))
    >>> found = kveil.compare(model, public, methods=["tree", "mean"], n_runs=2, random_state=0)
    >>> found.best
    'tree'
    """
    models = _named(model, methods)
    check_count("n_runs", n_runs)
    if rows is not None and not (isinstance(rows, int | float | np.number) and not isinstance(rows, bool) and rows >= 1):
        raise InvalidValue("rows must be a public number of at least 1: about how many rows the table has.")
    rng = public_generator(random_state)
    most = MOST_ROWS if rows is None else min(MOST_ROWS, math.ceil(rows))
    public = _sampled(data, most, rng) if isinstance(data, Release) else public_rows(data, most, rng)
    if not len(public.rows):
        raise InvalidValue("there are no rows to compare on. Pass public rows, or a release that keeps a synopsis.")
    trials = Trials(public, 1.0 if rows is None else float(rows) / len(public.rows), n_runs, rng)
    found: dict[str, Trial] = {}
    refused: dict[str, str] = {}
    for name, each in models.items():
        try:
            found[name] = trials.run(each)
        except InvalidValue as error:  # public parameters that a method cannot use: what rows hold never raises
            refused[name] = str(error)
    if not found:
        raise InvalidValue(f"no method can be fitted with these parameters. {next(iter(refused.values()))}")
    return Comparison(found, refused, len(public.rows), isinstance(data, Release))


@dataclass(frozen=True)
class Comparison(Preformatted):
    """Cost over the cost without privacy, by method. `str` is a table, the best first; `to_dict` plain values.

    Attributes
    ----------
    found : Mapping[str, Trial]
        A `Trial` by name: ratios and seconds of processor time of each run.
    refused : Mapping[str, str]
        Why a method could not be tried.
    n_rows : int
        How many rows were used.
    of_release : bool
        Whether they are the synthetic rows of a release.
    """

    found: Mapping[str, Trial]
    refused: Mapping[str, str]
    n_rows: int
    of_release: bool

    @property
    def best(self) -> str:
        """The name with the lowest mean ratio. Others may be as good: see the standard errors."""
        return min(self.found, key=lambda name: self.found[name].ratio)

    def __str__(self) -> str:
        what = "synthetic rows of a release" if self.of_release else "public rows"
        runs = len(next(iter(self.found.values())).ratios)
        width = max(map(len, (*self.found, *self.refused, "method")))
        lines = [
            f"{self.n_rows} {what}, {runs} run(s) each: cost over the cost without privacy",
            f"  {'method':<{width}}  {'ratio':>8}{error_cell('error', runs)}  {'CPU s':>7}",
        ]
        for name, trial in sorted(self.found.items(), key=lambda entry: entry[1].ratio):
            lines.append(f"  {name:<{width}}  {trial.ratio:>8.3f}{error_cell(trial.error, runs)}  {np.mean(trial.seconds):>7.2f}")
        lines += [f"  {name:<{width}}  not tried: {why}" for name, why in self.refused.items()]
        cut = [name for name, trial in self.found.items() if trial.is_cut]
        if cut:
            lines.append(
                f"Note: {', '.join(cut)}: tried with the largest budget there is; noise beside the whole table is smaller."
            )
        return "\n".join([*lines, "", CHOOSING])

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        found = {
            name: {
                "ratio": trial.ratio, "error": trial.error, "seconds": float(np.mean(trial.seconds)), "ratios": trial.ratios,
                "epsilon": trial.epsilon, "used": trial.used, "is_cut": trial.is_cut,
            }
            for name, trial in self.found.items()
        }  # fmt: skip
        plain = {"rows": self.n_rows, "of_release": self.of_release, "methods": found, "refused": dict(self.refused)}
        return json.loads(json.dumps({**plain, "best": self.best, "warning": CHOOSING}))  # type: ignore[no-any-return]


def _named(model: Any, methods: Sequence[str] | None) -> dict[str, CuratorModel]:
    """Models by name: those given, or one for every method."""
    if isinstance(model, Mapping):
        if methods is not None or not model:
            raise InvalidValue("with {name: model} there must be a model, and methods is left out: each model has its own.")
        return {str(name): check_model(each) for name, each in model.items()}
    able = check_model(model).methods
    if isinstance(methods, str) or (methods is not None and not all(isinstance(name, str) for name in methods)):
        raise InvalidType('methods must be a list of names, such as ["tree", "lloyd"].')
    unknown = [name for name in methods or () if name not in able]
    if unknown:
        raise InvalidValue(f"{type(model).__name__} has no method {unknown[0]!r}. It has {', '.join(able)}.")
    return {name: stand_in(model, method=name) for name in methods or able}


def _sampled(release: Release, most: int, rng: np.random.Generator) -> PublicRows:
    """Synthetic rows of a release: its own promise covers them."""
    if release.guarantee.route == "none":
        raise InvalidValue("this release was made without noise, so its sample shows the rows. Pass public rows.")
    return PublicRows(release.sample(most, random_state=int(rng.integers(2**31))), release.features)
