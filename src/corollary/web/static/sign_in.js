// Exchanges the key of the address, or one that is typed, for a session.
"use strict";

const state = document.getElementById("state");

async function open(key) {
  state.textContent = "opening …";
  let answer;
  try {
    answer = await fetch("/v1/session", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Corollary": "1" },
      body: JSON.stringify({ key }),
    });
  } catch {
    state.textContent = "The server does not answer. Is `corollary serve` still running?";
    return;
  }
  if (answer.ok) {
    location.replace(location.pathname + location.search);
    return;
  }
  const found = await answer.json().catch(() => ({}));
  const first = (found.diagnostics || [])[0];
  state.textContent = first ? `${first.message} ${first.note || ""}` : "This key is not good any more.";
  document.getElementById("key").focus();
}

const key = new URLSearchParams(location.hash.slice(1)).get("key");
if (key) {
  history.replaceState(null, "", location.pathname + location.search); // no key stays in the history
  open(key);
}
document.getElementById("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  open(document.getElementById("key").value.trim());
});
