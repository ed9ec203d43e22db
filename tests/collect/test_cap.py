"""The cap of a device: within any 365 days no more than so much epsilon leaves it, whatever campaigns and clocks do."""

import dataclasses
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from functools import cache

import pytest
from campaigns import KEY, OPEN, Unread, make_campaign, make_collector, make_device
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_v1 import booked, write_ledger

from kveil.collect.book import Book, Spend
from kveil.collect.client import Refusal
from kveil.collect.manifest import FIRST, MOST_DAYS_AHEAD, Manifest
from kveil.errors import InvalidValue, KveilError

DAY_0 = date(2030, 1, 1)
EVERYONE = (0, 2**16 - 1)


def after(days):
    return DAY_0 + timedelta(days=days)


@pytest.fixture(scope="module")
def ask():
    """Makes the signed manifests of a campaign up to one of its rounds, whose parts of epsilon are `shares`."""
    collector = make_collector()
    plain = Manifest.from_bytes(collector.open(make_campaign(), *OPEN).body)
    collector.dispose()

    @cache
    def header_of(name, shares):
        mode = "all_rounds" if len(shares) > 1 else "one_round"
        terms = {"name": name, "mode": mode, "epsilon": sum(shares), "epsilon_rounds": shares if len(shares) > 1 else ()}
        return dataclasses.replace(plain.header, **terms, cohorts=(EVERYONE,) * len(shares))

    def manifests(name, shares, number=1, last=DAY_0):
        header, before, rounds = header_of(name, tuple(map(Fraction, shares))), FIRST, []
        for place in range(1, number + 1):
            asked = Manifest(header, place, before, date(2000, 1, 1), last if place == number else DAY_0, 0, plain.queries)
            rounds.append(asked)
            before = asked.hash
        return rounds

    def ask(*terms):
        return [one.signed(KEY) for one in manifests(*terms)]

    ask.manifests = manifests
    return ask


class Device:
    """A client whose day is set, and whose reports leave on the day on which they are made, or so many days later."""

    def __init__(self, path=None, **more):
        self.day = DAY_0
        self.client = make_device(path, clock=lambda: datetime.combine(self.day, datetime.min.time(), UTC), **more)

    def answer(self, chain, days, point=(0.5, 0.5)):
        self.day = after(days)
        return self.client.answer(chain, point)

    def pay(self, manifest, days):
        """What `answer` books for a manifest that was checked, or None; nothing is randomised."""
        self.day, ledger = after(days), self.client._ledger
        try:
            with ledger.file.transaction() as db:
                spend, is_new = self.client._paid(manifest, None, None)
                if is_new:
                    ledger.insert(db, spend)
        except KveilError:
            return None
        return spend if is_new else None


@pytest.fixture
def leave_at_once(monkeypatch):
    monkeypatch.setattr("kveil.collect.device.secret_below", lambda n: 0)


def test_a_later_round_still_counts_when_the_first_one_is_a_year_ago(ask):
    """Cap 4, rounds of 2 and 2 on day 0 and day 364, and another campaign of 4 on day 365: 6 within two days, if it were sent."""
    device = Device(cap=4)
    assert isinstance(device.answer(ask("first", [2, 2], 1, DAY_0), 0), bytes)
    assert isinstance(device.answer(ask("first", [2, 2], 2, after(364)), 364), bytes)
    told = device.answer(ask("second", [4], 1, after(365)), 365, Unread())
    assert isinstance(told, Refusal)
    assert told.why == "budget"
    assert "this campaign costs epsilon 4; 2 of 4 is left" in told.reason
    assert isinstance(device.answer(ask("small", [2], 1, after(365)), 365), bytes), "what left the 365 days is free again"
    assert [spend.epsilon for spend in device.client.history()] == [2, 2, 2]


def test_a_campaign_is_begun_only_if_all_of_it_fits_and_a_promised_round_that_no_longer_fits_is_refused(ask):
    device = Device(cap=4)
    assert device.answer(ask("large", [1, 4]), 0, Unread()).why == "budget", "one round would fit, the whole would not"
    assert isinstance(device.answer(ask("first", [2, 2]), 0), bytes)
    assert device.client.remaining() == 2, "nothing is reserved"
    assert isinstance(device.answer(ask("second", ["3/2"]), 0), bytes)
    told = device.answer(ask("first", [2, 2], 2), 0, Unread())
    assert "this round costs epsilon 2; 0.5 of 4 is left" in told.reason
    assert device.client.remaining() == Fraction(1, 2)


