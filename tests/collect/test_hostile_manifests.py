"""A collector that lies, with the right key in its hand: every manifest here is signed, and a device still reads no point."""

import base64
import json

import numpy as np
import pytest
from campaigns import KEY, OPEN, Unread, forged, make_campaign, make_collector, make_device, noon
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kveil import canonical
from kveil.collect.client import Refusal
from kveil.collect.manifest import Manifest, Signed
from kveil.errors import InvalidValue
from kveil.kernel.loss import response_weights
from kveil.signing import SigningKey


def floats(*values):
    return base64.b64encode(np.array(values, dtype="<f4").tobytes()).decode()


def put(value, *path):
    def change(data):
        for step in path[:-1]:
            data = data[step]
        data[path[-1]] = value

    return change


def gone(*path):
    def change(data):
        for step in path[:-1]:
            data = data[step]
        del data[path[-1]]

    return change


def both(*changes):
    return lambda data: [change(data) for change in changes]


QUERY = ("queries", 0)
PRIVACY = ("header", "privacy")
A4, B = response_weights(4)
REFUSED = {
    "a + 1": put(11674931555, *PRIVACY, "a"),
    "a smaller, which is only safer": put(11674931553, *PRIVACY, "a"),
    "b = 0": put(0, *PRIVACY, "b"),
    "b < 0": put(-(2**32), *PRIVACY, "b"),
    "both negative": both(put(-11674931554, *PRIVACY, "a"), put(-(2**32), *PRIVACY, "b")),
    "a as text": put("11674931554", *PRIVACY, "a"),
    "epsilon raised without its weights": put("2", *PRIVACY, "eps"),
    "epsilon not in lowest terms": put("2/2", *PRIVACY, "eps"),
    "epsilon zero": put("0", *PRIVACY, "eps"),
    "epsilon over zero": put("1/0", *PRIVACY, "eps"),
    "epsilon negative": put("-1", *PRIVACY, "eps"),
    "epsilon above 10": put("11", *PRIVACY, "eps"),
    "epsilon a number": put(1, *PRIVACY, "eps"),
    "an unknown mode": put("every_day", *PRIVACY, "mode"),
    "all rounds without their epsilons": put("all_rounds", *PRIVACY, "mode"),
    "eps_rounds add up to more": both(put("all_rounds", *PRIVACY, "mode"), put(["2"], *PRIVACY, "eps_rounds")),
    "eps_rounds that each fit and add up to more": both(
        put("all_rounds", *PRIVACY, "mode"), put(["1", "1/2"], *PRIVACY, "eps_rounds"), put([[0, 65535]] * 2, "header", "cohorts")
    ),
    "eps_rounds in the wrong mode": put(["1"], *PRIVACY, "eps_rounds"),
    "eps_rounds for other rounds": both(put("all_rounds", *PRIVACY, "mode"), put(["1/2", "1/2"], *PRIVACY, "eps_rounds")),
    "a future schema": put("kveil.local/2", "header", "schema"),
    "no schema": gone("header", "schema"),
    "an unknown field": put(1, "hint"),
    "an unknown field of the header": put("x", "header", "device"),
    "an unknown field of the query": put(1, *QUERY, "mark"),
    "an unknown field of the map": put(1, *QUERY, "map", "mark"),
    "an unknown field of the privacy": put(1, *PRIVACY, "more"),
    "a field missing": gone("min_reports"),
    "a field of the query missing": gone(*QUERY, "depth"),
    "kappa = 0": put(0, *QUERY, "kappa"),
    "kappa = M": put(4, *QUERY, "kappa"),
    "kappa = 2 of a key": put(2, *QUERY, "kappa"),
    "M = 1": put(1, *QUERY, "M"),
    "M too large": put(65537, *QUERY, "M"),
    "weight 0": put(0, *QUERY, "weight"),
    "weight true": put(True, *QUERY, "weight"),
    "depth 0": put(0, *QUERY, "depth"),
    "depth 61": put(61, *QUERY, "depth"),
    "an unknown kind": put("plain", *QUERY, "kind"),
    "a kind that is a list": put([], *QUERY, "kind"),
    "an unknown rule": put("self", *QUERY, "key_rule"),
    "a rule that is a list": put(["cell"], *QUERY, "key_rule"),
    "query id 1 at place 0": put(1, *QUERY, "id"),
    "no queries": put([], "queries"),
    "queries an object": put({}, "queries"),
    "a query that is a number": put([7], "queries"),
    "a map of NaN": put(floats(np.nan, 0, 0, 1), *QUERY, "map", "A"),
    "a map of infinity": put(floats(np.inf, 0, 0, 1), *QUERY, "map", "A"),
    "a huge map": put(floats(1e30, 0, 0, 1), *QUERY, "map", "A"),
    "a map of another size": put(floats(1, 0, 0), *QUERY, "map", "A"),
    "base64 with spare bits": put("AACAPwAAAAAAAAAAAACAPx==", *QUERY, "map", "A"),
    "base64 with spaces": put(" " + floats(1, 0, 0, 1), *QUERY, "map", "A"),
    "a radius of 0": put(floats(0), "header", "domain", "Rad"),
    "a negative radius": put(floats(-1), "header", "domain", "Rad"),
    "a radius of NaN": put(floats(np.nan), "header", "domain", "Rad"),
    "a tiny radius": put(floats(1e-40), "header", "domain", "Rad"),
    "a centre of NaN": put(floats(np.nan, 0), "header", "domain", "o"),
    "another dimension": put(3, "header", "domain", "D"),
    "three columns": both(put(3, "header", "domain", "D"), put(floats(0, 0, 0), "header", "domain", "o"),
                          put(floats(1, 0, 0, 1, 0, 0), *QUERY, "map", "A")),
    "reports of 23 bytes": put(23, "header", "report_bytes"),
    "no cohorts": put([], "header", "cohorts"),
    "an empty cohort": put([[5, 4]], "header", "cohorts"),
    "a cohort too far": put([[0, 65536]], "header", "cohorts"),
    "overlapping cohorts": put([[0, 65535], [0, 65535]], "header", "cohorts"),
    "round 0": put(0, "round"),
    "round 2 of 1": put(2, "round"),
    "a past that is none": put("ab" * 32, "prev"),
    "a date that is none": put("2030-02-30", "not_after"),
    "a date with a time": put("2030-01-01T00:00", "not_before"),
    "an end before the beginning": put("2029-12-31", "not_after"),
    "an unprintable name": put("a\x1b[2J", "header", "name"),
    "a name of 10 000 letters": put("a" * 10_000, "header", "name"),
    "negative min_reports": put(-1, "min_reports"),
    "no people": put(0, "header", "n"),
    "a float": put(0.5, "header", "n"),
    "null": put(None, "header", "k"),
    "another key in the header": put(SigningKey(bytes(32)).public, "header", "key"),
    "no key": put("", "header", "key"),
    "a closed round": both(put("2029-01-01", "not_before"), put("2029-01-31", "not_after")),
    "a round to come": both(put("2031-01-01", "not_before"), put("2031-01-31", "not_after")),
    "epsilon above the cap": both(put("5", *PRIVACY, "eps"), put(response_weights(5)[0], *PRIVACY, "a")),
}  # fmt: skip


