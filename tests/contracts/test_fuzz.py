"""A few damaged bytes for every reader; `make fuzz` makes a million. hypothesis makes a case that breaks as small as it can."""

from __future__ import annotations

import random

import pytest
from benchmarks.fuzz.mutating import VALUES, mutated
from benchmarks.fuzz.reading import Reader
from benchmarks.fuzz.running import all_readers, tried
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kveil.errors import InvalidValue

NAMES = [
    "csv", "csv rows", "csv.gz", "tsv", "feather", "npy", "npz", "parquet", "edges", "edges npz", "places of vertices",
    "places npz", "release csv, card.md",
    "release csv, centers.csv",
    "release csv, release.json", "release csv, signature.json", "release csv, synopsis.npz", "release parquet, card.md",
    "release parquet, centers.parquet", "release parquet, release.json", "release parquet, signature.json",
    "release parquet, synopsis.npz", "ledger", "device ledger", "journal", "stream", "policy", "config", "guarantee",
    "request", "reply",
    "http request", "http response", "manifest", "signed manifest", "report", "rotation",
]  # fmt: skip


def test_every_reader_is_listed():
    assert list(all_readers()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_good_bytes_are_read(name):
    for seed in all_readers()[name].seeds:
        assert tried(all_readers()[name], seed) == (False, "")


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(rng=st.randoms(use_true_random=False))
def test_damaged_bytes_are_read_or_refused_in_words(name, rng):
    reader = all_readers()[name]
    assert tried(reader, mutated(rng.choice(reader.seeds), rng))[1] == ""


def refuse(data: bytes) -> None:
    raise InvalidValue("no")


def break_down(data: bytes) -> None:
    int(data)


def test_what_breaks_is_noticed():
    assert tried(Reader((), refuse), b"x") == (True, "")
    assert tried(Reader((), refuse, refuses=False), b"x")[1].startswith("InvalidValue")
    assert tried(Reader((), break_down), b"x")[1].startswith("ValueError")


@pytest.mark.parametrize("name", ["npz", "ledger", "request", "csv", "npy"])
def test_bytes_are_spoilt_in_many_ways_and_the_same_for_the_same_seed(name):
    """Also after other cases: what is put into a document is a copy, which later changes do not reach."""
    (seed, *_), n, before = all_readers()[name].seeds, 50, repr(VALUES)
    one, other = ([mutated(seed, random.Random(i)) for i in range(n)] for _ in range(2))
    assert one == other
    assert len(set(one)) > n / 2
    assert repr(VALUES) == before
