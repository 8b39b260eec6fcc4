// The page as a whole: traces that are started when somebody opens them, links to rows, a theme.

const trees = new Map();

function treeOf(waterfall) {
  if (!trees.has(waterfall)) trees.set(waterfall, new Tree(waterfall));
  return trees.get(waterfall);
}

const started = new Set();

/** Closed traces wait until somebody opens them. */
function start(trace) {
  if (started.has(trace)) return;
  started.add(trace);
  for (const panel of trace.querySelectorAll(".what-if")) new WhatIfs(panel);
  trace.querySelectorAll(".waterfall").forEach(treeOf);
}

for (const trace of document.querySelectorAll(".trace")) {
  if (trace.open ?? true) start(trace);
  else trace.addEventListener("toggle", () => start(trace), { once: true });
}

function follow() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let up = target.closest("details"); up; up = up.parentElement.closest("details")) {
    up.open = true;
  }
  if (target.matches(".row")) {
    treeOf(target.closest(".waterfall")).reveal(target);
    target.focus({ preventScroll: true });
  }
  target.scrollIntoView({ block: target.matches(".row") ? "center" : "start" });
}
addEventListener("hashchange", follow);
follow();

document.addEventListener("click", (event) => {
  const link = event.target.closest("a.copy");
  if (!link || !navigator.clipboard) return;
  navigator.clipboard.writeText(link.href).then(
    () => {
      link.textContent = "link copied";
    },
    () => {},
  );
});

const theme = document.querySelector(".theme");
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () =>
  (document.documentElement.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";
function nameTheme() {
  theme.textContent = isDark() ? "Light" : "Dark";
  theme.setAttribute("aria-label", isDark() ? "Light colours" : "Dark colours");
}
theme.hidden = false;
theme.addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  nameTheme();
});
prefersDark.addEventListener("change", nameTheme);
nameTheme();

addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details:not([open])")) {
    folded.dataset.wasClosed = "";
    folded.open = true;
    if (folded.matches(".trace")) start(folded);
  }
});
addEventListener("afterprint", () => {
  for (const folded of document.querySelectorAll("details[data-was-closed]")) {
    folded.open = false;
    delete folded.dataset.wasClosed;
  }
});
