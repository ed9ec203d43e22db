"""`kveil.audit.exact`: losses that are known by hand, both relations, and twins that pass their promise."""

from fractions import Fraction

import numpy as np
import pytest

from kveil import Ledger, Precomputed, PrivateKMeans, PrivateKMedian
from kveil.audit import exact
from kveil.auditing import laws
from kveil.errors import InvalidValue
from kveil.kernel import gate
from kveil.kernel.choice import selection
from kveil.kernel.loss import Charge
from kveil.kernel.noise import laplace_noise

ONE = Fraction(1)
TOWN = Precomputed([[0, 9, 3], [9, 0, 6], [3, 6, 0]])


def drawn(measurement, secret):
    return gate.run(measurement, secret, Ledger.memory("one", 10.0, relation="add-remove"))[0]


def chosen(table, times=1, epsilon=ONE):
    """The place of a low cost, of three; a row adds its value to the first, and `times` says how far it is let go."""
    costs = np.array([times * int(np.sum(table)), 0, 0])
    return {"place": drawn(selection("place", 1, epsilon), costs)}


def test_the_loss_of_one_choice_is_what_it_is_by_hand():
    """With rows 0 or 1, of which one is added: the place that became worse falls from 1/3 to e**-1/(2 + e**-1)."""
    found = exact(chosen, [[0.0], [1.0]], most_rows=1, epsilon=1.0, relation="add-remove")
    assert found.loss == found.released == pytest.approx(np.log((2 + np.exp(-1)) / (3 * np.exp(-1))))
    assert found.missing == pytest.approx(0.0, abs=1e-12)
    assert found.pairs == 2
    assert found.outcome == "consistent"
    assert "all paths" in str(found)


def test_a_choice_that_is_charged_for_half_of_what_it_does_is_violated():
    found = exact(lambda table: chosen(table, times=4), [[0.0], [1.0]], most_rows=1, epsilon=1.0, relation="add-remove")
    assert found.released > 1
    assert found.is_violated


def test_replaced_rows_cost_twice_what_added_ones_do():
    def counts(table):
        return {"noisy": drawn(laplace_noise("counts", 1, 2 * ONE), np.array([int((table == x).sum()) for x in (0, 1)]))}

    terms = {"most_rows": 1, "epsilon": 4.0, "most_outcomes": 200}
    added, replaced = (exact(counts, [[0.0], [1.0]], relation=relation, **terms) for relation in ("add-remove", "replace-one"))
    assert added.loss == pytest.approx(2)
    assert replaced.loss == pytest.approx(4)
    assert 1.5 < added.released <= added.loss
    assert 0 < added.missing < 0.01
    drawn_paths = exact(counts, [[0.0], [1.0]], relation="add-remove", **terms | {"most_outcomes": 9}, samples=40)
    assert drawn_paths.released <= drawn_paths.loss <= 2 + 1e-9
    assert drawn_paths.missing > 1e-3, "a path that was drawn twice counts once"


def test_a_path_that_loses_more_than_what_leaves_shows_is_unknown():
    found = exact(
        lambda table: {"place": 0 * chosen(table, 4)["place"]}, [[1.0]], most_rows=1, epsilon=1.0, relation="add-remove"
    )
    assert (found.loss > 1, found.released, found.outcome) == (True, 0.0, "unknown")


def test_what_leaves_beside_the_noise_is_violated():
    found = exact(lambda table: {**chosen(table), "n": len(table)}, [[1.0]], most_rows=1, epsilon=1.0, relation="add-remove")
    assert found.is_violated
    assert "depends on rows" in str(found)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_whole_fits_on_a_tiny_universe_keep_their_promise(relation):
    search = PrivateKMedian(1, universe=TOWN, method="local-search", init=[0], n_steps=1, relation=relation, random_state=0)
    found = exact(
        search, [[0], [1], [2]], most_rows=1 if relation == "add-remove" else 2, part=lambda left: {"c": left["centers"]}
    )
    assert found.outcome == "consistent"
    assert 0.2 < found.released <= found.loss <= 1
    means = exact(
        PrivateKMeans(1, method="mean", bounds=(-1, 1), relation=relation), [[-1.0, -1], [1, 1]], most_rows=1, most_outcomes=0
    )
    assert means.outcome == "consistent"
    assert 0.3 < means.loss <= 1


def test_every_law_adds_up_to_one():
    z = np.arange(-400, 401)
    plane = np.stack(np.meshgrid(z[350:451], z[350:451]), axis=-1).reshape(-1, 2)
    for logs in (
        laws.laplace_log(z, 0.3), laws.gaussian_log(z, 7.0), laws.gaussian_log(z, 0.3),
        laws.rounded_k_norm_log(z[:, None], 4.0), laws.rounded_k_norm_log(plane, 0.7),
    ):  # fmt: skip
        assert np.exp(logs).sum() == pytest.approx(1.0, abs=1e-6)


def test_what_has_no_law_here_and_promises_with_delta_are_refused():
    with pytest.raises(InvalidValue, match="no law"):
        laws.log_probability(Charge("peel", "x", 1, "l1", ONE), np.zeros(2), np.zeros(2))
    with pytest.raises(InvalidValue, match="pure"):
        exact(PrivateKMeans(2, bounds=(-1, 1), delta=1e-6), [[0.0]])
    with pytest.raises(InvalidValue, match="fits would be needed"):
        exact(chosen, [[0.0], [1.0]], epsilon=1.0, relation="add-remove", most_runs=3)
