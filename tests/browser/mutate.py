"""Random changes of signed chains: Python and the browser's client must say the same of each.

`python tests/browser/mutate.py 10000 [SEED]`
"""

# ruff: noqa: E402 folders of other tests come first
from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path += [str(HERE.parent / name) for name in ("collect", "vectors")]

from campaigns import KEY

from kveil import canonical
from kveil.collect.manifest import Signed, verified
from kveil.errors import KveilError

VALUES = [
    0, 1, -1, 2, 3, 4, 5, 60, 61, 255, 256, 4096, 65535, 65536, 2**31, 2**53 - 1, 2**53, True, False, None, 0.5,
    "", "0", "1", "1/2", "2/4", "AAAA", "AAAAAA==", "AACAPw==", "AACAfw==", "x" * 201, "é", "\u200b", "\U0001f600",
    "2030-01-01", "2030-02-30", "cell", "nearest", "product", "olh", "grr", "hrr", "vec", "ab" * 32,
    [], [0], [[0, 65535]], {}, {"a": 1}, {"seed": 1, "bins": 8, "bit": 3},
]  # fmt: skip
NAMES = ["fold", "map", "rho", "depth", "tuning", "x", "eps_rounds", "centres"]


def mutations(n: int, seed: int) -> list[list[str]]:
    """Chains of one or two rounds, signed anew after up to three changes of the last; no bucket is in them, and no tuning."""
    rng = random.Random(seed)
    listed = json.loads((HERE.parent / "vectors" / "chains.json").read_text(encoding="ascii"))
    chains = [[Signed.from_bytes(text.encode()) for text in chain[:2]] for name, chain in listed if not name.startswith("lae")]
    made = []
    for _ in range(n):
        chain = rng.choice(chains)
        rounds = rng.randint(1, len(chain))
        data = json.loads(chain[rounds - 1].body)
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            change(data, rng)
        made.append([*(one.to_bytes().decode() for one in chain[: rounds - 1]), envelope(data, is_renamed=rng.random() < 0.9)])
    return made


def change(data: Any, rng: random.Random) -> None:
    """One value replaced, dropped, added, or changed a little, which is taken more often."""
    holder = rng.choice([one for one in containers(data) if one])
    place = rng.choice(sorted(holder) if isinstance(holder, dict) else range(len(holder)))
    how, value = rng.choice(["drop", "add", "put", "little", "little", "little"]), holder[place]
    if how == "drop" and isinstance(holder, dict):
        del holder[place]
    elif how == "add":
        holder.update({rng.choice(NAMES): rng.choice(VALUES)}) if isinstance(holder, dict) else holder.append(rng.choice(VALUES))
    elif how == "little" and type(value) is int:
        holder[place] += rng.choice([-1, 1])
    elif how == "little" and isinstance(value, str) and value:
        at = rng.randrange(len(value))
        holder[place] = value[:at] + rng.choice("Aa09 =/z") + value[at + 1 :]
    else:
        holder[place] = rng.choice(VALUES)


def containers(data: Any) -> list[Any]:
    if not isinstance(data, dict | list):
        return []
    inner = data.values() if isinstance(data, dict) else data
    return [data, *(found for entry in inner for found in containers(entry))]


def envelope(data: Any, *, is_renamed: bool) -> str:
    """Signed by the right key, and written even where it must not be; `is_renamed`: with the hash of its header as campaign."""
    if is_renamed and "header" in data and "campaign" in data:
        data["campaign"] = canonical.digest(text(data["header"]).encode())
    body = text(data)
    return text({"manifest": body, "signature": KEY.sign(body.encode()).hex(), "witnesses": {}})


def text(data: Any) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def in_python(chain: list[str]) -> str:
    try:
        verified([Signed.from_bytes(text.encode()) for text in chain], KEY.public)
    except KveilError:
        return "refused"
    return "taken"


def in_node(chains: list[list[str]]) -> list[str]:
    told = subprocess.run(["node", HERE / "verdicts.mjs"], input=json.dumps(chains), capture_output=True, text=True, check=True)
    return list(json.loads(told.stdout))


def main(n: int, seed: int) -> int:
    chains = mutations(n, seed)
    ours, theirs = [in_python(chain) for chain in chains], in_node(chains)
    differing = [chain for chain, one, other in zip(chains, ours, theirs, strict=True) if one != other]
    print(f"{n} chains, {ours.count('taken')} taken, {len(differing)} with different verdicts")
    for chain in differing[:5]:
        print(in_python(chain), chain[-1])
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**32)))
