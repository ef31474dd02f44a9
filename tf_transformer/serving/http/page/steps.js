// What the model and the search had to choose from at each step, and other choices.
import { cell, fill, row, shown } from "./parts.js";

const SVG = "http://www.w3.org/2000/svg";
const COLUMN = 140; // pixels between two steps
const BOX = 80; // pixels of a candidate, so that the lines between two steps have room
const LINE = 34; // pixels between two candidates

// Asks for the steps of a sentence and draws them; a choice asks again, for a translation that begins with it.
export function drawSteps(panel, text, more, signal, prefix = [], chosen = null) {
  const again = (ids) => drawSteps(panel, text, more, signal, ids, Math.max(ids.length - 1, 0)); // the last token of its choice
  return fill(panel, "steps", text, { ...more, prefix }, signal, (answer) => draw(panel, answer, prefix, chosen, again));
}

function draw(panel, answer, prefix, chosen, again) {
  const part = (name) => panel.querySelector(`.${name}`);
  part("begun").hidden = prefix.length === 0;
  part("goes-on").textContent = prefix.length ? answer.translation : "";
  part("free").onclick = () => again([]);
  const buttons = answer.tokens.map((token, number) => {
    const button = cell("button", shown(token));
    button.type = "button";
    button.className = number < prefix.length ? "token chosen" : "token";
    button.addEventListener("click", () => choose(number));
    return button;
  });
  const choose = (number) => {
    buttons.forEach((button, other) => button.setAttribute("aria-pressed", other === number));
    part("next").tBodies[0].replaceChildren(
      ...answer.next[number].map((other) => choice(other, answer.ids[number], () => again([...answer.ids.slice(0, number), other.id])))
    );
  };
  part("tokens").replaceChildren(...buttons);
  if (buttons.length) choose(chosen ?? 0);
  if (chosen !== null) buttons[chosen]?.focus(); // the button that was pressed is gone
  part("tree").replaceChildren(drawTree(answer.tree));
  part("told").replaceChildren(...answer.tree.map(tell));
}

function choice({ id, token, probability }, written, write) {
  const meter = document.createElement("meter");
  meter.value = probability.toFixed(3); // which is read out
  meter.title = probability.toFixed(4);
  meter.setAttribute("aria-label", `Probability of ${shown(token)}`);
  const bar = document.createElement("td");
  bar.append(meter, ` ${probability.toFixed(3)}`);
  const last = document.createElement("td");
  if (id === written) {
    last.textContent = "written";
  } else {
    const button = cell("button", "write this");
    button.type = "button";
    button.setAttribute("aria-label", `write ${shown(token)} instead`);
    button.addEventListener("click", write);
    last.append(button);
  }
  return row([cell("td", shown(token)), bar, last]);
}

// The tree as a picture: a column for each step, its candidates from the most probable down.
function drawTree(steps) {
  const height = LINE * Math.max(...steps.map((step) => step.length), 1) + 8;
  const width = COLUMN * (steps.length + 1);
  const svg = element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const at = (step, rank) => [COLUMN * (step + 0.5), LINE * (rank + 0.5) + 4];
  steps.forEach((step, number) =>
    step.forEach((node, rank) => {
      const [[x1, y1], [x2, y2]] = [at(number, number ? node.parent : 0), at(number + 1, rank)];
      const [from, to, middle] = [x1 + BOX / 2, x2 - BOX / 2, (x1 + x2) / 2];
      svg.append(element("path", { d: `M${from} ${y1}C${middle} ${y1} ${middle} ${y2} ${to} ${y2}`, class: look(node) }));
    })
  );
  svg.append(...drawNode(...at(0, 0), "start", "", "kept", "where every hypothesis begins"));
  steps.forEach((step, number) =>
    step.forEach((node, rank) => {
      const value = node.score ?? node.log_probability;
      svg.append(...drawNode(...at(number + 1, rank), shown(node.token), value.toFixed(2), look(node), said(node)));
    })
  );
  return svg;
}

function drawNode(x, y, token, value, kind, title) {
  const round = kind.startsWith("finished") ? 15 : 3;
  const box = element("rect", { x: x - BOX / 2, y: y - 15, width: BOX, height: 30, rx: round, class: kind });
  box.append(element("title", {}, title));
  const lines = [token.length > 11 ? `${token.slice(0, 10)}\u2026` : token, value].filter(Boolean);
  const texts = lines.map((line, i) => element("text", { x, y: y + (lines.length > 1 ? 11 * i - 2 : 4) }, line));
  return [box, ...texts];
}

// The same in words, for who does not see the picture.
function tell(step, number) {
  return cell("li", `Step ${number + 1}: ${step.map(said).join("; ")}`);
}

function said({ token, status, log_probability: total, score, is_best: isBest }) {
  const value = score === null ? `log P ${total.toFixed(2)}` : `score ${score.toFixed(2)}`;
  return `${shown(token)}, ${status}, ${value}${isBest ? ", of the translation" : ""}`;
}

function look({ status, is_best: isBest }) {
  return isBest ? `${status} best` : status;
}

function element(kind, attributes, text = "") {
  const made = document.createElementNS(SVG, kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}
