// What the parts of the page have in common: panels that are filled, tokens, and parts of tables.
import { ask, problemOf, WAITING } from "./ask.js";

export const find = (id) => document.getElementById(id);

// Asks for what a panel shows, and draws it. What goes wrong is said in the panel, where it can be tried again.
export async function fill(panel, path, text, more, signal, draw) {
  const [said, again, drawn] = ["said", "again", "drawn"].map((name) => panel.querySelector(`.${name}`));
  const isAgain = document.activeElement === again;
  said.className = "said";
  said.textContent = WAITING;
  again.hidden = true;
  if (isAgain) panel.querySelector("summary").focus(); // the button that was pressed is gone
  try {
    const answer = await ask(path, text, more, signal);
    said.textContent = "";
    drawn.hidden = false;
    draw(answer);
  } catch (error) {
    if (signal.aborted) return;
    said.className = "said problem";
    said.textContent = problemOf(error);
    again.hidden = false;
    again.onclick = () => fill(panel, path, text, more, signal, draw);
    said.scrollIntoView({ block: "nearest" });
  }
}

// A token as people read it: a space is a dot, and signs alone stand in quotes, because a full stop looks like nothing.
export function shown(token) {
  const text = token.replaceAll("\u2581", "\u00b7");
  return /[\p{L}\p{N}]/u.test(text) ? text : `\u201c${text}\u201d`;
}

export function row(cells) {
  const element = document.createElement("tr");
  element.append(...cells);
  return element;
}

export function cell(kind, text) {
  const element = document.createElement(kind);
  element.textContent = text;
  element.dir = "auto";
  return element;
}
