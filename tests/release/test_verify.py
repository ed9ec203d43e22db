"""A forged release fails: by its signature, by what it says of itself, or by the ledger that paid for another one."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from kveil import FederatedKMeans, Ledger, PrivateKMeans, SigningKey, StreamKMeans, federate, load, verify
from kveil.canonical import DEVICE, digest
from kveil.errors import InvalidValue, NotVerified, ReleaseError
from kveil.kernel.loss import Plan, guarantee
from kveil.release.check import check_release
from kveil.release.document import CARD, SYNOPSIS
from kveil.release.folder import DOCUMENT, pack
from kveil.release.recluster import RECLUSTERED
from kveil.release.signature import SIGNATURE, read_signature, write_signature
from kveil.release.verify import check_good, check_signed, signer
from kveil.testing import scripted

KEY, OTHER = SigningKey(bytes(range(32))), SigningKey(bytes(range(1, 33)))
OLD = Path(__file__).with_name("made_by_0_1")  # saved before there were signatures and statements
OLD_LEDGER = Path(__file__).parents[1] / "kernel" / "ledger_made_by_0_1.sql"  # the ledger that paid for it
ROWS = np.random.default_rng(0).normal(0.0, 0.3, (300, 2)) + np.repeat([[2.0, 2.0], [-2.0, -1.0]], 150, axis=0)


@pytest.fixture(scope="module")
def account(tmp_path_factory):
    return Ledger.create(tmp_path_factory.mktemp("books") / "clinic.db", "clinic", 9.0, relation="add-remove")


def fitted(ledger, **more):
    return PrivateKMeans(2, epsilon=1.0, bounds=(-4, 4), ledger=ledger, random_state=0, **more).fit(ROWS).release_


@pytest.fixture(scope="module")
def release(account):
    return fitted(account.stating(purpose="beds per ward", data_name="admissions", by="A. Hill"))


@pytest.fixture(scope="module")
def second(account):
    return fitted(account)


@pytest.fixture
def folder(release, tmp_path):
    return release.save(tmp_path / "out", sign=KEY)


def failed(folder, **options):
    """Names of the checks that fail."""
    found = verify(folder, **options)
    names = [check.name for check in found.checks if check.state == "failed"]
    assert found.is_good == (not names)
    return names


def states(folder, **options):
    return {check.name: check.state for check in verify(folder, **options).checks}


def test_an_honest_release_passes_every_check(folder, account):
    found = verify(folder, key=KEY.public, ledger=account)
    assert found.is_good
    assert {check.state for check in found.checks} == {"ok"}
    assert [check.name for check in found.checks] == [
        "files", "signature", "guarantee", "parameters", "draws", "card", "other files", "ledger",
    ]  # fmt: skip
    assert str(found).count("\n") == 7
    assert found.left_open == ()
    assert check_release(folder).purpose == "beds per ward"  # a signature is no stranger


def test_who_signed_is_open_until_a_key_is_named(folder):
    assert states(folder)["signature"] == "open"
    assert KEY.public in str(verify(folder))
    assert failed(folder) == []


def test_a_payer_that_was_not_asked_is_open_and_the_last_line_says_so(folder, tmp_path):
    (check,) = [check for check in verify(folder).checks if check.name == "ledger"]
    assert (check.state, check.says) == ("open", 'it names "clinic" as payer; pass --ledger to ask it')
    assert verify(folder).left_open == ("signature", "ledger")
    assert str(verify(folder)).endswith("\nLeft open: signature, ledger. What was not checked would not be seen.")
    assert "ledger" not in states(fitted(None).save(tmp_path / "alone")), "it names no payer"


def test_a_name_that_a_check_quotes_adds_no_line(release, tmp_path):
    payer = "x\nok      signature   signed by the key\x1b[2J"
    forged = replace(release, receipt={**release.receipt, "ledger": payer}).save(tmp_path / "out")
    lines = str(verify(forged)).split("\n")
    assert len(lines) == 9
    assert [line for line in lines if line.startswith("ok      signature")] == []
    assert "\x1b" not in "".join(lines)


def test_who_asked_stays_on_the_ledger(folder, account):
    assert dict(account.charges()[0].notes)["by"] == "A. Hill"
    assert not any(b"Hill" in path.read_bytes() for path in folder.iterdir())


def tenth(release):
    """The same centres with a tenth of the epsilon in every place that says it."""
    old = release.guarantee

    def less(charges):
        return tuple(replace(charge, epsilon=charge.epsilon / 10) for charge in charges)

    new = guarantee(Plan(less(old.charges), old.relation, old.unit), trust=old.trust)
    assert new.epsilon == pytest.approx(0.1)
    new = replace(new, draws=less(old.draws))
    return replace(release, guarantee=new, parameters={**release.parameters, "epsilon": float(Fraction(old.epsilon) / 10)})


def moved(release):
    centers = np.array(release.centers)
    centers[0, 0] += 0.125
    return replace(release, centers=centers)


def cut(release):
    return replace(release, synopsis=None)


def renamed(release):
    return replace(release, purpose="something else")


FORGED = {"epsilon divided by ten": tenth, "a changed centre": moved, "no synopsis": cut, "another purpose": renamed}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_a_release_saved_anew_by_somebody_else_fails_by_key_and_by_ledger(release, account, tmp_path, forge):
    """Every digest is right, and it agrees with itself: only the key and the ledger tell."""
    forged = forge(release)
    unsigned, by_other = forged.save(tmp_path / "a"), forged.save(tmp_path / "b", sign=OTHER)
    assert failed(unsigned) == []
    assert failed(unsigned, key=KEY.public) == ["signature"]
    assert failed(by_other, key=KEY.public) == ["signature"]
    assert failed(unsigned, ledger=account) == ["ledger"]
    kept = release.save(tmp_path / "c", sign=KEY)
    shutil.copy(kept / SIGNATURE, unsigned / SIGNATURE)  # the old signature beside new files
    assert failed(unsigned, key=KEY.public) == ["signature"]
    assert failed(unsigned) == ["signature"]
    for check, error in ((check_release, ReleaseError), (check_good, NotVerified), (check_signed, NotVerified)):
        with pytest.raises(error, match=r"signature\.json is not a signature of this release"):
            check(unsigned)


def test_what_vouches_for_a_release_is_made_of_a_good_one_alone(folder, account, tmp_path):
    for good in (folder, OLD):
        check_good(good)
        check_signed(good)
    check_good(folder, account)
    assert signer(folder).startswith(f"signed by {KEY.public}. Whoever receives it compares this key")
    assert signer(OLD).startswith("not signed")
    with pytest.raises(NotVerified, match=r"ledger \(ledger \"clinic\" has no charge"):
        check_good(folder, Ledger.memory("clinic", 1.0, relation="add-remove"))
    (folder / "rows.csv").write_text("age\n41\n")
    check_signed(folder)
    with pytest.raises(NotVerified, match=r"other files .*rows\.csv.*`kveil verify RELEASE`"):
        check_good(folder)


def test_a_file_of_rows_beside_the_release_fails(folder):
    (folder / "rows.csv").write_text("age\n41\n")
    assert failed(folder, key=KEY.public) == ["other files"]


def test_rows_that_hide_in_the_signature_file_fail(folder):
    for text in (b"age\n41\n", (folder / SIGNATURE).read_bytes() + b"\n41", b"[]", b"x" * 2000):
        (folder / SIGNATURE).write_bytes(text)
        assert failed(folder) == ["other files"]
        assert failed(folder, key=KEY.public) == ["signature", "other files"]
        with pytest.raises(NotVerified, match="signature"):
            check_signed(folder)


def test_a_signature_moved_from_another_release_fails(folder, second, tmp_path):
    other = second.save(tmp_path / "second", sign=KEY)
    shutil.copy(other / SIGNATURE, folder / SIGNATURE)
    assert failed(folder, key=KEY.public) == ["signature"]


def test_a_signature_whose_key_was_exchanged_fails(folder):
    said = json.loads((folder / SIGNATURE).read_bytes())
    (folder / SIGNATURE).write_bytes(DEVICE.write({**said, "key": OTHER.public}))
    assert failed(folder) == ["signature"]
    assert failed(folder, key=OTHER.public) == ["signature"]


def test_a_signature_that_names_this_release_and_signs_another_fails(folder):
    said, other = json.loads((folder / SIGNATURE).read_bytes()), json.loads(write_signature(b"other", KEY))
    (folder / SIGNATURE).write_bytes(DEVICE.write({**said, "signature": other["signature"]}))
    assert failed(folder) == ["signature"]


def test_a_synopsis_of_another_release_fails_with_and_without_a_mended_digest(folder, second):
    data = pack(second, "parquet")[SYNOPSIS]
    (folder / SYNOPSIS).write_bytes(data)
    assert failed(folder, key=KEY.public) == ["files"]
    mend(folder, "synopsis", data)
    assert failed(folder, key=KEY.public) == ["signature"]


def test_a_card_with_a_smaller_epsilon_fails_though_every_digest_is_right(folder):
    honest = (folder / CARD).read_text()
    for old, new in (("epsilon = 1, ", "epsilon = 0.1, "), ("at most 73.2 % sure", "at most 52.5 % sure")):
        assert old in honest
        data = honest.replace(old, new).encode()
        (folder / CARD).write_bytes(data)
        mend(folder, "card", data)
        (folder / SIGNATURE).unlink(missing_ok=True)
        assert failed(folder) == ["card"]


def mend(folder, part, data):
    """Give release.json the digest of a changed file, and then its own."""
    document = json.loads((folder / DOCUMENT).read_text())
    del document["digest"]
    document[part]["sha256"] = digest(data)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    (folder / DOCUMENT).write_text(json.dumps({**document, "digest": digest(text)}))


def test_damage_stops_at_the_first_check(folder):
    (folder / CARD).write_text("x")
    assert states(folder) == {"files": "failed"}
    assert states(folder.parent / "nothing") == {"files": "failed"}


def test_a_release_without_a_valid_guarantee_fails(tmp_path):
    with scripted(1):
        made = fitted(None)
    assert "guarantee" in failed(made.save(tmp_path / "out", sign=KEY))
    plain = PrivateKMeans(2, epsilon=float("inf"), bounds=(-4, 4)).fit(ROWS).release_
    assert "guarantee" in failed(plain.save(tmp_path / "none"))


def test_an_older_release_loads_and_is_not_signed(tmp_path):
    old = load(OLD)
    assert (old.purpose, old.data_name, old.created) == ("", "", json.loads((OLD / DOCUMENT).read_text())["created"])
    assert states(OLD)["signature"] == "open"
    assert "not signed" in str(verify(OLD))
    assert failed(OLD) == []
    assert failed(OLD, key=KEY.public) == ["signature"]
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(OLD_LEDGER.read_text())
    assert failed(OLD, ledger=path) == []
    assert "no digest was noted" in str(verify(OLD, ledger=path))
    assert failed(tenth(old).save(tmp_path / "forged"), ledger=path) == ["ledger"]


def test_another_ledger_or_none_of_its_own_fails(folder, tmp_path):
    empty = Ledger.memory("clinic", 1.0, relation="add-remove")
    assert failed(folder, ledger=empty) == ["ledger"]
    assert 'ledger "clinic" has no charge of this release\'s token' in str(verify(folder, ledger=empty))
    assert failed(fitted(None).save(tmp_path / "alone"), ledger=empty) == ["ledger"]


def test_a_token_of_another_release_fails(folder, second, account, tmp_path):
    stolen = replace(load(folder), receipt=second.receipt)
    assert failed(stolen.save(tmp_path / "stolen"), ledger=account) == ["ledger"]


def test_a_ledger_that_was_spent_with_scripted_noise_fails(tmp_path):
    ledger = Ledger.memory("clinic", 1.0, relation="add-remove")
    with scripted(1):
        made = fitted(ledger)
    honest = replace(made.guarantee, valid=True, reasons=())
    forged = replace(made, guarantee=honest, receipt={**made.receipt, "secure": True})
    (check,) = [check for check in verify(forged.save(tmp_path / "out"), ledger=ledger).checks if check.name == "ledger"]
    assert check.state == "failed"
    assert "scripted" in check.says


def test_a_reclustered_release_is_another_one_until_it_is_noted(account, tmp_path):
    made = fitted(account)
    one = made.recluster(1)
    folder = one.save(tmp_path / "one")
    assert failed(folder, ledger=account) == ["ledger"]
    assert "says that it was clustered again from it, which nothing here proves" in str(verify(folder, ledger=account))
    account.note(one.receipt["token"], release=one.fingerprint())
    assert failed(folder, ledger=account) == []
    assert failed(made.save(tmp_path / "two"), ledger=account) == []


def test_a_forgery_that_says_it_was_clustered_again_fails_as_any_other(release, account, tmp_path):
    for name, forge in (("tenth", tenth), ("moved", moved)):
        forged = forge(release)
        folder = replace(forged, notes=(*forged.notes, RECLUSTERED)).save(tmp_path / name)
        assert failed(folder, ledger=account) == ["ledger"]
    assert "clustered again" not in str(verify(moved(release).save(tmp_path / "plain"), ledger=account))


def test_a_fingerprint_is_the_same_in_every_format_and_after_loading(release, tmp_path):
    prints = {load(release.save(tmp_path / format, format=format)).fingerprint() for format in ("parquet", "csv")}
    assert prints == {release.fingerprint()}
    assert release.fingerprint() != moved(release).fingerprint() != cut(release).fingerprint()
    assert renamed(release).fingerprint() == release.fingerprint()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_stream_notes_its_release(tmp_path):
    ledger = Ledger.memory("clinic", 1.0, relation="add-remove").stating(purpose="beds")
    made = StreamKMeans(2, epsilon=0.5, bounds=(-4, 4), ledger=ledger).fit(ROWS).release_
    assert made.purpose == "beds"
    assert failed(made.save(tmp_path / "out"), ledger=ledger) == []
    assert failed(moved(made).save(tmp_path / "forged"), ledger=ledger) == ["ledger"]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_federated_release_is_held_against_the_run_on_a_partys_ledger(tmp_path, delta):
    rows = np.hstack([ROWS] * 3)
    ledger = Ledger.memory("north", 1.0, delta, relation="add-remove")
    policy = federate.Policy(1.0, delta)
    parties = [federate.Party(rows, bounds=(-4, 4), name=name, ledger=ledger if name == "north" else None, policy=policy)
               for name in ("north", "south")]  # fmt: skip
    made = FederatedKMeans(2, epsilon=0.5, delta=delta, bounds=(-4, 4)).fit(parties).release_
    assert failed(made.save(tmp_path / "out"), ledger=ledger) == []
    assert failed(tmp_path / "out", ledger=Ledger.memory("north", 1.0, delta, relation="add-remove")) == ["ledger"]
    less = PrivateKMeans(2, epsilon=0.05, delta=delta, bounds=(-4, 4)).guarantee(n_features=6)
    forged = replace(made, guarantee=replace(less, trust="federation", draws=()), parameters={**made.parameters, "epsilon": 0.05})
    assert "ledger" in failed(forged.save(tmp_path / "forged"), ledger=ledger)


def test_a_key_that_is_none_is_refused(folder, tmp_path):
    (tmp_path / "text").write_text("no key")
    (tmp_path / "key.pub").write_text(KEY.public + "\n")
    assert failed(folder, key=tmp_path / "key.pub") == []
    for key in ("", "x" * 64, tmp_path / "text", tmp_path / "nothing"):
        with pytest.raises(InvalidValue, match="64 hexadecimal digits"):
            verify(folder, key=key)
    with pytest.raises(InvalidValue, match="no signing key"):
        load(folder).save(tmp_path / "again", sign=tmp_path / "text")
    assert not (tmp_path / "again").exists()


def test_a_signature_file_is_read_in_one_spelling_only():
    data = write_signature(b"{}", KEY)
    found = read_signature(data)
    assert found is not None
    assert found.holds_for(b"{}")
    assert not found.holds_for(b"{ }")
    said = json.loads(data)
    wrong = [{**said, "schema": "kveil.signature/2"}, {**said, "more": 1}, {**said, "signature": said["signature"][:-2]},
             {**said, "signature": said["signature"].upper()}, {**said, "key": 7}, {**said, "release": "x"}]  # fmt: skip
    assert [read_signature(DEVICE.write(one)) for one in wrong] == [None] * len(wrong)
    assert read_signature(data + b" ") is None
    assert read_signature(b"7") is None


def test_replacing_a_signed_release_drops_the_old_signature(folder, second):
    second.save(folder, overwrite=True)
    assert states(folder)["signature"] == "open"
    assert not (folder / SIGNATURE).exists()
