"""Pictures in a terminal and in files, from the release alone."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from kveil.errors import InvalidValue, MissingExtra
from kveil.release import save_picture, text_picture
from kveil.solve.synopsis import Synopsis

rng = np.random.default_rng(3)
SHAPES = [(1, 1), (6, 1), (1, 2), (8, 2), (5, 5), (60, 70)]


def test_a_picture_of_two_centres_worked_by_hand(make):
    release = make(
        centers=[[0.0, 0.0], [10.0, 5.0]], weights=[0.05, 0.95], features=("age", "pay"), parameters={"bounds": [[0, 0], [10, 5]]}
    )
    assert text_picture(release, width=24, height=8).splitlines() == [
        "pay (up)",
        "  +--------------------+",
        "5 |                   @|",
        "  |                    |",
        "0 |.                   |",
        "  +--------------------+",
        "  0        age        10",
        ". o O @ by weight",
    ]


def test_a_picture_on_a_line_worked_by_hand(make):
    release = make(centers=[[0.0], [5.0], [10.0]], weights=None, features=("age",), parameters={"bounds": [0, 10]})
    assert text_picture(release, width=25).splitlines() == [
        "o           o           o",
        "+-----------------------+",
        "0         age          10",
        "o a centre",
    ]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("size", [(64, 20), (24, 8), (120, 40)])
def test_a_picture_stays_within_its_frame(make, shape, weighted, size):
    changes = {} if weighted else {"weights": None}
    picture = text_picture(make(centers=rng.uniform(-4, 4, shape), **changes), *size)
    lines = picture.splitlines()
    assert len(lines) <= size[1]
    assert max(map(len, lines)) <= size[0]
    assert "-4" in picture


def test_centres_on_one_spot_are_counted_and_the_heaviest_is_seen(make):
    picture = text_picture(make(centers=np.zeros((3, 2)), weights=[0.9, 0.1, 0.0], features=None))
    assert "2 hidden" in picture
    assert [line.count("@") for line in picture.splitlines()[2:-3]].count(1) == 1


def test_names_cannot_steer_the_terminal(make):
    assert "\x1b" not in text_picture(make(features=("\x1b[31m", "a\nb", "c")))


def test_without_bounds_or_coordinates_there_is_still_something_to_see(make):
    assert "o" in text_picture(make(parameters={}, weights=None))
    assert "@" in text_picture(make(centers=[[3.0]], parameters={}))
    listed = text_picture(make(centers=list(range(30))), height=10)
    assert "weight" in listed
    assert "and 22 more" in listed
    assert len(listed.splitlines()) == 10


def test_a_picture_too_small_to_read_is_refused(make):
    with pytest.raises(InvalidValue):
        text_picture(make(), width=5)


@pytest.mark.parametrize("shape", [(6, 1), (8, 2), (5, 5)])
@pytest.mark.parametrize("weighted", [True, False])
def test_a_figure_carries_the_guarantee_and_no_date(make, tmp_path, shape, weighted):
    pytest.importorskip("matplotlib")
    changes = {} if weighted else {"weights": None}
    release = make(centers=rng.uniform(-4, 4, shape), **changes)
    path = save_picture(release, tmp_path / "figure.svg")
    assert ET.parse(path).getroot().tag.endswith("svg")
    text = path.read_text(encoding="utf-8")
    assert "(ε = 0.5, δ = 0) per record, add or remove, curator model." in text  # as a comment beside the outlines
    assert "dc:date" not in text
    assert save_picture(release, tmp_path / "again.svg").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("d", [1, 2])
def test_a_figure_of_few_features_shows_where_rows_are(make, tmp_path, d):
    pytest.importorskip("matplotlib")
    points, half = np.linspace(-3, 3, 4)[:, None] * np.ones(d), np.ones((4, d))
    synopsis = Synopsis("cells", points, np.array([5.0, 50.0, 5.0, -1.0]), np.ones(4, dtype=bool), half, 1.0, 60.0, 1.0)
    bare, drawn = (make(centers=np.zeros((1, d)), synopsis=given) for given in (None, synopsis))
    sizes = [save_picture(release, tmp_path / f"{n}.svg").stat().st_size for n, release in enumerate((bare, drawn))]
    assert sizes[1] > sizes[0] + 500
    save_picture(make(centers=np.zeros((1, d)), synopsis=synopsis, parameters={}), tmp_path / "no domain.svg")


def test_a_figure_can_be_a_png_and_takes_odd_names(make, tmp_path):
    pytest.importorskip("matplotlib")
    release = make(centers=rng.uniform(-4, 4, (50, 45)), features=tuple(f"$x^{place} 年" for place in range(45)))
    assert save_picture(release, tmp_path / "figure.PNG").read_bytes().startswith(b"\x89PNG")
    release = make(centers=rng.uniform(-4, 4, (3, 2)), features=("$", "\\frac{$"), parameters={})
    assert save_picture(release, tmp_path / "other.png").read_bytes().startswith(b"\x89PNG")


def test_other_suffixes_and_centres_without_coordinates_are_refused(make, tmp_path):
    with pytest.raises(InvalidValue, match="svg"):
        save_picture(make(), tmp_path / "figure.pdf")
    with pytest.raises(InvalidValue, match="coordinates"):
        save_picture(make(centers=[1, 2]), tmp_path / "figure.png")


@pytest.mark.parametrize(("named", "used"), [("module://matplotlib_inline.backend_inline", ""), ("svg", "svg")])
def test_a_backend_that_is_named_is_for_the_users_own_pictures(named, used, tmp_path):
    pytest.importorskip("matplotlib")
    script = """if True:
        import os
        from kveil._pictures import drawing
        drawing("kveil.release.figure")
        from matplotlib import get_backend
        print(os.environ["MPLBACKEND"], get_backend())"""
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "MPLBACKEND": named}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{named} {used}")


def test_without_matplotlib_the_error_says_what_to_install(make, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "kveil.release.figure", raising=False)
    with pytest.raises(MissingExtra, match=r'pip install "kveil\[report\]"') as caught:
        save_picture(make(), tmp_path / "figure.svg")
    assert caught.value.__context__ is None
    assert not (tmp_path / "figure.svg").exists()
