// A person's device in a browser: it checks what it is asked, pays from its own ledger, randomises its point, stores, then sends.
// @ts-check
import { check, left, today } from "./book.js";
import { floats, fromHex, toHex } from "./bytes.js";
import * as canonical from "./canonical.js";
import { intoDomain, preferred } from "./encoding.js";
import { randomBytes } from "./ledger.js";
import { verified } from "./manifest.js";
import { secretBelow, subsetSelect, systemWord } from "./randomiser.js";
import { Refused, need } from "./refused.js";
import { ID_BYTES, reportBytes, seedOf } from "./report.js";
import { rotated } from "./rotation.js";

/**
 * @typedef {import("./book.js").Book} Book
 * @typedef {import("./book.js").Row} Row
 * @typedef {import("./book.js").Fraction} Fraction
 * @typedef {import("./ledger.js").Ledger} Ledger
 * @typedef {import("./manifest.js").Manifest} Manifest
 * @typedef {import("./randomiser.js").Words} Words
 */

const MOST_DAYS_AHEAD = 365;
const DAY_MS = 86400e3;

export class LocalClient {
  /**
   * @param {Ledger} ledger
   * @param {{nFeatures: number, key: string, cap?: Fraction, witnesses?: string[], clock?: () => number, word?: Words}} terms
   *   key: the collector's, pinned; "" if there is none (`trustFirst`). cap: epsilon in any 365 days. clock: milliseconds. word: the only source of chance.
   */
  constructor(ledger, { nFeatures, key, cap = [4n, 1n], witnesses = [], clock = Date.now, word = systemWord }) {
    this.ledger = ledger;
    this.nFeatures = nFeatures;
    this.pinned = key;
    this.cap = cap;
    this.witnesses = witnesses;
    this.clock = clock;
    this.word = word;
  }

  /**
   * Everything that can be refused, without drawing or storing anything: the last of these rounds, and the row that was made for
   * it before, if there is one. Throws `Refused`.
   * @param {string[]} chain signed manifests of rounds 1 .. r, as they travel
   * @returns {Promise<{manifest: Manifest, row: Row | undefined}>}
   */
  async look(chain) {
    const book = await this.ledger.book();
    const manifest = await verified(chain, trusted(book, this.pinned), this.witnesses);
    this.#checkTerms(manifest, await cohort(book.secret, manifest.campaign), today(book, this.#day()));
    return { manifest, row: this.#kept(book, manifest) };
  }

  /**
   * The stored row for the last of these rounds, the same however often it is asked for. Throws `Refused`.
   * @param {string[]} chain
   * @param {() => unknown} point called last, after everything was checked; from then on nothing throws
   * @returns {Promise<Row>}
   */
  async answer(chain, point) {
    const { manifest } = await this.look(chain);
    return this.ledger.change((book) => this.#paid(book, manifest, point));
  }

  /**
   * Without a pinned key, trust the one that signed the first campaign that this device meets, from then on. It is for pages that
   * the collector itself serves, which could name any key: others pin one.
   * @param {string[]} chain
   */
  async trustFirst(chain) {
    if (await this.key()) return;
    need(Array.isArray(chain) && chain.length > 0, "the manifests of all rounds so far are needed");
    const { key } = canonical.read(canonical.read(chain[0]).manifest).header;
    await verified(chain, key, this.witnesses);
    await this.ledger.change((book) => {
      const isFirst = trusted(book, this.pinned) === ""; // another tab may have met one meanwhile
      return { value: undefined, book: isFirst ? { ...book, changes: [...book.changes, { serial: 0, old: "", key }] } : book };
    });
  }

  /** Every report that this device has made. */
  async history() {
    return (await this.ledger.book()).rows;
  }

  /** Reports that no collector has acknowledged. */
  async pending() {
    return (await this.history()).filter((row) => row.state !== "acked");
  }

  /** Epsilon that may be spent today. */
  async remaining() {
    return left(await this.ledger.book(), this.cap, this.#day());
  }

  /** The key that is trusted now: the pinned one, or what has followed it. */
  async key() {
    return trusted(await this.ledger.book(), this.pinned);
  }

  /**
   * Note that a report leaves, or that the collector has it or will never take it: what was spent stays spent.
   * @param {string} hash of its manifest
   * @param {"sent" | "acked"} state
   */
  async move(hash, state) {
    const earlier = state === "sent" ? ["prepared"] : ["prepared", "sent"];
    return this.ledger.change((book) => ({
      value: undefined,
      book: { ...book, rows: book.rows.map((row) => (row.hash === hash && earlier.includes(row.state) ? { ...row, state } : row)) },
    }));
  }

  /**
   * Trust a new key, if the old one and the new one say so.
   * @param {{body: string, byOld: string, byNew: string}} statement
   */
  async rotate({ body, byOld, byNew }) {
    const change = await rotated(body, byOld, byNew, await this.key());
    return this.ledger.change((book) => {
      const ofThis = book.changes.filter((one) => [one.old, one.key].includes(change.old));
      need(ofThis.every((one) => one.serial < change.serial), "a change of keys is older than one that this device has made");
      return { value: undefined, book: { ...book, changes: [...book.changes, change] } };
    });
  }

  /**
   * @param {Manifest} manifest
   * @param {number} own cohort
   * @param {string} day
   */
  #checkTerms(manifest, own, day) {
    const { header, not_before: start, not_after: end } = manifest;
    need(header.domain.D === this.nFeatures, "it asks for points of another number of features than this device has");
    const ahead = (Date.parse(end) - Date.parse(day)) / DAY_MS;
    need(ahead <= MOST_DAYS_AHEAD, `it ends more than ${MOST_DAYS_AHEAD} days ahead`);
    if (day < start || day > end) throw new Refused("not now", `the round is open from ${start} to ${end}. Nothing was charged.`);
    const [low, high] = header.cohorts[manifest.round - 1];
    if (own < low || own > high) {
      throw new Refused("not asked", "another part of the devices answers in this round. Nothing was charged.");
    }
  }

  /**
   * The row that was made for this very manifest, or a new one if that can be paid.
   * @param {Book} book
   * @param {Manifest} manifest
   * @param {() => unknown} point
   */
  #paid(book, manifest, point) {
    const kept = this.#kept(book, manifest);
    if (kept) return { value: kept };
    const { eps } = manifest.header.privacy;
    const sendAt = this.#moment(manifest.not_after);
    const report = drawn(manifest, point, this.word);
    /** @type {Row} */
    const row = {
      campaign: manifest.campaign, round: manifest.round, epsilon: eps, hash: manifest.hash, report: toHex(report),
      state: "prepared", day: today(book, this.#day()), sendAt,
    };
    return { value: row, book: { ...book, rows: [...book.rows, row] } };
  }

  /**
   * The row that was made for this manifest. Without one, whatever stands against a new one is thrown.
   * @param {Book} book
   * @param {Manifest} manifest
   */
  #kept(book, manifest) {
    const kept = book.rows.find((row) => row.campaign === manifest.campaign);
    if (kept && kept.hash !== manifest.hash) {
      throw new Refused("answered", "this device has had its one say in this campaign. Nothing was charged.");
    }
    if (!kept) check(book, manifest.header.privacy.eps, this.cap, this.#day());
    return kept;
  }

  /**
   * A uniform second of what is left of the round.
   * @param {string} last day
   */
  #moment(last) {
    const now = Math.floor(this.clock() / 1000);
    const end = Date.parse(`${last}T23:59:59Z`) / 1000;
    const seconds = now + Number(secretBelow(this.word, BigInt(Math.max(1, end - now + 1))));
    return new Date(1000 * seconds).toISOString().replace(".000", "");
  }

  #day() {
    return new Date(this.clock()).toISOString().slice(0, 10);
  }
}

