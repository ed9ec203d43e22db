// The client's promises: one report per campaign, stored before it is sent, and refusals that never read the point.
import assert from "node:assert/strict";
import { test } from "node:test";
import { KEY, MemoryStorage, NOON, chains, module, vectors } from "./common.mjs";

const { LocalClient } = await module("client");
const { Ledger, sealed } = await module("ledger");
const { subsetSelect, systemWord, weights } = await module("randomiser");
const { Refused } = await module("refused");
const { campaigns, chain, deliver, followKeys } = await module("sender");

const known = chains();
const ONE_ROUND = known.get("a whole epsilon"); // epsilon 1
const OTHERS = ["grid-2 in 2", "grid in 2", "a small one"].map((name) => known.get(name));
const unread = () => assert.fail("the point was read");

async function device({ storage = new MemoryStorage(), day = "2030-01-05", isLost = false, ...terms } = {}) {
  const ledger = await Ledger.open(storage, { day, word: systemWord, isLost });
  return { storage, client: new LocalClient(ledger, { nFeatures: 2, key: KEY, clock: () => NOON, ...terms }) };
}

async function refusal(client, chain) {
  const before = JSON.stringify(await client.history().catch(() => "unreadable"));
  const error = await client.answer(chain, unread).then(() => assert.fail("it was answered"), (thrown) => thrown);
  assert.ok(error instanceof Refused, String(error));
  assert.equal(JSON.stringify(await client.history().catch(() => "unreadable")), before);
  return error.why;
}

test("the same row however often it is asked for, also at the same time", async () => {
  const { client } = await device();
  const rows = await Promise.all(Array.from({ length: 8 }, () => client.answer(ONE_ROUND, () => [51, 9])));
  assert.equal(new Set(rows.map((row) => row.report)).size, 1);
  assert.equal((await client.history()).length, 1);
  assert.deepEqual(await client.remaining(), [3n, 1n]);
});

test("five refusals, and the point is not read", async () => {
  const { client } = await device();
  assert.equal(await refusal(client, [ONE_ROUND[0].replace("2030", "2031")]), "manifest");
  assert.equal(await refusal((await device({ cap: [1n, 2n] })).client, ONE_ROUND), "budget");
  assert.equal(await refusal((await device({ clock: () => Date.parse("2030-02-01") })).client, ONE_ROUND), "not now");
  const rounds = known.get("refine-2 in 4");
  const why = new Set();
  for (let i = 0; i < 60 && !why.has("not asked"); i++) {
    const { client: other } = await device({ nFeatures: 4 });
    await other.answer(rounds.slice(0, 1), () => [0, 0, 0, 0]).catch((error) => why.add(error.why));
  }
  assert.deepEqual([...why], ["not asked"]);
  let answered;
  while (!answered) {
    const { client: other } = await device({ nFeatures: 4 });
    if (await other.answer(rounds.slice(0, 1), () => [0, 0, 0, 0]).catch(() => undefined)) answered = other;
  }
  const book = await answered.ledger.book(); // as if round 1 had been issued twice
  await answered.ledger.change(() => ({ value: 0, book: { ...book, rows: [{ ...book.rows[0], hash: "ab".repeat(32) }] } }));
  assert.equal(await refusal(answered, rounds.slice(0, 1)), "answered");
});

test("another number of features, witnesses that did not sign, and a round that ends too late", async () => {
  assert.equal(await refusal((await device({ nFeatures: 3 })).client, ONE_ROUND), "manifest");
  assert.equal(await refusal((await device({ witnesses: ["ab".repeat(32)] })).client, ONE_ROUND), "manifest");
  assert.equal(await refusal((await device({ clock: () => Date.parse("2028-12-01") })).client, ONE_ROUND), "manifest");
});

test("a ledger that was lost stays quiet for 365 days", async () => {
  const { client } = await device({ isLost: true });
  assert.equal(await refusal(client, ONE_ROUND), "budget");
  assert.deepEqual(await client.remaining(), [0n, 1n]);
});

test("campaigns never pass the cap together", async () => {
  const { client } = await device({ cap: [2n, 1n] });
  const answers = await Promise.allSettled([ONE_ROUND, ...OTHERS].map((chain) => client.answer(chain, () => [51, 9])));
  const spent = answers.filter(({ status }) => status === "fulfilled").length;
  assert.ok(spent >= 1 && spent < answers.length); // 1 + 3/2 is more than 2
  const sum = (await client.history()).reduce((total, { epsilon }) => total + Number(epsilon.split("/")[0]) / Number(epsilon.split("/")[1] ?? 1), 0);
  assert.ok(sum <= 2);
});

