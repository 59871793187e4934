// JSON with its numbers as they are written. A number of JavaScript holds whole numbers up to 2^53, and ids are larger: a rounded one is
// another.

/** What texts with numbers that are too large look like; others may. */
const LARGE = /\d{16}|\de\+?\d\d/i;

/** Whether this browser may round a number of a JSON text that is parsed. @param {string} text */
export const isRounded = (text) => !("rawJSON" in JSON) && LARGE.test(text);

/**
 * What a JSON text says. Numbers that would be rounded are written again as they came, where the browser can: to reckon with they are nothing.
 * @param {string} text
 * @returns {any}
 */
export const exact = (text) => JSON.parse(text, LARGE.test(text) ? keep : undefined);

/**
 * @param {string} _
 * @param {any} value
 * @param {any} [context]
 */
function keep(_, value, context) {
  const isKept = typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER && "rawJSON" in JSON;
  return isKept ? /** @type {any} */ (JSON).rawJSON(context.source) : value;
}

/** The same with numbers to reckon with. @param {any} value @returns {any} */
export const plain = (value) => JSON.parse(JSON.stringify(value));

/** A JSON text as it is read best. @param {string} text */
export const pretty = (text) => (isRounded(text) ? text : JSON.stringify(exact(text), null, 2));

/** A value that may be such a number, as it is written. @param {any} value */
export const written = (value) => value?.rawJSON ?? value;
