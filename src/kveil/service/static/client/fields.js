// Strict reading of what a stranger signed: every field is known and of its type, every number within limits.
// `BigInt("12")`, `BigInt(true)` and `Number("")` succeed, so `typeof` comes first, everywhere.
// @ts-check
import { need } from "./refused.js";

/**
 * An object with exactly these names: an unknown one may change what a report means.
 * @param {unknown} given
 * @param {string[]} names
 */
export function fields(given, names) {
  need(typeof given === "object" && given !== null && !Array.isArray(given), "an object is missing");
  const found = Object.keys(given);
  need(found.length === names.length && names.every((name) => found.includes(name)), "a field is missing, or unknown here");
}

/**
 * @param {unknown} given
 * @param {number} low
 * @param {number} high
 * @returns {number}
 */
export function whole(given, low, high) {
  need(typeof given === "number" && Number.isSafeInteger(given), "something is no whole number");
  need(given >= low && given <= high, `a whole number is not in ${low} .. ${high}`);
  return given;
}

/**
 * Text without control, format, private or unassigned characters, and without separators but the space.
 * @param {unknown} given
 * @param {number} most characters
 */
export function name(given, most) {
  need(typeof given === "string", "a name is no text");
  const length = Array.from(given).length; // `length` counts units of UTF-16
  need(length >= 1 && length <= most, "a name is missing or too long");
  need(!/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u.test(given), "a name is not printable");
}

/**
 * A day of the calendar. `Date` takes 2030-02-30 for a day in March, so it is written again and compared.
 * @param {unknown} given
 * @returns {string}
 */
export function day(given) {
  need(typeof given === "string" && /^\d{4}-\d{2}-\d{2}$/.test(given), "a date is not YYYY-MM-DD");
  const time = new Date(`${given}T00:00:00Z`);
  need(!Number.isNaN(time.getTime()) && time.toISOString().slice(0, 10) === given && given >= "0001", "a date does not exist");
  return given;
}

/**
 * `p` or `p/q` in lowest terms, both below 10 000, above 0 and at most 10.
 * @param {unknown} given
 * @returns {string}
 */
export function epsilon(given) {
  const found = typeof given === "string" ? /^([0-9]{1,4})(?:\/([1-9][0-9]{0,3}))?$/.exec(given) : null;
  need(found, "epsilon is not p or p/q");
  const [p, q] = [Number(found[1]), Number(found[2] ?? 1)];
  const isLowest = divisor(p, q) === 1 && String(given) === (q === 1 ? `${p}` : `${p}/${q}`);
  need(p > 0 && p <= 10 * q && isLowest, "epsilon is not in lowest terms, above 0 and at most 10");
  return /** @type {string} */ (given);
}

/**
 * @param {number} x
 * @param {number} y
 * @returns {number}
 */
function divisor(x, y) {
  return y === 0 ? x : divisor(y, x % y);
}
