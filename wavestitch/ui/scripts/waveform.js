// The plot of one waveform. The server reduces; here is only what part is looked at, and how it is drawn. Each part is
// fetched anew: few samples as they are, many as the least and greatest of buckets.
import uPlot from "./uPlot.esm.js";

const section = document.getElementById("plot");
const box = section.querySelector(".plot");
const status = document.getElementById("plot-status");
const retry = document.getElementById("plot-retry");
const here = document.getElementById("plot-here");
const table = document.querySelector("#plot-table div");
const told = section.dataset;
const samples = Number(told.samples);
const rate = Number(told.rate);
const LEAST = 16; // samples across, so that zooming in ends
const ROWS = 200;
const LATE = 503;
const PATIENCE_MS = 120_000;
const STEPS = Array.from({ length: 60 }, (_, n) => [1, 2, 5][n % 3] * 10 ** (Math.floor(n / 3) - 10) * rate);

let shown = null; // what the server said last
let wanted = askedFor();
let turn = 0;
let plot = null;

function askedFor() {
  const said = new URLSearchParams(location.search);
  const [start, end] = ["from", "to"].map((name) => Number.parseInt(said.get(name) ?? "", 10));
  return Number.isFinite(start) && Number.isFinite(end) ? within(start, end) : [0, samples];
}

function within(start, end) {
  const length = Math.min(samples, Math.max(Math.min(LEAST, samples), Math.round(end - start)));
  const begin = Math.min(Math.max(0, Math.round(start)), samples - length);
  return [begin, begin + length];
}

// Seconds since the first sample, with as many digits as tell neighbours apart.
function seconds(sample, span) {
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(span / rate / 100))));
  return (sample / rate).toFixed(digits);
}

function clock(sample) {
  const ns = BigInt(told.startNs) + BigInt(Math.round((sample * 1e9) / rate));
  const ms = Number(ns / 1_000_000n);
  const text = new Date(ms).toISOString().replace("T", " ").replace("Z", "");
  return `${text.slice(0, -4)}.${String(((ns % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n).padStart(9, "0")} UTC`;
}

function say(state, text) {
  status.dataset.state = state;
  status.textContent = text;
  status.className = state === "error" ? "failed" : "";
  retry.hidden = state !== "error";
  box.setAttribute("aria-busy", String(state === "loading"));
}

async function fetched(address, mine) {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const answer = await fetch(address, { headers: { Accept: "application/json" } });
    if (answer.status === 401 || answer.status === 403) throw new Error("You are not logged in any more, or may not see this.");
    const said = await answer.json().catch(() => ({}));
    if (answer.ok) return said;
    if (answer.status !== LATE || performance.now() > until || mine !== turn) {
      throw new Error(said.note ?? `The server answered ${answer.status}.`);
    }
    say("loading", "Still reading the samples …");
    await new Promise((done) => setTimeout(done, 500));
  }
}

async function look(start, end) {
  wanted = within(start, end);
  const mine = ++turn;
  say("loading", "Loading the samples …");
  const address = new URL(told.view, document.baseURI);
  address.searchParams.set("start", wanted[0]);
  address.searchParams.set("end", wanted[1]);
  address.searchParams.set("buckets", Math.min(2000, Math.max(64, Math.round(box.clientWidth))));
  try {
    const said = await fetched(address, mine);
    if (mine !== turn) return; // somebody has moved on meanwhile
    shown = said;
    const page = new URL(location.href);
    page.searchParams.set("from", wanted[0]);
    page.searchParams.set("to", wanted[1]);
    history.replaceState(history.state, "", page);
    draw();
    tell();
  } catch (error) {
    if (mine === turn) say("error", `The samples could not be shown. ${error.message}`);
  }
}

function columns() {
  if (shown.width === 1) {
    return [shown.physical.map((_, n) => shown.start + n), shown.physical, shown.physical];
  }
  const x = shown.least.map((_, n) => shown.start + n * shown.width + Math.min(shown.width, shown.end - shown.start - n * shown.width) / 2);
  return [x, shown.greatest, shown.least];
}

