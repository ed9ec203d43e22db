"""Audits of mechanisms whose epsilon is known."""

import json

import joblib
import numpy as np
import pytest

from kveil.audit import Attack, Event, Neighbours, Verdict, check, one_run, worst_cases
from kveil.auditing.leaving import Outcomes, leaves, observe
from kveil.errors import InvalidType, InvalidValue

RUNS = 6000
QUICK = Attack(scores=("threshold", "logistic"))


def test_a_true_promise_is_consistent_and_its_bound_is_near(geometric, pair):
    found = check(geometric(1.0), epsilon=1.0, pairs=[pair], runs=RUNS)
    assert found.outcome == "consistent"
    assert 0.7 < found.lower <= 1
    assert 1 < found.power < 1.6
    assert found.runs <= RUNS
    assert "count" in found.event or "score" in found.event


def test_noise_of_half_the_width_is_seen_before_all_fits_are_made(geometric, pair):
    found = check(geometric(2.0), epsilon=1.0, pairs=[pair], runs=RUNS, attack=QUICK)
    assert found.is_violated
    assert found.lower > 1
    assert found.runs <= RUNS / 2
    assert found.pair == pair.name


def test_no_round_is_begun_once_the_bound_is_enough(geometric, pair):
    """Half of the noise of epsilon 1 is held against epsilon 3: after an eighth of the fits a bound of 0.3 is there."""
    whole, early = (
        check(geometric(2.0), epsilon=3.0, pairs=[pair], runs=RUNS, attack=QUICK, enough=enough) for enough in (9.0, 0.3)
    )
    assert (whole.outcome, early.outcome) == ("consistent", "consistent")
    assert early.lower > 0.3
    assert early.runs < whole.runs / 1.5


def test_an_event_is_learned_anew_only_for_pairs_of_which_more_was_seen(geometric, pair):
    seen = []

    class Spy(Attack):
        def learn(self, one, other):
            seen.append(len(one))
            return super().learn(one, other)

    same = [Neighbours(f"equal {i}", pair.one, pair.one) for i in range(3)]
    check(geometric(0.5), epsilon=9.0, pairs=[*same, pair], runs=RUNS, attack=Spy(scores=("threshold",)))
    assert len(seen) == 4 + 3 + 1, "all pairs, then the three that took part in the next round, then one"


def test_the_pair_that_tells_is_found_among_others(geometric, pair):
    same = [Neighbours(f"equal {i}", pair.one, pair.one) for i in range(5)]
    found = check(geometric(2.0), epsilon=1.0, pairs=[*same, pair], runs=RUNS, attack=QUICK)
    assert found.is_violated
    assert found.pair == pair.name


def test_a_loss_spread_over_many_numbers_is_added_up(pair):
    """Ten numbers with a loss of 0.4 each: no single one passes epsilon 0.5, together they do."""
    rng = np.random.default_rng(0)

    def spread(rows):
        return dict(enumerate(rng.laplace(len(rows), 2.5, size=10).tolist()))

    alone = check(spread, epsilon=0.5, pairs=[pair], runs=RUNS, attack=Attack(scores=("threshold",)))
    together = check(spread, epsilon=0.5, pairs=[pair], runs=RUNS)
    assert alone.outcome == "consistent"
    assert together.is_violated


def test_what_delta_allows_is_not_held_against_a_mechanism(pair):
    rng = np.random.default_rng(0)

    def leaky(rows):
        return len(rows) if rng.uniform() < 0.05 else -1

    allowed, broken = (check(leaky, epsilon=0.5, delta=delta, pairs=[pair], runs=RUNS, attack=QUICK) for delta in (0.05, 0.001))
    assert (allowed.outcome, broken.outcome) == ("consistent", "violated")


