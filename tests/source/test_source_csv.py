"""A row of a CSV file is what its own line says, whatever the other lines hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil.errors import SourceError
from kveil.source import lines, read, text
from kveil.source import numbers as cells

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def rows_of(tmp_path):
    """The rows of a CSV file with this content, as lists with None for NaN."""

    def rows(content, **options):
        path = tmp_path / "t.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        found = [row for block in read(path, **options).raw_blocks() for row in block.tolist()]
        return [[None if np.isnan(x) else x for x in row] for row in found]

    return rows


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("a,b\n1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("a,b\r\n1,2\r\n3,4", [[1, 2], [3, 4]]),
        ("a,b\r1,2\r3,4\r", [[1, 2], [3, 4]]),
        ("\ufeffa,b\n1,2\n", [[1, 2]]),
        ("a,b\n\n1,2\n\n\n3,4\n\n", [[1, 2], [3, 4]]),
        ("a,b\n", []),
        ("a,b", []),
        ("a\n1\n\n2\n", [[1], [2]]),
        (" a ,b\n 1 ,\t2\n", [[1, 2]]),
        ("a,b\n1,2\n3\n4,5,6\n,\n", [[1, 2], [None, None]]),
        ("a,b\n1,NA\nnan,inf\n1_0,0x10\n1e5,-.5\n", [[1, None], [None, np.inf], [None, None], [1e5, -0.5]]),
        ('a,b\n"1","2"\n"3,5",4\n5,"""6"""\n', [[1, 2], [None, 4], [5, None]]),
        ('"a","b"\n1,2\n', [[1, 2]]),
        (b"a,b\n\xff\xfe,2\n1,\x00\n\xef\xbb\xbf3,4\n", [[None, 2], [1, None], [None, 4]]),
        (b'a,b\n\xef\xbb\xbf3,4\n1,"2"\n', [[None, 4], [1, 2]]),
    ],
)
def test_lines_become_rows(content, rows, rows_of):
    assert rows_of(content) == rows


def test_an_unbalanced_quote_affects_its_own_line_only(rows_of):
    before, after = "a,b\n1,2\n3,4\n5,6\n", 'a,b\n1,2\n"3,4\n5,6\n'
    assert rows_of(before) == [[1, 2], [3, 4], [5, 6]]
    assert rows_of(after) == [[1, 2], [5, 6]]
    assert rows_of('a,b\n1,2\n3,"4\n5,6\n') == [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize("line", [b"8765,M\xfcller,9", b"8765\xff", b"8765,\xed\xa0\x80,1", "8765,Müller,9".encode()])
def test_a_line_of_the_wrong_length_is_left_out_in_silence_in_whatever_encoding(line, rows_of, capfd):
    assert rows_of(b"a,b\n1,2\n" + line + b"\n3,\xff\n5,6\n") == [[1, 2], [3, None], [5, 6]]
    assert rows_of(b"a,b\n1,2\n" + line + b"\n5,6\n") == [[1, 2], [5, 6]]
    assert capfd.readouterr() == ("", "")


def test_what_pyarrow_refuses_is_split_by_hand(rows_of, monkeypatch):
    content = b"a,b\n1,2\n\n3\n4,5,6\n\xef\xbb\xbf3,4\n7,\xff\n"
    usual = rows_of(content)

    def stumble(*args, **options):
        raise ValueError("row 87654321")

    monkeypatch.setattr(lines.pacsv, "read_csv", stumble)
    assert rows_of(content) == usual == [[1, 2], [None, 4], [7, None]]


def as_line_bytes(cell):
    cell = cell.encode("utf-8", "surrogatepass") if isinstance(cell, str) else cell
    return cell.replace(b"\n", b"").replace(b"\r", b"")


CELL = st.one_of(
    st.floats().map(repr), st.integers().map(str), st.text('01.e+-_, "\tnaif\x00\ufeff', max_size=6), st.text(max_size=4),
    st.binary(max_size=4),
).map(as_line_bytes)  # fmt: skip
LINE = st.one_of(st.lists(CELL, min_size=2, max_size=2), st.lists(CELL, max_size=4)).map(b",".join)


def floats_of(some_lines):
    columns = lines.split_cells(b"\n".join(some_lines), lines.Shape(2), [0, 1])
    return np.stack([cells.from_text(column) for column in columns], axis=1)


@settings(max_examples=150, deadline=None)
@given(st.lists(LINE, max_size=8))
def test_every_line_is_read_as_if_it_stood_alone(some_lines):
    alone = [floats_of([line]) for line in some_lines]
    np.testing.assert_array_equal(floats_of(some_lines), np.concatenate([np.empty((0, 2)), *alone]))


@settings(max_examples=150, deadline=None)
@given(st.lists(LINE.filter(lambda line: b'"' not in line), max_size=8))
def test_the_fast_and_the_slow_way_give_the_same_cells(some_lines):
    fast = lines.split_cells(b"\n".join(some_lines), lines.Shape(2), [1, 0])
    slow = lines._mixed_cells([*some_lines, b'"7",8'], lines.Shape(2), [1, 0])
    by_hand = [line.split(b",") for line in some_lines if line and line.count(b",") == 1]
    for place, quick, careful in zip([1, 0], fast, slow, strict=True):
        assert as_bytes(quick) == [row[place] for row in by_hand]
        assert as_bytes(careful) == [row[place] for row in by_hand] + [[b"7", b"8"][place]]


def as_bytes(column):
    import pyarrow as pa

    return column.view(pa.binary()).to_pylist()


@settings(max_examples=150, deadline=None)
@given(st.lists(CELL, max_size=12))
def test_a_cell_is_parsed_the_same_whether_or_not_others_are_broken(some_cells):
    import pyarrow as pa

    column = pa.array(some_cells, pa.binary()).view(pa.string())
    alone = [cells.from_text(column.slice(place, 1))[0] for place in range(len(some_cells))]
    np.testing.assert_array_equal(cells.from_text(column), np.array(alone, dtype=float))


@settings(max_examples=100, deadline=None)
@given(st.lists(LINE, max_size=12), st.sampled_from([b"\n", b"\r", b"\r\n"]), st.booleans(), st.integers(1, 9))
def test_where_the_file_is_cut_does_not_matter(tmp_path_factory, some_lines, ending, has_last_end, step):
    path = tmp_path_factory.mktemp("cut") / "t.csv"
    path.write_bytes(ending.join([b"a,b", *some_lines]) + (ending if has_last_end else b""))
    layout = text._layout(path)
    ranges = [(start, min(start + step, layout.size)) for start in range(layout.begin, layout.size, step)]
    pieces = [as_bytes(text._columns(layout, part, ["b"])[0]) for part in ranges]
    whole = as_bytes(text._columns(layout, (layout.begin, layout.size), ["b"])[0])
    assert (
        [cell for piece in pieces for cell in piece]
        == whole
        == as_bytes(lines.split_cells(b"\n".join(some_lines), lines.Shape(2), [1])[0])
    )


def test_lines_beyond_the_limit_are_left_out_wherever_they_stand(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_LINE", 20)
    monkeypatch.setattr(text, "LONGEST_LINE", 20)
    path = tmp_path / "t.csv"
    for filler in ("7" * 18, "7" * 19, "7" * 60):
        for quote in ("", '"5",6\n'):
            path.write_text(f"a,b\n1,2\n{filler},1\n{quote}3,4\n{filler},1")
            layout = text._layout(path)
            expected = [b"2", *([b"1"] if len(filler) < 19 else []), *([b"6"] if quote else []), b"4"]
            expected += [b"1"] if len(filler) < 19 else []
            for step in (1, 5, 17, 1000):
                ranges = [(start, min(start + step, layout.size)) for start in range(layout.begin, layout.size, step)]
                found = [cell for part in ranges for cell in as_bytes(text._columns(layout, part, ["b"])[0])]
                assert found == expected


@pytest.mark.parametrize(
    "content",
    [b"", b"\n1,2\n", b"1,2\n3,4\n", b"a,7654\n1,2\n", b"a,\n1,2\n", b"a,a\n1,2\n", b"nan,b\n1,2\n", b"a,1_0\n",
     b"NA,b\n1,2\n", b"a, Null \n1,2\n", b"a,n/a\n", b"a,?\n", b"None,b\n",
     b"a,\xff\xfe\n1,2\n", b'a,"b\n1,2\n', "a,b\n1,2\n".encode("utf-16")],
)  # fmt: skip
def test_a_first_line_that_is_no_header_is_refused_without_quoting_it(content, rows_of):
    with pytest.raises(SourceError, match="header") as caught:
        rows_of(content)
    assert "7654" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("town,age\nParis,1\nRome,2\n", [[None, 1], [None, 2]]),
        ("town,age\n,1\nNA,2\n", [[None, 1], [None, 2]]),
        ("town,age\nParis,1\n75000,2\n", [[None, 1], [75000, 2]]),
        ("town,age\nParis,old\n", [[None, None]]),
    ],
)
def test_text_counts_as_missing_even_where_a_column_holds_nothing_else(content, rows, rows_of):
    assert rows_of(content) == rows
    assert rows_of(content, columns=["age"]) == [row[1:] for row in rows]


def test_opening_a_csv_reads_no_line_but_its_header(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "split_cells", None)  # reading cells would fail
    (tmp_path / "t.csv").write_text("id,a\n1,2\n")
    assert read(tmp_path / "t.csv", person="id").names == ("a",)
