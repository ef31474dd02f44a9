// The form and the translation. Each panel of a sentence has a script of its own, and none of these knows another.
import { drawAttention } from "./attention.js";
import { ask, askModel, problemOf } from "./ask.js";
import { cell, find, row } from "./parts.js";
import { drawSteps } from "./steps.js";

const SHORT = 200; // characters of a sentence whose attention is shown without being asked for
let waiting = null;
let drawn = {}; // the request whose sentences are shown, and their number
let hasSteps = false; // whether the model shows the steps of its search

find("problem").classList.remove("early"); // the page has started
showProblem("");
if (window === window.top) find("text").focus(); // within another page it would scroll that one

askModel()
  .then(showModel)
  .catch((error) => showProblem(problemOf(error)));

// Not when the form is submitted: a page in a frame of another may not do that.
find("send").addEventListener("click", () => translate(find("text").value));

find("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    translate(find("text").value);
  }
});

async function translate(text) {
  const isBlank = text.trim() === "";
  find("text").setAttribute("aria-invalid", isBlank);
  if (isBlank) {
    find("text").focus();
    return showProblem("Write what is to be translated.");
  }
  if (waiting) waiting.abort();
  const mine = (waiting = new AbortController());
  find("send").setAttribute("aria-disabled", "true");
  showProblem("");
  try {
    const more = chosen();
    const { glossary, others } = terms();
    if (others.length) showProblem(`Left out of the glossary, whose lines are term = translation: ${others.join("; ")}`);
    const showAnswer = (answer) => show(answer, more, Object.keys(glossary).length > 0, mine.signal);
    const answer = await ask("translate", text, { ...more, glossary }, mine.signal, showAnswer);
    showModel(answer.model);
    showAnswer(answer);
  } catch (error) {
    if (mine === waiting) {
      find("result").hidden = true;
      showProblem(problemOf(error));
    }
  } finally {
    if (mine === waiting) find("send").removeAttribute("aria-disabled");
  }
}

function showProblem(message) {
  find("problem").textContent = message;
}

function showModel({ name, version, source, target, languages, has_steps: has, has_terms: hasTerms }) {
  hasSteps = has;
  find("terms").hidden = !hasTerms;
  const isOfSeveral = languages.length > 0;
  const direction = source && target && !isOfSeveral ? `, ${source} to ${target}` : "";
  find("model").textContent = `${name}${direction}${version ? `, version ${version}` : ""}`;
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

// What is asked for besides the text, by the names of the server. The panels of a sentence ask for it too.
function chosen() {
  if (find("languages").hidden) return {};
  return { source_language: find("source_language").value, target_language: find("target_language").value };
}

// The glossary, by source term, and the lines that are none of it.
function terms() {
  const lines = find("terms").hidden ? [] : find("glossary").value.split("\n").filter((line) => line.trim());
  const pairs = lines.map((line) => {
    // A sign between spaces stands between the two; others may be part of a term.
    const at = line.includes(" = ") ? line.indexOf(" = ") + 1 : line.indexOf("=");
    return at < 0 ? [] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  });
  const isPair = ([term, translation]) => term && translation;
  return { glossary: Object.fromEntries(pairs.filter(isPair)), others: lines.filter((_, i) => !isPair(pairs[i])) };
}

// With a glossary, a sentence has no panels: they would show how it is translated without one. A part of an answer has
// the number of all sentences; those that it adds are drawn, and the ones before stay as they are.
function show({ translation, sentences, count = sentences.length }, more, hasTerms, signal) {
  find("translation").textContent = translation;
  if (sentences.length === count) find("said").textContent = translation; // what a screen reader says at once
  const isMore = drawn.signal === signal;
  const added = isMore ? sentences.slice(drawn.count) : sentences;
  const boxes = added.map((sentence) => drawSentence(sentence, count === 1, more, hasTerms, signal));
  if (isMore) find("sentences").append(...boxes);
  else find("sentences").replaceChildren(...boxes);
  drawn = { signal, count: sentences.length };
  find("result").hidden = false;
}

function drawSentence({ text, n_best: best, is_truncated: isCut }, isAlone, more, hasTerms, signal) {
  const parts = find("sentence").content.cloneNode(true);
  parts.querySelector(".cut").hidden = !isCut;
  parts
    .querySelector(".n-best")
    .tBodies[0].replaceChildren(
      ...best.map(({ translation, score }) => row([cell("td", score.toFixed(3)), cell("td", translation)]))
    );
  const attention = parts.querySelector(".attention");
  // It is asked for and drawn when it is opened: of a long text it is large.
  attention.addEventListener("toggle", () => drawAttention(attention, text, more, signal), { once: true });
  attention.hidden = hasTerms;
  attention.open = !hasTerms && isAlone && text.length <= SHORT;
  const steps = parts.querySelector(".steps");
  steps.hidden = hasTerms || !hasSteps;
  steps.addEventListener("toggle", () => drawSteps(steps, text, more, signal), { once: true });
  const box = document.createElement(isAlone ? "div" : "details");
  if (!isAlone) box.append(cell("summary", text));
  box.append(parts);
  return box;
}
