"""The hashing, alpha and c of LAE: what they make of the constants, and that manifests carry them and devices check them."""

import json
from fractions import Fraction

import numpy as np
import pytest
from campaigns import OPEN, Unread, forged, make_campaign, make_collector, make_device
from exact_answers import Exact
from hypothesis import given, settings
from hypothesis import strategies as st

from kveil import LocalKMeans, load
from kveil.collect.client import Refusal
from kveil.collect.constants import LITE, MOST_AXES, PAPER, ball_chance, collision_chance, tuned
from kveil.collect.forecast import plan
from kveil.collect.lae import MOST_HASHING, Lae
from kveil.collect.manifest import Header, Manifest
from kveil.collect.protocols import build
from kveil.collect.queries import MOST_KEYS, MOST_QUERIES, Terms
from kveil.errors import InvalidValue
from kveil.partition.lsh import BallLattice, RotatedGrid
from kveil.tuning import Lae as Tuning

WIDE = Terms(10**6, 8, 20, Fraction(1))


@pytest.mark.parametrize(("alpha", "k", "axes"), [(1.0, 8, 5), (0.9, 8, 6), (0.8, 8, 8), (1.0, 2, 3), (Fraction(1), 100, 7)])
def test_alpha_gives_the_paper_s_number_of_axes_and_its_scaling(alpha, k, axes):
    """ceil(ln(k/(alpha 0.1))/alpha**2), and lengths over 1 + alpha."""
    terms = Terms(10**6, k, 20, Fraction(1))
    plain, made = Lae(terms, b"", PAPER), Lae(terms, b"", PAPER, Tuning(alpha=alpha))
    assert (plain.n_axes, made.n_axes) == (4, axes)
    one = made.first().queries[0].maps[0]
    assert np.linalg.norm(one.axes, axis=0) == pytest.approx(np.sqrt(20 / axes) / (1 + float(alpha)), rel=1e-6)


def test_alpha_changes_nothing_where_the_image_is_the_data_itself():
    terms = Terms(10**6, 8, 4, Fraction(1))
    assert tuned(PAPER, Tuning(alpha=0.5), terms) == PAPER
    with pytest.raises(InvalidValue, match=f"at most {MOST_AXES}"):
        tuned(PAPER, Tuning(alpha=0.5), WIDE)


@pytest.mark.parametrize("lsh", ["grid", "ball"])
@pytest.mark.parametrize("k", [2, 8])
def test_near_points_share_a_bucket_k_times_as_often_as_points_c_times_as_far(lsh, k):
    terms, near = Terms(10**6, k, 20, Fraction(1)), []
    for c in (3.0, 4.0, 8.0):
        made = tuned(PAPER, Tuning(lsh=lsh, c=c), terms)
        law = (collision_chance, 4) if lsh == "grid" else (ball_chance, made.ball_axes)
        assert law[0](law[1], made.width) / law[0](law[1], made.width, c) == pytest.approx(k, rel=0.05)
        near.append(made.near(4))
    assert near == sorted(near), "a larger c keeps more near points together"


def test_a_smaller_c_takes_more_repeats_and_more_people():
    needed = [plan(10**6, 8, 10, 1, "lae", "paper", tuning=Tuning(c=c)).people_needed for c in (4, 3, 2)]
    assert needed == sorted(set(needed))
    with pytest.raises(InvalidValue, match="too near to 1"):
        plan(10**6, 8, 10, 1, "lae", "paper", tuning=Tuning(lsh="ball", c=1.5))


