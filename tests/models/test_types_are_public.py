"""A CSV has no types, so no row decides whether a fit raises, warns or is charged. Elsewhere types are public, and said so."""

import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

from kveil import Ledger, PrivateKMeans, PrivateKMedian, StreamKMeans, find_bounds, read
from kveil.errors import BoundsNotFound, KveilError, NoisyResultWarning
from kveil.kernel.loss import PrivacyUnit

NEIGHBOURS = {  # rows of a column of ids and two of numbers
    "the only row of numbers": (["1,a,b", "2,c,d"], ["1,a,b", "2,c,d", "3,4,5"]),
    "a row of text": (["1,2,3", "2,4,5"], ["1,2,3", "2,4,5", "3,x,y"]),
    "the only row, of text": ([], ["1,x,y"]),
    "the only row, of numbers": ([], ["1,2,3"]),
    "the only row that is not missing": (["1,,NA", "2,nan,"], ["1,,NA", "2,nan,", "3,4,word"]),
    "a line of another length": (["1,a,b"], ["1,a,b", "2,c,d,e"]),
    "an id that is no number": (["1,2,3"], ["1,2,3", "x,4,5"]),
    "a row without an id": (["x,a,b"], ["x,a,b", ",c,d"]),
    "text beyond the first megabyte": (["1,,"] * 300_000, ["1,,"] * 300_000 + ["2,x,y"]),
}


def kmeans(method):
    return lambda source, ledger: PrivateKMeans(2, bounds=(0, 9), method=method, ledger=ledger, random_state=0).fit(source)


def kmedian(source, ledger):
    return PrivateKMedian(2, bounds=(0, 9), ledger=ledger, random_state=0).fit(source)


def stream(source, ledger):
    return StreamKMeans(2, epsilon=1.0, bounds=(0, 9), memory=64, ledger=ledger, random_state=0).fit(source)


def bounds(source, ledger):
    with suppress(BoundsNotFound):  # by noisy counts alone
        find_bounds(source, 1.0, ledger=ledger)


KMEANS = {method: kmeans(method) for method in ("mean", "tree", "lloyd")}
ASKED = {**KMEANS, "k-median": kmedian, "stream": stream, "bounds": bounds}


def told(path, asked, options):
    """What becomes known beside what is released: errors, warnings, and what was charged."""
    unit = PrivacyUnit("person", 2) if "person" in options else PrivacyUnit()
    ledger = Ledger.memory("t", 1.0, relation="add-remove", unit=unit)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", NoisyResultWarning)  # by released values
        try:
            asked(read(path, **options), ledger)
            trouble = None
        except KveilError as error:
            trouble = f"{type(error).__name__}: {error}"
    return trouble, [str(warning.message) for warning in caught], ledger.spent().epsilon


def tells(path, rows, asked, options):
    """What becomes known of each of two neighbours."""
    found = []
    for lines in rows:
        path.write_text("\n".join(["id,a,b", *lines]) + "\n")
        found.append(told(path, asked, options))
    return found


@pytest.mark.parametrize("options", [{"columns": ["a", "b"]}, {"person": "id", "max_rows_per_person": 2}], ids=["rows", "people"])
@pytest.mark.parametrize("rows", NEIGHBOURS.values(), ids=NEIGHBOURS)
def test_one_line_of_a_csv_decides_nothing_but_what_is_noised(rows, options, tmp_path):
    assert tells(tmp_path / "t.csv", rows, ASKED["mean"], options) == [(None, [], 1.0)] * 2


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_no_model_tells_whether_a_csv_holds_a_number(asked, tmp_path):
    rows = NEIGHBOURS["the only row of numbers"]
    assert tells(tmp_path / "t.csv", rows, asked, {"columns": ["a", "b"]}) == [(None, [], 1.0)] * 2


def test_a_row_of_text_is_a_row_with_missing_values(tmp_path):
    path, found = tmp_path / "t.csv", []
    for last in ("word,4", "nan,4", ",4", "inf,4"):
        path.write_text(f"a,b\n1,2\n{last}\n")
        (block,) = read(path).raw_blocks()
        found.append(PrivateKMeans(1, epsilon=float("inf"), bounds=(0, 10), method="mean").fit(path).cluster_centers_.tolist())
        assert not np.isfinite(block[1, 0])
    assert found == [found[0]] * 4
    assert found[0][0] == pytest.approx([(1 + 5) / 2, (2 + 5) / 2], abs=1e-3)


@pytest.mark.parametrize("save", ["to_parquet", None], ids=["parquet", "frame"])
def test_a_column_is_refused_by_its_declared_type_before_anything_is_charged(save, tmp_path):
    ledger = Ledger.memory("t", 1.0, relation="add-remove")
    frame = pd.DataFrame({"a": [1.0], "town": pd.Series(["Rome"], dtype="string")})
    data = frame if save is None else tmp_path / "t.parquet"
    if save:
        frame.to_parquet(data)
    with pytest.raises(KveilError, match='"town"'):
        PrivateKMeans(2, bounds=(0, 9), ledger=ledger).fit(data)
    assert ledger.spent().epsilon == 0


def test_that_types_are_public_is_told_where_it_is_relied_on():
    for model in (PrivateKMeans(2, bounds=(0, 1)), PrivateKMedian(2, bounds=(0, 1)), StreamKMeans(2, epsilon=1, bounds=(0, 1))):
        assert any("types of columns" in text for text in model.guarantee(2).assumptions)
        assert "types" in type(model).fit.__doc__
