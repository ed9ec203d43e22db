"""What leaves after a fit of a model of ours, by name and to the byte."""

from __future__ import annotations

import pickle
from typing import Any

from kveil import Ledger
from kveil.release.folder import pack


def fitted(model: Any) -> dict[str, Any]:
    """What a fitted model lets out: its release, the files that this is saved as, and all that a pickle of the model holds."""
    release, state = model.release_, {name: value for name, value in vars(model).items() if name != "ledger"}
    shown = {"repr": repr(release), "promise": str(release.guarantee), "pickle": pickle.dumps(state)}
    return {**vars(release), **pack(release, "parquet"), **shown}


def filed(ledger: Ledger) -> list[Any]:
    """What a ledger tells of its charges, notes too."""
    return [(entry.amount, entry.plan, entry.committed, entry.notes) for entry in ledger.charges()]
