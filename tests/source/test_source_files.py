"""Files people have: packed, with other delimiters, Feather, several as one table, at a URL. And what is refused."""

from __future__ import annotations

import gzip
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pytest

from kveil import Ledger, PrivateKMeans
from kveil.errors import InvalidValue, MissingExtra, SourceError
from kveil.source import lines, packed, read, text
from kveil.source.places import Url, called

NAMES = ["age", "height", "weight"]


def rows_of(source):
    return np.concatenate([np.empty((0, source.n_columns)), *source.raw_blocks()])


def as_text(table, delimiter=","):
    frame = pd.DataFrame(table, columns=NAMES[: table.shape[1]])
    return frame.to_csv(index=False, sep=delimiter).encode()


@pytest.mark.parametrize("delimiter", [";", "|", "\t", ":", " "])
def test_any_delimiter_gives_the_same_rows(delimiter, table, tmp_path):
    (tmp_path / "t.csv").write_bytes(as_text(table(50), delimiter))
    np.testing.assert_array_equal(rows_of(read(tmp_path / "t.csv", delimiter=delimiter)), table(50))


def test_a_cell_in_quotes_may_hold_the_delimiter(tmp_path):
    (tmp_path / "t.csv").write_text('a;"b;c"\n1;2\n"3;5";4\n5;"6"\n7;8;9\n')
    found = read(tmp_path / "t.csv", delimiter=";")
    assert found.names == ("a", "b;c")
    np.testing.assert_array_equal(rows_of(found), [[1, 2], [np.nan, 4], [5, 6]])


@pytest.mark.parametrize(("header", "other"), [("age;height", ";"), ("age\theight", "\t"), ("a;b,5;c", ";"), ("age|height", "|")])
def test_a_header_with_another_delimiter_is_refused_with_a_hint(header, other, tmp_path):
    (tmp_path / "t.csv").write_text(f"{header}\n1{other}2\n")
    with pytest.raises(SourceError, match="If it stands between columns, pass delimiter=") as caught:
        read(tmp_path / "t.csv")
    assert f"delimiter={other!r}" in str(caught.value)
    assert ("3,14 would count as missing" in str(caught.value)) == (other == ";"), "where ; stands, decimal commas are usual"
    assert "age" not in str(caught.value), "the first line may be a row"
    assert read(tmp_path / "t.csv", delimiter=other).n_columns == header.count(other) + 1
    assert read(tmp_path / "t.csv", delimiter=",").n_columns == header.count(",") + 1, "who says so is believed"


def test_a_tsv_with_commas_in_its_header_is_refused_with_a_hint(tmp_path):
    (tmp_path / "t.tsv").write_text("a,b,c\n1,2,3\n")
    with pytest.raises(SourceError, match="pass delimiter=','"):
        read(tmp_path / "t.tsv")


@pytest.mark.parametrize("delimiter", ["", ",,", "a", "1", '"', "'", "\n", "\r", ".", "-", "+", "_", "\0", "é", b",", 5, True])
def test_what_is_no_delimiter_is_refused(delimiter, tmp_path):
    with pytest.raises(InvalidValue, match="delimiter must be one character"):
        read(tmp_path / "no such", delimiter=delimiter)


def test_a_delimiter_is_for_text_files_alone(tmp_path):
    np.save(tmp_path / "t.npy", np.ones((2, 2)))
    for data in (tmp_path / "t.npy", np.ones((2, 2)), pd.DataFrame({"a": [1.0]})):
        with pytest.raises(InvalidValue, match=r"delimiter is for \.csv and \.tsv"):
            read(data, delimiter=";")


STORES = (("here", "a"), ("heretoo", "a"), ("here", "b"))


