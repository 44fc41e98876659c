// The button that starts a run. It asks once more before it does: the frame that Airflow shows us in has no dialogues.
import { startRun } from "./ask_airflow.js";

const AGAIN_MS = 5000;

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-start]");
  if (!button || button.disabled) return;
  const said = button.parentElement.querySelector("[data-said]");
  if (!button.dataset.asked) {
    const shown = button.textContent;
    button.dataset.asked = "yes";
    button.textContent = `Press again to do it: ${shown}`;
    setTimeout(() => {
      delete button.dataset.asked;
      button.textContent = shown;
    }, AGAIN_MS);
    return;
  }
  button.disabled = true;
  said.textContent = (await startRun(button.dataset.start)).said;
  button.disabled = false;
});