def test_a_round_after_a_year_is_charged_again(ask, leave_at_once):
    """What the campaign paid a year ago does not pay for what it asks now."""
    device = Device(cap=4)
    assert isinstance(device.answer(ask("first", [2, 2], 1), 0), bytes)
    assert isinstance(device.answer(ask("second", [3], 1, after(366)), 366), bytes)
    assert device.answer(ask("first", [2, 2], 2, after(367)), 367, Unread()).why == "budget"
    alone = Device(cap=4)
    alone.answer(ask("first", [2, 2], 1), 0)
    assert isinstance(alone.answer(ask("first", [2, 2], 2, after(400)), 400), bytes)
    assert alone.client.remaining() == 2


def test_what_was_spent_comes_back_after_365_days_and_not_by_turning_the_clock_back(ask, leave_at_once):
    device = Device(cap=4)
    assert isinstance(device.answer(ask("first", [4], 1, after(9)), 4), bytes)
    for days in (368, -400):
        assert device.answer(ask("second", [1], 1, after(369)), days, Unread()).why == "budget"
    assert isinstance(device.answer(ask("second", [1], 1, after(369)), 369), bytes)


def test_a_report_counts_until_a_year_after_it_leaves(ask, monkeypatch):
    """It is made on day 0 and leaves on day 30: on day 365 another one of the same size would leave 335 days later."""
    device = Device(cap=4)
    monkeypatch.setattr("kveil.collect.device.secret_below", lambda n: n - 1)
    assert isinstance(device.answer(ask("first", [4], 1, after(30)), 0), bytes)
    assert device.answer(ask("second", [4], 1, after(394)), 394, Unread()).why == "budget"
    assert isinstance(device.answer(ask("second", [4], 1, after(395)), 395), bytes)


def test_a_report_made_while_the_clock_was_behind_does_not_seem_older_than_the_one_before(ask):
    """Turned back by a year and then set right, the clock would forget at once what was spent meanwhile."""
    device = Device(cap=4)
    assert isinstance(device.answer(ask("first", [2], 1, after(9)), 4), bytes)
    assert isinstance(device.answer(ask("second", [2], 1, after(9)), -350), bytes)
    assert [spend.day for spend in device.client.history()] == [after(4)] * 2
    assert device.answer(ask("third", [2], 1, after(30)), 20, Unread()).why == "budget"


def test_a_clock_that_was_ahead_for_one_report_forgets_nothing_once_it_is_right(ask, leave_at_once):
    """Reports on day 0, on what the clock took for day 370, and on day 350 by the clock set right.

    The first and the last leave within 350 days, and by the day of the second one the first seemed a year old.
    """
    device = Device(cap=4)
    assert isinstance(device.answer(ask("first", [4], 1, DAY_0), 0), bytes)
    assert isinstance(device.answer(ask("ahead", [1], 1, after(380)), 370), bytes)
    told = device.answer(ask("last", [1], 1, after(380)), 350, Unread())
    assert isinstance(told, Refusal)
    assert told.why == "budget"
    assert device.client.remaining() == 0
    assert isinstance(device.answer(ask("last", [1], 1, after(380)), 365), bytes), "a year after the first"


def test_a_round_that_ends_more_than_a_year_ahead_is_neither_answered_nor_published(ask, collector):
    device = Device()
    for last in (after(MOST_DAYS_AHEAD + 1), date(9999, 12, 31)):
        told = device.answer(ask("endless", [1], 1, last), 0, Unread())
        assert told.why == "manifest"
        assert "more than 365 days ahead" in told.reason
    assert isinstance(device.answer(ask("long", [1], 1, after(MOST_DAYS_AHEAD)), 0), bytes)
    with pytest.raises(InvalidValue, match="more than 365 days ahead"):
        collector.open(make_campaign(), OPEN[0], date(2031, 1, 6))  # its clock says 5 January 2030
    collector.open(make_campaign(), OPEN[0], date(2031, 1, 5))


def a_spend(campaign, number, epsilon, days, lag=0, mode="all_rounds"):
    leaves = datetime.combine(after(days + lag), datetime.min.time(), UTC)
    name = f"{campaign}/{number}"
    return Spend(campaign, number, mode, Fraction(epsilon), name, bytes(22), "prepared", after(days), leaves, True)


