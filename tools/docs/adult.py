"""Make examples/data/adult.parquet: three columns of the Adult table, as the UCI Machine Learning Repository publishes it.

`python -m tools.docs.adult adult.data adult.test`, both files from https://archive.ics.uci.edu/dataset/2/adult; or one .npz
with the columns in `x`, named by `x_names`. The result is the same bytes for the same rows and version of pyarrow.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS = {"age": "age", "education_num": "education_years", "hours_per_week": "hours_per_week"}
PLACES = {"age": 0, "education_num": 4, "hours_per_week": 12}  # in the text files
TARGET = Path(__file__).parents[2] / "examples" / "data" / "adult.parquet"


def columns(paths: list[Path]) -> dict[str, np.ndarray]:
    if paths[0].suffix == ".npz":
        found = np.load(paths[0])
        names = [str(name).replace("-", "_") for name in found["x_names"]]
        return {new: found["x"][:, names.index(old)] for old, new in COLUMNS.items()}
    lines = [line.split(", ") for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    rows = [line for line in lines if len(line) == 15]
    return {new: np.array([float(row[PLACES[old]]) for row in rows]) for old, new in COLUMNS.items()}


if __name__ == "__main__":
    found = columns([Path(name) for name in sys.argv[1:]])
    table = pa.table({name: pa.array(values.astype(np.int8)) for name, values in found.items()})
    pq.write_table(table, TARGET, compression="zstd", compression_level=19, version="2.6")
    print(TARGET.name, table.num_rows, "rows,", TARGET.stat().st_size, "bytes")
