"""A stream as a document and arrays, for a file, and back. The ledger is not in it: a copy would be a second budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kveil.desk.leaf_table import LeafTable
from kveil.errors import InvalidValue
from kveil.models.paying import open_ledger
from kveil.space.bounds import lows_and_highs
from kveil.stream.coreset import Coreset
from kveil.stream.flow import Flow, State
from kveil.stream.taken import Taken


def to_document(model: Any, flow: Flow) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """All that is needed to go on, but the ledger; rows and journal as they were at one moment."""
    kept, journal = flow.state
    parameters = {
        "n_clusters": int(model.n_clusters), "memory": int(model.memory), "delta": float(model.delta),
        "bounds": _plain(model, flow), "epsilon": None if model.epsilon is None else float(model.epsilon).hex(),
        "random_state": int(model.random_state) if isinstance(model.random_state, int | np.integer) else None,
    }  # fmt: skip
    document = {
        "parameters": parameters, "columns": flow.n_columns, "names": flow.names, "journal": journal.to_plain(),
        "ledger": None if model.ledger is None else open_ledger(model.ledger).name, "released": flow.n_released,
        "header": kept.header if isinstance(kept, LeafTable) else None,
    }  # fmt: skip
    return document, kept.arrays()


def parameters_of(document: Mapping[str, Any], ledger: Any) -> dict[str, Any]:
    """The parameters of the stream that is going on; refused with another ledger than it was begun with."""
    parameters = dict(document["parameters"])
    if isinstance(parameters["bounds"], list):
        parameters["bounds"] = tuple(parameters["bounds"])  # (lows, highs): a list of lists could also be pairs
    if parameters["epsilon"] is not None:
        parameters["epsilon"] = float.fromhex(parameters["epsilon"])
    if (None if ledger is None else open_ledger(ledger).name) != document["ledger"]:
        if document["ledger"] is None:
            raise InvalidValue("this stream was begun without a ledger. Leave ledger out, or start a stream that has one.")
        raise InvalidValue(
            f'this stream was begun with the ledger "{document["ledger"]}". Pass that one as ledger=...: what is released is '
            "charged there."
        )
    return {**parameters, "ledger": ledger}


def restore(flow: Flow, document: Mapping[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Fill an empty stream with what a file holds."""
    kept: Coreset | LeafTable
    if isinstance(flow.kept, LeafTable):
        if document["header"] != flow.kept.header:  # written by a version that cut other cells: counts would change their meaning
            raise InvalidValue(
                "this stream was cut into other cells than this version of kveil cuts. Finish it with the other one."
            )
        kept = LeafTable.from_arrays(arrays, flow.kept.domain, flow.kept.leaves.cells.depth)
    else:
        kept = Coreset.from_arrays(arrays, flow.kept.memory)
        if kept.n_columns != document["columns"]:
            raise InvalidValue("these arrays are of another stream: their columns do not fit.")
    flow.state = State(kept, Taken.from_plain(document["journal"]))
    flow.n_released = int(document.get("released", 0))  # older files do not tell


def _plain(model: Any, flow: Flow) -> Any:
    """Bounds as [lows, highs], however they were given; a stream without privacy does not look at them."""
    if model.bounds is None or model.epsilon is None:
        return None
    return [end.tolist() for end in lows_and_highs(model.bounds, flow.n_columns, flow.names)]
