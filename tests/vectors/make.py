"""Write the vectors that every client must agree with: `python tests/vectors/make.py`. Python and Node read the same files.

Each file is a list of cases, one per line. 64-bit words are 16 hexadecimal digits, and other numbers beyond 2**53, and all
that are no whole numbers, are decimal text that reads back exactly. Answers come from a real `LocalClient` under scripted words,
which are written down in the order in which it drew them.
"""

# ruff: noqa: E402 its own folder and the one with small campaigns come first
from __future__ import annotations

import hashlib
import json
import random
import sys
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
sys.path += [str(FOLDER), str(FOLDER.parent / "collect")]

import numpy as np
from campaigns import KEY, OPEN, forged, make_campaign, make_collector, noon
from chains import all_chains
from test_hostile_manifests import REFUSED, put

from kveil import canonical
from kveil.collect import LocalClient, Refusal, hashing, report
from kveil.collect.book import Book, Spend
from kveil.collect.documents import query_document
from kveil.collect.encoding import preferred
from kveil.collect.keys import Rotation
from kveil.collect.manifest import Manifest, Signed, verified
from kveil.collect.queries import Query
from kveil.errors import BudgetExceeded, InvalidValue
from kveil.kernel import exact
from kveil.kernel.loss import response_weights
from kveil.kernel.response import chosen
from kveil.signing import SigningKey
from kveil.testing import ScriptedEntropy

RNG = random.Random(17)
EPSILONS = ["1", "2", "4", "10", "1/2", "3/2", "1/9", "1/9999", "9999/1000", "7/3", "123/457"]
CANONICAL = [
    "{}", "[]", "0", "-1", "true", '""', '{"a":1,"b":[true,false,"x"]}', '"\\u007f\\u0080\\ud83d\\ude00"', '"\\ud800"',
    '{"\\uffff":1,"\\ud83d\\ude00":2}', "9007199254740991", '"\\n\\t\\\\\\""', '{"":0}', "[" * 16 + "]" * 16, '{"__proto__":1}',
]  # fmt: skip
NOT_CANONICAL = [
    "", "{", '{"a": 1}', '{"b":1,"a":2}', '{"a":1,"a":1}', '{"a":1.0}', '{"a":1e3}', "NaN", "[Infinity]", "null", "-0", "01",
    '"\\u0041"', '"é"', '"\\u00E9"', "[" * 200, "1" * 300, '{"a":1}\n', "9007199254740992", "9007199254740993", '"\\/"', " 1",
    '{"\\ud83d\\ude00":2,"\\uffff":1}', "[" * 18 + "]" * 18, "[0.5]", "[1,]", '"\x7f"', "'a'", "1e0", "+1", "-9007199254740992",
]  # fmt: skip


def main() -> None:
    chains = all_chains()
    files = {
        "weights": [[text, *map(str, response_weights(Fraction(text)))] for text in EPSILONS],
        "blake2b": digests(),
        "hash": hashes(),
        "canonical": [[text, read_as(text)] for text in CANONICAL + NOT_CANONICAL],
        "chosen": choices(),
        "manifests": manifests(chains),
        "preferred": preferences(chains),
        "chains": [[title, [one.to_bytes().decode() for one in chain]] for title, chain in chains.items()],
        "answers": [case for title, chain in chains.items() for case in answers(title, chain)],
        "reports": reports(),
        "ledger": books(),
        "rotations": rotations(),
    }
    for name, cases in files.items():
        lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
        (FOLDER / f"{name}.json").write_text(f"[\n{lines}\n]\n", encoding="ascii")


def digests() -> list[Any]:
    """Message, key, person, size, digest: sizes around a block of 128 bytes, with and without a key."""
    made = []
    for length in (0, 1, 48, 127, 128, 129, 256, 300):
        for key, person, size in ((b"", b"kveil.local/1", 8), (b"", b"", 64), (bytes(range(32)), b"", 16)):
            message = RNG.randbytes(length)
            digest = hashlib.blake2b(message, key=key, person=person, digest_size=size).hexdigest()
            made.append([message.hex(), key.hex(), person.decode(), size, digest])
    return made