def test_rows_of_version_1_count_as_their_whole_campaign_while_one_of_them_does(ask, tmp_path, leave_at_once):
    """Their true cost is not on them: 4 on the first row, 0 on the one of day 364."""
    header = Manifest.from_bytes(ask("first", [1, 1, 2])[0].body).header
    rows = booked([a_spend(header.campaign, n, 1, days) for n, days in ((1, 0), (2, 364))], {header.campaign: Fraction(4)})
    assert [row.epsilon for row in rows] == [4, 0]
    write_ledger(tmp_path / "device.db", rows).close()
    device = Device(tmp_path / "device.db", cap=5)
    for days, left in ((0, 1), (365, 1), (728, 1), (729, 5)):
        device.day = after(days)
        assert device.client.remaining() == left
    assert device.answer(ask("second", [2], 1, after(728)), 728, Unread()).why == "budget"
    assert isinstance(device.answer(ask("second", [1], 1, after(728)), 728), bytes)
    assert isinstance(device.answer(ask("first", [1, 1, 2], 3, after(728)), 728), bytes), "paid with its first row"
    device.day = after(729)
    assert device.client.remaining() == 2, "the old rows have left; this round and the other campaign count"


def test_a_round_is_charged_when_the_rows_of_version_1_are_a_year_old(ask, tmp_path, leave_at_once):
    header = Manifest.from_bytes(ask("first", [2, 2])[0].body).header
    write_ledger(tmp_path / "device.db", booked([a_spend(header.campaign, 1, 2, 0)], {header.campaign: Fraction(4)})).close()
    device = Device(tmp_path / "device.db", cap=4)
    assert isinstance(device.answer(ask("second", [3], 1, after(366)), 366), bytes)
    assert device.answer(ask("first", [2, 2], 2, after(367)), 367, Unread()).why == "budget"


def test_a_ledger_that_is_over_its_cap_already_pays_for_nothing(ask):
    """Version 1 could pass it, and an owner may lower it."""
    campaign = Manifest.from_bytes(ask("first", [1, 2])[0].body).header.campaign
    book = Book(tuple(booked([a_spend(campaign, 1, 1, 0)], {campaign: Fraction(3)})), DAY_0)
    assert book.left(Fraction(2), DAY_0) == -1
    device = Device(cap=3)
    device.answer(ask("first", [1, 2]), 0)
    device.client.cap = Fraction(1, 2)
    told = device.answer(ask("first", [1, 2], 2), 0, Unread())
    assert "0 of 0.5 is left" in told.reason
    assert device.client.remaining() == 0


SHARES = [(2,), (4,), (2, 2), (1, "1/2", 2), (1, 1, 1, 1)]
STEPS = st.tuples(
    st.sampled_from(range(len(SHARES))),  # which campaign
    st.integers(1, 4),  # which of its rounds, at most
    st.sampled_from([-400, 0, 0, 1, 180, 364, 365, 400]),  # how far the clock moves
    st.integers(0, 40),  # how long the round is open
)


@given(st.lists(STEPS, max_size=4), st.lists(STEPS, min_size=4, max_size=12), st.sampled_from([4, 5]))
@settings(max_examples=100, deadline=None)
def test_no_365_days_ever_see_more_than_the_cap_leave(ask, old_steps, steps, cap):
    """Campaigns, days and clocks at random, on a ledger with rows of version 1; true costs are kept beside the ledger."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kveil.collect.client._drawn", lambda *asked: (bytes(22), True))
        left, n_old = played(ask, old_steps, steps, cap)
    for date_of in (lambda spend: spend.day, lambda spend: max(spend.day, spend.send_at.date())):
        for last in left:
            inside = [place for place, spend in enumerate(left) if 0 <= (date_of(last) - date_of(spend)).days < 365]
            is_ours = max(inside) >= n_old  # version 1 may have passed the cap by itself
            assert not is_ours or sum(left[place].epsilon for place in inside) <= cap


def played(ask, old_steps, steps, cap):
    """Every report that left, with its true cost and day, and how many of them version 1 had answered."""
    device, whole, now = Device(cap=cap), {}, 0
    left = []
    for place, number, days, lag in old_steps:
        now, number = now + abs(days), min(number, len(SHARES[place]))
        header = ask.manifests(str(place), SHARES[place])[0].header
        whole[header.campaign] = header.epsilon
        if not any((spend.campaign, spend.round) == (header.campaign, number) for spend in left):
            left.append(a_spend(header.campaign, number, SHARES[place][number - 1], now, lag, header.mode))
    ledger, n_old, latest = device.client._ledger, len(left), now
    with ledger.file.transaction() as db:
        for spend in booked(left, whole):
            ledger.insert(db, spend)
    for place, number, days, lag in steps:
        now += days
        latest_now = max(now, latest)  # of a clock that was turned back, the days that it had seen
        asked = ask.manifests(str(place), SHARES[place], min(number, len(SHARES[place])), after(latest_now + lag))[-1]
        if (spend := device.pay(asked, now)) is not None:
            latest = latest_now
            left.append(spend._replace(epsilon=asked.epsilon, day=after(latest)))
    device.client.close()
    return left, n_old
