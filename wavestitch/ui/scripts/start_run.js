// Starts a run by Airflow's own REST API, with the rights of whoever is logged in. Asks once more before it does:
// the frame that Airflow shows us in has no dialogues.
const AGAIN_MS = 5000;
const SAID = {
  401: "Log in to Airflow again.",
  403: "You may not start runs of this DAG.",
  404: "This DAG is not there, or you may not see it.",
  409: "A run is there already.",
};

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
  try {
    const answer = await fetch(button.dataset.start, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "application/json" },
      body: JSON.stringify({ logical_date: null }),
    });
    const told = await answer.json().catch(() => ({}));
    if (answer.ok) said.textContent = `Started: run ${told.dag_run_id}.`;
    else said.textContent = SAID[answer.status] ?? `Airflow refused it (${answer.status}).`;
  } catch {
    said.textContent = "Airflow has not answered; nothing is known to have been started.";
  }
  button.disabled = false;
});