@pytest.fixture(scope="module")
def signed():
    return make_collector().open(make_campaign(), *OPEN)


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
def test_a_device_refuses_before_it_reads_its_point_and_its_ledger_stays_as_it_is(signed, change):
    client = make_device()
    told = client.answer([forged(signed, change)], Unread())
    assert isinstance(told, Refusal)
    assert len(told.reason) > 20
    assert client.history() == []
    assert client.remaining() == 4
    assert isinstance(client.answer([signed], [0.1, 0.2]), bytes), "and the true manifest is answered as before"


def test_bytes_that_were_changed_after_signing_are_refused(signed):
    client = make_device()
    for body in (signed.body[:-1], signed.body.replace(b'"n":100', b'"n":101'), b"", signed.body + b" "):
        told = client.answer([Signed(body, signed.signature)], Unread())
        assert isinstance(told, Refusal)
        assert "signed" in told.reason
    for signature in (b"", b"\0" * 64, signed.signature[:-1], signed.signature + b"x"):
        assert isinstance(client.answer([Signed(signed.body, signature)], Unread()), Refusal)
    assert client.history() == []


def test_only_the_pinned_key_counts(signed):
    other = SigningKey(bytes(32))
    client = make_device()
    renamed = forged(signed, put(other.public, "header", "key"), key=other)
    told = client.answer([renamed], Unread())
    assert isinstance(told, Refusal)
    assert told.why == "manifest"
    assert isinstance(make_device(key=other.public).answer([renamed], [0, 0]), bytes), "whoever pinned that key may answer"


def test_a_campaign_that_is_not_the_hash_of_its_header_is_refused(signed):
    data = json.loads(signed.body)
    data["campaign"] = "ab" * 32
    body = canonical.DEVICE.write(data)
    assert isinstance(make_device().answer([Signed(body, KEY.sign(body))], Unread()), Refusal)