@pytest.mark.parametrize("tuning", [Tuning(alpha=0.8), Tuning("ball", c=3), Tuning("ball", alpha=0.8, c=16.0)], ids=str)
@pytest.mark.parametrize("protocol", ["lae", pytest.param("lae-paper", marks=pytest.mark.research)])
def test_every_tuning_ends_within_what_a_manifest_may_hold(tuning, protocol):
    """Exact answers of three places in 20 columns, all the way to their means."""
    places = 0.6 * np.eye(20)[:3]
    made = build(protocol, Terms(30_000, 8, 20, Fraction(4)), b"wide", tuning)
    crowd, now = Exact(places, [10_000] * 3), made.first()
    for number in range(4):
        assert len(now.queries) <= MOST_QUERIES
        if number == 1:
            hashed = [query.buckets for query in now.queries]
            assert {type(one.lsh) for one in hashed} == {BallLattice if tuning.lsh == "ball" else RotatedGrid}
            assert max(one.n_keys for one in hashed) <= MOST_KEYS
            assert sum(one.lsh.shifts.nbytes for one in hashed if tuning.lsh == "ball") * 4 / 3 <= MOST_HASHING
        now = made.next(now, crowd, b"%d" % number)
    assert np.linalg.norm(places[:, None] - now.centres, axis=2).min(axis=1).max() < 1e-3


@pytest.mark.parametrize(
    "given",
    [
        *({"tuning": Tuning(alpha=alpha)} for alpha in (0, 1.01, float("nan"), True)),
        *({"tuning": Tuning(c=c)} for c in (1.4, 17, True, "2")),
        *({"tuning": tuning} for tuning in (Tuning(lsh="cross"), 3)),
        *({"tuning": Tuning(), "protocol": protocol} for protocol in ("refine", "auto")),
    ],
    ids=str,
)
def test_a_tuning_that_cannot_be_is_refused_by_the_model_and_by_a_campaign(given):
    with pytest.raises(InvalidValue):
        LocalKMeans(2, **{"protocol": "lae", "radius": 1.0, **given}).fit(np.zeros((50, 2)))
    with pytest.raises(InvalidValue):
        make_campaign(**{"protocol": "lae", **given})


@pytest.mark.filterwarnings("ignore:LocalKMeans")
def test_the_model_takes_a_tuning_and_its_release_says_so(tmp_path):
    rows = np.repeat([[-0.5, 0.0], [0.5, 0.1]], 5_000, axis=0)
    tuning = Tuning(lsh="ball", c=Fraction(4))
    model = LocalKMeans(2, epsilon=4.0, radius=1.0, protocol="lae", tuning=tuning, random_state=0).fit(rows)
    assert np.abs(model.cluster_centers_[model.cluster_centers_[:, 0].argsort()] - [[-0.5, 0], [0.5, 0.1]]).max() < 0.2
    model.release_.save(tmp_path / "release")
    assert load(tmp_path / "release").parameters["tuning"] == {"lsh": "ball", "alpha": None, "c": 4.0}


HEADER = ("header", "tuning")


def opened(**more):
    collector = make_collector()
    signed = collector.open(make_campaign(protocol="lae", min_reports=0, center=[0] * 6, **more), *OPEN)
    return collector, signed


def test_a_manifest_carries_the_tuning_and_the_collector_builds_by_it():
    collector, signed = opened(tuning=Tuning(lsh="ball", alpha=0.9, c=4))
    assert json.loads(signed.body)["header"]["tuning"] == {"lsh": "ball", "alpha": "9/10", "c": "4"}
    header = Manifest.from_bytes(signed.body).header
    assert header.tuning == Tuning("ball", Fraction(9, 10), Fraction(4))
    assert Header.from_json(header.to_json()).campaign == header.campaign
    (campaign,) = collector.campaigns()
    collector.close(campaign)
    second = Manifest.from_bytes(collector.next_manifest(campaign, *OPEN).body)
    assert {type(query.buckets.lsh) for query in second.queries} == {BallLattice}
    assert {query.buckets.map.n_axes for query in second.queries} == {4}  # ln(2/(0.9 0.1))/0.81 is 3.8
    collector.dispose()


