// What a round asks of devices: signed texts, one per round, each naming the hash of the one before.
// @ts-check
import { floats, fromHex, isKey, toHex, utf8 } from "./bytes.js";
import * as canonical from "./canonical.js";
import { day, epsilon, fields, name, whole } from "./fields.js";
import { checkQuery } from "./queries.js";
import { weights } from "./randomiser.js";
import { need } from "./refused.js";

/** @typedef {any} Manifest the checked body of the last round, with its `hash` */

const HEADER = ["cohorts", "domain", "k", "key", "method", "n", "name", "privacy", "report_bytes", "schema"];
const BODY = ["campaign", "header", "min_reports", "not_after", "not_before", "prev", "queries", "round"];
const FIRST = "0".repeat(64); // what comes before round 1
const MOST_ROUNDS = 64;
const MOST_WITNESSES = 32;
const MOST_PEOPLE = 2 ** 31;

/**
 * The last round of a chain, if the pinned key (and every witness) signed all of it and it is one chain of one campaign.
 * Signatures come first: bytes that nobody vouches for are not parsed.
 * @param {unknown} chain signed manifests of rounds 1 .. r, as they travel
 * @param {string} key
 * @param {string[]} [witnesses]
 * @returns {Promise<Manifest>}
 */
export async function verified(chain, key, witnesses = []) {
  need(Array.isArray(chain) && chain.length >= 1 && chain.length <= MOST_ROUNDS, "the manifests of all rounds so far are needed");
  const bodies = [];
  for (const text of chain) bodies.push(await vouchedFor(text, key, witnesses));
  /** @type {Manifest[]} */
  const rounds = [];
  for (const body of bodies) rounds.push(await checked(body, key));
  rounds.forEach((round, i) => {
    need(round.campaign === rounds[0].campaign, "its header differs from that of an earlier round");
    need(round.round === i + 1, "a round is missing, or rounds are out of order");
    need(round.prev === (i ? rounds[i - 1].hash : FIRST), "it does not follow from the round before");
  });
  return rounds[rounds.length - 1];
}

/** @param {string} text */
export async function sha256(text) {
  return toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", utf8(text))));
}

/**
 * Ed25519 by WebCrypto: Chrome 137, Firefox 129, Safari 17 and later, in secure contexts.
 * @param {unknown} key
 * @param {unknown} signature
 * @param {string} body
 */
export async function isSigned(key, signature, body) {
  if (!isKey(key) || typeof signature !== "string" || !/^[0-9a-f]{128}$/.test(signature)) return false;
  try {
    const own = await crypto.subtle.importKey("raw", fromHex(key), "Ed25519", false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", own, fromHex(signature), utf8(body));
  } catch {
    return false;
  }
}

/** Whether this browser can check signatures at all. */
export async function canVerify() {
  try {
    await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]);
    return true;
  } catch {
    return false;
  }
}

/**
 * The body of an envelope.
 * @param {unknown} text
 * @param {string} key
 * @param {string[]} witnesses
 * @returns {Promise<string>}
 */
async function vouchedFor(text, key, witnesses) {
  const envelope = canonical.read(text);
  fields(envelope, ["manifest", "signature", "witnesses"]);
  need(typeof envelope.manifest === "string", "it is not a signed manifest");
  const seen = envelope.witnesses;
  need(typeof seen === "object" && seen !== null && !Array.isArray(seen), "it is not a signed manifest");
  need(Object.keys(seen).length <= MOST_WITNESSES && Object.keys(seen).every(isKey), "its witnesses are too many, or no keys");
  [envelope.signature, ...Object.values(seen)].forEach(fromHex);
  need(await isSigned(key, envelope.signature, envelope.manifest), "it is not signed by the key that this device trusts");
  for (const other of witnesses) {
    const own = Object.hasOwn(seen, other) ? seen[other] : "";
    need(await isSigned(other, own, envelope.manifest), "it lacks the signature of a witness that this device asks for");
  }
  return envelope.manifest;
}

/**
 * @param {string} body
 * @param {string} key
 */
async function checked(body, key) {
  const round = canonical.read(body);
  fields(round, BODY);
  checkHeader(round.header, key);
  need(round.campaign === (await sha256(canonical.write(round.header))), "its campaign is not the hash of its header");
  whole(round.round, 1, round.header.cohorts.length);
  whole(round.min_reports, 0, MOST_PEOPLE);
  need(day(round.not_before) <= day(round.not_after), "it ends before it begins");
  const { queries } = round;
  need(Array.isArray(queries) && queries.length >= 1 && queries.length <= 4096, "a round has 1 to 4096 queries");
  queries.forEach((query, i) => checkQuery(query, i, round.header.domain.D));
  return { ...round, hash: await sha256(body) };
}

/**
 * @param {any} header
 * @param {string} key
 */
function checkHeader(header, key) {
  fields(header, HEADER); // a tuning (of "lae") is among the fields that this client does not know
  need(header.schema === "kveil.local/1", "its schema is not kveil.local/1");
  need(header.key === key, "its header names another key than the one that signed it");
  fields(header.domain, ["D", "Rad", "o"]);
  floats(header.domain.o, whole(header.domain.D, 1, 2 ** 16 - 2));
  need(floats(header.domain.Rad, 1)[0] >= 2 ** -40, "the radius is out of range");
  checkPrivacy(header.privacy);
  name(header.name, 200);
  name(header.method, 40);
  whole(header.k, 1, 4096);
  whole(header.n, 1, MOST_PEOPLE);
  whole(header.report_bytes, 22, 22);
  checkCohorts(header.cohorts);
}

/**
 * The weights must be those that this client computes itself: a bound on a/b alone would let a negative b pass.
 * @param {any} privacy
 */
function checkPrivacy(privacy) {
  fields(privacy, ["a", "b", "eps", "mode"]);
  need(privacy.mode === "one_round", 'its mode is unknown to this client, which answers "one_round" alone');
  const [a, b] = weights(epsilon(privacy.eps));
  need(privacy.a === Number(a) && privacy.b === Number(b), "the weights a and b are not those of epsilon"); // below 2**53
}

/** @param {any} cohorts */
function checkCohorts(cohorts) {
  need(Array.isArray(cohorts) && cohorts.length >= 1 && cohorts.length <= MOST_ROUNDS, "cohorts is not a list of ranges");
  for (const range of cohorts) {
    need(Array.isArray(range) && range.length === 2, "a cohort is a pair of numbers");
    whole(range[1], whole(range[0], 0, 65535), 65535);
  }
  const ordered = [...cohorts].sort((one, other) => one[0] - other[0]);
  need(ordered.every((range, i) => i === 0 || ordered[i - 1][1] < range[0]), "two rounds ask the same people");
}
