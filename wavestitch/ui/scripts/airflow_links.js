// Links to Airflow's own pages. The frame that Airflow shows us in may not open windows nor lead the window elsewhere,
// so Airflow, which is of the same site, is asked to go there as by its own links. Outside a frame a link is a link.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-airflow]");
  if (!link || window.parent === window || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  window.parent.history.pushState({}, "", link.href);
  window.parent.dispatchEvent(new PopStateEvent("popstate", { state: {} }));
});