def test_errors_make_it_unknown_unless_they_tell_the_tables_apart(geometric, pair):
    calls, noisy = iter(range(10**6)), geometric(1.0)

    def sometimes(rows):
        if next(calls) % 7 == 0:
            raise RuntimeError("trouble")
        return noisy(rows)

    def telling(rows):
        if len(rows) > 3:
            raise RuntimeError("too many")
        return 0

    found = check(sometimes, epsilon=1.0, pairs=[pair], runs=1000, attack=QUICK)
    assert (found.outcome, "raised" in found.reason) == ("unknown", True)
    told = check(telling, epsilon=1.0, pairs=[pair], runs=1000, attack=QUICK)
    assert (told.is_violated, told.event[-8:]) == (True, "is there")


def test_no_time_and_few_fits_are_unknown(geometric, pair):
    late = check(geometric(1.0), epsilon=1.0, pairs=[pair], runs=1000, seconds=0.0)
    few = check(geometric(1.0), epsilon=9.0, pairs=[pair], runs=1000, attack=QUICK)
    assert late.outcome == few.outcome == "unknown"
    assert late.looks == ()
    assert late.runs < 1000


def test_the_same_comes_from_several_workers(pair):
    with joblib.parallel_config("threading"):  # processes take seconds to start
        found = check(_exact, epsilon=1.0, pairs=[pair], runs=400, workers=2, attack=QUICK)
    assert found.is_violated
    assert found.runs == sum(look.bound.runs + look.bound.other_runs for look in found.looks) * 2


def _exact(rows):
    return len(rows)


def test_a_verdict_is_written_as_json(geometric, pair):
    found = check(geometric(1.0), epsilon=1.0, pairs=[pair], runs=1000, name="counts", attack=QUICK)
    told = json.loads(found.to_json())
    assert (told["outcome"], told["name"], told["lower"]) == (found.outcome, "counts", found.lower)
    assert told["looks"][-1]["bound"]["runs"] == found.looks[-1].bound.runs
    assert str(found).startswith("counts: ")
    assert "<svg" in found.report()
    assert Verdict(**told | {"looks": found.looks}) == found  # but for what was counted it comes back


def test_an_estimator_is_fitted_anew_every_time(pair):
    class Counts:
        def __init__(self, factor=1):
            self.factor = factor

        def get_params(self, deep=False):
            return {"factor": self.factor}

        def set_params(self, **params):
            return self

        def fit(self, rows):
            assert not hasattr(self, "count_"), "fitted before"
            self.count_ = self.factor * len(rows)
            return self

    found = check(Counts(), epsilon=1.0, pairs=[pair], runs=400, attack=QUICK)
    assert found.is_violated
    assert ".count_" in found.event


def test_everything_is_looked_at():
    class Fitted:
        def __init__(self):
            self.centers_ = np.array([[3.0, 1.0], [1.0, 2.0]])
            self._hidden = {"labels": [0, 1], "note": "about 17 rows"}
            self.missing = None

    found = leaves(Fitted())
    assert found[".centers_[0]"] == 3
    assert found[".centers_ sorted[0]"] == 1
    assert found[".centers_ shape[0]"] == 2
    assert found["._hidden['labels'] length"] == 2
    assert found["._hidden['note'] number 0"] == 17
    assert found[".missing"] == 0


def test_warnings_and_errors_are_looked_at():
    def warns(rows):
        import warnings

        warnings.warn(f"{rows} rows", stacklevel=1)
        return 0

    def raises(rows):
        raise ValueError(f"{rows} rows")

    assert observe(warns, 5)["warnings[0] number 0"] == 5
    assert observe(raises, 6)["raised.kind number 0"] == 6


def test_outcomes_with_other_names_are_put_side_by_side():
    both = Outcomes.joined([Outcomes.of([{"a": 1.0}, {"b": 2.0}]), Outcomes.of([{"c": 3.0}])])
    assert both.names == ("a", "b", "c")
    np.testing.assert_array_equal(both.values, [[1, np.nan, np.nan], [np.nan, 2, np.nan], [np.nan, np.nan, 3]])
    np.testing.assert_array_equal(both.on(["c", "z"])[:, 0], [np.nan, np.nan, 3])


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_worst_cases_differ_in_one_row(relation):
    pairs = worst_cases([0, 0], [1, 2], relation)
    assert len({pair.name for pair in pairs}) == len(pairs)
    for pair in pairs:
        assert pair.rule
        if relation == "add-remove":
            assert len(pair.other) == len(pair.one) + 1
            np.testing.assert_array_equal(pair.other[:-1], pair.one)
        else:
            assert ((pair.one != pair.other).any(axis=1)).sum() == 1