class TestPacked:
    def test_lines_are_those_of_the_file_unpacked_wherever_it_is_cut(self, tmp_path, monkeypatch):
        content = b'a,b\r\n1,2\n"3",4\r5,6\n\n7,8,9\n,\n10,11'
        (tmp_path / "t.csv").write_bytes(content)
        (tmp_path / "t.csv.gz").write_bytes(gzip.compress(content))
        expected = rows_of(read(tmp_path / "t.csv"))
        for step in (1, 2, 3, 7, 100):
            monkeypatch.setattr(text, "_step", lambda *_, step=step: step)
            np.testing.assert_array_equal(rows_of(read(tmp_path / "t.csv.gz")), expected)

    def test_lines_beyond_the_limit_are_left_out_without_a_word(self, tmp_path, monkeypatch, caplog, recwarn):
        caplog.set_level(0)
        for module in (lines, text, packed):
            monkeypatch.setattr(module, "LONGEST_LINE", 20)
        content = f"a,b\n1,2\n{'7' * 60},1\n3,4\n5,6\n{'7' * 60},1".encode()
        (tmp_path / "t.csv.gz").write_bytes(gzip.compress(content))
        for step in (*range(1, 40), 1000):  # the end of such a line, with others behind it, may be in one piece
            monkeypatch.setattr(text, "_step", lambda *_, step=step: step)
            assert rows_of(read(tmp_path / "t.csv.gz")).tolist() == [[1, 2], [3, 4], [5, 6]]
        assert not caplog.records
        assert not recwarn

    def test_several_members_are_one_file(self, tmp_path):
        (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"3,4\n"))
        assert rows_of(read(tmp_path / "t.csv.gz")).tolist() == [[1, 2], [3, 4]]

    @pytest.mark.parametrize(
        "content",
        [b"", b"a,b\n1,2\n", gzip.compress(b"a,b\n1,2\n")[:-12], gzip.compress(b"1,2\n")],
        ids=["empty", "plain", "cut off", "no header"],  # what gzip makes has the time in it, and workers must agree on names
    )
    def test_what_is_not_packed_or_has_no_header_is_refused_when_it_is_opened(self, content, tmp_path):
        (tmp_path / "t.csv.gz").write_bytes(content)
        with pytest.raises(SourceError):
            read(tmp_path / "t.csv.gz")

    def test_damage_in_rows_is_said_without_quoting_them(self, tmp_path):
        whole = gzip.compress(b"a,b\n" + os.urandom(2**16).hex().encode() + b"\n")
        (tmp_path / "t.csv.gz").write_bytes(whole[:-200])
        with pytest.raises(SourceError, match=r"cannot be read|is damaged") as caught:
            PrivateKMeans(2, bounds=(0, 1)).fit(tmp_path / "t.csv.gz")
        assert caught.value.__context__ is None


