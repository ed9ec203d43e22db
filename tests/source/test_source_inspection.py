"""The openly non-private look."""

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

import kveil


def test_it_tells_rows_ranges_and_broken_cells_and_says_that_it_is_not_private(tmp_path):
    frame = pd.DataFrame({"age": [30.0, 90.0, np.nan], "income": [-1.0, np.inf, 5.0]})
    frame.to_csv(tmp_path / "people.csv", index=False)
    for data in (frame, tmp_path / "people.csv"):
        seen = kveil.inspect(data)
        assert (seen.n_rows, seen.columns) == (3, ("age", "income"))
        assert (seen.least.tolist(), seen.greatest.tolist()) == ([30.0, -1.0], [90.0, 5.0])
        assert seen.n_broken.tolist() == [1, 1]
        assert str(seen).startswith("NOT PRIVATE")
        assert "income" in str(seen)


def test_sparse_and_empty_tables_can_be_looked_at():
    assert kveil.inspect(csr_array(np.eye(3))).greatest.tolist() == [1.0, 1.0, 1.0]
    assert kveil.inspect(np.empty((0, 2))).n_rows == 0
    assert str(kveil.inspect(np.empty((0, 1)))).split()[-3:] == ["none", "none", "0"]
