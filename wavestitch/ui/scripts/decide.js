// Asks for a preview of a decision about the waveforms that are chosen: a run of the stream's own DAG, which changes
// nothing before somebody approves of what it shows. Its page is linked.
import { startRun } from "./ask_airflow.js";

const form = document.querySelector("form[data-decide]");
const said = form.querySelector("[data-said]");

function chosen() {
  // Percent-encoded, since what strangers call a waveform is shown otherwise where it could mislead.
  const found = document.querySelectorAll("input[name=waveform]:is(:checked, [type=hidden])");
  return [...found].map((box) => decodeURIComponent(box.value));
}

function count() {
  const all = document.querySelector("[data-all]");
  const boxes = [...document.querySelectorAll("input[type=checkbox][name=waveform]")];
  if (all) all.checked = boxes.length > 0 && boxes.every((box) => box.checked);
  form.querySelector("[data-count]").textContent = chosen().length;
  form.querySelector("[data-copy]").hidden = form.elements.action.value !== "pick";
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const ids = chosen();
  if (!ids.length) {
    said.textContent = "Choose at least one waveform above.";
    return;
  }
  const { action, why, copy } = form.elements;
  const conf = { action: action.value, why: why.value, ids };
  if (action.value === "pick") conf.copy = copy.value;
  const button = form.querySelector("button");
  button.disabled = true;
  const found = await startRun(form.dataset.decide, conf);
  button.disabled = false;
  said.textContent = `${found.said} `;
  if (!found.run) return;
  const link = document.createElement("a");
  link.href = `${form.dataset.run}?run_id=${encodeURIComponent(found.run)}`;
  link.textContent = "What it would do, and where to approve of it";
  said.append(link);
});
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-all]")) {
    for (const box of document.querySelectorAll("input[type=checkbox][name=waveform]")) box.checked = event.target.checked;
  }
  count();
});
for (const part of document.querySelectorAll("[data-needs-script]")) part.hidden = false;
count();
