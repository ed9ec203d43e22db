// How a device moves from one key of a collector to the next: a statement that the old and the new key both sign.
// @ts-check
import * as canonical from "./canonical.js";
import { fields, whole } from "./fields.js";
import { isSigned } from "./manifest.js";
import { need } from "./refused.js";

/**
 * The new key and the serial, if `pinned` is the old one and both have signed.
 * @param {string} body
 * @param {string} byOld signature in hexadecimal
 * @param {string} byNew
 * @param {string} pinned
 */
export async function rotated(body, byOld, byNew, pinned) {
  need(await isSigned(pinned, byOld, body), "a change of keys is not signed by the key that this device trusts");
  const stated = canonical.read(body);
  fields(stated, ["date", "new", "old", "schema", "serial"]);
  need(stated.schema === "kveil.rotation/1" && stated.old === pinned, "a change of keys is of an unknown kind");
  const serial = whole(stated.serial, 1, Number.MAX_SAFE_INTEGER);
  need(await isSigned(stated.new, byNew, body), "a change of keys is not signed by the new key");
  return { key: /** @type {string} */ (stated.new), old: pinned, serial };
}
