// The browser's client against the vectors that Python wrote: byte for byte, and no word too many.
import assert from "node:assert/strict";
import { test } from "node:test";
import { KEY, MemoryStorage, NOON, chains, module, tape, vectors, verdict } from "./common.mjs";

const { blake2b } = await module("blake2b");
const { check, fraction, left, written } = await module("book");
const { fromHex, toHex } = await module("bytes");
const canonical = await module("canonical");
const { LocalClient, cohort } = await module("client");
const { preferred } = await module("encoding");
const { hashed } = await module("hashing");
const { Ledger } = await module("ledger");
const { verified } = await module("manifest");
const { chosen, weights } = await module("randomiser");
const { reportBytes } = await module("report");
const { rotated } = await module("rotation");

const big = (word) => BigInt(`0x${word}`);

test("weights are exact", () => {
  for (const [epsilon, a, b] of vectors("weights")) assert.deepEqual(weights(epsilon).map(String), [a, b], epsilon);
});

test("BLAKE2b, with and without a key, over several blocks", () => {
  for (const [message, key, person, size, digest] of vectors("blake2b")) {
    assert.equal(toHex(blake2b(fromHex(message), { key: fromHex(key), person, size })), digest);
  }
});

test("hashes", () => {
  for (const [seed, tag, key, hash] of vectors("hash")) assert.equal(hashed(big(seed), BigInt(tag), big(key)), big(hash));
});

test("canonical texts are taken, all others are refused", async () => {
  for (const [text, expected] of vectors("canonical")) {
    assert.equal(await verdict(() => canonical.read(text)), expected, text);
    if (expected === "taken") assert.equal(canonical.write(canonical.read(text)), text);
  }
});

test("the value that a draw falls on", () => {
  for (const [epsilon, , kappa, shown, draw, value] of vectors("chosen")) {
    const subset = shown.length === kappa ? shown : Array.from({ length: kappa }, (_, i) => i);
    assert.equal(chosen(BigInt(draw), subset, ...weights(epsilon)), value);
  }
});

test("manifests, hostile ones among them", async () => {
  for (const [name, chain, , expected] of vectors("manifests")) {
    assert.equal(await verdict(() => verified(chain, KEY)), expected, name);
  }
});

test("preferred values", () => {
  for (const [query, , x, seed, values] of vectors("preferred")) {
    const got = preferred(query, x.map(Number), big(seed));
    assert.deepEqual(got.sort((one, other) => one - other), values);
  }
});

test("answers: cohort, report and sending time, from the same words and no word more", async () => {
  const known = chains();
  for (const [name, rounds, point, words, own, report, sendAt] of vectors("answers")) {
    const word = tape(words);
    const ledger = await Ledger.open(new MemoryStorage(), { day: "2030-01-05", word });
    const client = new LocalClient(ledger, { nFeatures: point.length, key: KEY, cap: [10n, 1n], clock: () => NOON, word });
    const row = await client.answer(known.get(name).slice(0, rounds), () => point.map(Number));
    assert.equal(row.report, report, name);
    assert.equal(row.sendAt, sendAt);
    assert.equal(await cohort((await ledger.book()).secret, row.campaign), own);
    assert.equal(word.left(), 0);
  }
});

test("reports", () => {
  for (const [text, told] of vectors("reports")) {
    if (told !== "refused") assert.equal(toHex(reportBytes(told[0], fromHex(told[1]), told[2])), text);
  }
});

test("what is left of the cap", async () => {
  for (const [listed, clock, quietUntil, cap, rest, cost, expected] of vectors("ledger")) {
    const rows = listed.map(([campaign, epsilon, day, sendAt]) => ({ campaign, epsilon, day, sendAt }));
    const book = { rows, quietUntil };
    assert.equal(written(left(book, fraction(cap), clock)), rest);
    assert.equal(await verdict(() => check(book, cost, fraction(cap), clock)), expected);
  }
});

test("changes of keys", async () => {
  for (const [pinned, body, byOld, byNew, told] of vectors("rotations")) {
    if (told === "refused") assert.equal(await verdict(() => rotated(body, byOld, byNew, pinned)), "refused");
    else assert.deepEqual(await rotated(body, byOld, byNew, pinned), { key: told[0], old: pinned, serial: told[1] });
  }
});