// Of a waveform that is not whole: where chunks miss.
const gaps = () => shown.gaps ?? [];
const numbers = (gap) => (gap.behind - gap.first === 1 ? `chunk ${gap.first}` : `chunks ${gap.first} to ${gap.behind - 1}`);
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function draw() {
  const data = columns();
  const span = wanted[1] - wanted[0];
  const raw = shown.width === 1;
  const axis = { stroke: color("--ink"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 } };
  const line = { stroke: color("--unread"), width: 1, spanGaps: false };
  plot?.destroy();
  plot = new uPlot(
    {
      width: Math.max(280, box.clientWidth),
      height: 340,
      legend: { show: false },
      scales: { x: { time: false, range: () => wanted } },
      series: [
        {},
        { ...line, points: { show: raw && span <= 300, size: 5, fill: color("--unread") } },
        { ...line, show: !raw, points: { show: false } },
      ],
      bands: raw ? [] : [{ series: [1, 2], fill: color("--unread") + "66" }],
      axes: [
        { ...axis, label: "seconds since the first sample", incrs: STEPS, space: 70, values: (_, at) => at.map((x) => seconds(x, span)) },
        { ...axis, label: told.units || "no unit said", size: 70 },
      ],
      cursor: { drag: { x: true, y: false, setScale: false } },
      hooks: { drawClear: [shade], draw: [seams], setSelect: [chosen], setCursor: [point] },
    },
    data,
    box,
  );
}

function shade(u) {
  const { left, top, width, height } = u.bbox;
  u.ctx.save();
  u.ctx.beginPath();
  u.ctx.rect(left, top, width, height);
  u.ctx.clip();
  for (const [fill, parts] of [["--line", gaps().map((gap) => [gap.start, gap.end])], ["--warn", shown.lacking]]) {
    u.ctx.fillStyle = color(fill) + (fill === "--warn" ? "55" : "");
    for (const [start, end] of parts) {
      const from = u.valToPos(start - 0.5, "x", true);
      u.ctx.fillRect(from, top, Math.max(1, u.valToPos(end - 0.5, "x", true) - from), height);
    }
  }
  u.ctx.restore();
}

function seams(u) {
  const { top, height } = u.bbox;
  u.ctx.save();
  u.ctx.strokeStyle = color("--soft");
  u.ctx.setLineDash([4, 4]);
  for (const seam of shown.seams) {
    if (seam <= wanted[0] || seam >= wanted[1]) continue;
    const x = Math.round(u.valToPos(seam - 0.5, "x", true)) + 0.5;
    u.ctx.beginPath();
    u.ctx.moveTo(x, top);
    u.ctx.lineTo(x, top + height);
    u.ctx.stroke();
  }
  u.ctx.restore();
}

function chosen(u) {
  if (u.select.width < 3) return;
  const [from, to] = [u.select.left, u.select.left + u.select.width].map((at) => u.posToVal(at, "x"));
  look(from, to);
}

function value(n) {
  const named = (x) => (x === null || x === undefined ? "no number" : `${x} ${told.units}`.trim());
  return shown.width === 1 ? `${named(shown.physical[n])} (sample ${shown.raw[n]})` : `${named(shown.least[n])} to ${named(shown.greatest[n])}`;
}

function point(u) {
  const n = u.cursor.idx;
  if (n === null || n === undefined || u.cursor.left < 0) {
    here.textContent = "";
    return;
  }
  const sample = shown.start + n * shown.width;
  const gap = gaps().find((g) => g.start <= sample && sample < g.end);
  if (gap) {
    here.textContent = `Sample ${sample}, ${clock(sample)}: ${numbers(gap)} not there${gap.supposed ? ", its length supposed" : ""}`;
    return;
  }
  const chunk = shown.chunks.find((c) => c.start <= sample && sample < c.end);
  const from = chunk ? ` · chunk ${chunk.chunk}: partition ${chunk.partition}, offset ${chunk.offset}, ${chunk.length} bytes, SHA-256 ${chunk.sha256.slice(0, 16)}…` : "";
  here.textContent = `Sample ${sample}, ${clock(sample)}: ${value(n)}${from}`;
}

