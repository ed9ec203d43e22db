"""Drawings of trees: every node once, nothing wider or longer than asked for, files that are pictures."""

import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from kveil.errors import InvalidValue, MissingExtra
from kveil.partition.hst import Hst
from kveil.space.vectors import Euclidean


@pytest.fixture
def tree():
    return Hst.of(Euclidean(np.random.default_rng(0).random((40, 2))), random_state=1)


def test_a_small_tree_is_drawn_whole():
    tree = Hst.of(Euclidean([[0.0], [1.0], [8.0], [8.0], [8.25]]), levels=4, beta=1.0, random_state=5)
    assert str(tree).splitlines() == [
        "points: 5, leaves: 3, height: 2, factor of radii: 1",
        "4 places within 8.25",
        "|-- 2 places within 0.5156, around point 2",
        "`-- 2 places within 1.031",
        "    |-- point 1",
        "    `-- point 0",
    ]
    assert repr(tree) == "Hst(Euclidean(n_points=5, n_columns=1, step=0.000244141), 5 nodes, 3 leaves, height 2)"


def test_a_whole_drawing_has_one_line_a_node(tree):
    lines = tree.draw(height=1000).splitlines()
    assert len(lines) == 1 + tree.n_nodes
    assert sorted(line.split("-- ")[1] for line in lines if "-- point" in line) == sorted(f"point {u}" for u in range(40))
    assert "not shown" not in tree.draw(height=1000)


@pytest.mark.parametrize("height", [2, 3, 10, 25])
def test_a_drawing_keeps_to_its_room_and_counts_what_is_left_out(tree, height):
    lines = tree.draw(30, height).splitlines()
    assert len(lines) <= height
    assert max(map(len, lines)) <= 30
    assert "cells not shown" in tree.draw(100, height)


def test_a_picture_is_saved_as_svg_or_png(tree, tmp_path):
    drawn = tree.save_picture(tmp_path / "tree.svg")
    again = tree.save_picture(tmp_path / "again.svg")
    assert ElementTree.parse(drawn).getroot().tag.endswith("svg")
    assert drawn.read_bytes() == again.read_bytes()
    assert tree.save_picture(tmp_path / "tree.PNG").read_bytes().startswith(b"\x89PNG")
    large = Hst.of(Euclidean(np.random.default_rng(0).random((900, 2))), random_state=1)
    large.save_picture(tmp_path / "large.svg")
    one = Hst.of(Euclidean([[1.0], [1.0]]))
    one.save_picture(tmp_path / "one.svg")


def test_other_files_and_a_missing_library_are_refused_in_words(tree, tmp_path, monkeypatch):
    with pytest.raises(InvalidValue, match="svg"):
        tree.save_picture(tmp_path / "tree.pdf")
    with pytest.raises(InvalidValue, match="columns"):
        tree.draw(width=3)
    monkeypatch.delitem(sys.modules, "kveil.partition.tree_figure", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match="report"):
        tree.save_picture(tmp_path / "tree.svg")
    assert not list(tmp_path.iterdir())
