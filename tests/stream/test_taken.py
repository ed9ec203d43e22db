"""Which batches were taken: none twice, none skipped, whatever is merged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kveil.errors import InvalidValue, KveilError
from kveil.stream.taken import Taken


def taken(**numbers):
    journal = Taken()
    for source, seqs in numbers.items():
        for seq in seqs:
            journal = journal.noted(*journal.check(source, seq))
    return journal


def test_batches_follow_each_other_in_every_source():
    journal = taken(a=[4, 5, 6], b=[0])
    assert journal.taken() == {"a": ((4, 6),), "b": ((0, 0),)}
    assert journal.check("a", None) == ("a", 7)
    assert journal.check("c", 9) == ("c", 9)
    for seq in (6, 4, 8, 0):
        with pytest.raises(InvalidValue, match="the next one is 7"):
            journal.check("a", seq)


def test_a_stream_without_a_name_has_one_that_no_other_has():
    one, other = Taken(), Taken()
    assert one.check(None, None) == (one.own, 0)
    assert one.own != other.own
    one = one.noted(*one.check(None, None))
    other = other.noted(*other.check(None, None))
    assert len(one.united(other).taken()) == 2


def test_intervals_join_and_must_not_overlap():
    both = taken(a=[0, 1], b=[3]).united(taken(a=[2, 3], c=[0]))
    assert both.taken() == {"a": ((0, 3),), "b": ((3, 3),), "c": ((0, 0),)}
    apart = taken(a=[0]).united(taken(a=[7, 8]))
    assert apart.taken() == {"a": ((0, 0), (7, 8))}
    assert apart.check("a", None) == ("a", 9)
    assert Taken.from_plain(apart.to_plain()).taken() == apart.taken()
    for other in (taken(a=[1]), taken(a=[0, 1, 2]), taken(a=[1, 2])):
        with pytest.raises(InvalidValue, match="count its rows twice"):
            taken(a=[0, 1]).united(other)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=30))
def test_no_batch_is_ever_taken_twice(asked):
    journal, count = Taken(), {}
    for source, seq in asked:
        try:
            journal = journal.noted(*journal.check(source, seq))
        except InvalidValue:
            continue
        count[source, seq] = count.get((source, seq), 0) + 1
    assert all(n == 1 for n in count.values())
    assert Taken.from_plain(journal.to_plain()).taken() == journal.taken()


@pytest.mark.parametrize(
    ("source", "seq"), [("", 0), ("x" * 201, 0), (3, 0), ("a", -1), ("a", 1.0), ("a", True), ("a", "1"), ("a", 2**62)]
)
def test_bad_names_and_numbers_are_refused(source, seq):
    with pytest.raises(KveilError):
        Taken().check(source, seq)


@pytest.mark.parametrize("pairs", [[[2, 1]], [[0, 3], [2, 5]], [[3, 4], [0, 1]], [[0, "x"]], [[0, 2**62]]])
def test_a_journal_that_makes_no_sense_is_refused(pairs):
    with pytest.raises(KveilError):
        Taken.from_plain({"own": "a", "taken": {"s": pairs}})
