"""SciPy lets a column index that points nowhere into a CSR matrix; here its row counts as the centre, and nothing is told."""

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array

import kveil
from kveil import PrivateKMeans
from kveil.errors import SourceError
from kveil.testing import scripted

D = 40


def table(columns, n=300):
    """`n` good rows and one whose entries lie in `columns`."""
    rng = np.random.default_rng(0)
    good = np.concatenate([np.sort(rng.choice(D, 5, replace=False)) for _ in range(n)])
    starts = np.append(np.arange(0, 5 * n + 1, 5), 5 * n + len(columns))
    return csr_array((np.ones(starts[-1]), np.append(good, columns), starts), shape=(n + 1, D))


@pytest.mark.parametrize("columns", [[-1], [-1, D - 1], [D], [100_000], [-(2**31)], list(range(-D, D))], ids=str)
@pytest.mark.parametrize("method", ["tree", "lloyd", "mean"])
def test_a_row_with_an_index_that_points_nowhere_counts_as_the_centre(columns, method):
    found = []
    for X in (table(columns), table([])):  # the centre of sparse rows is 0: a row without entries
        with scripted(1):
            model = PrivateKMeans(2, radius=3.0, delta=1e-6, method=method, random_state=0).fit(X)
        found.append(model.cluster_centers_.tobytes())
    assert found[0] == found[1]


def test_chosen_columns_do_not_lose_it():
    found = []
    for columns in ([-1], []):
        with scripted(1):
            model = PrivateKMeans(2, radius=3.0, method="lloyd", random_state=0)
            found.append(model.fit(kveil.read(table(columns), columns=[3, 7])).cluster_centers_.tolist())
    assert found[0] == found[1]


def test_a_matrix_by_columns_that_points_outside_is_refused_when_it_is_opened():
    good = csc_array(np.eye(4))
    good.indices[0] = 9
    with pytest.raises(SourceError, match="damaged"):
        kveil.read(good)
