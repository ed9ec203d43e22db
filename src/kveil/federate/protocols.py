"""The protocols by name: what each asks, and how its run goes."""

from __future__ import annotations

from fractions import Fraction

from kveil.errors import InvalidValue
from kveil.federate import by_cells as cells
from kveil.federate import sample, variates
from kveil.federate.layout import Layout
from kveil.federate.plan import Protocol, Round
from kveil.federate.sealed import sealed_size
from kveil.federate.steps import Steps
from kveil.federate.wire import MOST_NUMBERS

PROTOCOLS: tuple[Protocol, ...] = ("cells", "sample", "dk", "pdk")


RUNS: dict[Protocol, type[Steps]] = {
    "cells": cells.CellsRun,
    "sample": sample.SampleRun,
    "pdk": variates.PrivateVariatesRun,
    "dk": variates.SealedVariatesRun,
}


def check_protocol(protocol: Protocol, epsilon: float | None, delta: float, n_steps: int) -> None:
    """Refuse what a protocol cannot promise, from parameters alone."""
    if protocol == "dk" and epsilon is not None:
        raise InvalidValue(
            'protocol="dk" shows rows to all other parties and promises nothing. With epsilon use "pdk" or "cells".'
        )
    if protocol in ("sample", "pdk") and epsilon is None:
        raise InvalidValue(f'protocol="{protocol}" is a way to add noise. Pass epsilon, or use "dk" or "cells" without privacy.')
    if protocol == "dk" and n_steps < 1:
        raise InvalidValue('protocol="dk" needs n_steps >= 1: seeds are sealed, and a step is how the coordinator gets centres.')
    if protocol in ("sample", "pdk") and delta:
        raise InvalidValue(f'protocol="{protocol}" is pure: leave delta at 0, or use "cells".')


def schedule(
    protocol: Protocol, layout: Layout, epsilon: Fraction | None, delta: Fraction, n_steps: int, n_clusters: int, n_parties: int
) -> tuple[Round, ...]:
    """The rounds of a run, from public parameters alone."""
    d = layout.domain.n_columns
    numbers = n_clusters * (sealed_size(d) if protocol == "dk" else d + 1)
    if numbers > MOST_NUMBERS:
        raise InvalidValue(f"{n_clusters} centres of {d} columns do not fit into a message. Ask for fewer clusters.")
    if protocol == "sample":
        return sample.schedule(layout, epsilon, delta, n_steps)
    if protocol == "pdk":
        return variates.private_schedule(layout, epsilon, delta, n_steps, n_clusters, n_parties)
    if protocol == "dk":
        return variates.sealed_schedule(layout, n_steps, n_clusters)
    return cells.schedule(layout, epsilon, delta, n_steps)
