"""One contract for every model: promises, charges, canaries, shapes, passes. `subjects.py` lists what is held to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from looking import files_written, found_in, found_in_files
from subjects import SUBJECTS, Outcome

import kveil.collect
import kveil.federate
from kveil import PrivateKMeans
from kveil.auditing.tape import play as replay
from kveil.collect.protocols import PROTOCOLS as LOCAL_PROTOCOLS
from kveil.federate.protocols import PROTOCOLS
from kveil.methods.task import PRIVATE_INITS
from kveil.models.private_kmedian import METHODS, UNIVERSE_METHODS
from kveil.source.local import LocalSource

FIELDS = ("epsilon", "delta", "relation", "unit", "route", "trust", "charges")


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_model_keeps_the_contract(name, empty_folder, monkeypatch):
    """The neighbour is the table without its canary, which gets the same noisy answers: everything must come out alike."""
    subject, outcomes, passes = SUBJECTS[name], list[Outcome](), list[str]()
    plain = LocalSource.map_reduce
    monkeypatch.setattr(LocalSource, "map_reduce", lambda *a, **k: passes.append(type(a[2]).__name__) or plain(*a, **k))

    def act(table: Any) -> dict[str, Any]:
        passes.clear()
        outcomes.append(subject.run(table))
        return {**outcomes[-1].left, "passes": list(passes)}

    with files_written() as written:
        tape = replay(act, subject.table, [subject.neighbour])
    outcome = outcomes[0]
    assert not found_in(outcome.held, name)
    assert not found_in(outcome.left, "left")
    assert not found_in(tape.said, "said")
    assert {Path(path).name for path in written} <= subject.writes, "a file in between"
    assert [path for path in found_in_files(empty_folder) if not path.endswith("rows.csv")] == []
    check_promise(outcome)
    check_charges(outcome)


def check_promise(outcome: Outcome) -> None:
    if isinstance(outcome.promised, float):
        assert outcome.given is None or (outcome.given.epsilon, outcome.given.delta) == (outcome.promised, 0)
    else:
        assert {name: getattr(outcome.given, name) for name in FIELDS} == {
            name: getattr(outcome.promised, name) for name in FIELDS
        }


def check_charges(outcome: Outcome) -> None:
    """All of what was promised is on each ledger, and nothing more."""
    whole = (outcome.promised, 0.0) if isinstance(outcome.promised, float) else (outcome.promised.epsilon, outcome.promised.delta)
    for ledger in outcome.charged:
        spent = ledger.spent()
        assert spent.epsilon == pytest.approx(whole[0], rel=1e-9) or (outcome.may_save and 0 < spent.epsilon < whole[0])
        assert spent.delta == pytest.approx(whole[1], rel=1e-9)
        assert ledger.remaining().epsilon == pytest.approx(float(ledger.epsilon) - spent.epsilon, abs=1e-9)


OPEN = {  # public names that see no private rows, and why
    "Bounds": "public numbers", "CandidateSet": "a result", "Comparison": "a result", "CuratorPlan": "a result",
    "Euclidean": "a public universe", "Evaluation": "a result", "Graph": "a public universe", "Guarantee": "a promise",
    "KMedian": "not private, and says so", "Ledger": "a budget", "Manhattan": "a public universe", "Metric": "a public universe",
    "OnlineKMeans": "not private, and says so", "Precomputed": "a public universe", "PrivacyUnit": "a word",
    "Release": "a result", "SigningKey": "a key", "Source": "a type: what `read` gives", "Themes": "a result",
    "Verified": "a result", "__version__": "a word",
    "compare": "of open rows; refuses a private source", "inspect": "of open rows, for their holder", "load": "of results",
    "plan": "of open rows; refuses a private source", "verify": "of results",
    # of kveil.collect
    "Campaign": "public terms", "EndNotice": "a public statement", "LedgerFile": "the file of a LocalClient",
    "Refusal": "a result", "Result": "a result",
    "Rotation": "a public statement", "Signed": "a public statement", "Status": "a word",
    # of kveil.federate: they carry messages between a coordinator and a Party, which are looked at there
    "Calling": "messages", "Coordinator": "messages", "Door": "messages", "InProcess": "messages", "Keys": "keys",
    "Link": "messages", "Logged": "messages", "Lost": "a word", "Policy": "public limits", "Receiving": "messages",
    "Transport": "messages",
    "call_in": "messages", "make_keys": "keys", "serve": "messages",
}  # fmt: skip


def test_every_public_name_is_on_the_list_or_sees_no_private_rows():
    """A new model fails here until `subjects.py` has it, or OPEN says why it needs no contract."""
    public = {*kveil.__all__, *kveil.collect.__all__, *kveil.federate.__all__}
    covered = set().union(*(subject.covers for subject in SUBJECTS.values()))
    assert public - covered - OPEN.keys() == set()
    assert OPEN.keys() & covered == set()
    assert OPEN.keys() <= public, "a name that is gone"


def test_every_method_start_and_protocol_is_on_the_list():
    covered = set().union(*(subject.covers for subject in SUBJECTS.values()))
    needed = {f"PrivateKMeans {name}" for name in PrivateKMeans.methods}
    needed |= {f"PrivateKMedian {name}" for name in METHODS | UNIVERSE_METHODS} | {f"init {name}" for name in PRIVATE_INITS}
    needed |= {f"federation {name}" for name in PROTOCOLS if name != "dk"}  # which promises nothing
    needed |= {f"local {name.partition('-')[0]}" for name in LOCAL_PROTOCOLS} | {"auto k", "public sample"}
    assert needed <= covered, needed - covered