def test_no_json_at_all_and_no_manifest_at_all_are_refused(signed):
    client = make_device()
    for body in (b"[]", b'"x"', b"{}", b"[" * 50_000, b"\xff\xfe"):
        assert isinstance(client.answer([Signed(body, KEY.sign(body))], Unread()), Refusal)
    for chain in ([], [signed.body], [None], [signed] * 65):
        assert isinstance(client.answer(chain, Unread()), Refusal)


@pytest.mark.parametrize("text", [b"", b"{}", b"[1]", b'{"manifest":"","signature":"zz","witnesses":{}}'], ids=repr)
def test_an_envelope_that_is_none_is_refused(text):
    with pytest.raises(InvalidValue, match=r"was used|charged"):
        Signed.from_bytes(text)


@pytest.fixture(scope="module")
def rounds():
    """The three true manifests of a campaign in 4 columns, and three that were signed for somebody else."""
    return [chain_of(3, "refine", 4), chain_of(3, "refine", 4, name="another")]


@pytest.fixture(scope="module")
def chains(rounds):
    """First two rounds with every rule: cells and nearest centres, products of two images, buckets."""
    return [rounds[0], chain_of(2, "refine", 5), chain_of(2, "lae", 2)]


def chain_of(n_rounds, protocol, columns, **more):
    """Manifests of a campaign that nobody answers."""
    collector = make_collector()
    collector.open(make_campaign(protocol=protocol, center=[0] * columns, min_reports=0, **more), *OPEN)
    (campaign,) = collector.campaigns()
    for _ in range(n_rounds - 1):
        collector.close(campaign)
        collector.next_manifest(campaign, *OPEN)
    chain = collector.manifests(campaign)
    collector.dispose()
    return chain


def of_round(number, rounds):
    """A device that is asked in this round."""
    header = Manifest.from_bytes(rounds[0].body).header
    while True:
        client = make_device(n_features=header.n_columns)
        low, high = header.cohorts[number - 1]
        if low <= client.cohort(header) <= high:
            return client


def test_the_whole_past_must_be_shown_in_order(rounds):
    true, other = rounds
    client = of_round(3, true)
    broken = [
        true[2:], true[1:], [true[0], true[2]], [true[1], true[0], true[2]], [*true[:2], other[2]], [other[0], *true[1:]],
        [true[0], true[0], true[2]], [true[0], other[1], true[2]], [*true, true[2]],
    ]  # fmt: skip
    for chain in broken:
        told = client.answer(chain, Unread())
        assert isinstance(told, Refusal)
        assert told.why == "manifest"
    assert client.history() == []
    assert isinstance(client.answer(true, [0.1] * 4), bytes)


def test_a_device_of_another_cohort_is_not_asked(rounds):
    """Whatever round comes, only its own; and it says so before it reads its point."""
    true, _ = rounds
    for own in (1, 2, 3):
        client = of_round(own, true)
        for number in (1, 2, 3):
            if number != own:
                assert client.answer(true[:number], Unread()).why == "not asked"
        assert client.history() == []
        assert isinstance(client.answer(true[:own], [0.1] * 4), bytes)


def test_every_round_of_the_past_must_be_signed_and_witnessed_and_not_the_last_alone(rounds):
    true, _ = rounds
    witness = SigningKey(bytes([1] * 32))
    seen = [one.witnessed(witness.public, witness.sign(one.body)) for one in true]
    header = Manifest.from_bytes(true[0].body).header
    client = make_device(n_features=4, witnesses=[witness.public])
    while not header.cohorts[2][0] <= client.cohort(header) <= header.cohorts[2][1]:
        client = make_device(n_features=4, witnesses=[witness.public])
    for place in range(3):
        unsigned = Signed(seen[place].body, bytes(64), seen[place].witnesses)
        for broken in (unsigned, true[place]):
            told = client.answer([*seen[:place], broken, *seen[place + 1 :]], Unread())
            assert isinstance(told, Refusal)
            assert "sign" in told.reason
    assert isinstance(client.answer(seen, [0.1] * 4), bytes)


def test_a_header_may_not_change_between_rounds(rounds):
    true, _ = rounds
    client = of_round(2, true)
    wider = forged(true[1], put(101, "header", "n"))
    assert "header" in client.answer([true[0], wider], Unread()).reason
    raised = forged(true[1], both(put("4", *PRIVACY, "eps"), put(A4, *PRIVACY, "a")))
    assert "header" in client.answer([true[0], raised], Unread()).reason
    assert client.history() == []


