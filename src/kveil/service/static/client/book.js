// What a device has spent, and whether one more answer fits: at most its cap within any 365 days. Days are text, YYYY-MM-DD.
//
// A row counts until 365 days after the later of the day on which it was made and the day on which it is to leave. Where the
// clock was ahead and was set right, rows lie ahead of it, and they count.
// @ts-check
import { Refused } from "./refused.js";

/**
 * @typedef {{campaign: string, round: number, epsilon: string, hash: string, report: string, state: "prepared" | "sent" |
 *   "acked", day: string, sendAt: string}} Row one report as it was stored; the report in hexadecimal
 * @typedef {{serial: number, old: string, key: string}} Change of the trusted key
 * @typedef {{version: number, secret: string, quietUntil: string, rows: Row[], changes: Change[]}} Book
 * @typedef {[bigint, bigint]} Fraction
 */

export const WINDOW_DAYS = 365;
const DAY_MS = 86400e3;

/**
 * The clock's day, or that of the last row if it is later: no row seems older than the one before it.
 * @param {Book} book
 * @param {string} clock
 */
export function today(book, clock) {
  return book.rows.reduce((latest, row) => (row.day > latest ? row.day : latest), clock);
}

/**
 * Epsilon that may be spent on the clock's day.
 * @param {Book} book
 * @param {Fraction} cap
 * @param {string} clock
 * @returns {Fraction}
 */
export function left(book, cap, clock) {
  if (today(book, clock) < book.quietUntil) return [0n, 1n];
  const spent = book.rows.filter((row) => counts(row, clock)).map((row) => fraction(row.epsilon));
  const rest = spent.reduce((sum, [p, q]) => lowest([sum[0] * q - p * sum[1], sum[1] * q]), cap);
  return rest[0] > 0n ? rest : [0n, 1n];
}

/**
 * Refuse what cannot be paid.
 * @param {Book} book
 * @param {string} epsilon
 * @param {Fraction} cap
 * @param {string} clock
 */
export function check(book, epsilon, cap, clock) {
  if (today(book, clock) < book.quietUntil) {
    throw new Refused("budget", `this browser has lost its record of what it has spent, and stays quiet until ${book.quietUntil}. Nothing was drawn.`);
  }
  const rest = left(book, cap, clock);
  const [p, q] = fraction(epsilon);
  if (p * rest[1] > rest[0] * q) {
    throw new Refused("budget", `this campaign costs epsilon ${epsilon}; ${written(rest)} of ${written(cap)} is left for these 365 days. Nothing was drawn and nothing was charged.`);
  }
}

/**
 * @param {string} text "p" or "p/q"
 * @returns {Fraction}
 */
export function fraction(text) {
  const [p, q = 1n] = text.split("/").map(BigInt);
  return [p, q];
}

/** @param {Fraction} value */
export function written([p, q]) {
  return q === 1n ? `${p}` : `${p}/${q}`;
}

/**
 * @param {string} day
 * @param {number} days
 */
export function later(day, days) {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * DAY_MS).toISOString().slice(0, 10);
}

/**
 * Whether a row was made, or leaves, less than 365 days before the clock's day, or later.
 * @param {Row} row
 * @param {string} clock
 */
function counts(row, clock) {
  const leaves = row.sendAt.slice(0, 10);
  return later(row.day > leaves ? row.day : leaves, WINDOW_DAYS) > clock;
}

/**
 * @param {Fraction} value
 * @returns {Fraction}
 */
function lowest([p, q]) {
  let [x, y] = [p < 0n ? -p : p, q];
  while (y) [x, y] = [y, x % y];
  return x ? [p / x, q / x] : [0n, 1n];
}
