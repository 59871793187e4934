// Shows openapi.json: routes by tag, each with its parameters, body and answers. Text is set as text, never as markup.

const METHODS = ["get", "post", "put", "patch", "delete"];
const el = (tag, props = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), props);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
};

/** A description: what stands between backticks is code. */
const words = (text) => text.split("`").map((part, at) => (at % 2 === 1 ? el("code", { textContent: part }) : part));

const find = document.getElementById("find");
const routes = document.getElementById("routes");
const about = document.getElementById("about");

try {
  const answer = await fetch("openapi.json");
  if (!answer.ok) throw new Error(`openapi.json was answered with ${answer.status}`);
  show(await answer.json());
} catch (error) {
  about.textContent = `The description could not be read: ${error.message}. Reload the page to try again.`;
}

function show(doc) {
  about.replaceChildren(...words(doc.info.description), ` Version ${doc.info.version}. `, el("a", { href: "openapi.json", textContent: "openapi.json" }));
  for (const tag of doc.tags) {
    const section = el("section", {}, el("h2", { textContent: tag.name }), el("p", { className: "soft", textContent: tag.description }));
    for (const [path, item] of Object.entries(doc.paths)) {
      for (const method of METHODS) {
        const operation = item[method];
        if (operation?.tags?.includes(tag.name)) section.append(route(doc, method, path, operation));
      }
    }
    routes.append(section);
  }
  find.addEventListener("input", () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const details of routes.querySelectorAll("details")) {
      const text = details.dataset.text;
      details.hidden = !words.every((word) => text.includes(word));
    }
    for (const section of routes.children) section.hidden = !section.querySelector("details:not([hidden])");
  });
}

function route(doc, method, path, operation) {
  const line = operation.summary ?? "";
  const details = el("details", { id: operation.operationId },
    el("summary", {}, el("b", { textContent: method.toUpperCase() }), " ", el("code", { textContent: path }), el("span", { className: "soft" }, " – ", ...words(line))));
  details.dataset.text = `${method} ${path} ${line} ${operation.operationId}`.toLowerCase();
  // Filled when it is opened: most are not.
  details.addEventListener("toggle", () => details.open && details.append(...inside(doc, operation)), { once: true });
  return details;
}

function inside(doc, operation) {
  const parts = [];
  if (operation.description) parts.push(el("p", {}, ...words(operation.description)));
  if (operation.parameters?.length) {
    const rows = operation.parameters.map((parameter) => el("tr", {},
      el("td", {}, el("code", { textContent: parameter.name })), el("td", { textContent: parameter.in + (parameter.required ? ", required" : "") }),
      el("td", {}, ...words(parameter.description ?? ""))));
    parts.push(el("h3", { textContent: "Parameters" }), el("table", {}, ...rows));
  }
  for (const [type, content] of Object.entries(operation.requestBody?.content ?? {})) {
    parts.push(el("h3", { textContent: `Body, ${type}` }), schema(doc, content.schema));
  }
  for (const [status, named] of Object.entries(operation.responses)) {
    const answer = named.$ref ? doc.components.responses[named.$ref.split("/").pop()] : named;
    const contents = Object.entries(answer.content ?? {});
    parts.push(el("h3", {}, `${status} – `, ...words(answer.description)));
    if (Number(status) < 300) for (const [type, content] of contents) parts.push(el("p", { className: "soft", textContent: type }), schema(doc, content.schema));
  }
  return parts;
}

function schema(doc, value) {
  return el("pre", { tabIndex: 0, textContent: JSON.stringify(spread(doc, value, []), null, 2) });
}

/** A schema with what it refers to in its place; a name within itself stays a name. */
function spread(doc, value, within) {
  if (Array.isArray(value)) return value.map((item) => spread(doc, item, within));
  if (value === null || typeof value !== "object") return value;
  const name = value.$ref?.split("/").pop();
  if (name && within.includes(name)) return { $ref: value.$ref };
  if (name) return spread(doc, doc.components.schemas[name], [...within, name]);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, spread(doc, item, within)]));
}
