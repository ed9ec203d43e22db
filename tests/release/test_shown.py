"""A release in a notebook, as a frame, and as a model of scikit-learn."""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.cluster import KMeans
from sklearn.pipeline import Pipeline

from kveil import Graph, PrivacyUnit, PrivateKMeans, PrivateKMedian, StreamKMeans, read
from kveil.errors import InvalidValue, MissingExtra
from kveil.release.shown import MOST_CENTERS, MOST_COLUMNS, centers_table, with_error
from kveil.release.words import promise
from kveil.solve.synopsis import Step, of_steps
from kveil.testing import scripted

UNEVEN = ([-5.0, -50.0, -5.0], [15.0, 50.0, 15.0])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(middle, 1.0, (700, 3)) for middle in (0, 5, 9)])


@pytest.fixture(scope="module")
def fitted(rows):
    def fit(**options):
        table = pd.DataFrame(rows, columns=["age", "<b>&", "weight"])
        return PrivateKMeans(**{"n_clusters": 4, "epsilon": 3.0, "bounds": UNEVEN, "random_state": 0, **options}).fit(table)

    return fit


@pytest.fixture(scope="module")
def release(fitted):
    return fitted().release_


@pytest.fixture(scope="module")
def on_graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "roads.txt"
    path.write_text("a b\nb <i>\n")
    graph = Graph.read(path)
    return PrivateKMedian(2, universe=graph, method="counts", random_state=0).fit(graph.find(["a", "b", "b"])).release_


@pytest.fixture(scope="module")
def on_map():
    streets = Graph.from_edges([[0, 1], [1, 2]], xy=[[0.0, 5.0], [10.0, 5.0], [20.0, 7.5]])
    return PrivateKMedian(2, universe=streets, method="counts", epsilon=9.0, random_state=0).fit([0] * 300 + [2] * 300).release_


class TestFrame:
    def test_every_library_gets_the_same_table(self, release):
        frames = {name: release.to_frame(name) for name in ("pandas", "polars", "pyarrow")}
        assert [type(frame) for frame in frames.values()] == [pd.DataFrame, pl.DataFrame, pa.Table]
        names = ["age", "<b>&", "weight", "kveil_weight", "error"]
        assert list(frames["pandas"].columns) == frames["polars"].columns == frames["pyarrow"].column_names == names
        for frame in (frames["pandas"], frames["polars"], frames["pyarrow"].to_pandas()):
            np.testing.assert_array_equal(np.asarray(frame)[:, :3], release.centers)
            np.testing.assert_array_equal(np.asarray(frame)[:, 3:], np.column_stack([release.weights, release.errors]))

    def test_points_of_a_universe_have_an_index_and_a_name(self, on_graph):
        frame = on_graph.to_frame()
        assert list(frame.columns) == ["index", "weight", "name"] or list(frame.columns) == ["index", "name"]
        assert frame["index"].tolist() == on_graph.centers.tolist()
        assert frame["name"].tolist() == list(on_graph.names)

    def test_points_of_a_universe_have_their_coordinates(self, on_map):
        frame = on_map.to_frame()
        assert frame[["x", "y"]].to_numpy().tolist() == on_map.places.tolist()

    def test_without_pandas_it_is_a_pyarrow_table(self, release, monkeypatch):
        monkeypatch.setattr("kveil.release.frame.find_spec", lambda name: None)
        assert isinstance(release.to_frame(), pa.Table)
        with pytest.raises(MissingExtra, match="pip install polars"):
            release.to_frame("polars")

    def test_another_library_is_refused(self, release):
        with pytest.raises(InvalidValue, match="backend must be"):
            release.to_frame("dask")


class TestScikitLearn:
    def test_a_kmeans_gives_the_labels_of_the_release_inside_the_bounds(self, release):
        inside = np.random.default_rng(1).uniform(*UNEVEN, (5000, 3))
        model = release.to_sklearn()
        assert type(model) is KMeans
        np.testing.assert_array_equal(model.predict(pd.DataFrame(inside, columns=release.features)), release.predict(inside))
        np.testing.assert_array_equal(model.cluster_centers_, release.centers)
        assert not hasattr(model, "labels_"), "it was fitted to no rows"

    @pytest.mark.parametrize(
        "options", [{}, {"bounds": (-5, 15)}, {"scaling": "bounds"}, {"scaling": "private"}, {"metric": "cosine", "bounds": None}]
    )
    def test_a_pipeline_gives_the_labels_of_the_release_everywhere(self, options, fitted):
        more = {"delta": 1e-6} if "metric" in options else {}
        release = fitted(**options, **more).release_
        anywhere = np.random.default_rng(2).normal(5, 30, (5000, 3))
        model = release.to_sklearn(clip=True)
        assert type(model) is Pipeline
        assert all(type(step).__module__.startswith("sklearn.") for _, step in model.steps), "others know these classes"
        again = pickle.loads(pickle.dumps(model))
        rows = pd.DataFrame(anywhere, columns=release.features) if "metric" not in options else anywhere
        np.testing.assert_array_equal(again.predict(rows), release.predict(anywhere))

    def test_what_kmeans_cannot_be_is_refused(self, fitted, on_graph):
        for options in ({"scaling": "bounds"}, {"metric": "cosine", "bounds": None, "delta": 1e-6}):
            with pytest.raises(InvalidValue, match="clip=True"):
                fitted(**options).release_.to_sklearn()
        with pytest.raises(InvalidValue, match="clips rows to a ball"):
            fitted(bounds=None, radius=50.0).release_.to_sklearn(clip=True)
        with pytest.raises(InvalidValue, match="points of a public universe"):
            on_graph.to_sklearn()

    def test_centres_that_are_equal_are_kept(self, rows):
        release = PrivateKMeans(3, epsilon=1.0, bounds=(-5, 15), method="mean").fit(rows).release_
        np.testing.assert_array_equal(release.to_sklearn().cluster_centers_, release.centers)

    def test_nothing_else_is_needed(self, release):
        release.to_sklearn()
        assert not {"skl2onnx", "onnx", "mlflow"} & set(sys.modules)


