// What characters of others may do to the writing around them: nothing.

/**
 * Shows characters that would turn the writing around or steer a terminal, instead of doing what they say.
 * @param {string} text
 */
export function visible(text) {
  return text
    .replace(/\u001b\[[0-9;:?]*[ -/]*[@-~]/g, "")
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, "\u2423")
    .replace(/[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]/g, (letter) => `[U+${letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}