/**
 * Which devices answer in a round: 16 bits that nobody can foresee who does not have the secret.
 * @param {string} secret
 * @param {string} campaign
 */
export async function cohort(secret, campaign) {
  const key = await crypto.subtle.importKey("raw", fromHex(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const digest = new Uint8Array(await crypto.subtle.sign("HMAC", key, fromHex(campaign)));
  return digest[0] * 256 + digest[1];
}

/**
 * @param {Book} book
 * @param {string} pinned
 */
function trusted(book, pinned) {
  return book.changes.reduce((key, change) => (change.old === key ? change.key : key), pinned);
}

/**
 * A new report. Sub-query and id are drawn before the point is read.
 * @param {Manifest} manifest
 * @param {() => unknown} point
 * @param {Words} word
 */
function drawn(manifest, point, word) {
  const { domain, privacy } = manifest.header;
  const query = picked(manifest.queries, word);
  const id = randomBytes(word, ID_BYTES);
  const seed = seedOf(manifest.hash, id);
  const [center, radius] = [floats(domain.o), floats(domain.Rad)[0]];
  const wanted = preferredOrNone(query, point, center, radius, seed);
  return reportBytes(query.id, id, subsetSelect(word, wanted, query.M, query.kappa, privacy.eps));
}

/**
 * One query, as likely as its weight says.
 * @param {any[]} queries
 * @param {Words} word
 */
function picked(queries, word) {
  let rest = Number(secretBelow(word, BigInt(queries.reduce((sum, query) => sum + query.weight, 0))));
  return queries.find((query) => (rest -= query.weight) < 0);
}

/**
 * From here on nothing may throw: silence would tell what the point was.
 * @param {any} query
 * @param {() => unknown} point
 * @param {number[]} center
 * @param {number} radius
 * @param {bigint} seed
 */
function preferredOrNone(query, point, center, radius, seed) {
  /** @type {unknown} */
  let given;
  try {
    given = point();
  } catch {
    given = undefined; // counts as the centre of the domain
  }
  try {
    return preferred(query, intoDomain(given, center, radius), seed);
  } catch {
    return undefined; // the randomiser has its own
  }
}
