"use strict";

const find = (id) => document.getElementById(id);
let waiting = null;

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
    const response = await fetch("page/translate", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ text }),
      signal: mine.signal,
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    show(answer);
  } catch (error) {
    if (mine === waiting) {
      find("result").hidden = true;
      find("problem").textContent =
        error instanceof TypeError ? "The server does not answer. Is it still running?" : error.message;
    }
  } finally {
    if (mine === waiting) find("send").removeAttribute("aria-disabled");
  }
}

function show(answer) {
  find("translation").textContent = answer.translation;
  find("said").textContent = answer.translation; // what a screen reader says at once
  find("truncated").hidden = !answer.is_truncated;
  find("n-best").tBodies[0].replaceChildren(
    ...answer.n_best.map(({ translation, score }) => row([cell("td", score.toFixed(3)), cell("td", translation)]))
  );
  drawAttention(answer);
  find("result").hidden = false;
}

function drawAttention({ source_tokens: source, target_tokens: target, attention }) {
  const head = document.createElement("thead");
  head.append(row([document.createElement("td"), ...source.map((token) => header("col", token))]));
  const body = document.createElement("tbody");
  target.forEach((token, t) => {
    const squares = source.map((_, s) => {
      const square = document.createElement("td");
      const weight = attention[t][s];
      square.style.backgroundColor = `rgb(var(--accent) / ${weight.toFixed(3)})`;
      const number = cell("span", weight.toFixed(2));
      number.className = "unseen";
      square.append(number);
      square.title = `${token} \u2190 ${source[s]}: ${weight.toFixed(2)}`;
      return square;
    });
    body.append(row([header("row", token), ...squares]));
  });
  find("attention").replaceChildren(head, body);
  find("square").textContent = "";
}

// What a mouse reads from a title, a finger reads here.
find("attention").addEventListener("click", (event) => {
  if (event.target.title) find("square").textContent = event.target.title;
});

function row(cells) {
  const element = document.createElement("tr");
  element.append(...cells);
  return element;
}

function cell(kind, text) {
  const element = document.createElement(kind);
  element.textContent = text;
  element.dir = "auto";
  return element;
}

function header(scope, token) {
  const element = cell("th", token.replaceAll("\u2581", "\u00b7"));
  element.scope = scope;
  return element;
}
