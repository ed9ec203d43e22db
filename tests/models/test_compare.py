"""Methods are compared on rows that may be looked at, and nowhere else."""

import json

import numpy as np
import pytest

from kveil import PrivateKMeans, PrivateKMedian, compare
from kveil.errors import KveilError


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    places = rng.uniform(-0.8, 0.8, (3, 4))
    return np.clip(places[rng.integers(3, size=800)] + 0.05 * rng.standard_normal((800, 4)), -1, 1)


def test_every_method_is_tried_or_says_why_not(rows):
    found = compare(PrivateKMeans(3, epsilon=5.0, bounds=(-1, 1)), rows, n_runs=2, random_state=0)
    assert {*found.found, *found.refused} == set(PrivateKMeans.methods)
    assert set(found.refused) == {"grid", "spherical"}  # for at most 3 columns; for directions
    assert found.best == "tree"
    assert found.found["mean"].ratio > 5
    assert all(len(trial.ratios) == 2 and min(trial.seconds) > 0 for trial in found.found.values())


def test_it_says_loudly_that_choosing_is_a_release(rows):
    found = compare(PrivateKMeans(3, epsilon=5.0, bounds=(-1, 1)), rows, methods=["mean", "tree"], n_runs=2)
    words, plain = str(found), json.loads(json.dumps(found.to_dict()))
    assert "IS ITSELF A RELEASE" in words
    assert "IS ITSELF A RELEASE" in plain["warning"]
    assert "itself a release" in compare.__doc__
    lines = words.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["method", "tree", "mean"]  # the best first
    assert plain["best"] == "tree"
    assert plain["methods"]["mean"]["error"] == pytest.approx(found.found["mean"].error)


def test_models_by_name_and_for_more_rows_than_there_are(rows):
    models = {
        "medians": PrivateKMedian(3, epsilon=0.05, bounds=(-1, 1)),
        "pure": PrivateKMeans(3, epsilon=0.05, bounds=(-1, 1)),
        "Gaussian": PrivateKMeans(3, epsilon=0.05, delta=1e-6, bounds=(-1, 1)),
    }
    found = compare(models, rows, rows=80_000, n_runs=1)
    assert set(found.found) == set(models)
    assert found.found["pure"].used == pytest.approx(5.0)
    assert found.found["Gaussian"].used > 5.0


def test_a_release_is_compared_on_its_own_sample(rows):
    model = PrivateKMeans(3, epsilon=5.0, bounds=(-1, 1), random_state=0)
    found = compare(model, model.fit(rows).release_, methods=["tree"], n_runs=1)
    assert (found.n_rows, found.of_release) == (20_000, True)
    assert "synthetic rows of a release" in str(found)


@pytest.mark.parametrize(
    ("options", "says"), [({"method": "sample-aggregate"}, "no synopsis|none"), ({"epsilon": float("inf")}, "without noise")]
)
def test_a_release_without_a_sample_that_may_be_shown_is_refused(rows, options, says):
    release = PrivateKMeans(**{"n_clusters": 3, "epsilon": 5.0, "bounds": (-1, 1), **options}).fit(rows).release_
    with pytest.raises(KveilError, match=says):
        compare(PrivateKMeans(3, bounds=(-1, 1)), release)


@pytest.mark.parametrize(
    ("model", "terms", "says"),
    [
        (PrivateKMeans(3, bounds=(-1, 1)), {"methods": ["trees"]}, "no method 'trees'"),
        (PrivateKMeans(3, bounds=(-1, 1)), {"methods": "tree"}, "list of names"),
        (PrivateKMeans(3, bounds=(-1, 1)), {"methods": ["grid"]}, "no method can be fitted"),
        (PrivateKMeans(3), {}, "no method can be fitted"),
        ({}, {}, "there must be a model"),
        ("tree", {}, "the model must be"),
        (PrivateKMeans(3, bounds=(-1, 1)), {"rows": 0}, "rows must be a public number"),
        (PrivateKMeans(3, bounds=(-1, 1)), {"n_runs": 0}, "n_runs"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused_with_a_reason(model, terms, says, rows):
    with pytest.raises(KveilError, match=says):
        compare(model, rows, **terms)
