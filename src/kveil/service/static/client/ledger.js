// A device's durable record: its secret, every report it has made, and the keys that followed each other.
//
// The record is one canonical text with a seal, a keyed hash, beside it. A damaged record is a refusal and never a smaller sum.
// The seal's key is in the record, so it tells accidents, not an owner who writes the storage. Reading, checking, drawing and
// storing happen in one step without a pause, since a transaction of IndexedDB ends at the first `await` of anything else.
// @ts-check
import { blake2b } from "./blake2b.js";
import { later } from "./book.js";
import { fromHex, toHex, utf8 } from "./bytes.js";
import * as canonical from "./canonical.js";
import { Refused } from "./refused.js";

/**
 * @typedef {import("./book.js").Book} Book
 * @typedef {import("./randomiser.js").Words} Words
 * @typedef {{text: string, seal: string}} Sealed
 * @typedef {{change: (step: (kept: Sealed | undefined) => Sealed | undefined) => Promise<void>}} Storage
 *   change: one transaction. `step` gets what is stored and returns what shall be stored, or undefined to leave it; what it
 *   throws undoes the transaction and is thrown again. Resolves when it is on the disk.
 */

const VERSION = 1;
export const SECRET_BYTES = 32;
const QUIET_DAYS = 365;

export class Ledger {
  /** @type {Storage} */
  #storage;

  /** @param {Storage} storage */
  constructor(storage) {
    this.#storage = storage;
  }

  /**
   * The ledger in a storage; a new one where there is none.
   * @param {Storage} storage
   * @param {{day: string, word: Words, isLost?: boolean}} options isLost: there was one before, as the marker tells; then the
   *   new one stays quiet for 365 days, since nobody knows what was spent
   */
  static async open(storage, { day, word, isLost = false }) {
    await storage.change((kept) => {
      if (kept) return void opened(kept);
      const quietUntil = isLost ? later(day, QUIET_DAYS) : day;
      return sealed({ version: VERSION, secret: toHex(randomBytes(word, SECRET_BYTES)), quietUntil, rows: [], changes: [] });
    });
    return new Ledger(storage);
  }

  /** @returns {Promise<Book>} */
  async book() {
    return this.change((book) => ({ value: book }));
  }

  /**
   * One step from what is stored to what shall be stored, and a value for the caller, who has it once it is on the disk.
   * @template T
   * @param {(book: Book) => {book?: Book, value: T}} step
   * @returns {Promise<T>}
   */
  async change(step) {
    /** @type {T | undefined} */
    let value;
    await this.#storage.change((kept) => {
      const told = step(opened(kept));
      value = told.value;
      return told.book && sealed(told.book);
    });
    return /** @type {T} */ (value);
  }
}

/**
 * @param {Words} word
 * @param {number} n a multiple of 8
 */
export function randomBytes(word, n) {
  const view = new DataView(new ArrayBuffer(n));
  for (let at = 0; at < n; at += 8) view.setBigUint64(at, word(), true);
  return new Uint8Array(view.buffer);
}

/**
 * @param {Book} book
 * @returns {Sealed}
 */
export function sealed(book) {
  const text = canonical.write(book);
  return { text, seal: seal(text, book.secret) };
}

/**
 * @param {Sealed | undefined} kept
 * @returns {Book}
 */
function opened(kept) {
  try {
    const book = canonical.read(kept?.text);
    if (book.version === VERSION && kept?.seal === seal(kept?.text ?? "", book.secret)) return book;
  } catch {
    // whatever is wrong with it: it is damaged
  }
  throw new Refused("budget", "the record of what this browser has spent is damaged, or of another version. Nothing was drawn and nothing was sent.");
}

/**
 * @param {string} text
 * @param {string} secret
 */
function seal(text, secret) {
  return toHex(blake2b(utf8(text), { size: 16, key: fromHex(secret) }));
}