class TestNotebook:
    def test_a_release_and_its_model_show_centres_verdict_and_promise_escaped(self, fitted):
        model = fitted()
        for shown in (model.release_._repr_html_(), model._repr_html_(), model._repr_mimebundle_()["text/html"]):
            assert "&lt;b&gt;&amp;" in shown
            assert "<th><b>" not in shown
            assert "Promise: epsilon = 3" in shown
            assert "Verdict: " in shown

    def test_before_a_fit_there_are_parameters_alone(self):
        for model in (PrivateKMeans(3), StreamKMeans(3)):
            assert "Promise" not in model._repr_html_()
            assert "n_clusters" in model._repr_html_()

    def test_a_guarantee_and_a_graph_are_escaped(self, release, on_graph):
        assert release.guarantee._repr_html_().startswith("<pre>epsilon = 3")
        named = PrivateKMeans(2, bounds=(0, 1)).fit(pd.DataFrame({"a": [0.5]})).guarantee_
        assert "<i>" not in named._repr_html_()
        people = replace(release.guarantee, unit=PrivacyUnit("person", 2, "<script>&lt;"))
        assert '"&lt;script>&amp;lt;"' in people._repr_html_(), "the name of the column of ids"
        assert "<i>" not in on_graph._repr_html_()

    def test_a_table_for_people_is_not_larger_than_a_screen(self):
        with scripted(1):
            many = PrivateKMeans(MOST_CENTERS + 2, epsilon=9.0, bounds=(0, 1), random_state=0)
            release = many.fit(np.random.default_rng(0).uniform(size=(500, MOST_COLUMNS + 3))).release_
        table = centers_table(release)
        assert len(table.rows) == MOST_CENTERS
        assert table.left_out == "Not shown: 2 more centres and 3 more columns."

    def test_centres_on_a_map_have_their_coordinates(self, on_map):
        table = centers_table(on_map)
        assert table.header[:5] == ("centre", "share", "point", "x", "y")
        assert {row[2:5] for row in table.rows} == {("0", "0", "5"), ("2", "20", "7.5")}
        assert table.left_out == ""
        assert '<th scope="col">point</th><th scope="col">x</th><th scope="col">y</th>' in on_map.report()

    def test_numbers_have_the_digits_that_noise_leaves(self):
        assert with_error(1234.5678, 0.0) == "1234.57"
        assert with_error(-0.001, 20.0) == "0 ± 20"
        assert with_error(1e15, 1.0) == "1e+15 ± 1"
        assert with_error(0.00123456, 0.0000123) == "0.001235 ± 0.000012"
        assert with_error(8.90301, 0.00996) == "8.903 ± 0.010"

    @pytest.mark.parametrize(("deviation", "shares"), [(1.0, ["70.0 %", "0.0 %"]), (40.0, ["70 %", "0 %"])])
    def test_shares_have_the_digits_that_noise_in_counts_leaves(self, release, deviation, shares):
        step = Step(np.array([700.0, 0.03, 299.97]), deviation, np.full(3, 0.1))
        synopsis = of_steps(1, (step,), 1000.0, 1.0)
        noisy = replace(
            release, centers=[[0.1], [0.2], [0.3]], weights=step.counts / 1000, errors=None, features=("x",), synopsis=synopsis
        )
        assert [row[1] for row in centers_table(noisy).rows][:2] == shares
        assert ">0.003 %<" not in noisy.report()

    def test_levels_of_a_category_are_shares_and_have_no_bounds(self):
        table = {"age": [20.0, 60.0] * 500, "work": ["shop", "farm"] * 500}
        source = read(pd.DataFrame(table), categories={"work": ["shop", "farm"]})
        with scripted(1):
            release = PrivateKMeans(2, epsilon=8, bounds=(0, 100), scaling="bounds").fit(source).release_
        assert {row[3:5] for row in centers_table(release).rows} == {("100 %", "0 %"), ("0 %", "100 %")}
        assert 'bounds: "age" low 0, high 100' in release.notes

    def test_a_promise_is_two_lines_and_says_when_it_is_not_valid(self, release, rows):
        assert len(promise(release.guarantee)) == 2
        with scripted(1):
            first, *_ = promise(PrivateKMeans(2, bounds=(0, 1)).fit(rows[:, :1]).guarantee_)
        assert first.startswith("NOT VALID: the noise was scripted")


@pytest.mark.parametrize(("name", "instead"), [("labels_", "predict"), ("inertia_", "score")])
def test_what_is_not_kept_says_why_and_what_to_use(name, instead, fitted):
    model = fitted()
    assert not hasattr(model, name)
    with pytest.raises(AttributeError, match=f"keeps no {name}.*not private.*{instead}"):
        getattr(model, name)
