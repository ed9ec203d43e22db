"""How bounds are read: one rule for every form, and a refusal where a form says two things."""

import numpy as np
import pandas as pd
import pytest

import kveil
from kveil import Bounds, FederatedKMeans, PrivateKMeans, PrivateKMedian, StreamKMeans, federate
from kveil.errors import InvalidValue
from kveil.kernel.grid import Box
from kveil.space.bounds import check_domain, domain_width, lows_and_highs
from kveil.space.widths import by_column

LOW, HIGH = [18.0, 20.0, -1.0], [90.0, 1000.0, 1.0]  # every way to pair two of them up makes a box
NAMES = ("age", "income", "change")


def forms(d):
    """Every form of the same bounds for d columns that says one thing."""
    low, high, pairs = LOW[:d], HIGH[:d], list(zip(LOW, HIGH, strict=True))[:d]
    found = {
        "list of tuples": pairs,
        "tuple of lists": (low, high),
        "tuple of arrays": (np.array(low), np.array(high)),
        "list and array": (low, np.array(high)),
        "by name": dict(reversed(list(zip(NAMES, pairs, strict=False)))),
        "Bounds": Bounds(low, high),
        "Bounds by column": Bounds.by_column(pairs),
    }
    if d == 1:
        found |= {
            "two numbers": (LOW[0], HIGH[0]),
            "list of two numbers": [LOW[0], HIGH[0]],
            "array": np.array([LOW[0], HIGH[0]]),
        }
    if d != 2:
        found |= {
            "list of lists": [list(pair) for pair in pairs], "tuple of tuples": tuple(pairs), "array of pairs": np.array(pairs),
            "lists in a list": [low, high], "tuples in a tuple": (tuple(low), tuple(high)),
            "array of ends": np.array([low, high]),
        }  # fmt: skip
    return found


CASES = [(d, form) for d in (1, 2, 3) for form in forms(d)]


@pytest.mark.parametrize(("d", "form"), CASES)
def test_every_form_gives_the_same_lows_and_highs(d, form):
    given = forms(d)[form]
    low, high = lows_and_highs(given, d, NAMES[:d])
    assert (low.tolist(), high.tolist()) == (LOW[:d], HIGH[:d])
    assert domain_width(given, None) == (None if "two numbers" in form or form == "array" else d)


@pytest.mark.parametrize("given", [(0, 5), [0, 5], np.array([0, 5]), Bounds(0, 5), (0, [5, 5]), ([0, 0], 5), Bounds(0, (5, 5))])
def test_one_number_stands_for_every_column(given):
    low, high = lows_and_highs(given, 2)
    assert (low.tolist(), high.tolist()) == ([0, 0], [5, 5])


AMBIGUOUS = [((18, 20), (90, 1000)), [[18, 20], [90, 1000]], np.array([[18, 20], [90, 1000]]), [np.array([18, 20]), (90, 1000)]]


@pytest.mark.parametrize("given", AMBIGUOUS, ids=["tuples", "lists", "array", "mixed"])
def test_what_can_be_read_in_two_ways_is_refused_with_both_and_with_both_spellings(given):
    with pytest.raises(InvalidValue) as refusal:
        lows_and_highs(given, 2, ("age", "income"))
    said = str(refusal.value)
    assert 'One pair per column: "age" from 18 to 20, "income" from 90 to 1000;' in said
    assert '(lows, highs): "age" from 18 to 90, "income" from 20 to 1000;' in said
    for spelling, ends in (([(18, 20), (90, 1000)], ([18, 90], [20, 1000])), (([18, 20], [90, 1000]), ([18, 20], [90, 1000]))):
        assert str(spelling) in said
        assert [end.tolist() for end in lows_and_highs(spelling, 2)] == list(ends)


@pytest.mark.parametrize("wrap", [lambda a, b: (a, b), lambda a, b: [list(a), list(b)], lambda a, b: np.array([a, b])])
def test_a_square_is_read_in_the_one_way_that_makes_a_box(wrap):
    for a, b, ends in (
        ((0, 0), (10, 5), ([0, 0], [10, 5])),  # as pairs 0 to 0 is empty
        ((0, 10), (-5, 5), ([0, -5], [10, 5])),  # as ends 0 to -5 is none
        ((0, 5), (5, 9), ([0, 5], [5, 9])),  # both ways are the same box
    ):
        assert [end.tolist() for end in lows_and_highs(wrap(a, b), 2)] == list(ends)


@pytest.mark.parametrize(
    ("given", "d", "words"),
    [
        ([(0, 0), (10, 10)], 2, "column 0 has low 0 and high 0. .*A list of tuples is one pair per column"),
        (([0, 10], [0, 10]), 2, "column 0 has low 0 and high 0"),
        ([[3, 1], [2, 0]], 2, "low < high"),
        ([[0, float("inf")], [1, 2]], 2, "finite"),
        ([(0, 1), (0, 1)], 3, "2 entries for 3"),
        ([(0, 1)] * 3, 2, "3 pairs for 2"),
        (([0, 0], [1, 1]), 1, "2 entries for 1"),
        ((0, 1, 2), 3, "must be"),
        ([(0, 1, 2), (0, 1, 2), (0, 1, 2)], 3, "must be"),
        ([(0, "x"), (0, 1)], 2, "numbers only"),
        ([[0, 1], [0]], 2, "1 entries for 2"),
        ([[[0, 1]], [[0, 1]]], 2, "rows and columns"),
        ([], 2, "must be"),
        (5.0, 2, "must be"),
        ("01", 2, "must be"),
        ({"age": (0, 1)}, 2, "Missing"),
        ({"age": 1, "income": (0, 1)}, 2, "by name must be"),
        (Bounds([0, 0], [1, 1]), 3, "2 entries for 3"),
    ],
)
def test_what_makes_no_box_is_refused_in_words(given, d, words):
    with pytest.raises(InvalidValue, match=words):
        lows_and_highs(given, d, NAMES[:d] if isinstance(given, dict) else None)


