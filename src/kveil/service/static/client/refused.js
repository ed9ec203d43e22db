// Why a device does not answer. Nothing left it, nothing was charged, and the point was not read.
// @ts-check

/** @typedef {"manifest" | "budget" | "not now" | "not asked" | "answered"} Why */

export class Refused extends Error {
  /**
   * @param {Why} why
   * @param {string} reason
   */
  constructor(why, reason) {
    super(reason);
    this.name = "Refused";
    this.why = why;
  }
}

/**
 * Refuse a manifest unless something holds.
 * @param {unknown} isSo
 * @param {string} otherwise
 * @returns {asserts isSo}
 */
export function need(isSo, otherwise) {
  if (!isSo) {
    throw new Refused("manifest", `this manifest cannot be used: ${otherwise}. No point was read and nothing was charged.`);
  }
}