// The same in words, for whoever does not see the picture.
function tell() {
  const of = `Samples ${wanted[0]} to ${wanted[1]} of ${samples}`;
  if (!samples) return say("empty", "There are no samples.");
  const low = (shown.least ?? shown.physical).filter((x) => x !== null);
  const high = (shown.greatest ?? shown.physical).filter((x) => x !== null);
  const range = low.length
    ? `from ${low.reduce((a, b) => Math.min(a, b))} to ${high.reduce((a, b) => Math.max(a, b))} ${told.units}`.trim()
    : "none of them a number";
  const how = shown.width === 1 ? "each of them" : `least and greatest of ${shown.width} at a time`;
  const seam = shown.seams_in_view === 1 ? "1 seam" : `${shown.seams_in_view} seams`;
  const drawn = shown.seams_in_view > shown.seams.length ? " (too many to draw: zoom in)" : "";
  const places = shown.lacking.length === 1 ? "1 place" : `${shown.lacking.length} places`;
  const lacking = shown.lacking.length ? `, ${places} with samples that are no number` : "";
  const missing = gaps().length ? `; not there: ${gaps().slice(0, 5).map(numbers).join(", ")}${shown.gaps_in_view > 5 ? ` and ${shown.gaps_in_view - 5} gaps more` : ""}` : "";
  say("shown", `${of}, ${how}: ${range}; ${seam}${drawn}${lacking}${missing}. From ${clock(wanted[0])}.`);
  status.dataset.width = shown.width;
  rows();
}

function rows() {
  const count = shown.width === 1 ? shown.raw.length : shown.least.length;
  const made = document.createElement("table");
  const heads = shown.width === 1 ? ["Sample", `Value (${told.units})`, "As sent"] : ["Samples from", `Least (${told.units})`, `Greatest (${told.units})`];
  const row = (cells, kind) => {
    const line = made.insertRow();
    for (const text of cells) line.appendChild(document.createElement(kind)).textContent = text;
  };
  row(heads, "th");
  const step = Math.max(1, Math.ceil(count / ROWS));
  for (let n = 0; n < count; n += step) {
    const values = shown.width === 1 ? [shown.physical[n] ?? "no number", shown.raw[n] ?? "not there"] : [shown.least[n] ?? "no number", shown.greatest[n] ?? "no number"];
    row([shown.start + n * shown.width, ...values], "td");
  }
  const note = document.createElement("p");
  note.textContent = step > 1 ? `Every ${step}th of ${count}.` : "";
  table.replaceChildren(made, note);
}

function zoom(factor) {
  const [start, end] = wanted;
  const middle = plot && plot.cursor.left >= 0 && plot.cursor.idx !== null ? plot.posToVal(plot.cursor.left, "x") : (start + end) / 2;
  look(middle - (middle - start) * factor, middle + (end - middle) * factor);
}

function move(share) {
  const [start, end] = wanted;
  const by = (end - start) * share;
  look(start + by, end + by);
}

const acts = {
  in: () => zoom(0.5),
  out: () => zoom(2),
  left: () => move(-0.25),
  right: () => move(0.25),
  whole: () => look(0, samples),
  first: () => look(0, wanted[1] - wanted[0]),
  last: () => look(samples - (wanted[1] - wanted[0]), samples),
  again: () => look(...wanted),
};
const keys = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", Home: "first", End: "last", 0: "whole" };

section.addEventListener("click", (event) => {
  const does = event.target.closest("[data-does]")?.dataset.does;
  if (does) acts[does]();
});
box.addEventListener("keydown", (event) => {
  const does = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
  if (!does) return;
  event.preventDefault();
  acts[does]();
});
new ResizeObserver(() => plot && plot.width !== Math.max(280, box.clientWidth) && plot.setSize({ width: Math.max(280, box.clientWidth), height: 340 })).observe(box);
new MutationObserver(() => shown && draw()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown && draw());
section.querySelector(".tools").hidden = false;
look(...wanted);