def test_bounds_that_are_named_are_plain_and_equal():
    assert Bounds(np.array([0, 1]), [2, 3]) == Bounds.by_column([(0, 2), [1, 3]]) == Bounds((0.0, 1.0), (2.0, 3.0))
    for wrong in ([], [1, 2], [(0, 1), (0, 1, 2)], [[(0, 1)]]):
        with pytest.raises(InvalidValue):
            Bounds.by_column(wrong)
    with pytest.raises(InvalidValue, match="by_column"):
        Bounds([[0, 1]], 2)


ROWS = {d: np.linspace(LOW[:d], HIGH[:d], 40) for d in (1, 2, 3)}


@pytest.mark.parametrize(("d", "form"), CASES)
@pytest.mark.parametrize(
    "model", [PrivateKMeans, PrivateKMedian, StreamKMeans, FederatedKMeans], ids=lambda model: model.__name__
)
def test_every_model_reads_every_form_alike(model, d, form):
    given = forms(d)[form]
    assert model(2, epsilon=1.0, bounds=given).guarantee(n_features=d).epsilon == 1.0
    box = domain_of(model(2, epsilon=1.0, bounds=given), d)
    assert isinstance(box, Box)
    assert (box.lower.tolist(), box.upper.tolist()) == (LOW[:d], HIGH[:d])


@pytest.mark.parametrize(
    "model", [PrivateKMeans, PrivateKMedian, StreamKMeans, FederatedKMeans], ids=lambda model: model.__name__
)
def test_every_model_refuses_what_can_be_read_in_two_ways(model):
    asked = model(2, epsilon=1.0, bounds=AMBIGUOUS[1])
    for ask in (asked.guarantee, lambda: domain_of(asked, 2)):
        with pytest.raises(InvalidValue, match="two ways"):
            ask()


def domain_of(model, d):
    """The domain a model makes of its bounds and the schema of its rows, before a row is read."""
    if isinstance(model, StreamKMeans):
        return model._table(d, NAMES[:d], 1).domain
    if isinstance(model, FederatedKMeans):
        return federate.Party(pd.DataFrame(ROWS[d], columns=NAMES[:d]), bounds=model.bounds, name="p").layout.domain
    return model._task("tree", d, kveil.PrivacyUnit(), NAMES[:d]).domain


@pytest.mark.parametrize(
    "model", [PrivateKMeans, PrivateKMedian, StreamKMeans, FederatedKMeans], ids=lambda model: model.__name__
)
def test_a_release_tells_lows_and_highs_and_names_them_by_column(model):
    fitted = model(2, epsilon=1.0, bounds=[(18, 90), (20, 1000)])
    release = fitted.fit([ROWS[2]] if model is FederatedKMeans else ROWS[2]).release_
    assert release.parameters["bounds"] == [[18, 20], [90, 1000]]
    assert "bounds: column 0 low 18, high 90; column 1 low 20, high 1000" in release.notes
    card = release.card()
    assert card.count("bounds: column 0 low 18, high 90; column 1 low 20, high 1000") == 1
    domain = release.domain()
    assert (domain.lower.tolist(), domain.upper.tolist()) == ([18, 20], [90, 1000])


def test_many_columns_are_named_up_to_a_dozen():
    low = np.arange(20.0)
    said = by_column(low, low + 1, tuple(f"c{place}" for place in range(20)))
    assert said.startswith('"c0" low 0, high 1; "c1" low 1, high 2; ')
    assert said.endswith('"c11" low 11, high 12; and 8 more')
    assert by_column(low * 0, low * 0 + 1, None) == "low 0, high 1 in every column"
    assert check_domain((0, 1), None, None, 1, 8).n_columns == 1


def test_a_name_that_utf8_cannot_hold_leaves_a_note_that_it_can():
    said = by_column(np.zeros(1), np.ones(1), ("\ud800x",))
    assert said.encode() == b'"\\ud800x" low 0, high 1'


def test_a_saved_stream_keeps_its_bounds_whatever_their_form(tmp_path):
    for bounds in ([(18, 90), (20, 1000)], ([18, 20], [90, 1000]), Bounds([18, 20], [90, 1000])):
        model = StreamKMeans(2, memory=64, epsilon=1.0, bounds=bounds).partial_fit(ROWS[2])
        model.save(tmp_path / "state")
        kept = StreamKMeans.resume(tmp_path / "state")._flow.kept
        assert kept.header == model._flow.kept.header
        assert (kept.domain.lower.tolist(), kept.domain.upper.tolist()) == ([18, 20], [90, 1000])
