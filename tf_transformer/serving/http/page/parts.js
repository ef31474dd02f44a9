// What the page and its steps have in common: requests, problems, and parts of tables.
export const find = (id) => document.getElementById(id);

export async function ask(path, text, more, signal) {
  const response = await fetch(`page/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ text, ...more }),
    signal,
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

export function showProblem(error) {
  find("problem").textContent =
    error instanceof TypeError ? "The server does not answer. Is it still running?" : error.message;
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
