// Forms of single pages: Ctrl Enter sends, the fields of a change become a line of it.
"use strict";

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  const form = event.target.closest?.("[data-question]");
  if (!form) return;
  event.preventDefault();
  form.requestSubmit(form.querySelector("button.main"));
});

document.addEventListener("change", (event) => {
  if (!event.target.matches?.("[data-choose]")) return;
  const url = new URL(location.href);
  url.searchParams.set("relation", event.target.value);
  history.replaceState(null, "", url);
  // Nothing can be typed into fields that are about to go.
  const inputs = event.target.form.querySelectorAll(".fields input");
  for (const each of inputs) each.disabled = true;
  htmx
    .ajax("GET", url.pathname + url.search, { target: ".fields", select: ".fields", swap: "outerHTML" })
    .finally(() => inputs.forEach((each) => (each.disabled = false)));
});

function asLiteral(text, type) {
  // A value as a program writes it: a text in quotes, other types as they are.
  if (text === "" && type.endsWith("?")) return "null";
  if (/^(date|timestamp)/.test(type)) return `${type[0]}${JSON.stringify(text)}`;
  return /^(number|unsigned|float|decimal|bool)/.test(type) ? text.trim() : JSON.stringify(text);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-add]");
  if (!button) return;
  const fields = button.closest("form").querySelector(".fields");
  const values = [...fields.querySelectorAll("input")].map((each) => asLiteral(each.value, each.dataset.type));
  const changes = document.getElementById("changes");
  const before = changes.value && !changes.value.endsWith("\n") ? `${changes.value}\n` : changes.value;
  changes.value = `${before}${button.dataset.add}${fields.dataset.relation}(${values.join(", ")})\n`;
  changes.scrollTop = changes.scrollHeight;
});
