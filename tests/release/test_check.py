"""A release must agree with itself: parameters, guarantee, draws, receipt, and the files beside it."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from kveil import FederatedKMeans, Graph, Ledger, LocalKMeans, PrivateKMeans, PrivateKMedian, StreamKMeans, load
from kveil.canonical import RELEASE, digest
from kveil.errors import ReleaseError
from kveil.kernel.loss import Guarantee, Plan, guarantee
from kveil.release.check import check_release, disagreements

ROWS = np.random.default_rng(0).uniform(-1, 1, (90, 6))
TENTH = Fraction(1, 10)


def fitted(**parameters):
    return (
        PrivateKMeans(**{"n_clusters": 2, "epsilon": 1.0, "bounds": (-1, 1), "random_state": 0, **parameters}).fit(ROWS).release_
    )


def scaled(charges, factor=TENTH):
    return tuple(
        replace(charge, epsilon=charge.epsilon and charge.epsilon * factor, rho=charge.rho and charge.rho * factor)
        for charge in charges
    )


def promised(release, **changes):
    return replace(release, guarantee=replace(release.guarantee, **changes))


def of_a_tenth(release):
    """The guarantee of a tenth of the budget, which its numbers follow from."""
    old = release.guarantee
    new = guarantee(Plan(scaled(old.charges), old.relation, old.unit, Fraction(old.delta)), trust=old.trust)
    return replace(new, draws=old.draws)


@pytest.fixture(scope="module", params=[0.0, 1e-6], ids=["pure", "zcdp"])
def release(request):
    return fitted(delta=request.param)


UNIVERSE = Graph.from_edges([[i, i + 1] for i in range(30)])
HONEST = [
    *(lambda method=method, delta=delta: fitted(method=method, delta=delta)
      for method in ("tree", "lloyd", "candidates", "sample-aggregate", "mean") for delta in (0.0, 1e-6)),
    lambda: fitted(epsilon=0.003, delta=1e-7, method="lloyd"),
    lambda: fitted(init="variates", delta=1e-6),
    lambda: fitted(relation="replace-one"),
    lambda: fitted(ledger=Ledger.memory("all", 1.0, 1e-6, relation="add-remove"), delta=1e-6),
    lambda: PrivateKMeans(2, bounds=(-1, 1), method="grid").fit(ROWS[:, :2]).release_,
    lambda: PrivateKMedian(2, bounds=(-1, 1), delta=1e-6).fit(ROWS).release_,
    lambda: PrivateKMedian(2, universe=UNIVERSE).fit(np.arange(30)).release_,
    lambda: PrivateKMedian(2, universe=UNIVERSE, method="local-search", delta=1e-6).fit(np.arange(30)).release_,
    lambda: StreamKMeans(2, epsilon=0.5, bounds=(-1, 1), delta=1e-6).fit(ROWS).release_,
    lambda: FederatedKMeans(2, epsilon=0.5, bounds=(-1, 1), delta=1e-6).fit([ROWS, ROWS]).release_,
    lambda: LocalKMeans(2, epsilon=4.0, radius=1.0, devices="exact", protocol="grid").fit(np.tile(ROWS[:, :1], (20, 1))).release_,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("make", HONEST)
def test_an_honest_release_agrees_with_itself_and_passes(make, tmp_path):
    made = make()
    assert disagreements(made) == []
    made.save(tmp_path / "out")
    assert check_release(tmp_path / "out").guarantee == made.guarantee


def test_the_draws_add_up_to_what_was_charged(release):
    told = release.guarantee
    (charge,) = told.charges
    unit = "epsilon" if charge.rho is None else "rho"
    drawn = sum(draw.pure() if charge.rho is None else draw.zcdp() for draw in told.draws)
    assert 0.999 * getattr(charge, unit) < drawn <= getattr(charge, unit)
    n = release.receipt["charges"]
    assert f"whole budget: {unit} {float(getattr(charge, unit)):.6g}, split over {n} draws (listed below)" in str(told)
    assert str(told).count("\n  - ") == len(told.charges) + len(told.draws) + len(told.assumptions)
    assert "Draws:\n  - number of rows: " in str(told)
    assert all(str(draw) in release.card() for draw in told.draws)
    assert not any("drawn" in note for note in release.notes)


@pytest.mark.parametrize(
    ("forge", "says"),
    [
        (lambda r: replace(r, guarantee=of_a_tenth(r)), "its guarantee says epsilon 0.[0-9]+ and its parameters 1.0"),
        (lambda r: replace(r, guarantee=of_a_tenth(r)), "was split over its draws, and they add up to"),
        (lambda r: replace(r, parameters={**r.parameters, "epsilon": 0.1}), "says epsilon (1|0.9+) and its parameters 0.1"),
        (lambda r: promised(r, draws=scaled(r.guarantee.draws)), "(epsilon|rho) [0-9.]+ was split over its draws, and they"),
        (lambda r: promised(r, draws=r.guarantee.draws[:-1]), "they add up to"),
        (lambda r: promised(r, draws=scaled(r.guarantee.draws, 2)), "they add up to"),
        (lambda r: promised(r, draws=()), "no draw is listed"),
        (lambda r: replace(r, parameters={**r.parameters, "relation": "replace-one"}),
         "its guarantee says relation add-remove and its parameters 'replace-one'"),
        (lambda r: replace(r, parameters={**r.parameters, "epsilon": "inf"}), "its parameters 'inf'"),
        (lambda r: replace(r, parameters={k: v for k, v in r.parameters.items() if k != "epsilon"}), "its parameters None"),
        (lambda r: replace(r, receipt={**r.receipt, "charges": 1}), "its receipt says 1 draws of noise and its guarantee lists"),
    ],
)  # fmt: skip
def test_a_release_saved_anew_with_another_promise_in_one_place_is_refused(forge, says, release, tmp_path):
    forged = forge(release)
    forged.save(tmp_path / "out")
    assert load(tmp_path / "out").guarantee.valid  # its digests are right
    with pytest.raises(ReleaseError, match=says) as refusal:
        check_release(tmp_path / "out")
    assert "Do not rely on this release" in str(refusal.value)


def test_another_delta_in_the_parameters_is_refused():
    made = fitted(delta=1e-6)
    for delta in (1e-7, 0, "x"):
        (said,) = disagreements(replace(made, parameters={**made.parameters, "delta": delta}))
        assert said == f"its guarantee says delta 1e-06 and its parameters {delta!r}"


@pytest.mark.parametrize("name", ["rows.csv", "centers.csv", ".hidden", "more"])
def test_files_that_are_no_part_of_the_release_are_named(name, release, tmp_path):
    release.save(tmp_path / "out")
    (tmp_path / "out" / name).mkdir() if name == "more" else (tmp_path / "out" / name).write_text("x")
    with pytest.raises(ReleaseError, match=f"the folder also holds '{name}', which no promise covers"):
        check_release(tmp_path / "out")


def as_an_older_version_saved_it(release, folder):
    """Draws as notes, not in the guarantee, under the label of that time."""
    notes = [f"drawn: {replace(draw, times=1)}" for draw in release.guarantee.draws for _ in range(draw.times)]
    charges = tuple(replace(charge, label="shared out as released values suggest") for charge in release.guarantee.charges)
    replace(promised(release, draws=(), charges=charges), notes=notes).save(folder)


def test_a_release_of_an_older_version_is_read_and_its_draws_are_found_in_the_notes(release, tmp_path):
    as_an_older_version_saved_it(release, tmp_path / "old")
    document = json.loads((tmp_path / "old" / "release.json").read_text())
    assert "draws" not in document["guarantee"]
    old = check_release(tmp_path / "old")
    assert old.guarantee == replace(release.guarantee, charges=old.guarantee.charges)
    assert old.guarantee.charges[0].label == "shared out as released values suggest"
    forged = replace(old, notes=old.notes[:-1])
    assert any("they add up to" in said for said in disagreements(forged))


def test_draws_that_are_damaged_are_not_read(release, tmp_path):
    release.save(tmp_path / "out")
    path = tmp_path / "out" / "release.json"
    for draws in ("x", [5], [{}], None):
        document = json.loads(path.read_text())
        document["guarantee"]["draws"] = draws
        del document["digest"]
        document["digest"] = digest(RELEASE.write(document))
        path.write_text(json.dumps(document))
        with pytest.raises(ReleaseError, match="guarantee of this release is damaged"):
            load(tmp_path / "out")


def test_very_many_equal_draws_can_be_saved_and_read(release, tmp_path):
    draws = (replace(release.guarantee.draws[0], times=5000),)
    promised(release, draws=draws).save(tmp_path / "out")
    assert load(tmp_path / "out").guarantee.draws == draws


def test_a_guarantee_with_draws_is_the_same_promise_and_reads_back_with_them(release):
    told = release.guarantee
    again = Guarantee.from_json(told.to_json())
    assert again == told == replace(told, draws=())
    assert again.draws == told.draws != ()
    assert again.recompute().draws == told.draws
