"""Flat records as a file that any program reads."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any


def as_csv(records: Sequence[Mapping[str, Any]]) -> str:
    """One line a record, all of which have the keys of the first."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()
