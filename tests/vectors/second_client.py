"""A second client, written from docs/protocol.md alone: it imports nothing of kveil, and its sections are those of the page."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math
import re
import struct
import unicodedata
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

WORD, G = 2**64 - 1, 0x9E3779B97F4A7C15
OLH, SIGN, ROW, CODEBOOK, DIRECTION, BIN = range(1, 7)


class Refused(Exception):
    pass


def need(is_so: Any) -> None:
    if not is_so:
        raise Refused


# 2. Bytes, words and canonical JSON


def write(value: Any, depth: int = 0) -> str:
    need(depth <= 16)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        need(abs(value) < 2**53)
        return str(value)
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, list):
        return "[" + ",".join(write(one, depth + 1) for one in value) + "]"
    need(isinstance(value, dict))
    return "{" + ",".join(f"{json.dumps(name)}:{write(value[name], depth + 1)}" for name in sorted(value)) + "}"


def read(text: str) -> Any:
    need(text.isascii() and len(text) <= 2**24 and sum(map(text.count, ",[{")) <= 2**18)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise Refused from None
    need(write(value) == text)
    return value


def floats(text: Any, count: int | None = None) -> list[float]:
    need(isinstance(text, str))
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        raise Refused from None
    need(raw and len(raw) % 4 == 0 and base64.b64encode(raw).decode() == text)
    numbers = list(struct.unpack(f"<{len(raw) // 4}f", raw))
    need(all(abs(x) <= 2**40 for x in numbers) and count in (None, len(numbers)))
    return numbers


# 3. Hashes


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def seed_of(manifest_hash: str, report_id: bytes) -> int:
    message = bytes.fromhex(manifest_hash) + report_id
    return int.from_bytes(hashlib.blake2b(message, digest_size=8, person=b"kveil.local/1").digest(), "little")


def mix(x: int) -> int:
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB & WORD
    return x ^ x >> 31


def hashed(seed: int, tag: int, key: int) -> int:
    return mix(mix(seed + tag * G & WORD) ^ mix(key + G & WORD))


# 4. The manifest


def exactly(value: Any, names: str) -> None:
    need(isinstance(value, dict) and set(value) == set(names.split()))


def whole(value: Any, low: int, high: int) -> int:
    need(type(value) is int and low <= value <= high)
    return int(value)


def day(text: Any) -> date:
    need(isinstance(text, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text))
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise Refused from None


def named(text: Any, most: int) -> None:
    need(isinstance(text, str) and 1 <= len(text) <= most)
    need(all(letter == " " or unicodedata.category(letter)[0] not in "CZ" for letter in text))


def check_body(body: dict[str, Any], key: str) -> None:
    exactly(body, "campaign header min_reports not_after not_before prev queries round")
    header = body["header"]
    check_header(header, key)
    need(body["campaign"] == sha256(write(header)))
    whole(body["round"], 1, len(header["cohorts"]))
    whole(body["min_reports"], 0, 2**31)
    need(day(body["not_before"]) <= day(body["not_after"]))
    need(isinstance(body["queries"], list) and 1 <= len(body["queries"]) <= 4096)
    for place, query in enumerate(body["queries"]):
        check_query(query, place, header["domain"]["D"])


def check_header(header: Any, key: str) -> None:
    exactly(header, "cohorts domain k key method n name privacy report_bytes schema")
    need(header["schema"] == "kveil.local/1" and header["key"] == key)
    named(header["name"], 200)
    named(header["method"], 40)
    exactly(header["domain"], "D Rad o")
    floats(header["domain"]["o"], whole(header["domain"]["D"], 1, 65534))
    need(floats(header["domain"]["Rad"], 1)[0] >= 2**-40)
    whole(header["k"], 1, 4096)
    whole(header["n"], 1, 2**31)
    whole(header["report_bytes"], 22, 22)
    privacy = header["privacy"]
    exactly(privacy, "a b eps mode")
    found = re.fullmatch(r"([0-9]{1,4})(/([1-9][0-9]{0,3}))?", privacy["eps"]) if isinstance(privacy["eps"], str) else None
    need(found and str(Fraction(privacy["eps"])) == privacy["eps"] and 0 < Fraction(privacy["eps"]) <= 10)
    need(privacy["mode"] == "one_round" and [privacy["a"], privacy["b"]] == [*weights(privacy["eps"])])
    cohorts = header["cohorts"]
    need(isinstance(cohorts, list) and 1 <= len(cohorts) <= 64)
    need(all(isinstance(pair, list) and len(pair) == 2 for pair in cohorts))
    for low, high in cohorts:
        whole(high, whole(low, 0, 65535), 65535)
    ordered = sorted(cohorts)
    need(all(one[1] < other[0] for one, other in pairwise(ordered)))


def check_map(given: Any, columns: int) -> int:
    exactly(given, "A d gamma")
    axes = whole(given["d"], 1, 60)
    floats(given["A"], columns * axes)
    floats(given["gamma"], axes)
    return axes


def n_centres(text: Any, width: int) -> int:
    numbers = floats(text)
    need(len(numbers) % width == 0)
    return len(numbers) // width


def check_query(query: Any, place: int, columns: int) -> None:
    need(isinstance(query, dict))
    kind, names, centres = query.get("kind"), "id weight M kappa kind key_rule", 0
    need(isinstance(kind, str) and kind in ("olh", "grr", "hrr", "vec"))
    if query.get("key_rule") == "cell":
        names += " map depth"
        check_map(query.get("map"), columns)
        keys = 2 ** whole(query.get("depth"), 1, 60)
    elif query.get("key_rule") == "nearest":
        names += " centres" + " map" * ("map" in query)
        keys = centres = n_centres(query.get("centres"), check_map(query["map"], columns) if "map" in query else columns)
    else:
        need(query.get("key_rule") == "product" and kind == "vec")
        names += " map centres lift"
        need(all(isinstance(query.get(name), list) and len(query[name]) == 2 for name in ("map", "centres")))
        axes = [check_map(one, columns) for one in query["map"]]
        some = [n_centres(text, width) for text, width in zip(query["centres"], axes, strict=True)]
        floats(query.get("lift"), sum(axes) * columns)
        keys, centres = some[0] * some[1], sum(some)
    need(centres <= 4096 and keys <= 2**60)
    if kind == "vec":
        names += " rho"
        need(floats(query.get("rho"), 1)[0] >= 2**-126)
    elif "fold" in query:
        names += " fold"
        exactly(query["fold"], "seed bins bit")
        whole(query["fold"]["seed"], 0, 2**53 - 1)
        whole(query["fold"]["bit"], 0, 63)
        need(whole(query["fold"]["bins"], 1, 2**20).bit_count() == 1)
        keys = 2 * query["fold"]["bins"]
    exactly(query, names)
    whole(query["id"], place, place)
    whole(query["weight"], 1, 2**31)
    size = whole(query["M"], 2, 65536)
    whole(query["kappa"], 1, size - 1 if kind == "vec" else 1)
    need(kind != "grr" or size == max(2, keys))
    need(kind != "hrr" or (size == 2 and keys <= 2**30))
    need(kind != "vec" or size * (columns + 1) <= 2**26)


# 5. Envelope, chain and change of keys


def is_signed(key: Any, signature: Any, body: str) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(bytes.fromhex(signature), body.encode())
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def verified(chain: list[str], key: str) -> dict[str, Any]:
    """The last body, with its hash."""
    need(1 <= len(chain) <= 64)
    texts = []
    for text in chain:
        envelope = read(text)
        exactly(envelope, "manifest signature witnesses")
        need(
            isinstance(envelope["manifest"], str) and isinstance(envelope["witnesses"], dict) and len(envelope["witnesses"]) <= 32
        )
        need(all(re.fullmatch("[0-9a-f]{64}", name) for name in envelope["witnesses"]))
        signatures = [envelope["signature"], *envelope["witnesses"].values()]
        need(all(isinstance(one, str) and re.fullmatch("([0-9a-f]{2})*", one) for one in signatures))
        need(is_signed(key, envelope["signature"], envelope["manifest"]))
        texts.append(envelope["manifest"])
    bodies, before = [], "0" * 64
    for number, text in enumerate(texts, 1):
        body = read(text)
        check_body(body, key)
        need(body["round"] == number and body["prev"] == before)
        before = sha256(text)
        bodies.append({**body, "hash": before})
    need(len({body["campaign"] for body in bodies}) == 1)
    return bodies[-1]


def rotated(pinned: str, body: str, by_old: str, by_new: str) -> list[Any]:
    need(is_signed(pinned, by_old, body))
    stated = read(body)
    exactly(stated, "date new old schema serial")
    need(stated["schema"] == "kveil.rotation/1" and stated["old"] == pinned and is_signed(stated["new"], by_new, body))
    return [stated["new"], whole(stated["serial"], 1, 2**53 - 1)]


# 6. Cohort


def cohort(secret: bytes, campaign: str) -> int:
    return int.from_bytes(hmac.digest(secret, bytes.fromhex(campaign), "sha256")[:2], "big")


# 7. From a point to preferred values


def total(numbers: Any) -> float:
    """In the order of their index: `sum` of newer Pythons compensates."""
    result = 0.0
    for number in numbers:
        result += number
    return result


def dot(v: Any, w: Any) -> float:
    return total(x * y for x, y in zip(v, w, strict=True))


def ball(v: list[float]) -> list[float]:
    length = max(math.sqrt(dot(v, v)), 1)
    return [x / length for x in v]


def into_domain(point: Any, centre: list[float], radius: float) -> list[float]:
    is_point = len(point) == len(centre) and all(map(math.isfinite, point))
    row = [min(max(x, -1e300), 1e300) for x in point] if is_point else centre
    away = [x - o for x, o in zip(row, centre, strict=True)]
    largest = max(map(abs, away)) or 1.0
    shares = [t / largest for t in away]
    shrink = radius / max(largest * math.sqrt(dot(shares, shares)), radius)
    return [((o + t * shrink) - o) / radius for o, t in zip(centre, away, strict=True)]


def image(given: Any, x: list[float]) -> list[float]:
    axes, d = floats(given["A"]), given["d"]
    return ball([dot(x, axes[j::d]) for j in range(d)])


def cell(given: Any, y: list[float], depth: int) -> int:
    d, key = given["d"], 0
    halvings = [len(range(axis, depth, d)) for axis in range(d)]
    shares = [(v + g + 1.5) / 3 for v, g in zip(y, floats(given["gamma"]), strict=True)]
    places = [math.floor(min(max(share * 2.0**n, 0), 2**n - 1)) for share, n in zip(shares, halvings, strict=True)]
    for step in range(depth):
        axis, done = step % d, step // d
        key = key << 1 | places[axis] >> halvings[axis] - 1 - done & 1
    return key


def split(text: str, width: int) -> list[list[float]]:
    numbers = floats(text)
    return [numbers[at : at + width] for at in range(0, len(numbers), width)]


def nearest(y: list[float], centres: list[list[float]]) -> int:
    scores = [dot(c, c) - 2 * dot(y, c) for c in centres]
    return scores.index(min(scores))


def both_centres(query: Any) -> list[list[list[float]]]:
    return [split(text, one["d"]) for text, one in zip(query["centres"], query["map"], strict=True)]


def whole_key(query: Any, x: list[float]) -> tuple[int, int]:
    """The key, and how many there are."""
    if query["key_rule"] == "cell":
        return cell(query["map"], image(query["map"], x), query["depth"]), 2 ** query["depth"]
    if query["key_rule"] == "product":
        some, others = both_centres(query)
        first, second = nearest(image(query["map"][0], x), some), nearest(image(query["map"][1], x), others)
        return first * len(others) + second, len(some) * len(others)
    y = image(query["map"], x) if "map" in query else x
    centres = split(query["centres"], len(y))
    return nearest(y, centres), len(centres)


def base(query: Any, x: list[float], key: int) -> list[float]:
    if query["key_rule"] == "product":
        some, others = both_centres(query)
        both = some[key // len(others)] + others[key % len(others)]
        lift = floats(query["lift"])
        return ball([dot(both, lift[i :: len(x)]) for i in range(len(x))])
    if query["key_rule"] == "nearest" and "map" not in query:
        return split(query["centres"], len(x))[key]
    return [0.0] * len(x)


def preferred(query: Any, x: list[float], seed: int) -> list[int]:
    key, keys = whole_key(query, x)
    if "fold" in query:
        fold = query["fold"]
        key, keys = 2 * (hashed(fold["seed"], BIN, key) % fold["bins"]) + (key >> fold["bit"] & 1), 2 * fold["bins"]
    if query["kind"] == "olh":
        return [(hashed(seed, OLH, key) >> 32) * query["M"] >> 32]
    if query["kind"] == "grr":
        return [key]
    if query["kind"] == "hrr":
        return [(hashed(seed, ROW, 0) & 2 ** (keys - 1).bit_length() - 1 & key).bit_count() % 2]
    (rho,) = floats(query["rho"])
    away = ball([(v - b) / rho for v, b in zip(x, base(query, x, key), strict=True)])
    vector = [math.sqrt(0.8) * v for v in away] + [math.sqrt(0.2)]
    if hashed(seed, SIGN, key) >> 63:
        vector = [-v for v in vector]
    length = math.sqrt(dot(vector, vector))
    u = [v / length for v in vector] if length > 0 else [1.0] + [0.0] * len(x)
    if not (hashed(seed, DIRECTION, 0) >> 11) * 2**-53 < (1 + min(length, 1)) / 2:
        u = [-v for v in u]
    products = [dot(codeword(seed, j, len(u)), u) for j in range(query["M"])]
    order = sorted(range(query["M"]), key=lambda j: (-products[j] if products[j] == products[j] else math.inf, j))
    return order[: query["kappa"]]


def codeword(seed: int, j: int, n: int) -> list[float]:
    mixed, numbers = mix(seed + CODEBOOK * G & WORD), []

    def uniform(place: int) -> int:
        return mix(mixed ^ mix(place + G & WORD)) >> 11

    for i in range(0, n, 2):
        r = math.sqrt(-2 * math.log((uniform(65536 * j + i) + 1) * 2**-53))
        t = 2 * math.pi * (uniform(65536 * j + i + 1) * 2**-53)
        numbers += [r * math.cos(t), r * math.sin(t)]
    length = math.sqrt(dot(numbers[:n], numbers[:n]))
    return [float(round(v / length * 2**24)) if length > 0 else 0.0 for v in numbers[:n]]


# 8. The randomiser


def weights(epsilon: str) -> tuple[int, int]:
    x, bits = Fraction(epsilon), 200
    low = term = Fraction(1)
    n = 0
    while n < 2 * x or term > Fraction(1, 2**bits):
        n += 1
        term = term * x / n
        low += term
    floors = {math.floor(2**32 * end) for end in (low, low + 2 * term)}  # what is left out is at most as much as two such terms
    assert len(floors) == 1
    return floors.pop(), 2**32


def chosen(draw: int, subset: list[int], a: int, b: int) -> int:
    if draw < len(subset) * a:
        return subset[draw // a]
    rank = (draw - len(subset) * a) // b
    return rank + sum(value - i <= rank for i, value in enumerate(subset))


# 9. The report


def report_bytes(query: int, report_id: bytes, index: int) -> bytes:
    return struct.pack("<BBH16sH", 1, 0, query, report_id, index)


# 10. Order of words


def below(word: Callable[[], int], n: int) -> int:
    while (drawn := word()) >= 2**64 - 2**64 % n:
        pass
    return drawn % n


def answer(body: dict[str, Any], point: list[float], word: Callable[[], int], now: datetime) -> tuple[bytes, datetime]:
    header = body["header"]
    end = datetime.combine(day(body["not_after"]), datetime.min.time(), UTC) + timedelta(hours=23, minutes=59, seconds=59)
    send_at = now + timedelta(seconds=below(word, max(1, int((end - now).total_seconds()) + 1)))
    rest = below(word, sum(query["weight"] for query in body["queries"]))
    for query in body["queries"]:
        rest -= query["weight"]
        if rest < 0:
            break
    report_id = struct.pack("<QQ", word(), word())
    x = into_domain(point, floats(header["domain"]["o"]), floats(header["domain"]["Rad"])[0])
    subset = sorted(preferred(query, x, seed_of(body["hash"], report_id)))
    a, b = weights(header["privacy"]["eps"])
    everything = query["kappa"] * a + (query["M"] - query["kappa"]) * b
    while (draw := word() >> 64 - (everything - 1).bit_length()) >= everything:
        pass
    return report_bytes(query["id"], report_id, chosen(draw, subset, a, b)), send_at


# 11. The ledger and refusals


def left(rows: list[Any], clock: str, quiet_until: str, cap: str) -> Fraction:
    today = max([clock, *(made for _, _, made, _ in rows)])
    if today < quiet_until:
        return Fraction(0)
    ends = [(Fraction(eps), day(max(made, send_at[:10])) + timedelta(days=365)) for _, eps, made, send_at in rows]
    return max(Fraction(0), Fraction(cap) - sum(eps for eps, end in ends if end > day(clock)))
