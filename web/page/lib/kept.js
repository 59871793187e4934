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
 * @param {any} value null where nothing is to be kept
 */
export function store(name, value) {
  try {
    if (value === null) localStorage.removeItem(name);
    else localStorage.setItem(name, JSON.stringify(value));
  } catch {
    // It holds until the page is left.
  }
}

/**
 * Takes what is written in a conversation, and the files beside it, along to another one.
 * @param {string} from
 * @param {string} to
 */
export function moveDraft(from, to) {
  for (const end of ["", " files"]) {
    store(`draft ${to}${end}`, stored(`draft ${from}${end}`, null));
    store(`draft ${from}${end}`, null);
  }
}

/** Forgets what somebody wrote and did not send: the next here may be another person. */
function forgetTexts() {
  try {
    for (const name of Object.keys(localStorage)) if (/^(draft|edited|arguments|reason|form) /.test(name)) localStorage.removeItem(name);
    for (const name of Object.keys(sessionStorage)) if (name.startsWith("unsent ")) sessionStorage.removeItem(name);
  } catch {
    // Nothing was kept.
  }
}

/** Goes where one signs in, for whoever has signed out. */
export function leave() {
  forgetTexts();
  location.assign("login");
}
