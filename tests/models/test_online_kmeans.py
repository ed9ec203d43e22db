"""OnlineKMeans: one centre a batch, and nothing more than it says."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from kveil import OnlineKMeans
from kveil.errors import FewerDistinctPoints, InvalidType, InvalidValue, KveilError


def test_one_centre_a_batch_until_there_are_enough():
    model = OnlineKMeans(2, random_state=0)
    with pytest.raises(NotFittedError):
        model.predict([[0.0]])
    assert model.partial_fit([[1.0], [1.0]]).cluster_centers_.tolist() == [[1.0]]
    assert model.partial_fit([[1.0], [4.0]]).cluster_centers_.tolist() == [[1.0], [4.0]]
    assert model.partial_fit([[9.0]]).cluster_centers_.tolist() == [[1.0], [4.0]]
    assert model.predict([[2.0], [8.0]]).tolist() == [0, 1]
    assert model.cluster_weights_.tolist() == [0.6, 0.4]
    assert model.guarantee_.route == "none"


def test_full_and_merging_pools_the_closest_pair():
    model = OnlineKMeans(2, on_full="merge", random_state=0)
    model.partial_fit(iter([[[0.0]], [[1.0]], [[9.0]]]))
    assert sorted(model.cluster_centers_.ravel().tolist()) == [0.5, 9.0]


def test_a_table_is_cut_into_as_many_batches_as_centres(blobs):
    model = OnlineKMeans(3, random_state=0).fit(blobs)
    assert model.cluster_centers_.shape == (3, 2)
    thirds = np.array_split(blobs, 3)
    for center, part in zip(model.cluster_centers_, thirds, strict=True):
        assert (part == center).all(axis=1).any()
    again = OnlineKMeans(3, random_state=0).fit(iter(thirds))
    assert (again.cluster_centers_ == model.cluster_centers_).all()
    assert model.fit(blobs).transform(blobs[:5]).shape == (5, 3)


def test_too_few_rows_repeat_centres():
    with pytest.warns(FewerDistinctPoints):
        model = OnlineKMeans(3).fit([[1.0], [2.0]])
    assert model.cluster_centers_.ravel().tolist() == [1.0, 2.0, 1.0]
    assert OnlineKMeans(3).fit(np.full((30, 1), 7.0)).cluster_centers_.ravel().tolist() == [7.0] * 3


def test_empty_batches_draw_nothing():
    model = OnlineKMeans(2).partial_fit(np.empty((0, 1))).partial_fit([[3.0]])
    assert model.cluster_centers_.tolist() == [[3.0]]
    with pytest.raises(NotFittedError):
        OnlineKMeans(2).fit(np.empty((0, 1)))


@pytest.mark.parametrize("parameters", [{"n_clusters": 0}, {"n_clusters": 1.5}, {"on_full": "overflow"}])
def test_bad_parameters_are_refused(parameters):
    with pytest.raises(KveilError):
        OnlineKMeans(**parameters).fit([[1.0], [2.0]])


def test_bad_batches_are_refused_and_the_stream_goes_on():
    from scipy.sparse import csr_array

    model = OnlineKMeans(2, random_state=0).partial_fit(pd.DataFrame({"a": [1.0], "b": [2.0]}))
    with pytest.raises(InvalidValue, match="expecting 2 features"):
        model.partial_fit([[1.0]])
    with pytest.raises(InvalidValue, match="NaN"):
        model.partial_fit(pd.DataFrame({"a": [np.nan], "b": [2.0]}))
    with pytest.raises(InvalidType, match="dense"):
        model.partial_fit(csr_array(np.eye(2)))
    assert len(model.cluster_centers_) == 1
    assert model.partial_fit(pd.DataFrame({"a": [9.0], "b": [2.0]})).cluster_centers_.tolist() == [[1.0, 2.0], [9.0, 2.0]]
