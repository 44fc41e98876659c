// The colours that Airflow shows: the page lies in a frame of its own site, and Airflow keeps its choice in `theme`.
// Where there is no choice, or it is "system", the style sheet follows the system by itself.
const root = document.documentElement;

function follow() {
  let chosen = null;
  try {
    const outside = window.parent === window ? null : window.parent.document.documentElement.classList;
    chosen = outside?.contains("dark") ? "dark" : outside?.contains("light") ? "light" : localStorage.getItem("theme");
  } catch {
    // Shown inside another site, or storage is forbidden: the system's choice stays.
  }
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  else delete root.dataset.theme;
}

follow();
addEventListener("storage", (event) => event.key === "theme" && follow());
try {
  if (window.parent !== window) {
    new MutationObserver(follow).observe(window.parent.document.documentElement, { attributeFilter: ["class"] });
  }
} catch {
  // As above.
}
