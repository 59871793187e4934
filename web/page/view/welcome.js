// The first thing that people see: what can be tried, and how to connect a model.

import { useEffect, useState } from "preact/hooks";
import { listed } from "../lib/api.js";
import { draft, models, open, practice, say, tellError } from "../lib/app.js";
import { html } from "../lib/html.js";
import { Connect } from "./connect.js";

/** @type {{title: string, words: string, about: string, needs?: RegExp}[]} */
const examples = [
  { title: "Two calls at once", words: "Call filesystem__list and filesystem__search for \"*.md\"", about: "Both run in parallel." },
  { title: "An approval", words: "Run the command \"date\"", about: "You are asked before it runs." },
  { title: "A form", words: "Call practice__show_form", about: "A tool asks you for values. Nothing is done with them.", needs: /^practice__show_form$|elicit/ },
  { title: "A failing tool", words: "Read the file \"no-such-file.txt\"", about: "The error is shown, and the model hears of it." },
];

export function Welcome() {
  const [tools, know] = useState(/** @type {any[] | null} */ (null));
  // With the first model the form to practise with goes.
  useEffect(() => {
    listed("/tools").then(know, tellError);
  }, [models.value]);
  const isPractice = practice.value;
  const chosen = (open.value?.info.value ?? draft.value).tools;
  return html`<div class="transcript"><div class="inner welcome">
    <h2>What can I do for you?</h2>
    ${isPractice && html`<div class="notice practice"><p><strong>This is practice.</strong> No model is connected, so the <em>practice model</em> answers:
      it is no language model, it only matches your words with the tools that are offered. Everything around it is real, the tools too.</p></div>
      <ul class="examples">${examples.map((example) => html`<${Example} key=${example.title} example=${example} tools=${tools} />`)}</ul>
      <${Connect} />`}
    ${!isPractice && tools !== null && tools.length > 0 && !chosen && html`<p class="faint">${tools.length === 1 ? "1 tool is" : `${tools.length} tools are`} offered.</p>`}
  </div></div>`;
}

/** @param {{example: any, tools: any[] | null}} props `tools`: null until they are known */
function Example({ example, tools }) {
  const found = example.needs ? tools?.find((tool) => example.needs.test(tool.id)) : null;
  const isMissing = example.needs && tools !== null && !found;
  const words = found ? `Call ${found.id}` : example.words;
  return html`<li><button class="example" disabled=${isMissing} onClick=${() => say(words).catch(tellError)}>
    <strong>${example.title}</strong><span>${isMissing ? "Needs an MCP server whose tools ask; add one under “MCP servers”." : words}</span>
    <span class="faint">${example.about}</span></button></li>`;
}
