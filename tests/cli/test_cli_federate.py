"""`kveil federate`: keys, a run over parties that listen, and what is refused with a reason. Processes are in tests/journeys."""

import json
import re
from fractions import Fraction

import numpy as np
import pytest

import kveil as package
from kveil import Ledger
from kveil.errors import FederationError
from kveil.federate import Coordinator, InProcess, Keys, Party, make_keys, serve
from kveil.federate.plan import Round, RunPlan, roster_of

NAMES = ("north", "south")


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return make_keys(tmp_path_factory.mktemp("federation") / "keys", NAMES)


@pytest.fixture
def addresses(keys, rows):
    """Two parties that listen, each with half of the table and a budget of 1.5."""
    servers = []
    for name, part in zip(NAMES, np.array_split(rows, 2), strict=True):
        ledger = Ledger.memory(name, 1.5, relation="add-remove")
        servers.append(serve(Party(part, bounds=(0, 10), name=name, ledger=ledger), "127.0.0.1", 0, Keys.at(keys / name)))
    yield ",".join(server.url for server in servers)
    for server in servers:
        server.stop()


def test_keys_are_made_once_and_listed(kveil, tmp_path):
    done = kveil("federate", "keys", tmp_path / "keys", "--parties", "north, south", "--json")
    assert json.loads(done.out)["folders"] == [str(tmp_path / "keys" / name) for name in ("coordinator", *NAMES)]
    assert (tmp_path / "keys" / "north" / "coordinator.token").exists()
    again = kveil("federate", "keys", tmp_path / "keys", "--parties", "north")
    assert (again.code, again.out) == (2, "")
    assert "cannot be made" in again.err


