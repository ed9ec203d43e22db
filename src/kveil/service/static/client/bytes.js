// Hexadecimal, base64 and arrays of single-precision numbers, each written in one way only.
// @ts-check
import { need } from "./refused.js";

const HEX = /^(?:[0-9a-f]{2})*$/;
const LARGEST = 2 ** 40; // of any published number

/**
 * @param {unknown} text
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function fromHex(text) {
  need(typeof text === "string" && HEX.test(text), "something is not lower-case hexadecimal");
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** @param {Uint8Array} bytes */
export function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {unknown} text */
export function isKey(text) {
  return typeof text === "string" && /^[0-9a-f]{64}$/.test(text);
}

/** @param {string} text */
export function utf8(text) {
  return new TextEncoder().encode(text);
}

/**
 * The numbers of an array in a manifest, as many as `count` if it is given.
 * @param {unknown} text
 * @param {number} [count]
 */
export function floats(text, count) {
  const bytes = fromBase64(text, 4);
  const view = new DataView(bytes.buffer);
  const numbers = Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
  need(count === undefined || numbers.length === count, "an array has the wrong size");
  need(numbers.every((x) => Math.abs(x) <= LARGEST), "an array holds a number that is not finite or out of range");
  return numbers;
}

/**
 * `atob` forgives spaces, spare bits and missing padding, so what was read is written again and compared.
 * @param {unknown} text
 * @param {number} size bytes of one number
 */
function fromBase64(text, size) {
  let raw = "";
  try {
    raw = typeof text === "string" ? atob(text) : "";
  } catch {
    raw = "";
  }
  need(raw.length > 0 && raw.length % size === 0 && btoa(raw) === text, "an array is no base64 of whole numbers");
  return Uint8Array.from(raw, (letter) => letter.charCodeAt(0));
}
