"""`Release.plot` and `to_geojson`: what is on the picture, in any shape, and what is refused."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from kveil import Graph, PrivateKMedian
from kveil.errors import InvalidValue
from kveil.release.look import DARK, LIGHT
from kveil.release.picture import scene
from kveil.solve.synopsis import Synopsis

pytest.importorskip("matplotlib")
from matplotlib.text import Text

from kveil.release import profile_figure

rng = np.random.default_rng(5)
SHAPES = [(1, 2), (12, 2), (50, 2), (7, 1), (8, 6), (3, 64)]


def boxes_of(figure, gid):
    renderer = figure.canvas.get_renderer()
    texts = [text for axes in figure.axes for text in axes.texts if text.get_gid() == gid]
    for text in texts:
        text.get_window_extent(renderer)  # puts words in their place, and counts the line to a point
    return [Text.get_window_extent(text, renderer) for text in texts]  # of the words alone


def overlap(boxes):
    return [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", [1, 2])
def test_labels_and_numbers_never_overlap(make, shape, seed):
    rng = np.random.default_rng(seed)
    figure = make(centers=rng.uniform(-4, 4, shape), weights=rng.dirichlet(np.ones(shape[0]))).plot()
    labels, numbers = boxes_of(figure, "label"), boxes_of(figure, "number")
    assert len(labels) == shape[0] if shape[1] <= 2 else len(numbers) == shape[0] * shape[1]
    assert not overlap(labels)
    assert not overlap(numbers)
    renderer = figure.canvas.get_renderer()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            ticks = [label.get_window_extent(renderer) for label in axis.get_ticklabels() if label.get_text()]
            assert not overlap(ticks if not any(label.get_rotation() for label in axis.get_ticklabels()) else [])


@pytest.mark.parametrize("centers", [np.zeros((6, 2)), np.ones((5, 4)), np.full((3, 1), 1e-9), np.full((2, 2), 1e250)])
@pytest.mark.parametrize("weights", [None, "zero"])
def test_equal_centres_and_missing_weights_are_drawn(make, tmp_path, centers, weights):
    given = None if weights is None else np.zeros(len(centers))
    make(centers=centers, weights=given, errors=None, parameters={}).plot(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_the_profile_is_coloured_by_distance_from_the_weighted_mean_in_spreads(make):
    """Two centres with weights 3 to 1 at 0 and 4: mean 1, spread sqrt(3)."""
    release = make(centers=[[0.0, 5.0, 1.0], [4.0, 5.0, 3.0]], weights=[0.75, 0.25], errors=[0.1, 10.0])
    shown = profile_figure.profile(release, scene(release))
    assert np.allclose(shown.away, [[-1 / np.sqrt(3), 0, -1 / np.sqrt(3)], [np.sqrt(3), 0, np.sqrt(3)]])
    assert shown.is_sure.tolist() == [[True, False, True], [False, False, False]]
    assert shown.texts[0][0] == "0.00" or shown.texts[0][0] == "0"


def test_a_profile_without_numbers_says_so_and_how_much_of_it_may_be_noise(make):
    def words(centers, **changes):
        return " ".join(text.get_text() for text in make(centers=centers, **changes).plot().texts).replace("\n", " ")

    left_out = "Numbers are left out: there are too many to read."
    assert left_out not in words(rng.uniform(-4, 4, (3, 6)))
    assert left_out in words(rng.uniform(-4, 4, (20, 40)), errors=None)
    half = np.where(np.arange(20)[:, None] < 10, rng.uniform(-4, 4, (20, 40)), 0.0)
    assert "noise alone could explain" in words(half, errors=np.full(20, 5.0))


def test_what_noise_could_explain_has_no_colour(make):
    release = make(centers=[[0.0, 5.0, 1.0], [4.0, 5.0, 3.0]], weights=[0.75, 0.25], errors=[0.1, 10.0])
    (cells,) = release.plot().axes[0].images
    assert (np.asarray(cells.get_array()) != 0).sum() == 2, "two numbers of the first centre differ by more than noise"


def test_numbers_are_written_as_people_do(make):
    release = make(centers=[[12437.0, 0.3123, 2e6], [99000.0, 0.0001, 1e6]], errors=None, parameters={})
    texts = profile_figure.profile(release, scene(release)).texts
    assert texts[0][0].replace("\u202f", " ") == "12 400"
    assert not any("e+" in text or "e-" in text for row in texts for text in row)


def test_a_theme_changes_lines_and_text_and_auto_follows_the_reader(make, tmp_path):
    release = make(centers=rng.uniform(-4, 4, (3, 2)))
    texts = {}
    for theme in ("light", "dark", "auto"):
        release.plot(tmp_path / f"{theme}.svg", theme=theme)
        texts[theme] = (tmp_path / f"{theme}.svg").read_text(encoding="utf-8")
        ET.fromstring(texts[theme])
    assert LIGHT.ink in texts["light"]
    assert DARK.ink in texts["dark"]
    assert LIGHT.ink not in texts["dark"]
    bare = re.sub(r"<style>.*?</style>", "", texts["auto"], count=1)
    assert not any(colour in bare for colour in vars(LIGHT).values())
    assert "prefers-color-scheme:dark" in texts["auto"]


def test_two_columns_of_many_make_a_map(make):
    release = make(centers=rng.uniform(-4, 4, (5, 6)))
    figure = release.plot(columns=("feature 2", 4))
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("feature 2", "feature 4")
    for columns in (("feature 2", "feature 2"), ("nobody",), (9,), (0, 1, 2), "ab"):
        with pytest.raises(InvalidValue, match="columns"):
            release.plot(columns=columns)


def test_the_picture_shows_the_part_of_wide_bounds_where_centres_and_rows_are(make):
    cells = Synopsis("cells", np.array([[1.0, 1.0], [3.0, 2.0]]), np.array([50.0, 40.0]), np.ones(2, dtype=bool),
                     np.full((2, 2), 0.5), 1.0, 90.0, 1.0)  # fmt: skip
    release = make(centers=[[1.0, 1.0], [3.0, 2.0]], synopsis=cells, parameters={"bounds": [-1000, 1000], "scaling": None})
    left, right = release.plot().axes[0].get_xlim()
    assert -20 < left < 1
    assert 3 < right < 20


def test_options_that_make_no_sense_are_refused_before_anything_is_drawn(make, tmp_path):
    for options in ({"theme": "blue"}, {"level": 1.0}, {"colour": 1}, {"universe": 3}):
        with pytest.raises(InvalidValue):
            make(centers=[[0.0, 0.0]]).plot(tmp_path / "a.svg", **options)
    with pytest.raises(InvalidValue, match="svg"):
        make().plot(tmp_path / "a.pdf")
    assert not list(tmp_path.iterdir())


def test_what_this_process_has_set_in_matplotlib_changes_nothing(make, tmp_path):
    from matplotlib import rc_context

    release = make(centers=rng.uniform(-4, 4, (3, 2)))
    release.plot(tmp_path / "a.svg")
    with rc_context({"font.size": 30, "axes.facecolor": "red", "text.usetex": False}):
        release.plot(tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.fixture(scope="module")
def town():
    xy = np.stack(np.meshgrid(np.linspace(10, 11, 8), np.linspace(50, 51, 8)), axis=-1).reshape(-1, 2)
    edges = [[i, j] for i in range(64) for j in (i + 1, i + 8) if j < 64 and (j % 8 or j == i + 8)]
    graph = Graph.from_edges(edges, xy=xy, degrees=True)
    return graph, PrivateKMedian(3, universe=graph, random_state=0).fit(rng.normal((10.3, 50.4), 0.1, (4000, 2))).release_


def test_a_release_on_a_graph_is_a_map_with_its_edges(town, tmp_path):
    graph, release = town
    figure = release.plot(tmp_path / "map.svg", universe=graph)
    assert "Lines: the public graph." in figure.get_supxlabel()
    (axes,) = figure.axes
    assert (axes.get_xlim()[0] <= 10, axes.get_xlim()[1] >= 11, axes.get_ylim()[1] >= 51) == (True, True, True), "all of it"
    assert not any(line.get_visible() for line in axes.get_xgridlines())
    assert not overlap(boxes_of(figure, "label"))
    release.save(tmp_path / "out")
    from kveil import load

    again = load(tmp_path / "out")
    assert np.array_equal(again.places, release.places)
    assert again.fingerprint() == release.fingerprint()
    other = Graph.from_edges([[0, 1]], xy=[[0, 0], [1, 1]])
    with pytest.raises(InvalidValue, match="not the universe"):
        again.plot(universe=other)


def test_geojson_of_a_graph_and_of_columns_in_degrees(town, make):
    graph, release = town
    told = json.loads(json.dumps(release.to_geojson()))
    assert told["type"] == "FeatureCollection"
    spots = [feature["geometry"]["coordinates"] for feature in told["features"]]
    assert np.allclose(spots, graph.points[release.centers])
    assert "ε = 1" in told["kveil"]["guarantee"]
    table = make(centers=[[51.5, -0.1, 7.0]], features=("latitude", "lon", "age"), parameters={})
    (point,) = table.to_geojson()["features"]
    assert point["geometry"]["coordinates"] == [-0.1, 51.5]
    assert point["properties"]["age"] == 7.0
    assert make(centers=[[-0.1, 51.5]], features=None).to_geojson()["features"][0]["geometry"]["coordinates"] == [-0.1, 51.5]


def test_geojson_of_what_is_not_in_degrees_is_refused(make):
    with pytest.raises(InvalidValue, match="degrees"):
        make(centers=[[500.0, 51.5]]).to_geojson()
    with pytest.raises(InvalidValue, match="Name them"):
        make().to_geojson()
    with pytest.raises(InvalidValue, match="no column"):
        make().to_geojson("nobody", 1)
    with pytest.raises(InvalidValue, match="universe"):
        make(centers=[1, 2]).to_geojson()


def drawn_map(make, high, names, centers):
    """The axes of a map between 0 and `high`, and how high it is over its width in pixels."""
    release = make(
        centers=np.array(centers, dtype=float),
        weights=None,
        errors=None,
        features=names,
        parameters={"bounds": [[0.0, 0.0], high]},
    )
    figure = release.plot()
    figure.canvas.draw()
    (axes,) = figure.axes
    box = axes.get_window_extent()
    return axes, box.height / box.width


def test_a_unit_is_as_long_on_both_axes_where_the_map_is_no_strip(make):
    axes, shape = drawn_map(make, [10.0, 10.0], ("x", "y"), [[1, 1], [9, 8]])
    across, up = np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim())
    assert shape == pytest.approx(up / across, rel=0.01)


@pytest.mark.parametrize("centers", [[[1, 5], [9, 5.1]], [[5, 1], [5.1, 9]]], ids=["flat", "tall"])
def test_centres_in_a_strip_fill_the_frame(make, centers):
    axes, shape = drawn_map(make, [10.0, 10.0], ("x", "y"), centers)
    assert 0.4 <= shape <= 2.1
    assert axes.get_aspect() == "auto"


@pytest.mark.parametrize("centers", [[[1, 5], [9, 5.1]], [[5, 1], [5.1, 9]]], ids=["flat", "tall"])
def test_places_in_a_strip_are_shown_with_what_is_around_them_and_not_stretched(make, centers):
    axes, shape = drawn_map(make, [10.0, 10.0], ("longitude", "latitude"), centers)
    across, up = np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim())
    assert shape == pytest.approx(axes.get_aspect() * up / across, rel=0.01)
    assert 0.39 <= shape <= 2.1


def test_columns_of_other_ranges_fill_the_frame(make):
    axes, shape = drawn_map(make, [90.0, 120_000.0], ("age", "pay"), [[20, 20_000], [60, 90_000]])
    assert axes.get_aspect() == "auto"
    assert 0.4 <= shape <= 2.1
