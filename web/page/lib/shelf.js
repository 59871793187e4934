// Files beside what is written and not sent, by where it is written. An upload goes on while somebody looks elsewhere, and its file is there
// when they come back.

import { signal } from "@preact/signals";
import { store, stored } from "./kept.js";

/** A file that the server has. @typedef {{id: string, name: string, type: string, size: number}} Attached */

/** Those to which something is being uploaded. @type {Map<string, Shelf>} */
const busy = new Map();

/** @param {string} place of what is written with them */
export const shelfOf = (place) => busy.get(place) ?? new Shelf(place);

class Shelf {
  /** @param {string} place */
  constructor(place) {
    this.place = place;
    /** @type {import("@preact/signals").Signal<Attached[]>} */
    this.files = signal(stored(`${place} files`, []));
    this.uploads = signal(0);
  }

  /** @param {(files: Attached[]) => Attached[]} change */
  change(change) {
    this.files.value = change(this.files.value);
    store(`${this.place} files`, this.files.value.length > 0 ? this.files.value : null);
  }

  /** Takes them along to where it is written now. @param {string} place */
  move(place) {
    const files = this.files.value;
    this.change(() => []);
    busy.delete(this.place);
    this.place = place;
    this.change(() => files);
    this.#count(0);
  }

  /** @param {() => Promise<Attached>} upload */
  async add(upload) {
    this.#count(1);
    try {
      const stored = await upload();
      this.change((files) => [...files.filter(({ id }) => id !== stored.id), stored]);
    } finally {
      this.#count(-1);
    }
  }

  /** @param {number} more */
  #count(more) {
    this.uploads.value += more;
    if (this.uploads.value > 0) busy.set(this.place, this);
    else busy.delete(this.place);
  }
}