def hashes() -> list[Any]:
    """Seed, tag, key, hash; and none of them is small by accident."""
    cases = [(RNG.getrandbits(64), tag, RNG.getrandbits(64)) for tag in range(1, 7) for _ in range(4)]
    cases += [(0, 1, 0), (2**64 - 1, 6, 2**64 - 1), (1, 1, 0)]
    return [[word(seed), tag, word(key), word(hashing.hashed([seed], tag, [key])[0])] for seed, tag, key in cases]


def read_as(text: str) -> str:
    try:
        canonical.DEVICE.read(text.encode())
    except InvalidValue:
        return "refused"
    return "taken"


def choices() -> list[Any]:
    """Epsilon, M, preferred values, draw, value: the first and last draws of each part among them, beyond 2**53 for large M."""
    made = []
    for text, M, kappa in (("1", 4, 1), ("3/2", 256, 60), ("10", 65536, 3), ("10", 65536, 65535), ("1/9999", 2, 1)):
        (a, b), subset = response_weights(Fraction(text)), sorted(RNG.sample(range(M), kappa))
        total = kappa * a + (M - kappa) * b
        shown = subset if kappa < 1000 else [0, kappa - 1]
        if kappa >= 1000:
            subset = list(range(kappa))  # too many to write down: `shown` is the first and the last
        for draw in (
            0,
            a - 1,
            a,
            kappa * a - 1,
            kappa * a,
            kappa * a + b - 1,
            total - 1,
            *(RNG.randrange(total) for _ in range(4)),
        ):
            if draw < total:
                (value,) = chosen(np.array([draw]), np.array([subset]), a, b)
                made.append([text, M, kappa, shown, str(draw), int(value)])
    return made


def manifests(chains: dict[str, list[Signed]]) -> list[Any]:
    """Name, chain, verdict of Python, verdict of the browser, which leaves out `all_rounds`, buckets and tunings."""
    first = make_collector().open(make_campaign(), *OPEN)
    days = {"a closed round", "a round to come", "epsilon above the cap", "three columns"}  # for the device, not for the reader
    listed = [(name, [forged(first, change)]) for name, change in REFUSED.items() if name not in days]
    true, other = chains["refine in 4"], chains["refine in 5"]
    listed += [("all rounds, signed as they should be", true), ("one round", [first]), ("no past", true[1:])]
    listed += [("a round is missing", [true[0], true[2]]), ("out of order", [true[1], true[0]]), ("twice", [true[0], true[0]])]
    listed += [("of another campaign", [other[0], true[1]]), ("empty", []), ("no buckets yet", chains["lae in 2"][:1])]
    listed += [("buckets", chains["lae in 2"])]
    for bins in (8, 7, 2**21):
        listed += [(f"a fold of {bins}", [forged(first, put({"seed": 5, "bins": bins, "bit": 1}, "queries", 0, "fold"))])]
    signed = [(name, [one.to_bytes().decode() for one in chain]) for name, chain in listed]
    text = first.to_bytes().decode()
    signed += [
        ("no envelope", [""]), ("an empty one", ["{}"]), ("a list", ["[1]"]),
        ("another signature", [text.replace('"signature":"', '"signature":"00')]),
        ("a space more", [text + " "]), ("witnesses a list", [text.replace('"witnesses":{}', '"witnesses":[]')]),
        ("a witness that is no key", [text.replace('"witnesses":{}', '"witnesses":{"ab":""}')]),
        ("a witness without hexadecimal", [text.replace('"witnesses":{}', '"witnesses":{"%s":"zz"}' % ("ab" * 32))]),
        ("a witness that nobody asked for", [text.replace('"witnesses":{}', '"witnesses":{"%s":"00"}' % ("ab" * 32))]),
        ("a field more", [text.replace('"witnesses":{}', '"witnesses":{},"x":1')]),
        ("a letter changed", [text.replace("survey", "Survey")]),
    ]  # fmt: skip
    bodies = {"no JSON": b"{", "a list inside": b"[]", "nothing": b"", "deep": b"[" * 5000}
    signed += [(name, [Signed(body, KEY.sign(body)).to_bytes().decode()]) for name, body in bodies.items()]
    told = [[name, chain, verdict(chain)] for name, chain in signed]
    return [[*case, "refused" if case[0] == "buckets" else case[2]] for case in told]