test("a flipped bit anywhere in the ledger is a refusal", async () => {
  const { storage, client } = await device();
  await client.answer(ONE_ROUND, () => [51, 9]);
  const { text, seal } = storage.kept;
  for (let at = 0; at < text.length; at++) {
    const letter = String.fromCharCode(text.charCodeAt(at) ^ 1);
    storage.kept = { text: text.slice(0, at) + letter + text.slice(at + 1), seal };
    await assert.rejects(client.history(), Refused, `at ${at}`);
  }
  storage.kept = { text, seal: seal.replace(/^./, (digit) => (digit === "0" ? "1" : "0")) };
  assert.equal(await refusal(client, OTHERS[0]), "budget");
  storage.kept = { text, seal };
  assert.equal((await client.history()).length, 1);
});

test("a point that is none, or cannot be read, still gives 22 bytes", async () => {
  const strange = [undefined, null, "x", [], [NaN, 1], [1e308, -1e308], ["1", "2"], () => 1, [1, 2, 3]];
  for (const point of strange) {
    const { client } = await device();
    assert.equal((await client.answer(ONE_ROUND, () => point)).report.length, 44);
  }
  const { client } = await device();
  const thrower = () => {
    throw new Error("no point");
  };
  assert.equal((await client.answer(ONE_ROUND, thrower)).report.length, 44);
});

// The collector's answers, by what `fetch` gives: status and body.
async function delivered(status, body) {
  const { storage, client } = await device();
  const row = await client.answer(ONE_ROUND, () => [51, 9]);
  const seen = [];
  globalThis.fetch = async (url, request) => {
    seen.push([url, Buffer.from(request.body).toString("hex"), JSON.parse(storage.kept.text).rows[0].state]);
    if (status === 0) throw new TypeError("no network");
    return new Response(body, { status });
  };
  const told = await deliver(client, "http://collector", () => true);
  assert.deepEqual(seen, [[`http://collector/v1/manifests/${row.hash}/reports`, row.report, "sent"]]);
  return [told.get(row.campaign), (await client.history())[0].state];
}

test("only 200 with nothing in it acknowledges, and what is final is not sent again", async () => {
  const refused = (reason) => new Uint8Array([...new Array(16).fill(7), reason]);
  assert.deepEqual(await delivered(200, null), ["stored", "acked"]);
  for (const reason of [1, 2, 3, 5]) assert.deepEqual(await delivered(200, refused(reason)), ["refused", "acked"]);
  assert.deepEqual(await delivered(410, "{}"), ["refused", "acked"]);
  assert.deepEqual(await delivered(200, refused(4)), ["later", "sent"]);
  for (const status of [0, 400, 404, 429, 500, 503]) assert.deepEqual(await delivered(status, status ? "{}" : null), ["later", "sent"]);
});

test("a code goes with reports of its own campaign alone", async () => {
  const { client } = await device();
  const rows = [];
  for (const chain of [ONE_ROUND, OTHERS[2]]) rows.push(await client.answer(chain, () => [51, 9]));
  const [own, other] = rows;
  const seen = [];
  let status = 401;
  globalThis.fetch = async (url, { headers }) => {
    seen.push([url.split("/").at(-2), headers.Authorization]);
    return new Response(status === 200 ? null : "{}", { status });
  };
  const admission = { campaign: own.campaign, code: "CODE" };
  assert.deepEqual([...(await deliver(client, "http://collector", () => true)).values()], ["later", "later"]);
  await deliver(client, "http://collector", () => true, admission);
  await deliver(client, "http://collector", () => true, { campaign: "", code: "CODE" });
  status = 200;
  assert.equal((await deliver(client, "http://collector", () => true, admission)).get(own.campaign), "stored");
  const sent = (code) => [[own.hash, code], [other.hash, undefined]];
  assert.deepEqual(seen, [...sent(undefined), ...sent("Bearer CODE"), ...sent(undefined), ...sent("Bearer CODE")]);
});

test("no request has a cookie, a referrer or a header by which devices could be told apart", async () => {
  const { client } = await device();
  await client.answer(ONE_ROUND, () => [51, 9]);
  const seen = [];
  globalThis.fetch = async (url, request) => {
    seen.push([request.method ?? "GET", request.credentials, request.referrerPolicy, request.redirect, Object.keys(request.headers ?? {})]);
    return new Response(request.method ? null : JSON.stringify({ campaigns: [], rotations: [] }), { status: 200 });
  };
  await campaigns("http://collector");
  await chain("http://collector", ["00"]);
  await followKeys(client, "http://collector");
  await deliver(client, "http://collector", () => true);
  const get = ["GET", "omit", "no-referrer", "error", []];
  assert.deepEqual(seen, [get, get, get, ["POST", "omit", "no-referrer", "error", ["Content-Type"]]]);
});

