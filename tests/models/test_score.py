"""What score adds up: distances as transform tells them, of clipped rows, in the units that the docstring names."""

import numpy as np
import pytest

from kveil import FederatedKMeans, Graph, OnlineKMeans, PrivateKMeans, PrivateKMedian, StreamKMeans

BOUNDS = [(0, 4), (0, 40)]
START = [[1.0, 10.0], [3.0, 30.0]]
ROWS = np.repeat(START, 50, axis=0)
ASKED = np.array([[1.0, 14.0], [3.0, 90.0], [-7.0, 10.0], [np.nan, 10.0]])  # inside; above the bounds; below them; missing
# Clipped: (1, 14), (3, 40), (0, 10) and the middle, (2, 20). Distances to the nearest centre in the units of the data, and in
# half-widths, which are 2 and 20.
IN_UNITS = np.array([4.0, 10.0, 1.0, np.hypot(1, 10)])
IN_HALF_WIDTHS = np.array([0.2, 0.5, 0.5, np.hypot(0.5, 0.5)])


def fitted(model, **parameters):
    """A model whose centres are exactly START."""
    made = model(2, **{"epsilon": float("inf"), "bounds": BOUNDS, "random_state": 0, **parameters}).fit(ROWS)
    np.testing.assert_allclose(sorted(made.cluster_centers_.tolist()), START, atol=1e-2)
    made.cluster_centers_ = np.array(START)
    return made


@pytest.mark.parametrize(("scaling", "apart"), [(None, IN_UNITS), ("bounds", IN_HALF_WIDTHS)])
@pytest.mark.parametrize(("model", "power"), [(PrivateKMeans, 2), (PrivateKMedian, 1)], ids=["means", "medians"])
def test_score_is_minus_the_sum_of_what_transform_tells(model, power, scaling, apart):
    made = fitted(model, scaling=scaling)
    np.testing.assert_allclose(made.transform(ASKED).min(axis=1), apart)
    assert made.score(ASKED) == pytest.approx(-(apart**power).sum())
    assert made.predict(ASKED[:3]).tolist() == made.transform(ASKED[:3]).argmin(axis=1).tolist() == [0, 1, 0]


@pytest.mark.parametrize("scaling", [None, "bounds"])
@pytest.mark.parametrize(("model", "power"), [(PrivateKMeans, 2), (PrivateKMedian, 1)], ids=["means", "medians"])
def test_a_release_answers_what_the_model_scores(model, power, scaling):
    made = model(2, bounds=BOUNDS, scaling=scaling, random_state=0).fit(ROWS)
    np.testing.assert_array_equal(made.release_.transform(ASKED), made.transform(ASKED))
    assert made.score(ASKED) == pytest.approx(-(made.release_.transform(ASKED).min(axis=1) ** power).sum())


def test_scaling_measures_as_a_table_scaled_by_hand_would():
    by_hand = fitted(PrivateKMeans, scaling="bounds").score(ASKED)
    unit = PrivateKMeans(2, epsilon=float("inf"), bounds=(-1, 1), random_state=0).fit(ROWS / [2, 20] - 1)
    assert unit.score(ASKED / [2, 20] - 1) == pytest.approx(by_hand, abs=1e-2)


def test_a_private_stream_and_a_federation_score_clipped_rows_in_the_units_of_the_data():
    for model in (
        StreamKMeans(2, epsilon=1.0, bounds=BOUNDS, random_state=0).fit(ROWS),
        FederatedKMeans(2, bounds=BOUNDS, random_state=0).fit([ROWS]),
    ):
        clipped = np.array([[1.0, 14.0], [3.0, 40.0], [0.0, 10.0], [2.0, 20.0]])
        apart = np.linalg.norm(clipped[:, None] - model.cluster_centers_, axis=2).min(axis=1)
        assert model.score(ASKED) == pytest.approx(-(apart**2).sum())


def test_streams_without_privacy_clip_nothing():
    for model in (StreamKMeans(2, random_state=0).fit(ROWS), OnlineKMeans(2, random_state=0).fit(ROWS)):
        apart = np.linalg.norm(ASKED[:3, None] - model.cluster_centers_, axis=2).min(axis=1)
        assert model.score(ASKED[:3]) == pytest.approx(-(apart**2).sum())


def test_on_a_universe_distances_are_its_own():
    street = Graph.from_edges([[i, i + 1] for i in range(9)], lengths=[2.5] * 9)
    model = PrivateKMedian(1, universe=street, epsilon=float("inf"), random_state=0).fit([4] * 9)
    assert model.score([4, 5, 7]) == pytest.approx(-(0 + 2.5 + 7.5))
