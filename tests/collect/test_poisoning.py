"""What forged reports can move, worked by hand; and that a result says it."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from campaigns import OPEN, make_campaign

from kveil.collect import oracles
from kveil.collect.campaign import Result
from kveil.collect.manifest import Manifest
from kveil.collect.poisoning import moves, reports_for_one_deviation
from kveil.collect.report import Report, seeds

# epsilon, people up, people down, forged reports for one deviation at 10 000 and at 1 000 000: the best oracle of 256 cells
BOUNDS = [("1/2", 5.6, 2.8, 71, 708), ("1", 3.3, 1.1, 58, 578), ("2", 2.3, 0.29, 38, 378), ("4", 2.0, 0.04, 14, 135)]


@pytest.mark.parametrize(("epsilon", "up", "down", "few", "many"), BOUNDS)
def test_bounds_of_one_report_are_those_of_its_oracle(collector, epsilon, up, down, few, many):
    signed = collector.open(make_campaign(n=10_000, epsilon=epsilon), *OPEN)
    query = Manifest.from_bytes(signed.body).queries[0]
    best = oracles.best_oracle(256, Fraction(epsilon))
    query = replace(query, kind=best.kind, M=best.M)
    assert moves(query, Fraction(epsilon)) == pytest.approx((up, down), abs=0.06)
    assert [reports_for_one_deviation(query, Fraction(epsilon), n) for n in (10_000, 1_000_000)] == [few, many]


def test_no_report_moves_a_cell_by_more_than_is_said(collector):
    """Every value of a report, for many ids: one of them attains the bound."""
    signed = collector.open(make_campaign(n=10_000), *OPEN)
    query, rng = Manifest.from_bytes(signed.body).queries[0], np.random.default_rng(0)
    words = seeds(signed.hash, [rng.bytes(16) for _ in range(200)])
    keys = np.arange(16, dtype=np.uint64)
    none = oracles.estimates(query, np.zeros(16, dtype=np.int64), 0, Fraction(1))
    moved = [
        oracles.estimates(query, oracles.support(query, words[i : i + 1], np.array([value]), keys), 1, Fraction(1)) - none
        for i in range(len(words))
        for value in range(query.M)
    ]
    up, down = moves(query, Fraction(1))
    assert np.max(moved) == pytest.approx(up)
    assert np.min(moved) == pytest.approx(-down)


def test_a_result_says_what_forged_reports_could_do(collector, signed):
    (campaign,) = collector.campaigns()
    collector.submit(signed.hash, Report(0, bytes(16), 0).to_bytes())
    collector.close(campaign)
    collector.next_manifest(campaign)
    result = collector.result(campaign)
    assert result.forgery[0].startswith("one forged report moves the count of a cell up by at most 3.3 people or down by 1.1")
    assert result.forgery[-1] == "reports were not limited to one per person."
    assert "forgery: reports were not limited" in str(result)
    assert Result.from_json(result.to_json()).forgery == result.forgery
    old = json.loads(result.to_json())
    del old["forgery"]
    assert Result.from_json(json.dumps(old)).forgery == (), "a result of an earlier version loads"


def test_vectors_are_bounded_too(collector):
    collector.open(make_campaign(n=5000, protocol="lma", center=[0] * 5, min_reports=0), *OPEN)
    (campaign,) = collector.campaigns()
    while collector.state(campaign)[1] != "done":
        collector.close(campaign)
        collector.next_manifest(campaign, *OPEN)
    assert any(text.startswith("one forged vector moves the sum of a cluster") for text in collector.result(campaign).forgery)