def test_a_tuning_that_says_nothing_leaves_the_manifest_as_it_was():
    plain, silent = (make_campaign(protocol="lae", **more).header("ab" * 32) for more in ({}, {"tuning": Tuning()}))
    assert plain.campaign == silent.campaign
    assert "tuning" not in plain.to_json()


HOSTILE = {
    "alpha 0": {"lsh": "grid", "alpha": "0"}, "alpha above 1": {"lsh": "grid", "alpha": "11/10"},
    "alpha a float": {"lsh": "grid", "alpha": 0.9}, "alpha not in lowest terms": {"lsh": "grid", "alpha": "2/2"},
    "alpha over zero": {"lsh": "grid", "alpha": "1/0"}, "alpha so small that images explode": {"lsh": "grid", "alpha": "1/9999"},
    "alpha of other axes": {"lsh": "grid", "alpha": "4/5"}, "c at sqrt 2": {"lsh": "grid", "c": "1414/1000"},
    "c too large": {"lsh": "grid", "c": "17"}, "c negative": {"lsh": "grid", "c": "-3"}, "c a number": {"lsh": "grid", "c": 3},
    "an unknown hashing": {"lsh": "cross"}, "a hashing that is a list": {"lsh": ["ball"]}, "no hashing": {"c": "3"},
    "another field": {"lsh": "ball", "t": "2"}, "nothing": {"lsh": "grid"}, "empty": {}, "a list": [], "text": "ball",
    "null": None, "balls where queries have cubes": {"lsh": "ball"},
}  # fmt: skip


@pytest.fixture(scope="module")
def chain():
    """Two rounds of a campaign with alpha 9/10, and a device that is asked in the second."""
    collector, _ = opened(tuning=Tuning(alpha=0.9))
    (campaign,) = collector.campaigns()
    collector.close(campaign)
    collector.next_manifest(campaign, *OPEN)
    yield collector.manifests(campaign)
    collector.dispose()


def asked_second(header):
    while True:
        client = make_device(n_features=6)
        low, high = header.cohorts[1]
        if low <= client.cohort(header) <= high:
            return client


def bent(chain, tuning, method=None):
    """Both manifests with another tuning, each naming the hash of the one before."""

    def change(data):
        data["header"]["tuning"] = tuning
        data["header"]["method"] = method or data["header"]["method"]

    first = forged(chain[0], change)
    return [first, forged(chain[1], lambda data: (change(data), data.update(prev=first.hash)))]


@pytest.mark.parametrize("tuning", HOSTILE.values(), ids=HOSTILE)
def test_a_device_refuses_a_hostile_tuning_before_it_reads_its_point(chain, tuning):
    header = Manifest.from_bytes(chain[0].body).header
    client = asked_second(header)
    told = client.answer(bent(chain, tuning), Unread())
    assert isinstance(told, Refusal)
    assert told.why == "manifest"
    assert client.history() == []


def test_a_tuning_of_another_method_is_refused_and_the_true_one_answered(chain):
    header = Manifest.from_bytes(chain[0].body).header
    client = asked_second(header)
    for method in ("refine", "lae-ball", "grid"):
        assert "another method" in client.answer(bent(chain, {"lsh": "grid", "alpha": "9/10"}, method), Unread()).reason
    assert isinstance(client.answer(chain, [0.1] * 6), bytes)


@settings(max_examples=20)
@given(st.fractions(min_value=-1, max_value=20, max_denominator=500))
def test_c_is_read_back_or_refused(c):
    try:
        header = make_campaign(protocol="lae", tuning=Tuning(c=c)).header("ab" * 32)
    except InvalidValue:
        return
    assert Header.from_json(header.to_json()).tuning == Tuning(c=c)


def test_presets_without_a_tuning_are_what_they_were():
    assert (LITE.width, LITE.most_axes, PAPER.width, PAPER.most_axes) == (2.0, 3, 4.0, 4)
    assert tuned(PAPER, Tuning(), WIDE) == PAPER
