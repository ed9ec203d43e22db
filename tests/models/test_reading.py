"""Categories and missing cells in a fit: lengths of levels, bounds of numbers alone, released means, and what a release tells."""

import numpy as np
import pandas as pd
import pytest

import kveil
from kveil import Graph, Ledger, PrivateKMeans, PrivateKMedian, StreamKMeans, read
from kveil.errors import InvalidValue
from kveil.testing import scripted

LEVELS = {"work": ("office", "shop", "farm", "none of these")}
MODELS = [PrivateKMeans, PrivateKMedian]
BOUNDS = {"age": (0, 120), "income": (0, 50_000)}


def people(n=3000):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, n)
    return pd.DataFrame({
        "age": rng.normal(25 + 20 * group, 2), "work": np.array(LEVELS["work"])[group],
        "income": rng.normal(10_000 + 12_000 * group, 800),
    })  # fmt: skip


PEOPLE = people()


def fit(model=PrivateKMeans, table=PEOPLE, terms=None, **options):
    source = read(table, categories=LEVELS, **options)
    with scripted(2):
        asked = {"epsilon": 40.0, "bounds": BOUNDS, "scaling": "bounds", "random_state": 0, **(terms or {})}
        return model(3, **asked).fit(source), source


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
@pytest.mark.parametrize("scaling", ["bounds", "private"])
def test_levels_stay_as_far_apart_as_their_weight_says_whatever_is_scaled(model, scaling, tmp_path):
    fitted, source = fit(model, terms={"scaling": scaling}, category_weight=3.0)
    loaded = kveil.load(fitted.release_.save(tmp_path / "out"))
    row = pd.DataFrame({"age": [60.0, 60.0], "work": ["office", "shop"], "income": [25_000.0, 25_000.0]})
    pair = read(row, categories=LEVELS, category_weight=3.0)
    for answers in (fitted, loaded):
        far = answers.transform(pair)
        spans = np.array(answers.release_.parameters["bounds"] if answers is fitted else answers.parameters["bounds"])
        half = (spans[1] - spans[0]) / 2
        centers = fitted.cluster_centers_
        is_number = np.array([True, False, False, False, False, True])
        unit = np.where(is_number, half, 1.0)
        rows = np.clip(np.concatenate(list(pair.raw_blocks())), spans[0], spans[1])
        np.testing.assert_allclose(far, np.sqrt((((rows[:, None] - centers) / unit) ** 2).sum(axis=2)))
    np.testing.assert_array_equal(loaded.predict(source), fitted.predict(source))


def test_a_heavy_weight_makes_levels_decide_and_a_light_one_numbers():
    """Ages and incomes tell three groups apart, and levels two others: which of them centres follow is the weight's doing."""
    table = PEOPLE.assign(work=np.where(np.arange(len(PEOPLE)) % 2, "office", "shop"))
    shares = {}
    for weight in (0.05, 10.0):
        fitted, _ = fit(table=table, category_weight=weight)
        levels = fitted.cluster_centers_[:, 1:3] * np.sqrt(2) / weight
        shares[weight] = np.abs(levels[:, 0] - 0.5).min()
    assert shares[0.05] < 0.1
    assert shares[10.0] > 0.4


