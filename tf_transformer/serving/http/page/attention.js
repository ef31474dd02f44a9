// What the tokens of a sentence and of its translation attended to.
import { cell, fill, row, shown } from "./parts.js";

// Asks for the attention of a sentence, and draws it.
export function drawAttention(panel, text, more, signal) {
  return fill(panel, "attention", text, more, signal, (answer) => draw(panel, answer));
}

function draw(panel, { source_tokens: source, target_tokens: target, read_tokens: read, kinds }) {
  const square = panel.querySelector(".square");
  const table = panel.querySelector("table");
  const sides = { cross: [target, source], encoder: [source, source], decoder: [target, read] };
  const [kind, layer, head] = ["kind", "layer", "head"].map((name) => panel.querySelector(`.${name}`));
  const layers = kinds.cross.length;
  const heads = kinds.cross[0].length;
  panel.querySelector(".choices").hidden = !kinds.encoder;
  layer.replaceChildren(...kinds.cross.map((_, i) => new Option(i + 1, i, false, i === layers - 1)));
  head.replaceChildren(new Option("mean of all", ""), ...kinds.cross[0].map((_, i) => new Option(i + 1, i)));
  const redraw = () => {
    const [rows, columns] = sides[kind.value];
    const all = kinds[kind.value][layer.value];
    const weights = head.value
      ? all[head.value]
      : rows.map((_, t) => columns.map((_, s) => all.reduce((sum, one) => sum + one[t][s], 0) / heads));
    square.textContent = "";
    table.replaceChildren(...drawWeights(rows, columns, weights));
  };
  for (const choice of [kind, layer, head]) choice.addEventListener("change", redraw);
  redraw();
  // What a mouse reads from a title, a finger reads here.
  table.addEventListener("click", (event) => {
    const title = event.target.closest("td")?.title;
    if (title) square.textContent = title;
  });
}

// The head and the body of a table of weights.
function drawWeights(rows, columns, weights) {
  const head = document.createElement("thead");
  head.append(row([document.createElement("td"), ...columns.map((token) => header("col", token))]));
  const body = document.createElement("tbody");
  rows.forEach((token, t) => {
    const squares = columns.map((other, s) => {
      const square = document.createElement("td");
      const weight = weights[t][s];
      square.style.backgroundColor = `rgb(var(--accent) / ${weight.toFixed(3)})`;
      const number = cell("span", weight.toFixed(2));
      number.className = "unseen";
      square.append(number);
      square.title = `${token} \u2190 ${other}: ${weight.toFixed(2)}`;
      return square;
    });
    body.append(row([header("row", token), ...squares]));
  });
  return [head, body];
}

function header(scope, token) {
  const element = cell("th", shown(token));
  element.scope = scope;
  return element;
}
