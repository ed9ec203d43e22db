// Canonical JSON: one text for each value, so that it can be signed, hashed and compared.
// ASCII, sorted names, no blanks, no floats, no null, whole numbers below 2**53.
// @ts-check
import { need } from "./refused.js";

const MOST_CHARACTERS = 2 ** 24;
const MOST_ENTRIES = 2 ** 18;
const DEEPEST = 16;

/**
 * The canonical text of a value.
 * @param {any} value
 * @param {number} [depth]
 * @returns {string}
 */
export function write(value, depth = 0) {
  need(depth <= DEEPEST, "it is nested too deeply");
  if (typeof value === "boolean") return String(value);
  if (typeof value === "string") return quoted(value);
  if (typeof value === "number") {
    need(Number.isSafeInteger(value), "a number is no whole number below 2**53");
    return String(value);
  }
  if (Array.isArray(value)) return `[${value.map((entry) => write(entry, depth + 1)).join(",")}]`;
  need(typeof value === "object" && value !== null, "canonical JSON has no null");
  const names = Object.keys(value).sort(byCodePoint);
  return `{${names.map((name) => `${quoted(name)}:${write(value[name], depth + 1)}`).join(",")}}`;
}

/**
 * The value whose canonical text this is. Writing it again rules out blanks, other orders and escapes, 1.0, 1e3, -0, numbers
 * that lost digits, and repeated names, all of which `JSON.parse` takes.
 * @param {unknown} text
 * @returns {any}
 */
export function read(text) {
  need(typeof text === "string" && text.length <= MOST_CHARACTERS, "it is too long, or no text");
  need(/^[\x20-\x7e]*$/.test(text), "it is not ASCII");
  need((text.match(/[,[{]/g) ?? []).length <= MOST_ENTRIES, "it has too many entries");
  const value = parsed(text);
  need(value !== undefined && write(value) === text, "it is not canonical JSON");
  return value;
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * `JSON.stringify` leaves U+007F and beyond as they are; here they are escaped, a unit of UTF-16 each.
 * @param {string} text
 */
function quoted(text) {
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * `sort` compares units of UTF-16, which is another order beyond U+FFFF.
 * @param {string} one
 * @param {string} other
 */
function byCodePoint(one, other) {
  const some = Array.from(one, (letter) => letter.codePointAt(0) ?? 0);
  const more = Array.from(other, (letter) => letter.codePointAt(0) ?? 0);
  for (let i = 0; i < Math.min(some.length, more.length); i++) {
    if (some[i] !== more[i]) return some[i] - more[i];
  }
  return some.length - more.length;
}