def test_what_cannot_be_audited_is_refused(pair):
    with pytest.raises(InvalidType):
        check(3, epsilon=1.0, pairs=[pair], runs=400)
    for wrong in (
        {"epsilon": -1.0},
        {"epsilon": 1.0, "confidence": 1.0},
        {"epsilon": 1.0, "pairs": []},
        {"epsilon": 1.0, "runs": 9},
    ):
        with pytest.raises(InvalidValue):
            check(_exact, **{"pairs": [pair], "runs": 400} | wrong)
    with pytest.raises(InvalidValue):
        check(_exact, epsilon=1.0, relation="replace-one", pairs=[pair], runs=400)


def test_a_refusal_of_few_runs_says_how_many_are_enough(pair):
    with pytest.raises(InvalidValue, match="Pass at least 80"):
        check(_exact, epsilon=1.0, pairs=[pair], runs=79)
    check(_exact, epsilon=1.0, pairs=[pair], runs=80, attack=QUICK)


def test_one_run_sees_exact_counts_and_not_noise():
    canaries = np.arange(400.0)[:, None]
    rng = np.random.default_rng(0)

    def counts(scale):
        return lambda rows: np.isin(canaries[:, 0], rows[:, 0]) + rng.laplace(scale=scale, size=400)

    table = np.full((5, 1), -1.0)
    exact, private = (
        one_run(counts(scale), table, canaries, guesses=100, score=lambda seen, _: seen, random_state=1) for scale in (1e-9, 1.0)
    )
    assert exact.right == 100
    assert exact.lower() > 2
    assert 0 < private.lower() <= 1
    assert (exact.guesses, private.guesses) == (100, 100), "fixed before the fit: the best of several numbers is no bound"


def test_guesses_of_one_run_look_at_scores_alone():
    """Coins that had a say in a guess would make it right. A score that points the wrong way is wrong every time, and one that
    tells nothing leaves the places of the canaries to decide."""
    canaries, table = np.arange(400.0)[:, None], np.full((5, 1), -1.0)

    def right(score):
        present = lambda rows: np.isin(canaries[:, 0], rows[:, 0]).astype(float)  # noqa: E731
        return one_run(present, table, canaries, guesses=100, score=score, random_state=1).right

    coins = np.random.default_rng(1).integers(2, size=400).astype(bool)
    assert right(lambda seen, _: -seen) == 0
    assert right(lambda seen, _: np.zeros(400)) == coins[-50:].sum() + (~coins[:50]).sum()


def test_events_are_learned_on_fits_that_came_before_all_that_they_are_counted_on(pair):
    """Every fit returns its number. An event that was counted on a fit it was learned from would see a number twice."""
    numbers, counted = iter(range(10**6)), []

    class Watched(Event):
        def hits(self, outcomes):
            assert outcomes.on(["value"]).min() > self.threshold, "counted on fits that were learned from"
            counted.append(len(outcomes))
            return 0

    class Watching(Attack):
        def learn(self, one, other):
            last = max(one.on(["value"]).max(), other.on(["value"]).max())
            return Watched("watched", "one", last, ("value",), lambda values: values[:, 0], 0.0)

    others = [Neighbours(f"other {i}", pair.one, pair.other) for i in range(3)]
    found = check(lambda rows: next(numbers), epsilon=1.0, pairs=[pair, *others], runs=2000, attack=Watching())
    assert sum(counted) == sum(look.bound.runs + look.bound.other_runs for look in found.looks) > 1500
    assert sum(look.bound.error for look in found.looks) <= 1 - found.confidence
    assert len(found.looks) == 5