def test_a_run_saves_centres_with_their_promise_and_a_log(kveil, keys, addresses, tmp_path, rows):
    options = ("--keys", keys / "coordinator", "--parties", addresses, "--k", "3", "--epsilon", "1", "--log", tmp_path / "log")
    done = kveil("federate", "run", *options, "-o", tmp_path / "centres", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert set(told["receipts"]) == set(NAMES)
    assert (told["guarantee"]["epsilon"], told["guarantee"]["trust"]) == (1.0, "federation")
    assert package.load(tmp_path / "centres").centers.shape == (3, 2)
    assert len((tmp_path / "log").read_text().splitlines()) > 20
    for words in (done.out, done.err, (tmp_path / "log").read_text()):
        assert "8.7654321" not in words
        assert not re.search(rf"(?<![0-9a-f.]){len(rows)}(?![0-9a-f])", words)  # digits inside a digest or a fraction say nothing

    spent = kveil("federate", "run", *options, "-o", tmp_path / "more")
    assert (spent.code, spent.out) == (3, "")
    assert "budget" in spent.err
    assert not (tmp_path / "more").exists()
    taken = kveil("federate", "run", *options, "-o", tmp_path / "centres")
    assert (taken.code, taken.out) == (2, "")
    shown = kveil("federate", "run", *options, "--epsilon", "0.25", "-o", tmp_path / "less").out
    assert shown.startswith("centre")
    assert "3 centres of 2 columns by cells saved at" in shown
    assert "Next:\n  kveil report" in shown.partition("Assumes:")[2]


PARTY = ("party", "--data", "CSV", "--bounds", "0,10")
UNPAID = (*PARTY, "--keys", "KEYS/north", "--port", "0")
LISTENING = (*UNPAID, "--ledger", "LEDGER")
RUN = ("run", "--keys", "KEYS/coordinator", "-o", "OUT")
NOBODY = "https://127.0.0.1:1"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((*PARTY, "--keys", "KEYS/north"), "pass one of"),
        ((*LISTENING, "--coordinator", NOBODY), "pass one of"),
        ((*PARTY, "--port", "0"), "--keys is missing"),
        (UNPAID, "--ledger is missing"),
        ((*LISTENING, "--reply-every", "0"), "--reply-every"),
        ((*PARTY, "--port", "0", "--keys", "KEYS", "--ledger", "LEDGER"), "no folder of keys"),
        ((*PARTY[:3], *LISTENING[5:]), "bounds is missing"),
        ((*PARTY, "--keys", "KEYS/north", "--ledger", "LEDGER", "--coordinator", "http://127.0.0.1:1"), "https://"),
        ((*LISTENING, "--data", "none.csv"), "no file"),
        ((*LISTENING, "--policy", "none.json"), "no policy"),
        ((*LISTENING, "--ledger", "none.db"), "no ledger"),
        ((*LISTENING, "--secret", "none.bin"), "cannot be read"),
        ((*PARTY, "--port", "0", "--keys", "KEYS/coordinator", "--ledger", "LEDGER"), "not the folder of a party"),
        (("run", "--keys", "KEYS/north", "-o", "OUT", "--listen", "127.0.0.1:0"), "folder of a party"),
        ((*RUN, "--listen", "127.0.0.1:0", "--k", "0"), "--k"),
        ((*RUN, "--listen", "127.0.0.1:0", "--k", "65537"), "at most 65536"),
        (RUN, "name the parties"),
        ((*RUN, "--listen", "8443"), "HOST:PORT"),
        ((*RUN, "--listen", "127.0.0.1:0", "--parties", "east"), "does not know"),
        ((*RUN, "--parties", "nowhere"), "address must be"),
        ((*RUN, "--parties", NOBODY, "--timeout", "0.1"), "cannot be reached"),
        ((*RUN, "--parties", NOBODY, "--protocol", "dk"), "promises nothing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_done_is_refused_with_a_reason(kveil, keys, csv, tmp_path, arguments, says):
    Ledger.create(tmp_path / "north.db", "north", 1.0, relation="add-remove")
    named = {"CSV": str(csv), "OUT": str(tmp_path / "out"), "LEDGER": str(tmp_path / "north.db")}
    outcome = kveil("federate", *(named.get(word, word.replace("KEYS", str(keys))) for word in arguments))
    assert (outcome.code, outcome.out) == (2, "")
    assert says in outcome.err
    assert not (tmp_path / "out").exists()


def test_a_party_is_freed_of_a_run_that_broke_off(kveil, tmp_path):
    Ledger.create(tmp_path / "north.db", "north", 2.0, relation="add-remove")
    missing = kveil("federate", "free", "--ledger", tmp_path / "north.db")
    assert (missing.code, missing.out) == (2, "")
    assert "no journal" in missing.err
    held = Party([[1.0, 2.0]], bounds=(0, 10), name="north", ledger=tmp_path / "north.db")
    coordinator = Coordinator(InProcess([held]))
    rounds = (Round("cells", Fraction(1), level=1),)
    plan = RunPlan("cells", "rows", held.layout.digest, 1, 2, Fraction(1), Fraction(0), rounds, 60, roster_of(["north"]))
    coordinator.open(plan)
    with pytest.raises(FederationError, match="kveil federate free"):
        Coordinator(InProcess([held])).open(plan)
    done = kveil("federate", "free", "--ledger", tmp_path / "north.db", "--json")
    assert json.loads(done.out) == {"closed": [coordinator.run]}
    assert kveil("federate", "free", "--ledger", tmp_path / "north.db").out == "no run was open\n"
    Coordinator(InProcess([held])).open(plan)


def test_certificates_are_renewed_and_accepted(kveil, tmp_path):
    made = kveil("federate", "keys", tmp_path / "keys", "--parties", "north")
    assert "end on" in made.err
    north, coordinator = tmp_path / "keys" / "north", tmp_path / "keys" / "coordinator"
    new = json.loads(kveil("federate", "renew", north, "--json").out)
    assert new["certificate"] == str(north / "next" / "certificate.pem")
    told = kveil("federate", "accept", coordinator, "north", new["certificate"])
    assert told.out == f"north is known until {new['ends']}.\n"
    assert kveil("federate", "renew", north).code == 2  # one is made already
    assert "in use from the next start" in kveil("federate", "renew", north, "--switch").out
    assert kveil("federate", "renew", north, "--switch").code == 2
    assert kveil("federate", "accept", coordinator, "east", north / "certificate.pem").code == 2


def test_an_app_for_flower_is_written(kveil, tmp_path):
    done = kveil("federate", "flower-app", tmp_path / "app", "--json")
    assert json.loads(done.out) == {"app": str(tmp_path / "app")}
    assert (tmp_path / "app" / "kveil_flower" / "relay.py").exists()
