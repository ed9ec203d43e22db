"""kveil's own models as the audit sees them; the audits themselves, which take minutes, are `make audit`."""

import warnings

import numpy as np
import pytest

from kveil import PrivateKMeans, PrivateKMedian
from kveil.audit import Attack, check
from kveil.auditing.catalogue import SUBJECTS
from kveil.auditing.fitting import fitted
from kveil.auditing.leaving import observe


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_subject_is_fitted_on_all_its_pairs_and_lets_something_out(name):
    subject = SUBJECTS[name]()
    for pair in subject.pairs[:1] + subject.pairs[-1:]:
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
    wanted = [*PrivateKMeans.methods, *(PrivateKMedian().methods), *on_places.methods]
    assert used == {(PrivateKMeans, name) for name in PrivateKMeans.methods} | {
        (PrivateKMedian, name) for name in (*PrivateKMedian().methods, *on_places.methods)
    }
    assert len(wanted) == len(used)


@pytest.mark.statistical
def test_noise_of_half_the_width_is_seen_in_a_real_model():
    """False alarm of the first verdict: at most 1e-7, its confidence. The second misses with less than 1e-6: 150 of 250 fits
    against 100, by the law of the noise 220 against 30."""
    subject, attack = SUBJECTS["universe counts"](), Attack(scores=("threshold",))
    pairs = [pair for pair in subject.pairs if pair.name == "one more of many"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sound, halved = (
            check(subject.made(spent), epsilon=claimed, pairs=pairs, runs=800, confidence=1 - 1e-7, attack=attack)
            for spent, claimed in ((0.5, 1.0), (4.0, 1.0))
        )
    assert sound.outcome != "violated"
    assert halved.is_violated
    assert np.isfinite(halved.lower)
