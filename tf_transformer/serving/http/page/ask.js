// What the page asks the server. An export for browsers has a module of the same name that asks a translator in the page.
export const WAITING = "The server computes it \u2026";

// What is known of the model.
export async function askModel() {
  return (await fetch("page/model")).json();
}

// Returns the answer to a request.
export async function ask(path, text, more, signal) {
  const response = await fetch(`page/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ text, ...more }),
    signal,
  });
  const answer = await response.json().catch(() => ({ error: `The server's answer cannot be read (status ${response.status}).` }));
  if (!response.ok || answer.error) throw new Error(answer.error);
  return answer;
}

export function problemOf(error) {
  return error instanceof TypeError ? "The server does not answer. Is it still running?" : error.message;
}
