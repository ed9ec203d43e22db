"""Neighbouring tables asked the same hostile questions under the same scripted noise: what differs is what one record moved."""

import json
import random
from fractions import Fraction

import numpy as np
import pytest
from federate_tools import FREE, HALF, message, opened, party

from kveil.federate.messages import Reply
from kveil.federate.plan import Round
from kveil.questions.cells import TOP
from kveil.testing import scripted

N_TABLES = 40  # for each domain, with six questions each
DOMAINS = {
    "cube": lambda d, r: {"bounds": (-1, 1)},
    "uneven box": lambda d, r: {"bounds": (-(10.0 ** r.uniform(-6, 3, d)), 10.0 ** r.uniform(-6, 3, d))},
    "ball": lambda d, r: {"bounds": None, "center": np.zeros(d), "radius": 1.0},
}
ROUNDS = {
    "cells": (
        Round("cells", HALF, level=5), Round("sums", HALF, counts=HALF), Round("spread", HALF), Round("stats", HALF, counts=HALF),
    ),
    "pdk": (Round("total", HALF), Round("cells", HALF, level=0)),
}  # fmt: skip


def odd_rows(r, n, d):
    """Corners, the middle, rows far outside, and values that are no numbers."""
    rows = r.uniform(-1, 1, (n, d)) * 10.0 ** r.uniform(-3, 3)
    for row in rows:
        kind = r.integers(0, 6)
        if kind == 0:
            row[r.integers(d)] = r.choice([np.nan, np.inf, -np.inf, 1e308, 5e-324])
        elif kind < 3:
            row[:] = r.choice([-1e9, 1e9], d) if kind == 1 else 0.0
    return rows


def antichain(chance, depth, level=0, code=0):
    """Random cells of mixed levels, none inside another."""
    if level == depth or chance.random() < 0.2:
        return [[level, code]]
    return [cell for child in (0, 1) if chance.random() < 0.6 for cell in antichain(chance, depth, level + 1, 2 * code + child)]


def questions(held, r, chance, k):
    """(protocol, kind, body) that a coordinator could ask to single a record out."""
    layout, d = held.layout, held.source.n_columns
    radius, top = layout.frame.radius, layout.domain.top
    centers = (r.integers(-radius, radius + 1, (k, d)) // (int(np.sqrt(d)) + 1)).tolist()
    radii = [chance.choice([1, 2, radius, 2 * radius]) for _ in range(k)]
    cells = sorted(antichain(chance, min(layout.cells.depth, 40))[:40]) or [[0, 0]]
    yield "cells", "cells", {"level": 5, "nodes": chance.choice(["all", [0, 7, 31]])}
    yield "cells", "sums", {"cells": cells}
    yield "cells", "spread", {"centers": centers}
    yield "cells", "stats", {"centers": centers, "radii": radii}
    yield "pdk", "total", {"centers": r.choice([-top, 0, top], (1, d)).tolist()}
    yield "pdk", "cells", {"level": 0, "nodes": "all"}


def moved(name, body, held, replies):
    """How far the replies are apart, in units of what the noise hides: at most 1 for counts, sums and totals each."""
    one, other = (np.array(reply[name], dtype=object) for reply in replies)
    if name == "count":
        return float(np.abs(one - other).sum())
    if name == "total":
        (charge,) = json.loads(held.ledger.charges()[0].plan)["charges"]
        return float(abs(one - other).sum() / charge["sensitivity"])
    lengths = [held.layout.cells.reach(level, "l2") for level, _ in body["cells"]] if name == "dev" else [TOP] * len(one)
    return sum(float(((a - b) ** 2).sum()) ** 0.5 / length for a, b, length in zip(one, other, lengths, strict=True))


@pytest.mark.parametrize("domain", DOMAINS)
def test_one_record_moves_no_answer_by_more_than_its_noise_hides(domain):
    r, chance, far = np.random.default_rng(5), random.Random(5), dict.fromkeys(("count", "dev", "sum", "total"), 0.0)
    for number in range(N_TABLES):
        d, k = int(r.choice([1, 2, 3, 10])), int(r.integers(1, 5))
        rows, options = odd_rows(r, int(r.integers(0, 5)), d), DOMAINS[domain](d, r)
        tables = (rows, np.vstack([rows, odd_rows(r, 1, d)]))
        for protocol, rounds in ROUNDS.items():
            pair = [party(table, policy=FREE, budget=900.0, **options) for table in tables]
            epsilon = sum((part.budget for part in rounds), Fraction(0))
            for held in pair:
                opened(held, *rounds, protocol=protocol, epsilon=epsilon, k=k)
            asked = [(kind, body) for of, kind, body in questions(pair[0], r, chance, k) if of == protocol]
            for seq, (kind, body) in enumerate(asked, 1):
                replies = []
                for held in pair:
                    with scripted(number):
                        replies.append(Reply.from_bytes(held.answer(message(seq, kind, body))).body)
                for name in set(replies[0]) - {"noise"}:
                    far[name] = max(far[name], moved(name, body, pair[0], replies))
            assert [entry.plan for entry in pair[0].ledger.charges()] == [entry.plan for entry in pair[1].ledger.charges()]
    assert all(0.9 < most <= 1 + 1e-12 for most in far.values()), far  # and the search comes near, so it would see a breach
