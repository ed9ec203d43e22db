// What the tests of the browser's client share: the vectors, a tape of words, and a storage in memory.
import { readFileSync } from "node:fs";

const CLIENT = process.env.KVEIL_CLIENT ?? new URL("../../src/kveil/service/static/client/", import.meta.url).href;

export const KEY = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8";
export const NOON = Date.parse("2030-01-05T12:00:00Z");

export const module = (name) => import(new URL(`${name}.js`, CLIENT));

export const vectors = (name) => JSON.parse(readFileSync(new URL(`../vectors/${name}.json`, import.meta.url), "utf8"));

export const chains = () => new Map(vectors("chains"));

// Words in the order of a list; one too many is an error.
export function tape(words) {
  const left = words.map((word) => BigInt(`0x${word}`));
  const next = () => {
    if (!left.length) throw new Error("a word too many was drawn");
    return left.shift();
  };
  next.left = () => left.length;
  return next;
}

// One record in memory, changed in one step, as a transaction would.
export class MemoryStorage {
  async change(step) {
    this.kept = step(this.kept) ?? this.kept;
  }
}

// "taken" or "refused"; anything else that is thrown is a crash.
export async function verdict(act) {
  const { Refused } = await module("refused");
  try {
    await act();
    return "taken";
  } catch (error) {
    if (error instanceof Refused) return "refused";
    throw error;
  }
}
