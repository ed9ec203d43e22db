"""A device under attack: what it sends, and whether an attack on it has teeth."""

import numpy as np
import pytest
from scipy.stats import binom

from kveil.audit import Attack, check
from kveil.auditing.catalogue import SUBJECTS
from kveil.auditing.devices import ENDS
from kveil.collect.protocols import PROTOCOLS

QUICK = Attack(scores=("threshold",))
DEVICES = [name for name in SUBJECTS if name.startswith("device")]


def test_every_protocol_has_a_device():
    kinds = {name.partition("-")[0] for name in PROTOCOLS}
    assert {f"device, {kind}" for kind in kinds} == set(DEVICES)


@pytest.mark.parametrize("name", DEVICES)
def test_a_report_tells_no_more_than_its_22_bytes_and_is_another_one_every_time(name):
    device = SUBJECTS[name]().made(1.0)
    told = [device(ENDS[:1]) for _ in range(3)]
    assert {len(one["message"]) for one in told} == {22}
    assert len({one["message"] for one in told}) == 3


@pytest.mark.parametrize("name", DEVICES)
def test_the_law_of_a_report_is_one_and_spends_epsilon(name):
    """What a report shows of two points is at most epsilon, and nearly all of it: by arithmetic."""
    law = SUBJECTS[name]().law(1.0)
    np.testing.assert_allclose(law.sum(axis=0), 1.0)
    seen = law[(law > 0).all(axis=1)]
    assert np.abs(np.log(seen[:, 0] / seen[:, 1])).max() == pytest.approx(1.0)


@pytest.mark.statistical
def test_reports_follow_the_law_and_one_that_spends_far_more_is_seen():
    """False alarm: at most 4e-7 for the law (eight counts), and 1e-7 for the verdict, its confidence. At epsilon 8 a report has
    the value of its own point with probability 0.74 (e**8 against 1023 other cells), and that of the other in one of 4000. With
    80 counts of each, missing it needs less than 24 of 59 that are expected: less than 1e-12."""
    subject, n, alarm = SUBJECTS["device, grid"](), 400, 5e-8
    law, device = subject.law(1.0), subject.made(1.0)
    for side in (0, 1):
        told = [(one["prefers one"], one["prefers other"]) for one in (device(ENDS[side : side + 1]) for _ in range(n))]
        counts = [told.count(kind) for kind in ((True, False), (False, True), (True, True), (False, False))]
        for count, chance in zip(counts, law[:, side], strict=True):
            low, high = binom.ppf([alarm / 2, 1 - alarm / 2], n, chance)
            assert low <= count <= high
    loud = check(
        subject.made(8.0), epsilon=0.25, relation="replace-one", pairs=subject.pairs, runs=320, confidence=1 - 1e-7, attack=QUICK
    )
    assert loud.is_violated
