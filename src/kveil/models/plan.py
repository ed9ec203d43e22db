"""What to expect of a private fit before anything is spent: exact noise from public numbers, and trials on a public sample."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kveil import _pictures
from kveil._pages import Preformatted
from kveil.errors import InvalidValue
from kveil.kernel.loss import PrivacyUnit
from kveil.methods.task import check_count
from kveil.methods.tree.method import Tree
from kveil.models.curator import CuratorModel
from kveil.models.figures import Figures, figures, of_sample
from kveil.models.paying import public_generator
from kveil.models.public_rows import PublicRows, public_rows
from kveil.models.trial import FEW_ROWS, LARGEST, MOST_ROWS, Trial, Trials, check_model, error_cell, stand_in
from kveil.space.bounds import domain_width

N_EPSILONS = 6  # that a sample is tried with, besides the model's own
HALVED = "one half of the public sample stood for the table, and the other was the sample: a fit will be given all of it."
AS_USED = "these figures are for a fit that uses the public sample: where rows do not fit it, the tree has somewhat less budget."
UNSURE = 1.5  # beyond, a simulated ratio may be off by a factor of 1.3
WARNING = (
    "Rows and sample must be public. A sample taken from the private table would publish what it shows, and no promise covers "
    "that."
)


def plan(
    model: Any,
    rows: float,
    n_features: int | None = None,
    *,
    sample: Any = None,
    public: Any = None,
    n_runs: int = 3,
    random_state: Any = None,
    epsilons: tuple[float, float] = (0.01, 10.0),
    unit: PrivacyUnit = PrivacyUnit(),
) -> CuratorPlan:
    """What a fit of `model` will be worth, before any budget is spent. No private row is read and no ledger is charged.

    Without a sample it says how large the noise will be: exactly, since the noise of every draw follows from public numbers.
    With a sample of PUBLIC rows it fits them, with a budget that makes the noise as large beside them as it would be beside the
    whole table, and reports the cost over the cost of a clustering without privacy.

    Parameters
    ----------
    model : Any
        A PrivateKMeans or PrivateKMedian, not fitted. Figures are for PrivateKMeans with method="tree", the default, and
        dense rows; bounds may be left out for them. Trials work for every method, and with metric="cosine" compare 1
        minus the cosine.
    rows : float
        About how many rows the table has. A PUBLIC figure: from a published count, say. The exact number of rows of the
        table is private unless it is published, and a plan that is made with it shows it.
    n_features : int or None
        How many columns, where neither bounds nor sample tell.
    sample : table, path or Source, optional
        Public rows with the columns of the table: last year's open table, or a synthetic one that may be shown. At most
        20 000 are used, drawn at random. NEVER rows of the table itself: the plan would publish what they show. A source
        with person ids, or one read with `kveil.read(..., private=True)`, is refused. A sample of another kind gives
        another answer: made-up mixtures are no substitute.
    public : Any, optional
        The public sample that `fit(X, public=...)` will be given. Figures are those of a fit that uses it. It is also
        what the fit is tried on, if there is no other sample: one half stands for the table, and the other is given as
        the sample.
    n_runs : int, default 3
        Fits at each epsilon.
    random_state : int, Generator or None
        Steers which rows are drawn and public choices of the fits. Noise takes no seed.
    epsilons : tuple[float, float], default (0.01, 10.0)
        The range that is tried, in six steps of equal ratio, besides the model's own epsilon.
    unit : PrivacyUnit, default PrivacyUnit()
        What is protected, as in `kveil.read(...).unit`: a person with m rows needs m times the noise of a record.

    Notes
    -----
    What trials miss: the sampling noise of the sample, and that its counts are whole numbers; both matter below about 1000 rows.
    Ratios above 1.5 are uncertain by a factor of 1.3.

    Examples
    --------
    >>> import kveil
    >>> model = kveil.PrivateKMeans(10, epsilon=0.02, delta=1e-6)
    >>> expected = kveil.plan(model, rows=20_000, n_features=9)
    >>> expected.figures.word
    'noise'
    >>> 0.1 < expected.figures.least_epsilon < 1
    True
    """
    model, n_rows, low, high = check_model(model), _check_rows(rows), *_check_range(epsilons)
    check_count("n_runs", n_runs)
    rng = public_generator(random_state)
    tried_on = None if sample is None else public_rows(sample, min(MOST_ROWS, math.ceil(n_rows)), rng)
    start = None if public is None else public_rows(public, MOST_ROWS, rng)
    halved: tuple[str, ...] = ()
    if start is not None and tried_on is None:
        tried_on, start = start.halves(rng)
        halved = (HALVED,)
    width = _width(model, n_features, None if tried_on is None else tried_on.rows.shape[1])
    if tried_on is not None and not len(tried_on.rows):
        raise InvalidValue("the sample has no rows. Pass public rows with the columns of the table.")
    told, notes, used = _figures(model, n_rows, width, unit, start)
    trials: tuple[Trial, ...] = ()
    if tried_on is not None:
        factor = n_rows / len(tried_on.rows) / unit.max_rows_per_person
        asked = sorted({*np.geomspace(low, high, N_EPSILONS).tolist(), float(model.epsilon)})
        trials, refused = _tried(model, Trials(tried_on, factor, n_runs, rng, start), asked)
        notes = (*notes, *refused, *halved, *_sample_notes(len(tried_on.rows), trials))
    elif told is None:
        raise InvalidValue(
            f'figures from public numbers alone are for PrivateKMeans with method="tree". For {type(model).__name__} with method='
            f'"{used}" pass sample=..., public rows to try it on.'
        )
    return CuratorPlan(
        type(model).__name__, used, model.n_clusters, width, n_rows, float(model.epsilon), float(model.delta), told, trials,
        0 if tried_on is None else len(tried_on.rows), notes,
    )  # fmt: skip


@dataclass(frozen=True)
class CuratorPlan(Preformatted):
    """A forecast of a private fit: `str` is a table, `save` draws it. It holds public numbers alone, and no row of the sample.

    Attributes
    ----------
    figures : Figures or None
        The noise from public numbers; None for methods other than the tree.
    trials : tuple[Trial, ...]
        Cost ratios on the public sample, by ascending epsilon; empty without one.
    sample_rows : int
        How many of its rows were used.
    kind, method : str
        The model and its method.
    n_clusters, n_features : int
        The numbers of centres and of columns.
    rows : float
        About how many rows the table has.
    epsilon, delta : float
        The promise that was planned for.
    notes : tuple of str
        What a reader should know besides.
    """

    kind: str
    method: str
    n_clusters: int
    n_features: int
    rows: float
    epsilon: float
    delta: float
    figures: Figures | None
    trials: tuple[Trial, ...]
    sample_rows: int
    notes: tuple[str, ...]

    @property
    def ratio(self) -> float | None:
        """The simulated cost over the cost without privacy at the model's own epsilon; None without a sample."""
        return next((trial.ratio for trial in self.trials if trial.epsilon == self.epsilon), None)

    def epsilon_for(self, ratio: float) -> float | None:
        """The least epsilon whose simulated cost ratio is `ratio`, or None if that lies outside the epsilons that were tried.

        Simulated ratios are made non-increasing in epsilon by pooling neighbours, and are linear in log(epsilon) in between.
        """
        if not self.trials:
            raise InvalidValue("an epsilon for a ratio needs trials: make the plan with sample=..., public rows.")
        if not (isinstance(ratio, int | float) and not isinstance(ratio, bool) and math.isfinite(ratio)):
            raise InvalidValue("ratio must be a number, such as 1.1: cost over the cost without privacy.")
        epsilons, ratios = [trial.epsilon for trial in self.trials], non_increasing([trial.ratio for trial in self.trials])
        place = next((i for i, found in enumerate(ratios) if found <= ratio), None)
        if place is None or (place == 0 and ratios[0] < ratio):
            return None
        if place == 0:
            return epsilons[0]
        part = (ratios[place - 1] - ratio) / (ratios[place - 1] - ratios[place])
        return float(epsilons[place - 1] * (epsilons[place] / epsilons[place - 1]) ** part)

    def __str__(self) -> str:
        lines = [
            f"{self.kind}, {self.n_clusters} clusters, method {self.method}: {number(self.rows)} rows, {self.n_features} "
            f"column(s), epsilon {self.epsilon:g}, delta {self.delta:g}",
            *(() if self.figures is None else ("", *_figure_lines(self.figures))),
            *(() if not self.trials else ("", *self._trial_lines())),
            "",
            *(f"Note: {note}" for note in self.notes),
            f"Nothing was charged. {WARNING}",
        ]
        return "\n".join(lines)

    def _trial_lines(self) -> list[str]:
        runs = len(self.trials[0].ratios)
        lines = [
            f"Tried on {number(self.sample_rows)} public rows, mean of {runs} run(s): cost over the cost without privacy",
            f"  {'epsilon':>10}  {'ratio':>8}{error_cell('error', runs)}",
        ]
        for trial in self.trials:
            mark = "  <- this model" if trial.epsilon == self.epsilon else ""
            lines.append(f"  {trial.epsilon:>10.4g}  {trial.ratio:>8.3f}{error_cell(trial.error, runs)}{mark}")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        plain = {**asdict(self), "ratio": self.ratio, "notes": list(self.notes)}
        plain["trials"] = [{**asdict(trial), "ratio": trial.ratio, "error": trial.error} for trial in self.trials]
        return json.loads(json.dumps(plain))  # type: ignore[no-any-return]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Draw it into an SVG or PNG file, by its suffix; needs matplotlib: pip install "kveil[report]".

        With trials: the cost ratio by epsilon. Without: the noise in a centre by epsilon, and where results are good.
        """
        return _pictures.save("kveil.models.plan_figure", self, Path(path))


def non_increasing(values: list[float]) -> list[float]:
    """The nearest sequence that never rises: neighbours that do are replaced by their mean.

    >>> non_increasing([3.0, 1.0, 2.0, 1.0])
    [3.0, 1.5, 1.5, 1.0]
    """
    pools: list[tuple[float, int]] = []
    for value in values:
        pools.append((value, 1))
        while len(pools) > 1 and pools[-1][0] > pools[-2][0]:
            (last, n), (before, m) = pools.pop(), pools.pop()
            pools.append(((last * n + before * m) / (n + m), n + m))
    return [value for value, times in pools for _ in range(times)]


def number(value: float) -> str:
    """A number of rows, with thin groups of three."""
    return f"{value:,.0f}".replace(",", " ")


def _figures(
    model: CuratorModel, rows: float, width: int, unit: PrivacyUnit, start: PublicRows | None
) -> tuple[Figures | None, tuple[str, ...], str]:
    """What public numbers tell, notes, and the method. Lengths are over a radius, so any box will do where none is given."""
    is_cosine = getattr(model, "metric", None) == "cosine"
    has_domain = is_cosine or model.bounds is not None or model.radius is not None or model.center is not None
    whole = stand_in(model) if has_domain else stand_in(model, bounds=(-1.0, 1.0))
    used, method = whole.prepared(width, unit=unit)
    if method.budget.plan() is None:
        raise InvalidValue("epsilon=inf adds no noise, so there is nothing to plan. Pass a finite epsilon.")
    if not isinstance(method, Tree):
        return None, (), used
    if start is not None and width > 3:
        told, notes = figures(Tree(of_sample(method.task, start.rows)), rows)
        return told, (*notes, AS_USED), used
    return (*figures(method, rows), used)


def _tried(model: CuratorModel, trials: Trials, epsilons: list[float]) -> tuple[tuple[Trial, ...], tuple[str, ...]]:
    """Trials by epsilon. A method may refuse a budget as too small: then that epsilon is left out, with a note."""
    found: list[Trial] = []
    refused: list[float] = []
    for epsilon in epsilons:
        if found and found[-1].is_cut:  # the same budget again
            found.append(Trial(epsilon, LARGEST, True, found[-1].ratios, found[-1].seconds))
            continue
        try:
            found.append(trials.run(stand_in(model, epsilon)))
        except InvalidValue:
            if epsilon == float(model.epsilon) or found:
                raise
            refused.append(epsilon)
    note = f"the method refuses these budgets as too small: epsilon {', '.join(f'{epsilon:.3g}' for epsilon in refused)}."
    return tuple(found), (note,) if refused else ()


def _sample_notes(n_rows: int, trials: tuple[Trial, ...]) -> tuple[str, ...]:
    notes = []
    cut = [trial.epsilon for trial in trials if trial.is_cut]
    if cut:
        notes.append(
            f"from epsilon {cut[0]:.3g} on the sample was tried with epsilon {LARGEST:g}, where budgets end: noise beside the "
            "whole table would be smaller still."
        )
    if n_rows < FEW_ROWS:
        notes.append(f"the sample has fewer than {FEW_ROWS} rows: its own sampling noise and whole counts blur the ratios.")
    if any(trial.ratio > UNSURE for trial in trials):
        notes.append(f"above {UNSURE:g} a ratio is uncertain by a factor of 1.3.")
    return tuple(notes)


def _figure_lines(told: Figures) -> list[str]:
    ends = "" if told.good is None else f" (good below {told.good:g}, noise above {told.noise:g})"
    word = "" if told.word is None else f": {told.word}"
    lines = [
        "Noise, from public numbers alone, for clusters of equal size:",
        f"  in a centre: {told.noise_share:.3g} of the radius at which rows are clipped{word}{ends}",
        f"  in a cluster's number of rows: standard deviation {told.count_deviation:.4g}",
        f"  tree: {number(told.cells)} cells; one stands out from {number(math.ceil(told.rows_to_stand_out))} rows on "
        f"(deviation {told.cell_deviation:.4g})",
    ]
    if told.least_rows is not None:
        other = f"from epsilon {told.least_epsilon:.3g} on" if told.least_epsilon else f"at no epsilon up to {LARGEST:g}"
        lines.append(f"  good from {number(math.ceil(told.least_rows))} rows on at this epsilon; with these rows {other}")
    return lines


def _width(model: CuratorModel, given: int | None, of_sample: int | None) -> int:
    known = {
        "n_features": None if given is None else check_count("n_features", given),
        "sample": of_sample,
        "bounds": domain_width(model.bounds, model.center),
    }
    widths = {name: width for name, width in known.items() if width is not None}
    if not widths:
        raise InvalidValue("how many columns there are decides the noise: pass n_features=... (--columns), bounds or a sample.")
    if len(set(widths.values())) > 1:
        told = ", ".join(f"{name} says {width}" for name, width in widths.items())
        raise InvalidValue(f"the number of columns is not clear: {told}. They must agree.")
    return next(iter(widths.values()))


def _check_rows(rows: Any) -> float:
    is_number = isinstance(rows, int | float | np.number) and not isinstance(rows, bool)
    if not (is_number and math.isfinite(rows) and 1 <= rows <= 2**40):
        raise InvalidValue("rows must be a public number between 1 and 2**40: about how many rows the table has.")
    return float(rows)


def _check_range(epsilons: Any) -> tuple[float, float]:
    if isinstance(epsilons, tuple | list) and len(epsilons) == 2 and all(_is_real(end) for end in epsilons):
        low, high = map(float, epsilons)
        if 0 < low < high <= LARGEST:
            return low, high
    raise InvalidValue(f"epsilons must be (low, high) with 0 < low < high <= {LARGEST:g}: the range that a sample is tried with.")


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
