"""A release in programs of others: what `to_sklearn` gives is taken by ONNX and MLflow, and labels stay the same.

Both are large and not needed for development, so these tests run where they are installed.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from kveil import PrivateKMeans
from kveil.testing import scripted

LOW, HIGH = np.array([-5.0, 0.0, 10.0]), np.array([15.0, 10.0, 500.0])
CROWDS = np.array([[0.0, 2, 100], [8, 5, 300], [12, 8, 450], [3, 9, 200]])
AS_IN_FIT = {
    "plain": {"bounds": (LOW, HIGH)},
    "bounds": {"bounds": (LOW, HIGH), "scaling": "bounds"},
    "private": {"bounds": (LOW, HIGH), "scaling": "private"},
    "cosine": {"metric": "cosine", "delta": 1e-6},
}


@pytest.fixture(scope="module", params=AS_IN_FIT)
def release(request):
    rng = np.random.default_rng(0)
    rows = rng.normal(np.repeat(CROWDS, 2000, axis=0), (1.0, 0.6, 25.0))
    with scripted(1):
        return PrivateKMeans(4, epsilon=1.0, random_state=0, **AS_IN_FIT[request.param]).fit(rows).release_


@pytest.fixture(scope="module")
def anywhere(release):
    """Rows inside the bounds and outside, but for the few that are as near to two centres to the precision of the grid."""
    rows = np.random.default_rng(2).normal((LOW + HIGH) / 2, HIGH - LOW, (20_000, 3))
    nearest = np.sort(release.transform(rows), axis=1)
    is_clear = nearest[:, 1] - nearest[:, 0] > 1e-6 * nearest.max()
    assert is_clear.mean() > 0.99
    return rows[is_clear]


def needs(*modules):
    """Before anything is fitted."""
    return pytest.mark.skipif(any(find_spec(name) is None for name in modules), reason=f"needs {' and '.join(modules)}")


@needs("skl2onnx", "onnxruntime")
def test_onnx_gives_the_labels_of_the_release(release, anywhere):
    import onnxruntime as runtime
    import skl2onnx

    kind = skl2onnx.common.data_types.DoubleTensorType
    made = skl2onnx.to_onnx(release.to_sklearn(clip=True), initial_types=[("rows", kind([None, 3]))])
    session = runtime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, {"rows": anywhere})[0].ravel(), release.predict(anywhere))


@needs("mlflow", "pandas")
def test_mlflow_keeps_a_model_that_gives_the_labels_of_the_release(release, anywhere, tmp_path):
    from mlflow import pyfunc, sklearn

    sklearn.save_model(release.to_sklearn(clip=True), tmp_path / "model", serialization_format="cloudpickle")
    for kept in (sklearn.load_model(tmp_path / "model"), pyfunc.load_model(str(tmp_path / "model"))):
        np.testing.assert_array_equal(kept.predict(anywhere), release.predict(anywhere))
