"""Categories, missing cells and weights: what a row becomes depends on that row alone, and not on how the table comes in."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

import kveil
from kveil.errors import InvalidType, InvalidValue, SourceError
from kveil.source import read
from kveil.source.people import row_hashes

pytestmark = pytest.mark.filterwarnings("error")

HIGH = 1 / np.sqrt(2)
LEVELS = {"sex": ("female", "männlich"), "rooms": (1, 3.5)}
TABLE = pd.DataFrame({
    "age": [30.0, np.nan, 50.0, np.inf, 20.0, 60.0],
    "sex": ["female", "männlich", "Female", None, "", "männlich"],
    "rooms": [1.0, 3.5, 2.0, np.nan, 1.0, 3.5],
    "who": [1, 1, 1, 2, 2, 3],
    "copies": [2.0, 1.9, 9.0, np.nan, -1.0, 0.5],
})  # fmt: skip
FORMS = ["pandas", "objects", "categorical", "polars", "enum", "pyarrow", "dictionary", "csv", "parquet", "dask"]


def in_form(form, folder, frame=TABLE):
    frame = frame.assign(sex=frame["sex"].replace("", None))  # only a CSV cannot tell these apart
    if form == "objects":
        return frame.assign(sex=frame["sex"].astype(object), rooms=frame["rooms"].astype(object))
    if form == "categorical":
        return frame.assign(sex=frame["sex"].astype("category"))
    if form == "polars":
        return pl.from_pandas(frame)
    if form == "enum":
        return pl.from_pandas(frame).with_columns(pl.col("sex").cast(pl.Categorical))
    if form in ("pyarrow", "dictionary"):
        table = pa.Table.from_pandas(frame, preserve_index=False)
        place = table.column_names.index("sex")
        return table if form == "pyarrow" else table.set_column(place, "sex", table["sex"].dictionary_encode())
    if form == "csv":
        frame.to_csv(folder / "t.csv", index=False)
        return folder / "t.csv"
    if form == "parquet":
        frame.to_parquet(folder / "t.parquet", row_group_size=2)
        return folder / "t.parquet"
    if form == "dask":
        import dask.dataframe as dd

        return dd.from_pandas(frame, npartitions=3)
    return frame


def rows_of(data, **options):
    return np.concatenate(list(read(data, **options).raw_blocks()))


def expected(ages, sexes, rooms):
    """Rows from ages, and from the number of a level or None for the middle."""
    spread = {0: [HIGH, 0.0], 1: [0.0, HIGH], None: [HIGH / 2, HIGH / 2]}
    return np.array([[age, *spread[sex], *spread[room]] for age, sex, room in zip(ages, sexes, rooms, strict=True)])


CASES = {
    "middle": ({}, expected([30, np.nan, 50, np.inf, 20, 60], [0, 1, None, None, None, 1], [0, 1, None, None, 0, 1])),
    "drop": ({"missing": "drop"}, expected([30, 50, 60], [0, None, 1], [0, None, 1])),
    "values": (
        {"missing": {"age": 40, "sex": "männlich"}},
        expected([30, 40, 50, 40, 20, 60], [0, 1, None, 1, 1, 1], [0, 1, None, None, 0, 1]),
    ),
    "mean": (
        {"missing": "mean"}, expected([30, np.nan, 50, np.inf, 20, 60], [0, 1, None, None, None, 1], [0, 1, None, None, 0, 1])
    ),
}  # fmt: skip


@pytest.mark.parametrize(("form", "case"), [(form, case) for form in FORMS for case in CASES if form != "dask" or case == "drop"])
def test_every_form_of_a_table_gives_the_same_rows(form, case, tmp_path):
    options, rows = CASES[case]
    source = read(in_form(form, tmp_path), columns=["age", "sex", "rooms"], categories=LEVELS, **options)
    assert source.names == ("age", "sex=female", "sex=männlich", "rooms=1", "rooms=3.5")
    assert [(block.column, block.first, block.levels) for block in source.blocks] == [
        ("sex", 1, ("female", "männlich")), ("rooms", 3, ("1", "3.5")),
    ]  # fmt: skip
    np.testing.assert_array_equal(np.concatenate(list(source.raw_blocks())), rows)


@pytest.mark.parametrize("case", CASES)
def test_a_row_becomes_the_same_alone_and_among_others(case):
    options = {"columns": ["age", "sex", "rooms"], "categories": LEVELS, **CASES[case][0]}
    alone = [rows_of(TABLE.iloc[i : i + 1], **options) for i in range(len(TABLE))]
    np.testing.assert_array_equal(np.concatenate(alone), rows_of(TABLE, **options))
    shuffled = np.random.default_rng(0).permutation(len(TABLE))
    np.testing.assert_array_equal(rows_of(TABLE.iloc[shuffled], **options), np.concatenate([alone[i] for i in shuffled]))


def test_two_levels_are_as_far_apart_as_the_weight_says():
    rows = rows_of(TABLE[["sex"]], categories={"sex": LEVELS["sex"]}, category_weight=3.0)
    assert np.linalg.norm(rows[0] - rows[1]) == pytest.approx(3.0)
    assert np.linalg.norm(rows[0] - rows[2]) == np.linalg.norm(rows[1] - rows[2])


def test_an_array_of_numbers_has_categories_by_number():
    table = np.array([[5.0, 2.0], [6.0, 0.0], [7.0, np.nan]])
    source = read(table, categories={1: (0, 1, 2)})
    assert (source.names, source.n_columns) == (None, 4)
    np.testing.assert_array_equal(
        np.concatenate(list(source.raw_blocks())), [[5, 0, 0, HIGH], [6, HIGH, 0, 0], [7, HIGH / 3, HIGH / 3, HIGH / 3]]
    )


def test_a_level_that_is_a_number_is_missing_where_the_cell_is():
    table = pd.DataFrame({"rooms": [1.0, np.nan, 2.0]})
    levels = {"rooms": LEVELS["rooms"]}
    assert len(rows_of(table, categories=levels, missing="drop")) == 2  # 2 is no level, which is not missing
    np.testing.assert_array_equal(
        rows_of(table, categories=levels, missing={"rooms": 3.5}), [[HIGH, 0], [0, HIGH], [HIGH / 2, HIGH / 2]]
    )


def kept(data, **options):
    """The rows that stay of every person, in integers."""
    source = read(data, person="who", **options)
    grid = kveil.kernel.grid.Box([0.0] * source.n_columns, [200.0] * source.n_columns, 20)
    return source.map_reduce(lambda block, state: (block.astype(np.int64).sum(axis=0), np.array([len(block)])), None, grid=grid)


@pytest.mark.parametrize("form", ["pandas", "polars", "csv", "parquet"])
def test_rows_are_left_out_before_a_person_is_bounded(form, tmp_path):
    """Person 1 has a complete row and one that is not: with one row each the complete one stays, whatever the hashes say."""
    for seed in range(8):
        age = np.random.default_rng(seed).uniform(10, 90)
        table = pd.DataFrame({"age": [age, np.nan, np.nan, 30.0], "b": [1.0, 2.0, 3.0, 4.0], "who": [1, 1, 2, 3]})
        if form == "polars":
            data = pl.from_pandas(table)
        elif form in ("csv", "parquet"):
            data = tmp_path / f"{seed}.{form}"
            table.to_csv(data, index=False) if form == "csv" else table.to_parquet(data)
        else:
            data = table
        assert kept(data, missing="drop")[1].tolist() == [2]


def test_dask_leaves_the_same_rows_out_and_repeats_the_same_ones():
    import dask.dataframe as dd

    table = TABLE.drop(columns=["sex"])
    options = {"categories": {"rooms": LEVELS["rooms"]}, "missing": "drop", "weight": "copies", "max_rows_per_person": 3}
    source = read(dd.from_pandas(table, npartitions=3), person="who", **options)
    grid = kveil.kernel.grid.Box([0.0] * 3, [200.0] * 3, 20)
    found = source.map_reduce(sums, None, grid=grid)
    assert [a.tolist() for a in found] == [a.tolist() for a in kept(table, **options)]


def sums(block, state):
    return block.astype(np.int64).sum(axis=0), np.array([len(block)])


def test_a_weight_repeats_a_row_and_a_person_weighs_no_more_than_allowed():
    """Of person 1 rows of weight 2, 1.9 and 9: 2 + 1 + 5 copies, of which 5 count. The others weigh nothing."""
    options = {"columns": ["age", "rooms"], "weight": "copies", "max_rows_per_person": 5}
    assert kept(TABLE.fillna({"age": 1.0}), **options)[1].tolist() == [5]
    rows = rows_of(TABLE, person="who", **options)
    assert rows[:, 1].tolist() == [1.0] * 2 + [3.5] + [2.0] * 5
    assert len(set(row_hashes(rows).tolist())) == 3


def test_copies_come_in_blocks_no_larger_than_others():
    """Whatever the weights are, so that they cannot fill the memory."""
    table = pd.DataFrame({"a": np.arange(50.0), "who": range(50), "copies": 1e9})
    source = read(table, person="who", max_rows_per_person=100, weight="copies")
    source._block_rows = 64
    sizes = [len(block) for block in source.raw_blocks()]
    assert (max(sizes), sum(sizes)) == (64, 5000)
    grid = kveil.kernel.grid.Box([0.0], [200.0])
    assert source.map_reduce(sums, None, grid=grid)[1].tolist() == [5000]


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        ({"categories": ["sex"]}, InvalidType, "categories must be"),
        ({"categories": {"sex": "female"}}, InvalidType, "must be a list"),
        ({"categories": {"sex": ()}}, InvalidType, "at least one"),
        ({"categories": {"sex": ("female", 1)}}, InvalidType, "must be text, or finite numbers"),
        ({"categories": {"sex": (True, False)}}, InvalidType, "must be text, or finite numbers"),
        ({"categories": {"rooms": (1, np.nan)}}, InvalidType, "finite numbers"),
        ({"categories": {"sex": ("a", "a")}}, InvalidValue, "differ from each other"),
        ({"categories": {"rooms": tuple(range(1001))}}, InvalidValue, "at most 1000"),
        ({"categories": {"town": ("a", "b")}}, SourceError, "no column"),
        ({"categories": {"sex": ("a", "b")}, "columns": ["age"]}, SourceError, "not in use"),
        ({"categories": {"age": ("a", "b")}, "columns": ["age"]}, SourceError, "are text, and the column is of type"),
        ({"categories": {"sex": (1, 2)}, "columns": ["sex"]}, SourceError, "do not hold numbers"),
        ({"category_weight": 0}, InvalidValue, "category_weight"),
        ({"category_weight": True}, InvalidValue, "category_weight"),
        ({"category_weight": "1"}, InvalidValue, "category_weight"),
        ({"missing": "zero"}, InvalidValue, "missing must be"),
        ({"missing": None}, InvalidValue, "missing must be"),
        ({"missing": {"age": np.nan}}, InvalidValue, "finite number"),
        ({"missing": {"age": True}}, InvalidValue, "finite number"),
        ({"missing": {"town": 1}, "columns": ["age"]}, InvalidValue, "not in use"),
        ({"missing": {"age": "old"}, "columns": ["age"]}, InvalidValue, "must give a number"),
        ({"missing": {"sex": "x"}, "columns": ["sex"], "categories": {"sex": ("a",)}}, InvalidValue, "one of the levels"),
        ({"weight": "copies"}, InvalidValue, "needs|Pass person"),
        ({"weight": "copies", "person": "who", "max_rows_per_person": 101}, InvalidValue, "at most 100"),
        ({"weight": 1.5, "person": "who"}, InvalidType, "column of weights"),
        ({"weight": "who", "person": "who"}, SourceError, "cannot be anything else"),
        ({"weight": "copies", "person": "who", "columns": ["age", "copies"]}, SourceError, "cannot be anything else"),
    ],
    ids=str,
)
def test_bad_options_are_refused_by_public_facts(options, error, why):
    with pytest.raises(error, match=why):
        read(TABLE, **options)


def test_text_in_arrays_and_sparse_rows_are_refused():
    with pytest.raises(SourceError, match="are text"):
        read(np.zeros((2, 2)), categories={0: ("a", "b")})
    for options in ({"missing": "drop"}, {"categories": {0: (0, 1)}}):
        with pytest.raises(SourceError, match="dense tables"):
            read(csr_array(np.eye(2)), **options)
    source = read(TABLE[["age"]], missing="drop")
    with pytest.raises(InvalidValue, match="a source already"):
        read(source, missing="drop")
    with pytest.raises(InvalidValue, match="as a level of a category"):
        read(TABLE[["sex"]].assign(**{"sex=female": 0.0}), categories={"sex": LEVELS["sex"]})
