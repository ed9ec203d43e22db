// The one message that leaves a device: 22 bytes, whatever the point.
// u8 version | u8 flags | u16 query | 16 bytes id | u16 index, little-endian
// @ts-check
import { blake2b } from "./blake2b.js";
import { fromHex } from "./bytes.js";

export const BYTES = 22;
export const ID_BYTES = 16;
const VERSION = 1;
const PERSON = "kveil.local/1";

/**
 * @param {number} query
 * @param {Uint8Array} id
 * @param {number} index
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function reportBytes(query, id, index) {
  const report = new Uint8Array(BYTES);
  const view = new DataView(report.buffer);
  view.setUint8(0, VERSION);
  view.setUint16(2, query, true);
  report.set(id, 4);
  view.setUint16(4 + ID_BYTES, index, true);
  return report;
}

/**
 * The seed of a report's public hashing. It is not sent: it follows from the round and the id.
 * @param {string} manifestHash
 * @param {Uint8Array} id
 */
export function seedOf(manifestHash, id) {
  const message = new Uint8Array(32 + ID_BYTES);
  message.set(fromHex(manifestHash));
  message.set(id, 32);
  return new DataView(blake2b(message, { size: 8, person: PERSON }).buffer).getBigUint64(0, true);
}
