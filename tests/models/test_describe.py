"""Words of clusters are charged, tell the truth within their intervals, and nothing in rows can break them."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations, product
from math import exp

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy import stats
from scipy.sparse import csr_array, hstack

import kveil
from kveil import Ledger, PrivacyUnit, PrivateKMeans, describe, read
from kveil.desk.law import Law
from kveil.errors import BudgetExceeded, KveilError
from kveil.kernel.grid import Box
from kveil.models.describe import check_vocabulary
from kveil.models.evaluation import Noise
from kveil.models.themes import themes
from kveil.questions.keywords import Keywords, Worded, keyword_part
from kveil.space.euclidean import Centers
from kveil.testing import scripted

WORDS = ("corn", "oil", "ship", "tin", "wheat")
SAYS = (("corn", "wheat"), ("oil",), ("ship", "oil"))


def ledger(epsilon=1000.0, delta=0.0, **terms):
    return Ledger.memory("people", epsilon, delta, **{"relation": "add-remove", **terms})


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    return np.array([[-0.6, -0.5], [0.5, 0.6], [0.6, -0.4]])[np.arange(900) % 3] + rng.normal(scale=0.05, size=(900, 2))


@pytest.fixture(scope="module")
def release(rows):
    with scripted(0):
        return PrivateKMeans(3, epsilon=50.0, bounds=(-1, 1), random_state=0).fit(rows).release_


@pytest.fixture(scope="module")
def texts():
    return [list(SAYS[number % 3]) for number in range(900)]


def by_words(found):
    return sorted(tuple(sorted(word.name for word in theme.words)) for theme in found.clusters)


def table_of(texts):
    return np.array([[float(word in said) for word in WORDS] for said in texts])


def test_with_hardly_any_noise_words_shares_and_lifts_are_those_of_the_rows(release, rows, texts):
    found = describe(release, rows, texts, 900.0, ledger=ledger(), vocabulary=WORDS)
    assert by_words(found) == sorted(tuple(sorted(said)) for said in SAYS)
    lifts = {(word.name, round(word.lift.value, 3)) for theme in found.clusters for word in theme.words}
    assert lifts == {("corn", 3.0), ("wheat", 3.0), ("ship", 3.0), ("oil", 1.5)}
    assert {round(word.share.value, 3) for theme in found.clusters for word in theme.words} == {1.0}
    assert [theme.size.value for theme in found.clusters] == [300, 300, 300]
    with_ship = next(theme for theme in found.clusters if theme.words[0].name == "ship")
    assert [word.name for word in with_ship.words] == ["ship", "oil"]  # by lift


def test_rows_say_the_same_as_lists_texts_tables_and_columns(release, rows, texts):
    sparse, frame = csr_array(table_of(texts)), pd.DataFrame(table_of(texts), columns=list(WORDS))
    given = [
        (rows, texts, WORDS), (rows, [" AND ".join(said) for said in texts], WORDS), (rows, table_of(texts), WORDS),
        (rows, sparse, WORDS), (csr_array(rows), sparse, WORDS), (np.hstack([rows, table_of(texts)]), WORDS, None),
        (read(csr_array(hstack([csr_array(rows), sparse]))), WORDS, None), (frame.assign(a=0)[["a", *WORDS]], WORDS, None),
    ]  # fmt: skip
    found = []
    for data, said, vocabulary in given[:-1]:
        with scripted(1):
            found.append(describe(release, data, said, 5.0, ledger=ledger(), vocabulary=vocabulary).clusters)
    assert all(each == found[0] for each in found)
    with pytest.raises(KveilError, match="2 columns of the release"):
        describe(release, given[-1][0], WORDS, 5.0, ledger=ledger())


def test_frames_are_read_by_name(rows, texts):
    table = pd.DataFrame(rows, columns=["x", "y"])
    named = PrivateKMeans(3, epsilon=50.0, bounds=(-1, 1), random_state=0).fit(table).release_
    wide = pd.concat([pd.DataFrame(table_of(texts), columns=list(WORDS)), table], axis=1)
    assert len(by_words(describe(named, wide, WORDS, 50.0, ledger=ledger()))) == 3
    with pytest.raises(KveilError, match="another name"):
        describe(named, wide, ["x", "corn"], 5.0, ledger=ledger())


def test_which_words_of_a_row_count_is_a_rule_of_that_row_alone():
    grid = Worded(Box([-1.0], [1.0]), 5, 2)
    rows = np.array([[0.0, 1, 3, 0, 3, 2], [0.0, 1, 1, 1, 1, 1], [0.5, np.nan, -1, np.inf, 0, 0.2], [np.nan, 5, 0, 0, 0, 0]])
    flags = [[0, 1, 0, 1, 0], [1, 1, 0, 0, 0], [0, 0, 0, 0, 1], [1, 0, 0, 0, 0]]
    assert grid.encode(rows)[:, 1:].tolist() == flags
    assert grid.encode_sparse(csr_array(rows)).toarray().tolist() == grid.encode(rows).tolist()
    for place in range(4):
        assert grid.encode(rows[place : place + 1]).tolist() == grid.encode(rows)[place : place + 1].tolist()


def answers(n_words, most):
    """The counts that every possible row gives, two clusters on a line, and no row; exactly."""
    grid, centers = Worded(Box([-1.0], [1.0]), n_words, most), Centers(np.array([[-9.0], [9.0]]), None)
    says = [said for n in range(n_words + 1) for said in combinations(range(n_words), n)]
    rows = np.array([[side, *(float(word in said) for word in range(n_words))] for side in (-1.0, 1.0) for said in says])
    question = Keywords(centers, n_words, most)
    alone = [question.raw(grid.encode(row[None]))[0] for row in rows]
    return [np.zeros(2 * n_words, dtype=np.int64), *alone]


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_the_law_of_the_counts_on_every_table_of_one_row(relation):
    """Discrete Laplace noise on every count: the likeliest ratio of two tables is exp(L1 distance / scale), at most e^epsilon,
    and some pair of neighbours reaches it. A twin that lets one more word of a row count passes it."""
    epsilon, most = Fraction(1, 2), 2
    law = Law("pure", relation, PrivacyUnit())
    scale = law.moved(keyword_part(most, is_squared=False)) / float(epsilon)

    def ratio(tables):
        pairs = product(tables[:1], tables) if relation == "add-remove" else product(tables[1:], tables[1:])
        return max(exp(np.abs(one - other).sum() / scale) for one, other in pairs)

    assert ratio(answers(4, most)) == pytest.approx(exp(0.5))
    assert ratio(answers(4, most + 1)) > exp(0.5) * 1.2


def test_gaussian_noise_is_made_for_the_root_of_the_number_of_words():
    part, law = keyword_part(5, is_squared=True), Law("zcdp", "add-remove", PrivacyUnit())
    deviation = law.deviation(part, 0.5) * part.unit
    assert 5**0.5 <= deviation <= 1.001 * 5**0.5


def held(release, rows, texts, runs):
    """In how many runs the exact share, lift and size are inside their intervals, for a word that always stands out."""
    found, table, account = {"share": 0, "lift": 0, "size": 0}, np.hstack([rows, table_of(texts)]), ledger()
    for _ in range(runs):
        got = describe(release, table, WORDS, 1.0, ledger=account, per_row=2)
        theme = next(theme for theme in got.clusters if any(word.name == "ship" for word in theme.words))
        ship = next(word for word in theme.words if word.name == "ship")
        for name, estimate, exact in (("share", ship.share, 1.0), ("lift", ship.lift, 3.0), ("size", theme.size, 300)):
            found[name] += estimate.low <= exact <= estimate.high
    return found


@pytest.mark.statistical
def test_intervals_hold(release, rows, texts, monkeypatch):
    """120 runs; false alarm 1e-6 over three intervals. A twin with a fifth of the half-widths (5 % missed become 55 %) is
    caught."""
    floor = int(stats.binom.ppf(1e-6 / 3, 120, 0.95))
    assert min(held(release, rows, texts, 120).values()) >= floor
    whole = Noise.half_width
    monkeypatch.setattr(Noise, "half_width", lambda noise, miss: whole(noise, miss) // (5 if miss > 0.004 else 1))
    assert held(release, rows, texts, 120)["size"] < floor


def test_all_of_epsilon_is_charged_before_a_row_is_read_and_no_more(release, rows, texts):
    account = ledger(1.0)
    found = describe(release, rows, texts, 0.3, ledger=account, vocabulary=WORDS)
    assert found.guarantee.epsilon == pytest.approx(0.3, abs=1e-9)
    assert account.spent().epsilon == pytest.approx(0.3, abs=1e-9)
    assert found.receipt["charges"] == 2
    assert [charge.sensitivity for charge in found.guarantee.charges] == [5, 1]
    with pytest.raises(BudgetExceeded):
        describe(release, rows, texts, 0.8, ledger=account, vocabulary=WORDS)
    assert account.spent().epsilon <= 0.3


def test_gaussian_noise_is_used_only_where_the_ledger_adds_zcdp(release, rows, texts):
    terms = {"vocabulary": WORDS, "delta": 1e-6}
    pure = describe(release, rows, texts, 1.0, ledger=ledger(10.0, 1e-6, rule="approx"), **terms).guarantee
    assert {charge.mechanism for charge in pure.charges} == {"discrete-laplace"}
    gaussian = describe(release, rows, texts, 1.0, ledger=ledger(10.0, 1e-6, rule="zcdp"), **terms)
    assert {charge.mechanism for charge in gaussian.guarantee.charges} == {"discrete-gaussian"}
    assert gaussian.guarantee.epsilon <= 1.0


def damaged():
    table = csr_array(np.eye(900, 5))
    table.indices[3] = 10**6
    return table


ODD = [
    (np.full((3, 2), np.nan), [None, 3, "corn"]),
    (np.full((3, 2), 1e308), [[], [1, None, "oil"], {"tin": 1}]),
    (np.zeros((3, 2)), [np.array("corn"), np.array(["oil", "tin"]), np.array([["oil"], ["tin"]])]),
    (np.empty((0, 2)), []),
    (np.zeros((2, 2)), np.array([[np.nan, np.inf, -1, 0, 1]] * 2)),
]


@pytest.mark.parametrize(("data", "said"), ODD, ids=["nan", "huge", "arrays", "empty", "odd values"])
def test_nothing_in_rows_raises_warns_or_changes_a_shape(release, data, said, recwarn):
    found = describe(release, data, said, 1.0, ledger=ledger(), vocabulary=WORDS)
    assert (len(found.clusters), len(recwarn)) == (3, 0)
    assert json.loads(found.to_json())["vocabulary"] == list(WORDS)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"release": "out"}, "takes a release"),
        ({"ledger": None}, "costs budget"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"epsilon": 2.0**-30, "per_row": 2**22}, "too small"),
        ({"per_row": 0}, "per_row"),
        ({"vocabulary": ["a", "a"]}, "different words"),
        ({"vocabulary": "corn"}, "different words"),
        ({"keywords": [["corn"]]}, "different numbers of rows"),
        ({"keywords": np.zeros((900, 4))}, "4 column"),
        ({"keywords": 7}, "a table of numbers"),
        ({"data": np.zeros((900, 3))}, "3 column"),
        ({"data": "rows.csv"}, "an array or a sparse matrix"),
        ({"data": np.full((900, 2), "8.7 secret")}, "must hold numbers"),
        ({"data": np.full((900, 2), "8.7 secret", dtype=object)}, "must hold numbers"),
        ({"keywords": csr_array((900, 5), dtype=complex)}, "must hold numbers"),
        ({"keywords": damaged()}, "damaged"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_charged(release, rows, texts, change, says):
    account = ledger()
    given = {"release": release, "data": rows, "keywords": texts, "epsilon": 1.0, "ledger": account, "vocabulary": WORDS} | change
    with pytest.raises(KveilError, match=says) as refused:
        describe(**given)
    assert account.spent().epsilon == 0
    assert not any(secret in str(refused.value) for secret in ("900", "8.7"))
    assert refused.value.__cause__ is None


def test_a_word_is_listed_only_if_noise_alone_would_hardly_ever_count_so_much():
    noise = Noise(False, 10.0)
    least = noise.half_width(0.05 / 6)
    counts = np.array([[least, least + 1.0, 500.0], [0.0, -least - 5.0, 500.0]])
    shown = themes(counts, np.array([1000.0, 5000.0]), noise, Noise(False, 1.0), ("below", "above", "common"))
    assert [[word.name for word in theme.words] for theme in shown] == [["common", "above"], []]  # lift 3; 6, with a low end


def test_more_counts_than_anyone_can_draw_are_refused():
    with pytest.raises(KveilError, match="shorter vocabulary"):
        check_vocabulary(["corn", "oil"], 2**24)


def test_the_table_and_the_picture_show_every_cluster_on_one_scale(release, rows, texts, tmp_path, monkeypatch):
    ends, save = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda figure, *given, **terms: (
        ends.extend(axes.get_xlim() for axes in figure.axes), save(figure, *given, **terms)
    ))  # fmt: skip
    with scripted(1):
        found = describe(release, rows, texts, 5.0, ledger=ledger(), vocabulary=WORDS)
    assert str(found).count("cluster ") == 3
    assert "% of rows" in str(found)
    assert "NOT VALID" in str(found)  # scripted noise
    drawn = found.save(tmp_path / "themes.svg").read_text()
    assert all(f"cluster {number}" in drawn for number in range(3))
    assert len(ends) == 3
    assert len(set(ends)) == 1
    assert ends[0][1] >= max(word.lift.value for theme in found.clusters for word in theme.words)
    none = describe(release, rows[:3], texts[:3], 0.01, ledger=ledger(), vocabulary=WORDS)
    assert kveil.Themes is type(none)