test("a report waits for its time unless it is sent at once", async () => {
  const { client } = await device();
  await client.answer(ONE_ROUND, () => [51, 9]);
  globalThis.fetch = () => assert.fail("it was sent");
  assert.equal((await deliver(client, "http://collector", (row) => Date.parse(row.sendAt) <= NOON - 1)).size, 0);
});

test("a new key is trusted once, and an old statement is not played again", async () => {
  const { client } = await device();
  const [, body, byOld, byNew, [key]] = vectors("rotations")[0];
  await client.rotate({ body, byOld, byNew });
  assert.equal(await client.key(), key);
  await assert.rejects(client.rotate({ body, byOld, byNew }), Refused);
  const back = vectors("rotations").find(([pinned, , , , told]) => pinned === key && told !== "refused"); // its serial is 1, too
  await assert.rejects(client.rotate({ body: back[1], byOld: back[2], byNew: back[3] }), Refused);
  assert.equal(await refusal(client, ONE_ROUND), "manifest"); // of the old key
});

test("published changes of keys are followed, and what is none is passed over", async () => {
  const { client } = await device();
  const statements = vectors("rotations").map(([, statement, by_old, by_new]) => JSON.stringify({ by_new, by_old, statement }));
  const rotations = ["no JSON", ...statements].map(btoa);
  globalThis.fetch = async (url) => new Response(JSON.stringify({ rotations: url === "http://collector/v1/rotations" ? rotations : [] }));
  await followKeys(client, "http://collector");
  assert.equal(await client.key(), vectors("rotations")[0][4][0]);
  await followKeys(client, "http://collector");
  assert.equal((await client.ledger.book()).changes.length, 1);
});

test("without a pinned key the first one that is met stays", async () => {
  const { storage, client } = await device({ key: "" });
  assert.equal(await refusal(client, ONE_ROUND), "manifest");
  await assert.rejects(client.trustFirst([ONE_ROUND[0].replace('"signature":"', '"signature":"00')]), Refused);
  await Promise.all([client.trustFirst(ONE_ROUND), client.trustFirst(ONE_ROUND)]); // as two tabs would
  assert.equal((await client.ledger.book()).changes.length, 1);
  assert.equal(await client.key(), KEY);
  const [, body, byOld, byNew, [next]] = vectors("rotations")[0];
  await client.rotate({ body, byOld, byNew });
  await client.trustFirst(ONE_ROUND); // of a key that is trusted no more
  assert.equal(await (await device({ storage, key: "" })).client.key(), next);
});

test("looking tells what would be refused, and draws nothing", async () => {
  const { client } = await device();
  const before = await client.look(ONE_ROUND);
  assert.equal(before.row, undefined);
  assert.equal((await client.history()).length, 0);
  const row = await client.answer(ONE_ROUND, () => [51, 9]);
  assert.deepEqual((await client.look(ONE_ROUND)).row, row);
  await assert.rejects((await device({ cap: [1n, 2n] })).client.look(ONE_ROUND), Refused);
});

test("how sure anyone can become is rounded up", async () => {
  const { mostSure } = await module("sure");
  assert.deepEqual(["1/2", "1", "2", "4"].map(mostSure), ["62.3", "73.2", "88.1", "98.3"]);
});

test("a new ledger has a secret of its own, and an open one keeps it", async () => {
  const { storage, client } = await device();
  const again = await device({ storage, isLost: true });
  assert.equal((await again.client.ledger.book()).secret, (await client.ledger.book()).secret);
  assert.notEqual((await (await device()).client.ledger.book()).secret, (await client.ledger.book()).secret);
  storage.kept = sealed({ ...(await client.ledger.book()), version: 2 });
  await assert.rejects(device({ storage }), Refused);
});

// Preferred values come as often as they should with the system's own words. A false alarm has probability below 1e-9: 6.2
// standard deviations. A randomiser with weights of epsilon 3/2 instead of 1 is 17 deviations off.
function isLawful(epsilon, n = 5_000) {
  const [a, b] = weights("1").map(Number);
  const expected = a / (a + 3 * b);
  let own = 0;
  for (let i = 0; i < n; i++) own += subsetSelect(systemWord, [2], 4, 1, epsilon) === 2 ? 1 : 0;
  return Math.abs(own - n * expected) <= 6.2 * Math.sqrt(n * expected * (1 - expected));
}

test("the law of a report, and a twin that is wrong", () => {
  assert.ok(isLawful("1"));
  assert.ok(!isLawful("3/2"));
});
