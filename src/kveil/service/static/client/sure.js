// How sure anyone can become by a report, for people who do not read epsilons.
// @ts-check
import { weights } from "./randomiser.js";

/**
 * Whoever thought it 50:50 between two places is at most so sure afterwards: a/(a+b) in per cent, rounded up to a tenth.
 * @param {string} epsilon
 */
export function mostSure(epsilon) {
  const [a, b] = weights(epsilon);
  const tenths = (1000n * a + a + b - 1n) / (a + b);
  return `${tenths / 10n}.${tenths % 10n}`;
}
