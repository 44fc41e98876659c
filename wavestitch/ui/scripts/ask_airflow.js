// Starts a run by Airflow's own REST API, with the rights of whoever is logged in, and says what came of it.
const SAID = {
  401: "Log in to Airflow again.",
  403: "You may not start runs of this DAG.",
  404: "This DAG is not there, or you may not see it.",
  409: "A run is there already.",
};

export async function startRun(address, conf) {
  try {
    const answer = await fetch(address, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "application/json" },
      body: JSON.stringify(conf ? { logical_date: null, conf } : { logical_date: null }),
    });
    const told = await answer.json().catch(() => ({}));
    if (answer.ok) return { run: told.dag_run_id, said: `Started: run ${told.dag_run_id}.` };
    const refused = answer.status === 400 && typeof told.detail === "string" ? told.detail : "";
    return { said: SAID[answer.status] ?? `Airflow refused it (${answer.status}). ${refused}`.trim() };
  } catch {
    return { said: "Airflow has not answered; nothing is known to have been started." };
  }
}
