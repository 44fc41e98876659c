// Keeps a page as it would be if it were loaded now: asks for it again, and puts its contents in the place of the old
// ones. Quickly while something is still being looked at, slowly afterwards, not at all while nobody sees it.
const QUICK_MS = 1000;
const SLOW_MS = 10000;

function filterRows() {
  for (const field of document.querySelectorAll("[data-filter]")) {
    const wanted = field.value.trim().toLowerCase();
    for (const row of document.querySelectorAll(`#${field.dataset.filter} tr[data-name]`)) {
      row.hidden = !row.dataset.name.toLowerCase().includes(wanted);
    }
  }
}

function unhide(within) {
  for (const part of within.querySelectorAll("[data-needs-script]")) part.hidden = false;
}

// What somebody is about to use stays the same element: a field that is typed in, a button that was pressed.
function keep(now, next) {
  for (const selector of ["[data-filter]", "button[data-start]", "[data-said]"]) {
    const [mine, its] = [now.querySelector(selector), next.querySelector(selector)];
    if (mine && its) its.replaceWith(mine);
  }
}

async function again() {
  if (document.hidden) return;
  // What comes in its place may have scripts of its own.
  if (document.querySelector("[data-late]")) return location.reload();
  const now = document.getElementById("main");
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (!answer.ok) throw new Error(`answered ${answer.status}`);
    const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
    if (!next) throw new Error("answered with another page");
    const { id } = document.activeElement ?? {};
    const field = document.activeElement?.matches("[data-filter], button") ? document.activeElement : null;
    const scrolled = [...now.querySelectorAll(".wide")].map((part) => part.scrollLeft);
    unhide(next);
    keep(now, next);
    now.replaceChildren(...next.childNodes);
    now.querySelectorAll(".wide").forEach((part, n) => (part.scrollLeft = scrolled[n] ?? 0));
    (field ?? document.getElementById(id ?? ""))?.focus({ preventScroll: true });
    filterRows();
  } catch (error) {
    const said = now.querySelector("[data-live]");
    if (said) said.textContent = `Airflow has not answered (${error.message}); what is shown may be old. Load the page again, or log in again.`;
  }
}

function later() {
  const busy = document.querySelector("#main [aria-busy=true]");
  setTimeout(async () => {
    await again();
    later();
  }, busy ? QUICK_MS : SLOW_MS);
}

unhide(document);
document.addEventListener("input", filterRows);
document.addEventListener("visibilitychange", again);
later();
