"""The report that the site shows: of the tutorial's table, made anew by every build, so that it is never an old one."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from kveil import Ledger, PrivateKMeans, load
from kveil.release.report import report
from kveil.release.verify import signer
from kveil.signing import SigningKey

ROOT = Path(__file__).parents[2]
BOUNDS = {"age": (16, 90), "education_years": (1, 16), "hours_per_week": (0, 99)}


@functools.cache  # `make docs-serve` builds again after every change
def example_report() -> str:
    """The page, with real noise: it states a promise."""
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "adult"
        ledger = Ledger.create(Path(folder) / "adult.db", "adult", epsilon=1.0, relation="add-remove")
        stating = ledger.stating(purpose="kinds of working lives, for a talk", data_name="Adult (public)", by="A. Hill")
        model = PrivateKMeans("auto", k_range=(2, 10), epsilon=0.5, bounds=BOUNDS, scaling="bounds", ledger=stating)
        model.fit(ROOT / "examples" / "data" / "adult.parquet").release_.save(saved, sign=SigningKey.generate())
        return report(load(saved), ledger=ledger, signature=signer(saved))