def verdict(chain: list[str]) -> str:
    try:
        verified([Signed.from_bytes(text.encode()) for text in chain], KEY.public)
    except InvalidValue:
        return "refused"
    return "taken"


def preferences(chains: dict[str, list[Signed]]) -> list[Any]:
    """Query, columns, point of the unit ball, seed, preferred values in ascending order."""
    made = []
    for name, chain in chains.items():
        for one in chain if not name.startswith("lae") else chain[:1]:
            manifest = Manifest.from_bytes(one.body)
            for query in asked(manifest.queries):
                seed, x = RNG.getrandbits(64), unit_point(manifest.header.n_columns)
                values = preferred(query, np.array([x]), np.array([seed], dtype=np.uint64))[0]
                made.append([query_document(query), len(x), list(map(repr, x)), word(seed), sorted(map(int, values))])
    return made


def asked(queries: tuple[Query, ...]) -> list[Query]:
    """Some of these, and the same keys asked for in the other ways that a manifest may name."""
    some = list(dict.fromkeys([*queries[:2], queries[-1]]))
    cells = [replace(one, kind="hrr", M=2) for one in some if one.kind != "vec" and one.depth is not None and one.depth <= 30]
    near = [replace(one, kind="olh", M=5, kappa=1, rho=None) for one in some if one.key_rule == "nearest"]
    bits = [replace(one, kind="hrr", M=2) for one in near]
    plain = [replace(one, kind="grr", M=one.n_keys) for one in near if one.n_keys >= 2]
    return some + cells + near + 4 * bits + plain


def unit_point(n_columns: int) -> list[float]:
    x = [RNG.gauss(0, 1) for _ in range(n_columns)]
    length = sum(v * v for v in x) ** 0.5
    return [v / length * RNG.random() for v in x]


class Tape:
    """Scripted words that are written down."""

    secure = False

    def __init__(self, seed: int) -> None:
        self._inner, self.words_drawn = ScriptedEntropy(seed), []  # type: ignore[var-annotated]

    def words(self, n: int) -> Any:
        drawn = self._inner.words(n)
        self.words_drawn += map(word, drawn)
        return drawn


def answers(name: str, chain: list[Signed]) -> list[Any]:
    """Chain, rounds of it, point, words, cohort, report, sending time: at least one answer in every round."""
    made, wanted = [], dict.fromkeys(range(1, len(chain) + 1), 2)
    wanted = {1: 2} if name.startswith("lae") else wanted
    seed = RNG.getrandbits(30)
    while any(wanted.values()):
        seed += 1
        for number in [number for number, left in wanted.items() if left]:
            case = one_answer(name, chain[:number], seed)
            if case is not None:
                wanted[number] -= 1
                made.append(case)
    return made


def one_answer(name: str, chain: list[Signed], seed: int) -> Any:
    header = Manifest.from_bytes(chain[0].body).header
    point = [float(c + header.radius * v) for c, v in zip(header.center, unit_point(header.n_columns), strict=True)]
    strange = {0: [float("nan")] * len(point), 1: [1e308] * len(point), 2: [3 * v for v in point]}
    point = strange.get(seed % 9, point)
    token = exact._installed.set(tape := Tape(seed))  # type: ignore[arg-type]
    try:
        client = LocalClient(None, n_features=len(point), key=KEY.public, cap=10, is_first=True, clock=noon())
        told = client.answer(chain, point)
    finally:
        exact._installed.reset(token)
    if isinstance(told, Refusal):
        assert told.why == "not asked", told
        return None
    (spend,) = client.pending()
    times = spend.send_at.strftime("%Y-%m-%dT%H:%M:%SZ")
    return [name, len(chain), list(map(repr, point)), tape.words_drawn, client.cohort(header), told.hex(), times]


