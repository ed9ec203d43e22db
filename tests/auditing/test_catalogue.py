"""kveil's own models as the audit sees them; the audits themselves, which take minutes, are `make audit`."""

import pytest

from kveil import PrivateKMeans, PrivateKMedian
from kveil.audit import Attack, check
from kveil.auditing.catalogue import SUBJECTS
from kveil.auditing.fitting import Fits, fitted
from kveil.auditing.leaving import observe
from kveil.collect.protocols import PROTOCOLS as DEVICES
from kveil.federate.protocols import PROTOCOLS


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_subject_is_fitted_without_errors_and_lets_something_out(name):
    subject = SUBJECTS[name]()
    for pair in subject.pairs[-1:]:
        assert pair.relation == subject.relation
        for table in pair.tables():
            found = observe(lambda rows: fitted(subject.made(1.0), rows), table)
            assert "raised" not in found
            assert len(found) > 1


def test_every_method_has_a_subject():
    used = set()
    for make in SUBJECTS.values():
        model = make().made(1.0)
        if isinstance(model, PrivateKMeans | PrivateKMedian):
            used.add((type(model), model.method))
    on_places = PrivateKMedian(universe=SUBJECTS["universe counts"]().made(1.0).universe)
    assert used == {(PrivateKMeans, name) for name in PrivateKMeans.methods} | {
        (PrivateKMedian, name) for name in (*PrivateKMedian().methods, *on_places.methods)
    }


def test_everything_that_spends_budget_has_a_subject():
    """Functions and models by name; every protocol of a federation that promises something, and of devices."""
    for name in ("evaluate", "describe", "find_bounds", "private_candidates", "stream", "federation"):
        assert name in SUBJECTS
    assert {f"federation, {name}" for name in PROTOCOLS if name not in ("cells", "dk")} <= SUBJECTS.keys()
    assert {f"device, {name}" for name in DEVICES if not name.startswith("lae-")} <= SUBJECTS.keys()


@pytest.mark.statistical
def test_noise_that_is_far_too_narrow_is_seen_in_a_real_model_and_the_right_one_is_not_called_broken():
    """False alarm: at most 1e-7, the confidence of the verdict. With a sixteenth of the noise the event comes up in 0.9997 of the
    fits of one table and in 0.0003 of the other; with 80 counts of each, missing it needs nine that go wrong."""
    subject, attack = SUBJECTS["universe counts"](), Attack(scores=("threshold",))
    pairs = [pair for pair in subject.pairs if pair.name == "one more of many"]
    sound, narrow = (
        check(subject.made(spent), epsilon=0.5, pairs=pairs, runs=runs, confidence=1 - 1e-7, attack=attack)
        for spent, runs in ((0.5, 160), (8.0, 320))
    )
    assert sound.outcome != "violated"
    assert narrow.is_violated


def test_people_are_read_in_the_process_that_fits():
    subject = SUBJECTS["mean, people"]()
    parts = Fits(subject.made(1.0), workers=2, per_task=2).of(subject.pairs[0], 4)
    assert [len(part) for part in parts] == [4, 4]
