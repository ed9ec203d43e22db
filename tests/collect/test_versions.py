"""Campaigns that began before cells outside the ball were left out end with the very centres that they would have had."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from exact_answers import Exact

from kveil.collect import protocols
from kveil.collect.campaign import Campaign, cautions_of, protocol_of
from kveil.collect.queries import Outcome, Terms

SPOTS = np.array([[-0.52, -0.13, 0.2, 0.1, 0.3], [0.11, 0.62, -0.4, 0.2, 0.1], [0.57, -0.31, 0.1, -0.5, -0.2]])
SIZES = [9_000, 6_000, 5_000]
# centres that version 1 found from the answers below, when it was the only one
BEFORE = {
    ("grid", 2): [-0.6364, -0.46534, 0.56564, -0.39532, -0.54339, 0.66846, 0.47958, 0.73558,
                  3373.88781, 4749.7406, 6392.88567, 5483.48591],
    ("refine", 2): [0.57, -0.31, -0.52, -0.13, 0.11, 0.62, -0.54339, 0.66846, 5000.0, 9000.0, 6000.0, 0.0],
    ("refine", 5): [0.57, -0.31, 0.1, -0.5, -0.2, 0.11, 0.62, -0.4, 0.2, 0.1, -0.13371, -0.31797, -0.43988, -0.00488, 0.28203,
                    -0.52, -0.13, 0.2, 0.1, 0.3, 5000.0, 6000.0, 0.0, 9000.0],
    ("lma", 2): [0.26364, -0.7984, -0.4772, -0.20215, 0.70109, 0.42549, 0.33829, 0.65809,
                 2229.94943, 6822.49827, 6383.33315, 4249.26069],
}  # fmt: skip


class Loud(Exact):
    """Answers with the same made-up noise every time: some cells without people stand out, outside the ball as well."""

    def support(self, query, keys):
        wobble = (keys.astype(np.int64) * 40_503 % 65_536) / 65_536  # uniform in 0 .. 1
        return np.rint(super().support(query, keys) + 6_000 * wobble**6).astype(np.int64)


def played(method, d):
    """The outcome of a campaign that is called so in its manifests."""
    terms = Terms(sum(SIZES), 4, d, Fraction(1))
    protocol, answers = protocols.rebuild(method, terms, b"stored"), Loud(SPOTS[:, :d], SIZES, epsilon=1)
    now = protocol.first()
    while not isinstance(now, Outcome):
        now = protocol.next(now, answers, b"closed %d" % now.number)
    return now


def summary(outcome):
    """A few numbers that any other centres or counts would change."""
    order = np.lexsort(outcome.centres.T)
    return np.round([*outcome.centres[order].ravel(), *outcome.counts[order]], 5).tolist()


@pytest.mark.parametrize(("method", "d"), BEFORE)
def test_a_campaign_of_the_first_version_ends_as_it_would_have(method, d):
    assert summary(played(method, d)) == pytest.approx(BEFORE[method, d], abs=2e-5)


@pytest.mark.parametrize("method", ["grid", "refine", "lma"])
def test_the_second_version_is_another(method):
    """So the test above would see that a stored campaign went on with the wrong one."""
    assert summary(played(f"{method}-2", 2)) != pytest.approx(BEFORE[method, 2], abs=2e-5)


@pytest.mark.parametrize("protocol", ["auto", "zoom", "grid", "refine", "lma", "lae"])
def test_new_campaigns_say_that_they_are_of_the_second_version(protocol):
    header = Campaign("new", 10**6, 4, 1, [0.0, 0.0], 1.0, protocol).header("0" * 64)
    used = "zoom" if protocol == "auto" else protocol
    assert header.method == (used if used in ("lae", "zoom") else f"{used}-2")
    built = protocol_of(header)
    assert (built.name, built.version) == (used, 1 if used in ("lae", "zoom") else 2)
    old = replace(header, method=used)
    assert protocol_of(old).version == 1


def test_a_campaign_is_warned_by_the_version_it_began_with():
    """Version 1 looked at all 256 cells, so a cluster had to be larger to stand out."""
    header = Campaign("few", 400, 4, 1, [0.0, 0.0], 1.0, "grid").header("0" * 64)
    before, now = (cautions_of(replace(header, method=method))[-1] for method in ("grid", "grid-2"))
    least = [float(text.split("about ")[1].split("%")[0]) for text in (before, now)]
    assert least[0] == pytest.approx(26.3, abs=0.1)
    assert least[1] < least[0] - 1