class TestFeather:
    @pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
    def test_batches_are_parts(self, compression, table, tmp_path):
        frame = pd.DataFrame(table(50), columns=NAMES)
        feather.write_feather(frame, tmp_path / "t.feather", compression=compression, chunksize=7)
        found = read(tmp_path / "t.feather")
        assert len(found.partitions()) == 8
        np.testing.assert_array_equal(rows_of(found), table(50))

    def test_ids_and_categories_are_read_as_of_parquet(self, tmp_path):
        frame = pd.DataFrame({"who": ["a", "a", "b", None], "sex": ["f", "m", "?", None], "age": [1, 2, None, 4]})
        frame.to_feather(tmp_path / "t.feather")
        frame.to_parquet(tmp_path / "t.parquet")
        options = {"person": "who", "max_rows_per_person": 2, "categories": {"sex": ("f", "m")}}
        one, other = (rows_of(read(tmp_path / f"t.{kind}", **options)) for kind in ("feather", "parquet"))
        np.testing.assert_array_equal(one, other)

    @pytest.mark.parametrize("kind", ["string", "large_string", "dictionary", "decimal"])
    def test_a_cell_that_breaks_its_type_is_what_a_row_holds_and_no_damage(self, kind, tmp_path):
        """No UTF-8, or a decimal longer than it may be. Other readers take such a row, and it must not end a fit."""
        raw = pa.array([b"a", b"b\xff", b"c"], pa.large_binary() if kind == "large_string" else pa.binary())
        text = raw.view(pa.large_string() if kind == "large_string" else pa.string())
        who = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), text, safe=False) if kind == "dictionary" else text
        long = pa.array(np.array([1, 2**60, 3]).astype("i8").tolist(), pa.decimal128(20, 0)).view(pa.binary(16))
        age = long.view(pa.decimal128(3, 0)) if kind == "decimal" else pa.array([1.0, 2.0, 3.0])
        feather.write_feather(pa.table({"who": who, "age": age}), tmp_path / "t.feather")
        assert len(rows_of(read(tmp_path / "t.feather", person="who"))) == 3

    def test_text_is_refused_by_its_declared_type(self, tmp_path):
        pd.DataFrame({"town": ["Paris"]}).to_feather(tmp_path / "t.feather")
        with pytest.raises(SourceError, match='"town"'):
            read(tmp_path / "t.feather")

    def test_a_wrong_offset_is_found_before_it_is_followed(self, tmp_path):
        """Text of a damaged file would otherwise be looked for anywhere in memory."""
        table = pa.table({"who": ["a" * 9, "b" * 9], "age": [1.0, 2.0]})
        feather.write_feather(table, tmp_path / "t.feather", compression="uncompressed")
        whole = (tmp_path / "t.feather").read_bytes()
        offsets = np.array([0, 9, 18], dtype=np.int32).tobytes()
        assert whole.count(offsets) == 1
        (tmp_path / "t.feather").write_bytes(whole.replace(offsets, np.array([0, 2**30, 18], dtype=np.int32).tobytes()))
        with pytest.raises(SourceError, match="damaged"):
            PrivateKMeans(1, bounds=(0, 9)).fit(read(tmp_path / "t.feather", person="who"))


class TestSeveral:
    @pytest.fixture
    def three(self, table, tmp_path):
        """Three files, whose names are not in the order of their rows."""
        paths = [tmp_path / name for name in ("2-b.csv", "1-a.csv", "3-c.csv")]
        for path, piece in zip(paths, np.array_split(table(50), 3), strict=True):
            path.write_bytes(as_text(piece))
        return paths

    def test_a_list_is_one_table_in_its_order(self, three, table):
        np.testing.assert_array_equal(rows_of(read(three)), table(50))
        np.testing.assert_array_equal(rows_of(read(tuple(map(str, three)))), table(50))

    def test_a_pattern_is_one_table_by_name(self, three, tmp_path):
        first, second, third = (rows_of(read(path)) for path in three)
        for pattern in ("*.csv", "?-?.csv", "**/*.csv"):
            np.testing.assert_array_equal(rows_of(read(str(tmp_path / pattern))), np.vstack([second, first, third]))

    def test_a_file_that_is_called_like_a_pattern_is_that_file(self, tmp_path):
        (tmp_path / "a[1].csv").write_text("a\n1\n")
        (tmp_path / "a1.csv").write_text("a\n2\n")
        assert rows_of(read(tmp_path / "a[1].csv")).tolist() == [[1]]

    def test_people_are_bounded_over_all_files(self, tmp_path):
        for name in ("a", "b"):
            pd.DataFrame({"who": [7, 7, 8], "x": [0.1, 0.2, 0.3]}).to_parquet(tmp_path / f"{name}.parquet")
        source = read(str(tmp_path / "*.parquet"), person="who", max_rows_per_person=2)
        counted = source.map_reduce(lambda block, state: (np.array([len(block)]),), None, grid=_box(1))
        assert counted[0].tolist() == [4]

    def test_one_file_may_not_count_twice(self, three, tmp_path):
        (tmp_path / "link.csv").symlink_to(three[0])
        for twice in ([three[0], three[0]], [three[0], tmp_path / "link.csv"], [*three, str(tmp_path / "*.csv")]):
            with pytest.raises(InvalidValue, match="named twice"):
                read(twice)

    @pytest.mark.parametrize("other", ["age,weight,height\n1,2,3\n", "age,height\n1,2\n", "age,height,weight,more\n1,2,3,4\n"])
    def test_other_columns_are_refused(self, other, three, tmp_path):
        (tmp_path / "4.csv").write_text(other)
        with pytest.raises(SourceError, match="different columns"):
            read([*three, tmp_path / "4.csv"])

    def test_columns_that_all_have_may_be_chosen(self, three, tmp_path):
        (tmp_path / "4.csv").write_text("more,age,height\n1,2,3\n")
        assert rows_of(read([*three, tmp_path / "4.csv"], columns=["age"]))[-1].tolist() == [2]

    def test_kinds_are_not_mixed_and_ids_must_be_of_one_type(self, three, tmp_path):
        np.save(tmp_path / "t.npy", np.ones((2, 3)))
        with pytest.raises(SourceError, match="several kinds"):
            read([*three, tmp_path / "t.npy"])
        pd.DataFrame({"who": [1], "x": [0.5]}).to_parquet(tmp_path / "a.parquet")
        pd.DataFrame({"who": ["1"], "x": [0.5]}).to_parquet(tmp_path / "b.parquet")
        with pytest.raises(SourceError, match="ids of different types"):
            read(str(tmp_path / "*.parquet"), person="who")

    def test_what_is_not_there_is_named(self, three, tmp_path):
        with pytest.raises(SourceError, match="no file is called like"):
            read(str(tmp_path / "*.tsv"))
        with pytest.raises(SourceError, match=r"there is no file .*gone\.csv"):
            read([*three, tmp_path / "gone.csv"])