CENTRES = {
    "NaN": floats(*[np.nan] * 8), "infinity": floats(*[np.inf] * 8), "huge": floats(*[1e30] * 8), "a part": floats(*[0] * 7),
    "none": "", "too many": floats(*[0] * 4 * 4097),
}  # fmt: skip


@pytest.mark.parametrize("centres", CENTRES.values(), ids=CENTRES)
def test_hostile_centres_are_refused(rounds, centres):
    true, _ = rounds
    client = of_round(2, true)
    told = client.answer([true[0], forged(true[1], put(centres, *QUERY, "centres"))], Unread())
    assert isinstance(told, Refusal)
    assert client.history() == []


@pytest.mark.parametrize("rho", [0.0, -1.0, np.nan, np.inf, 1e-45])
def test_hostile_radii_are_refused(rounds, rho):
    true, _ = rounds
    client = of_round(2, true)
    assert isinstance(client.answer([true[0], forged(true[1], put(floats(rho), *QUERY, "rho"))], Unread()), Refusal)


def test_a_codebook_that_would_keep_a_device_busy_is_refused():
    true = chain_of(2, "refine", 4)
    wide = both(put(2000, "header", "domain", "D"), put(floats(*[0] * 2000), "header", "domain", "o"))
    first = forged(true[0], both(wide, put(floats(*[0] * 8000), *QUERY, "map", "A")))
    heavy = both(wide, put(floats(*[0] * 2000), *QUERY, "centres"), put(65536, *QUERY, "M"), put(first.hash, "prev"))
    chain = [first, forged(true[1], heavy)]
    client = of_round(2, chain)
    assert "codebook" in client.answer(chain, Unread()).reason
    chain[1] = forged(true[1], both(heavy, put(256, *QUERY, "M")))
    assert isinstance(client.answer(chain, [0.0] * 2000), bytes)


@pytest.mark.parametrize("rho", [1e-30, 1e11])
@pytest.mark.parametrize("point", [[0.0] * 4, [1.0] * 4, [np.nan] * 4, [1e300] * 4], ids=["zero", "far", "NaN", "huge"])
def test_other_strange_radii_are_answered_with_the_same_length(rounds, rho, point):
    true, _ = rounds
    client = of_round(2, true)
    told = client.answer([true[0], forged(true[1], put(floats(rho), *QUERY, "rho"))], point)
    assert isinstance(told, bytes)
    assert len(told) == 22


def test_witnesses_must_have_signed_what_a_device_is_shown(signed):
    witness, other = SigningKey(bytes([1] * 32)), SigningKey(bytes([2] * 32))
    client = make_device(witnesses=[witness.public])
    by_other = signed.witnessed(other.public, other.sign(signed.body))
    for shown in (signed, by_other, Signed(signed.body, signed.signature, {witness.public: b"x" * 64})):
        told = client.answer([shown], Unread())
        assert isinstance(told, Refusal)
        assert "witness" in told.reason
    with pytest.raises(InvalidValue, match="no signature"):
        signed.witnessed(witness.public, other.sign(signed.body))
    seen = signed.witnessed(witness.public, witness.sign(signed.body))
    assert isinstance(client.answer([Signed.from_bytes(seen.to_bytes())], [0, 0]), bytes)


def test_the_clock_decides_by_days(signed):
    assert isinstance(make_device(clock=noon(31)).answer([signed], [0, 0]), bytes)
    assert make_device(clock=noon(1, 2)).answer([signed], Unread()).why == "not now"
    assert make_device(clock=noon(31, 12, 2029)).answer([signed], Unread()).why == "not now"


def places_of(data, path=()):
    """Every place in a JSON value."""
    yield path
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, entry in inner:
        yield from places_of(entry, (*path, step))


anything = st.sampled_from(
    [0, 1, -1, 2, 255, 2**31, 2**53 - 1, True, "", "0", "AAAA", "AACAfw==", "x" * 300, [], [0], [[]], {}, {"a": 1}, [1] * 5000]
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data(), value=anything)
def test_a_device_survives_whatever_is_put_anywhere_into_a_signed_manifest(chains, data, value):
    """It answers with 22 bytes or refuses; nothing is raised, and a refusal leaves no trace."""
    true, number = data.draw(st.sampled_from(chains)), data.draw(st.sampled_from([1, 2]))
    client = of_round(number, true)
    places = [path for path in places_of(json.loads(true[number - 1].body)) if path]
    path = data.draw(st.sampled_from(places))
    told = client.answer([*true[: number - 1], forged(true[number - 1], put(value, *path))], [0.1] * client.n_features)
    assert isinstance(told, Refusal | bytes)
    assert len(client.history()) == isinstance(told, bytes)
    assert not isinstance(told, bytes) or len(told) == 22
