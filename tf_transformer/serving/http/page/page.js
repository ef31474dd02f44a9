import { ask, cell, find, row, showProblem } from "./parts.js";
import { drawSteps } from "./steps.js";

const SHORT = 200; // characters of a sentence whose attention is shown without being asked for
let waiting = null;
let hasSteps = false; // whether the model shows the steps of its search

fetch("page/model")
  .then((response) => response.json())
  .then(showModel)
  .catch(showProblem);

find("form").addEventListener("submit", (event) => {
  event.preventDefault();
  translate(find("text").value);
});

find("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    find("form").requestSubmit();
  }
});

async function translate(text) {
  if (waiting) waiting.abort();
  const mine = (waiting = new AbortController());
  find("send").setAttribute("aria-disabled", "true");
  find("problem").textContent = "";
  try {
    const languages = chosenLanguages();
    const answer = await ask("translate", text, languages, mine.signal);
    showModel(answer.model);
    show(answer, languages, mine.signal);
  } catch (error) {
    if (mine === waiting) {
      find("result").hidden = true;
      showProblem(error);
    }
  } finally {
    if (mine === waiting) find("send").removeAttribute("aria-disabled");
  }
}

function showModel({ name, version, source, target, languages, has_steps: has }) {
  hasSteps = has;
  const isOfSeveral = languages.length > 0;
  const direction = source && target && !isOfSeveral ? `, ${source} to ${target}` : "";
  find("model").textContent = `${name}${direction}, version ${version}`;
  find("languages").hidden = !isOfSeveral;
  offer(find("source_language"), languages, source);
  offer(find("target_language"), languages, target);
}

// Fills a list of languages; what was chosen in it stays, if the model still has it.
function offer(list, languages, preset) {
  const offered = Array.from(list.options, (option) => option.value);
  if (offered.length === languages.length && languages.every((language, i) => language === offered[i])) return;
  const chosen = languages.includes(list.value) ? list.value : preset;
  list.replaceChildren(...languages.map((language) => new Option(language, language, false, language === chosen)));
}

function chosenLanguages() {
  if (find("languages").hidden) return {};
  return { source_language: find("source_language").value, target_language: find("target_language").value };
}

function show({ translation, sentences }, languages, signal) {
  find("translation").textContent = translation;
  find("said").textContent = translation; // what a screen reader says at once
  const isAlone = sentences.length === 1;
  find("sentences").replaceChildren(...sentences.map((sentence) => drawSentence(sentence, isAlone, languages, signal)));
  find("result").hidden = false;
}

function drawSentence({ text, n_best: best }, isAlone, languages, signal) {
  const parts = find("sentence").content.cloneNode(true);
  parts
    .querySelector(".n-best")
    .tBodies[0].replaceChildren(
      ...best.map(({ translation, score }) => row([cell("td", score.toFixed(3)), cell("td", translation)]))
    );
  const attention = parts.querySelector(".attention");
  // It is asked for and drawn when it is opened: of a long text it is large.
  attention.addEventListener("toggle", () => drawAttention(attention, text, languages, signal), { once: true });
  attention.open = isAlone && text.length <= SHORT;
  const steps = parts.querySelector(".steps");
  steps.hidden = !hasSteps;
  steps.addEventListener("toggle", () => drawSteps(steps, text, languages, signal), { once: true });
  const box = document.createElement(isAlone ? "div" : "details");
  if (!isAlone) box.append(cell("summary", text));
  box.append(parts);
  return box;
}

async function drawAttention(details, text, languages, signal) {
  const square = details.querySelector(".square");
  const table = details.querySelector("table");
  let answer;
  try {
    answer = await ask("attention", text, languages, signal);
  } catch (error) {
    if (!signal.aborted) showProblem(error);
    return;
  }
  const { source_tokens: source, target_tokens: target, read_tokens: read, kinds } = answer;
  const sides = { cross: [target, source], encoder: [source, source], decoder: [target, read] };
  const [kind, layer, head] = ["kind", "layer", "head"].map((name) => details.querySelector(`.${name}`));
  const layers = kinds.cross.length;
  const heads = kinds.cross[0].length;
  details.querySelector(".choices").hidden = !kinds.encoder;
  layer.replaceChildren(...kinds.cross.map((_, i) => new Option(i + 1, i, false, i === layers - 1)));
  head.replaceChildren(new Option("mean of all", ""), ...kinds.cross[0].map((_, i) => new Option(i + 1, i)));
  const draw = () => {
    const [rows, columns] = sides[kind.value];
    const all = kinds[kind.value][layer.value];
    const weights = head.value
      ? all[head.value]
      : rows.map((_, t) => columns.map((_, s) => all.reduce((sum, one) => sum + one[t][s], 0) / heads));
    square.textContent = "";
    table.replaceChildren(...drawWeights(rows, columns, weights));
  };
  for (const choice of [kind, layer, head]) choice.addEventListener("change", draw);
  draw();
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
  const element = cell("th", token.replaceAll("\u2581", "\u00b7"));
  element.scope = scope;
  return element;
}