def _box(d):
    from kveil.kernel.grid import Box

    return Box(np.zeros(d), np.ones(d))


class TestUrls:
    """fsspec's own file systems stand for others: nothing here leaves the machine."""

    @pytest.fixture
    def memory(self):
        fsspec = pytest.importorskip("fsspec")
        files = fsspec.filesystem("memory")
        yield files
        files.rm("/", recursive=True)

    @pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "parquet", "feather"])
    def test_a_file_is_read_where_it_lies(self, kind, memory, table, tmp_path):
        frame, path = pd.DataFrame(table(50), columns=NAMES), tmp_path / f"t.{kind}"
        if kind in ("parquet", "feather"):
            getattr(frame, f"to_{kind}")(path)
        else:
            frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
        memory.pipe(f"/in/t.{kind}", path.read_bytes())
        np.testing.assert_array_equal(rows_of(read(f"memory://in/t.{kind}")), table(50))
        np.testing.assert_array_equal(rows_of(read(f"file://{path}")), table(50))

    def test_patterns_and_folders_are_listed_by_name(self, memory, table):
        for name, piece in zip("ab", np.array_split(table(50), 2), strict=True):
            memory.pipe(f"/in/{name}.csv", as_text(piece))
            with memory.open(f"/folder/{name}.parquet", "wb") as file:
                pd.DataFrame(piece, columns=NAMES).to_parquet(file)
        np.testing.assert_array_equal(rows_of(read("memory://in/*.csv")), table(50))
        np.testing.assert_array_equal(rows_of(read("memory://folder")), table(50))
        with pytest.raises(SourceError, match="no file is called like this URL"):
            read("memory://in/*.parquet")

    def test_what_is_refused_shows_no_password(self, memory):
        for url in ("memory://me:secret@host/in/t.csv?token=secret", "nosuchthing://me:secret@host/t.csv"):
            with pytest.raises(SourceError) as caught:
                read(url)
            assert "secret" not in str(caught.value)
            assert caught.value.__context__ is None
        for url in (
            "memory://me:secret@host/in/t.csv",
            "memory://me:secret@host/t.csv#secret",
            "cache::memory://secret@host/t.csv",
        ):
            assert called(url).startswith("memory://host/")
            assert "secret" not in called(url)
        assert called("https://me:secret@host/in/t.csv?token=secret") == "https://host/in/t.csv"
        assert called("in/t@home?.csv") == "in/t@home?.csv"

    def test_the_name_of_a_missing_file_is_shown_without_a_password(self, memory):
        with pytest.raises(SourceError, match=r"there is no file memory://host/in/t\.csv\.") as caught:
            read("memory://me:secret@host/in/t.csv")
        assert "secret" not in str(caught.value)

    def test_a_file_and_its_url_are_one_file(self, memory, tmp_path):
        (tmp_path / "t.csv").write_text("a\n1\n")
        with pytest.raises(InvalidValue, match="count twice"):
            read([tmp_path / "t.csv", f"file://{tmp_path / 't.csv'}"])

    @pytest.mark.parametrize("other", ["memory:///t.csv", "memory:////t.csv", "simplecache::memory:///t.csv", "memory:///t*.csv"])
    def test_two_urls_of_one_file_are_one_file(self, memory, other):
        memory.pipe("/t.csv", b"a\n1\n")
        with pytest.raises(InvalidValue, match="count twice"):
            read(["memory://t.csv", other])

    def test_names_of_a_scheme_are_one_store_and_two_hosts_are_two(self):
        """Of stores that know a file by its path alone."""
        from fsspec import AbstractFileSystem

        class Store(AbstractFileSystem):
            protocol = ("here", "heretoo")

        one, same, other = (Url(f"{name}://a/t.csv", Store(host=host), "/t.csv") for name, host in STORES)
        assert one.identity == same.identity != other.identity

    def test_files_of_one_name_in_two_folders_of_a_store_are_two(self, memory):
        for folder in ("one", "two"):
            memory.pipe(f"/{folder}/t.csv", b"a\n1\n")
        assert len(rows_of(read(["memory://one/t.csv", "memory://two/t.csv"]))) == 2

    def test_arrays_are_read_from_this_machine(self, memory):
        memory.pipe("/t.npy", b"x")
        with pytest.raises(SourceError, match="arrays are read from this machine only"):
            read("memory://t.npy")

    def test_without_fsspec_it_is_asked_for(self, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "fsspec.core", None)
        with pytest.raises(MissingExtra, match="pip install fsspec"):
            read("s3://bucket/t.csv")


