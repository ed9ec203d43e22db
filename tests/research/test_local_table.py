"""The table of local protocols: the made-up data are what the text says, and tables and pictures show what was played."""

import csv
import io

import numpy as np
import pytest

from kveil.research.local_report import as_markdown, records, svg
from kveil.research.local_table import DATA_FREE, PROTOCOLS, Cell, Size, data_free, made_up, play
from kveil.research.records import as_csv

pytestmark = pytest.mark.research

TINY = Size(shapes=((3, 2), (2, 5)), people=(1500,), epsilons=(0.125, 4.0), runs=2)


@pytest.fixture(scope="module")
def played():
    return play(TINY, lambda text, number, total: None)


def test_every_protocol_plays_wherever_its_columns_allow(played):
    names = {(cell.columns, cell.protocol) for cell in played}
    assert names == {(2, name) for name in (*PROTOCOLS, DATA_FREE)} | {
        (5, name) for name in (*PROTOCOLS, DATA_FREE) if name != "grid"
    }
    assert all(len(cell.ratios) == 2 and min(cell.ratios) > 0.9 for cell in played)
    default = [cell for cell in played if cell.default]
    assert len(default) == 4
    assert {cell.protocol for cell in default if cell.columns == 2} == {"refine"}  # few people: its cells are wide
    assert any(cell.refused for cell in default)


def test_rows_are_round_clusters_in_the_unit_ball_and_well_apart():
    rows, least = made_up(20_000, 4, 3, 7)
    assert np.linalg.norm(rows, axis=1).max() <= 1 + 1e-12
    assert least == pytest.approx(0.12**2, rel=0.05)
    again, _ = made_up(20_000, 4, 3, 7)
    assert (rows == again).all()
    crowded, _ = made_up(2_000, 16, 2, 1)  # they fit only if they may be nearer to each other
    assert crowded.shape == (2_000, 2)


def test_centres_that_saw_no_data_are_inside_the_ball():
    assert np.linalg.norm(data_free(5, 4, 0), axis=1).max() <= 1


def made_by_hand():
    common = {"k": 4, "columns": 2, "people": 1000, "seconds": 0.5}
    return [
        Cell("refine", epsilon=1.0, ratios=(1.5, 2.5), default=True, refused=True, forecast=2.0, **common),
        Cell("refine", epsilon=4.0, ratios=(1.1, 1.3), default=True, refused=False, forecast=1.1, **common),
        Cell("lma", epsilon=1.0, ratios=(3.0, 5.0), default=False, refused=False, forecast=None, **common),
        Cell("lma", epsilon=4.0, ratios=(2.0, 2.0), default=False, refused=False, forecast=None, **common),
    ]


def test_the_default_is_bold_and_says_where_it_would_be_refused():
    text = as_markdown(made_by_hand())
    assert "| 4, 2 | refinement in rounds | **2** (refused) | **1.2** |" in text
    assert "| 4, 2 | LMA, one round | 4 | 2 |" in text
    assert "## 1000 people, 2 run(s)" in text


def test_records_and_csv_hold_the_same_numbers():
    lines = list(csv.DictReader(io.StringIO(as_csv(records(made_by_hand())))))
    assert [float(line["median_ratio"]) for line in lines] == [2.0, 1.2, 4.0, 2.0]
    assert [line["forecast"] for line in records(made_by_hand())] == [2.0, 1.1, None, None]


def test_the_picture_names_everyone_and_the_promise(played):
    pytest.importorskip("matplotlib")
    drawn = svg(played, 1500).decode()
    assert drawn == svg(played, 1500).decode()
    for text in ("refinement in rounds", "one grid", "LAE, four rounds", DATA_FREE, "local model", "k = 3, 2 columns"):
        assert text in drawn
