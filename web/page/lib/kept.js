// What this browser keeps. It does without where it may keep nothing.

/**
 * @template T
 * @param {string} name
 * @param {T} otherwise
 * @returns {T}
 */
export function stored(name, otherwise) {
  try {
    const text = localStorage.getItem(name);
    return text === null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}

/**
 * @param {string} name
 * @param {any} value
 */
export function store(name, value) {
  try {
    localStorage.setItem(name, JSON.stringify(value));
  } catch {
    // It holds until the page is left.
  }
}