@pytest.mark.parametrize("way", ["hard link", "symbolic link", "folder and file", "recursive pattern"])
def test_a_file_with_two_names_is_refused(way, tmp_path):
    """Its records would count twice, and noise for one would not hide one. Spark writes folders that are called t.parquet."""
    folder = tmp_path / "t.parquet"
    folder.mkdir()
    pd.DataFrame({"a": [1.0, 2.0]}).to_parquet(folder / "0.parquet")
    assert len(rows_of(read(folder))) == 2
    if "link" in way:
        (os.link if way == "hard link" else os.symlink)(folder / "0.parquet", folder / "latest.parquet")
    data = {"folder and file": [folder, folder / "0.parquet"], "recursive pattern": str(tmp_path / "**" / "*.parquet")}
    with pytest.raises(InvalidValue, match="count twice"):
        read(data.get(way, folder))


@pytest.mark.parametrize("data", ["no*such.csv", ["a.csv", "a.csv"], "t.feather", "t.csv.gz", "semicolons.csv", "t.xlsx"])
def test_a_refusal_costs_nothing(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "t.feather", "t.csv.gz", "t.xlsx"):
        (tmp_path / name).write_bytes(b"nothing of the kind")
    (tmp_path / "semicolons.csv").write_text("a;b\n1;2\n")
    ledger = Ledger.memory("one", 1.0, relation="add-remove")
    with pytest.raises(InvalidValue):
        PrivateKMeans(2, bounds=(0, 1), ledger=ledger).fit(data)
    assert ledger.charges() == ()
