// The ledger's storage in a browser: one record in IndexedDB. Tabs that write at the same time wait for each other.
// @ts-check
import { Refused } from "./refused.js";

/** @typedef {import("./ledger.js").Sealed} Sealed */

const STORE = "ledger";
const RECORD = "device";

export class IndexedStorage {
  /** @param {IDBDatabase} db */
  constructor(db) {
    this.db = db;
  }

  /** @param {string} [name] */
  static async open(name = "kveil") {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    return new IndexedStorage(await finished(request));
  }

  /**
   * @param {(kept: Sealed | undefined) => Sealed | undefined} step
   * @returns {Promise<void>}
   */
  change(step) {
    return new Promise((resolve, reject) => {
      const transaction = this.db.transaction(STORE, "readwrite", { durability: "strict" });
      const store = transaction.objectStore(STORE);
      /** @type {unknown} */
      let thrown = new Refused("budget", "this browser's storage could not be written. Nothing was sent.");
      const found = store.get(RECORD);
      found.onsuccess = () => {
        try {
          const next = step(found.result);
          if (next) store.put(next, RECORD);
        } catch (error) {
          thrown = error;
          transaction.abort();
        }
      };
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(thrown);
    });
  }
}

/**
 * @template T
 * @param {IDBRequest<T>} request
 * @returns {Promise<T>}
 */
function finished(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(new Refused("budget", "this browser keeps no storage for this page, so it cannot answer. Nothing was drawn."));
  });
}
