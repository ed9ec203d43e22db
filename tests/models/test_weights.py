"""Weights of rows: a column with a public bound, and nothing else."""

import numpy as np
import pandas as pd
import pytest

import kveil
from kveil import PrivateKMeans, PrivateKMedian
from kveil.errors import InvalidValue
from kveil.testing import scripted

ROWS = np.random.default_rng(0).uniform(0, 1, (400, 2))
WEIGHTS = np.random.default_rng(1).integers(0, 4, 400)
TABLE = pd.DataFrame(ROWS, columns=["a", "b"]).assign(who=range(400), weight=WEIGHTS)


@pytest.mark.parametrize("model", [PrivateKMeans, PrivateKMedian], ids=lambda model: model.__name__)
def test_weights_without_a_bound_are_refused_and_cost_nothing(model):
    ledger = kveil.Ledger.memory("untouched", 1.0, relation="add-remove")
    asked = model(2, bounds=(0, 1), ledger=ledger)
    for fit in (asked.fit, asked.fit_predict):
        with pytest.raises(InvalidValue, match="no public bound"):
            fit(ROWS, sample_weight=WEIGHTS)
    with pytest.raises(TypeError, match="unexpected keyword argument 'weight'"):
        asked.fit(ROWS, weight=WEIGHTS)
    assert ledger.charges() == ()
    asked.fit(ROWS, sample_weight=None)


@pytest.mark.parametrize("terms", [{}, {"method": "sample-aggregate"}, {"method": "lloyd", "init": "noisy-sample"}], ids=str)
def test_a_row_with_a_weight_is_as_many_equal_rows(terms):
    repeated = TABLE.loc[TABLE.index.repeat(WEIGHTS)].drop(columns="weight")
    found = []
    for table, weight, most in ((TABLE, "weight", 1000), (repeated, None, 3000)):
        with scripted(4):
            source = kveil.read(table, person="who", max_rows_per_person=3, weight=weight, max_rows=most)
            found.append(PrivateKMeans(2, epsilon=20.0, bounds=(0, 1), random_state=0, **terms).fit(source))
    np.testing.assert_array_equal(found[0].cluster_centers_, found[1].cluster_centers_)
    assert found[0].guarantee_ == found[1].guarantee_
    assert "at most 3 records" in str(found[0].guarantee_)


def test_what_rules_out_overflow_counts_every_copy():
    source = kveil.read(TABLE, person="who", max_rows_per_person=3, weight="weight", max_rows=1000)
    assert source.max_rows == 3000
    assert kveil.read(TABLE[["a", "b"]], max_rows=1000).max_rows == 1000
