"""Who takes part in the figures of the high-dimensional paper: its method, its baselines, and kveil's own."""

from __future__ import annotations

import numpy as np

from kveil.research.contest import NOT_PRIVATE, Contestant, Options, Setting, plain_steps
from kveil.space.bounds import check_domain
from kveil.space.euclidean import evenly
from kveil.tuning import Candidates

PAPER, SULQ = "the paper's method, corrected", "SuLQ, 20 steps"
DEFAULT, ONE_MEAN = "kveil's default", "one private mean"
PAPER_STEPS = 8  # of SuLQ k-means that the paper's experiment puts after its method
TRIALS = 6  # 2 ln(1/delta) for a chance of failure of 0.05; the paper names none
STARTS = 2018  # seed of SuLQ's random starts: another one than that of the made-up rows, or it would start at their centres


def contestants(sulq_steps: int, runs_far_off: int | None) -> tuple[Contestant, ...]:
    """Who is compared; the paper's method with so many steps of SuLQ k-means after it too, unless there are none. The two that
    are orders of magnitude above the others in many columns, and slow there, run `runs_far_off` times."""
    return (
        Contestant(NOT_PRIVATE, None, "#000000"),
        Contestant(DEFAULT, "auto", "#0072B2"),
        Contestant(PAPER, "candidates", "#D55E00"),
        *([Contestant(with_steps(sulq_steps), "candidates", "#882255", sulq_steps=sulq_steps)] if sulq_steps else []),
        Contestant(SULQ, "lloyd", "#56B4E9", _random_start),
        Contestant("DP-Lloyd", "lloyd", "#009E73"),
        Contestant("sample and aggregate", "sample-aggregate", "#E69F00", most_runs=runs_far_off),
        Contestant("private k-variates++", "variates", "#8A6D00", most_runs=runs_far_off),
        Contestant("uniform grid", "grid", "#CC79A7"),
        Contestant(ONE_MEAN, "mean", "#777777"),
    )


def variants(sulq_steps: int) -> tuple[Contestant, ...]:
    """The paper's method with its settings, one by one; and those that section 7 names together, unless there are no steps."""
    settings = (
        Contestant(NOT_PRIVATE, None, "#000000"),
        Contestant(PAPER, "candidates", "#D55E00"),
        Contestant("k repetitions", "candidates", "#E69F00", _k_repetitions),
        Contestant(f"{TRIALS} trials", "candidates", "#CC79A7", {"tuning": Candidates(trials=TRIALS)}),
        Contestant(ONE_MEAN, "mean", "#777777"),
    )
    if not sulq_steps:
        return settings
    steps = f"{sulq_steps} SuLQ steps"
    return (
        *settings,
        Contestant(steps, "candidates", "#882255", sulq_steps=sulq_steps),
        Contestant(f"k repetitions, {steps}", "candidates", "#8A6D00", _k_repetitions, sulq_steps),
    )


def _k_repetitions(setting: Setting, k: int, number: int) -> Options:
    return {"tuning": Candidates(repetitions=k)}


def with_steps(n: int) -> str:
    return f"the paper's method and {n} SuLQ steps"


def _random_start(setting: Setting, k: int, number: int) -> Options:
    """SuLQ of the paper: 20 steps from random points of the domain, which is public here; there, of the data's bounding box."""
    d = setting.rows.shape[1]
    domain = check_domain(setting.domain.get("bounds"), None, setting.domain.get("radius"), d, 16)
    return plain_steps(20, evenly(domain, k, np.random.default_rng([number, STARTS])))