def reports() -> list[Any]:
    """22 bytes or others, and what they say: query, id and index, or that they are refused."""
    made = []
    for text in ("0100000002020202020202020202020202020202" + "0200", "0100ff0f" + "ab" * 16 + "ffff", "02" + "00" * 21,
                 "0101" + "00" * 20, "01" + "00" * 20, "01" + "00" * 22, ""):  # fmt: skip
        try:
            one = report.Report.from_bytes(bytes.fromhex(text))
            made.append([text, [one.query, one.report_id.hex(), one.index]])
        except InvalidValue:
            made.append([text, "refused"])
    return made


def books() -> list[Any]:
    """Rows (campaign, epsilon, day, sending time), the clock's day, quiet until, cap, what is left, a cost, a verdict."""
    made = []
    for _ in range(60):
        start = date(2030, 1, 1)
        rows = []
        for i in range(RNG.randrange(5)):
            day = start + timedelta(days=RNG.randrange(500))
            send = datetime(day.year, day.month, day.day, 12, tzinfo=UTC) + timedelta(days=RNG.randrange(40))
            rows.append((f"{i:064x}", RNG.choice(["1", "1/2", "3/2", "1/3"]), day, send))
        clock = start + timedelta(days=RNG.randrange(900))
        quiet = clock + timedelta(days=RNG.choice([-400, -1, 0, 1, 200]))
        cap, cost = Fraction(RNG.choice(["4", "1", "5/2"])), Fraction(RNG.choice(["1", "1/2", "4"]))
        spends = tuple(Spend(c, 1, "one_round", Fraction(e), c, b"", "acked", d, s, True) for c, e, d, s in rows)
        book = Book(spends, quiet)
        try:
            book.check("f" * 64, cost, cost, cap, clock)
            told = "taken"
        except BudgetExceeded:
            told = "refused"
        written = [[c, e, d.isoformat(), s.strftime("%Y-%m-%dT%H:%M:%SZ")] for c, e, d, s in rows]
        left = max(Fraction(0), book.left(cap, clock))
        made.append([written, clock.isoformat(), quiet.isoformat(), str(cap), str(left), str(cost), told])
    return made


def rotations() -> list[Any]:
    """Pinned key, statement, signature by the old key, by the new one, and the new key with its serial, or "refused"."""
    new, other = SigningKey(bytes([1] * 32)), SigningKey(bytes([2] * 32))
    good = Rotation.make(KEY, new, 1, OPEN[0])
    listed = [(KEY.public, good), (new.public, good), (KEY.public, Rotation.make(other, new, 1, OPEN[0]))]
    listed += [(KEY.public, Rotation(good.body, good.by_new, good.by_old)), (KEY.public, Rotation.make(KEY, new, 0, OPEN[0]))]
    listed += [(KEY.public, Rotation(good.body, good.by_old, other.sign(good.body)))]
    named = good.body.replace(KEY.public.encode(), other.public.encode())
    listed += [(KEY.public, Rotation(named, KEY.sign(named), new.sign(named))), (new.public, Rotation.make(new, KEY, 1, OPEN[0]))]
    future = good.body.replace(b"rotation/1", b"rotation/2")
    listed += [(KEY.public, Rotation(future, KEY.sign(future), new.sign(future)))]
    made: list[Any] = []
    for pinned, one in listed:
        try:
            told: Any = list(one.verified(pinned))
        except InvalidValue:
            told = "refused"
        made.append([pinned, one.body.decode(), one.by_old.hex(), one.by_new.hex(), told])
    return made


def word(value: Any) -> str:
    return f"{int(value):016x}"


if __name__ == "__main__":
    main()