def test_the_release_says_how_rows_were_read_and_its_card_names_the_largest_levels():
    fitted, source = fit(missing={"age": 40})
    told = fitted.release_.parameters
    assert told["categories"] == [{"column": "work", "levels": list(LEVELS["work"]), "first": 1}]
    assert told["missing"] == {"age": 40}
    assert told["bounds"] == [[0, 0, 0, 0, 0, 0], [120, *[1 / np.sqrt(2)] * 4, 50_000]]
    assert fitted.release_.features == source.names
    table = fitted.release_.card().split("## The centres")[1].split("##")[0]
    header, _, *lines = [line for line in table.splitlines() if line.startswith("|")]
    assert [cell.strip() for cell in header.split("|")[2:5]] == ["age", "income", "work"]
    firsts = {line.split("|")[4].strip().rsplit(" ", 1)[0].split(", ")[0] for line in lines}
    assert {first.rsplit(" ", 1)[0] for first in firsts} == {"office", "shop", "farm"}
    assert all(line.split("|")[4].count("%") == 3 for line in lines)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_released_means_fill_missing_cells_in_the_fit_in_predict_and_after_loading(model, tmp_path):
    table = people()
    table.loc[::4, "age"] = np.nan
    fitted, _ = fit(model, table, {"scaling": "private"}, missing="mean")
    told = fitted.release_.parameters
    mean = told["scaled_by"]["mean"]
    assert mean[1:5] == [None] * 4
    holes = pd.DataFrame({"age": [np.nan, 25.0, np.inf], "work": ["office", None, "farm"], "income": [10_000.0, np.nan, np.nan]})
    full = holes.assign(age=holes["age"].where(np.isfinite(holes["age"]), mean[0]), income=holes["income"].fillna(mean[5]))
    loaded = kveil.load(fitted.release_.save(tmp_path / "out"))
    far = fitted.transform(read(full, categories=LEVELS))
    for answers in (fitted, loaded):
        np.testing.assert_allclose(answers.transform(read(holes, categories=LEVELS, missing="mean")), far)
    plain, _ = fit(model, table, {"scaling": "private"})
    middle = plain.transform(read(holes, categories=LEVELS))
    np.testing.assert_array_equal(middle[0], middle[1])  # rows with a hole are all the middle


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_guarantee_is_known_before_the_rows(model):
    fitted, source = fit(model)
    asked = model(3, epsilon=40.0, bounds=BOUNDS, scaling="bounds")
    assert asked.guarantee(blocks=source.blocks).charges == fitted.guarantee_.charges
    assert asked.guarantee(source.n_columns, blocks=source.blocks).charges == fitted.guarantee_.charges


def test_a_source_with_other_columns_is_refused_by_predict():
    fitted, source = fit()
    with pytest.raises(InvalidValue, match=r"X has 3 features, but PrivateKMeans is expecting 6 .* kveil\.read"):
        fitted.predict(read(PEOPLE.assign(work=0.0)))
    with pytest.raises(InvalidValue, match="not those of the fit"):
        fitted.predict(read(PEOPLE[["income", "work", "age"]], categories=LEVELS))
    with pytest.raises(InvalidValue, match="not those that the release was made with"):
        fitted.release_.predict(read(PEOPLE[["income", "work", "age"]], categories=LEVELS))
    assert len(fitted.predict(source)) == len(PEOPLE)


def test_rows_that_are_left_out_are_left_out_of_every_answer():
    table = people(300)
    table.loc[::3, "age"] = np.nan
    fitted, source = fit(table=table, missing="drop")
    assert len(fitted.predict(source)) == 200
    complete, _ = fit(table=table.dropna())
    np.testing.assert_array_equal(fitted.cluster_centers_, complete.cluster_centers_)


@pytest.mark.parametrize(
    ("terms", "options", "why"),
    [
        ({"bounds": None, "radius": 1.0, "scaling": None}, {}, "a ball is about columns that are all alike"),
        ({"scaling": "bounds"}, {"missing": "mean"}, 'needs scaling="private"'),
        ({"scaling": None}, {"missing": "mean"}, 'needs scaling="private"'),
        ({}, {"columns": ["work"]}, "all columns are categories"),
        ({"bounds": {"age": (0, 1)}}, {}, "must name exactly the columns in use"),
        ({"bounds": [(0, 1)] * 6}, {}, "6 pairs for 2"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::kveil.errors.ScaleWarning")
def test_what_does_not_fit_together_is_refused_and_costs_nothing(terms, options, why):
    ledger = Ledger.memory("untouched", 100.0, relation="add-remove")
    with pytest.raises(InvalidValue, match=why):
        fit(terms={"ledger": ledger, **terms}, **options)
    assert ledger.charges() == ()


def test_a_universe_has_no_categories_and_a_stream_no_means():
    street = Graph.from_edges([[i, i + 1] for i in range(9)])
    with pytest.raises(InvalidValue, match="no columns of categories"):
        PrivateKMedian(2, universe=street).fit(read(np.zeros((3, 1)), categories={0: (0, 1)}))
    with pytest.raises(InvalidValue, match='needs scaling="private"'):
        StreamKMeans(2, epsilon=1.0, bounds=(0, 1)).partial_fit(read(np.zeros((3, 1)), missing="mean"))


def test_a_table_of_categories_alone_needs_no_bounds():
    fitted, _ = fit(terms={"bounds": None}, columns=["work"])
    assert sorted(fitted.cluster_centers_.argmax(axis=1).tolist()) == [0, 1, 2]
