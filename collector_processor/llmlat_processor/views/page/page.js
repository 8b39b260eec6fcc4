// What the page can do beyond being read: what-ifs, a tree that keys move through, a filter,
// links to rows, a theme. All figures stand in the page without it.

// ── Durations, in the words of views/wording.py ────────────────────────────────────────────────

const UNITS = [
  [1_000_000_000n, "s"],
  [1_000_000n, "ms"],
  [1_000n, "µs"],
];

function duration(amount) {
  if (amount < 0n) return `-${duration(-amount)}`;
  if (amount === 0n) return "0";
  for (const [scale, unit] of UNITS) {
    if (amount >= scale) return `${threeDigits(Number(amount) / Number(scale))} ${unit}`;
  }
  return `${amount} ns`;
}

/** As Python writes it: the number as it is, halves to the even digit. */
function threeDigits(value) {
  const digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  const [numerator, denominator] = fraction(value);
  const whole = String(round(numerator * 10n ** BigInt(digits), denominator));
  const padded = whole.padStart(digits + 1, "0");
  return digits ? `${padded.slice(0, -digits)}.${padded.slice(-digits)}` : padded;
}

// ── What-ifs ───────────────────────────────────────────────────────────────────────────────────

/** A table of phases whose controls answer for one root; one control at a time is off 100 %. */
class WhatIfs {
  constructor(panel) {
    this.panel = panel;
    this.schedule = null; // read when it is first needed: most readers never ask
    this.controls = [...panel.querySelectorAll("input[type=range]")];
    this.result = panel.querySelector(".result");
    this.reset = panel.querySelector(".reset");
    this.waiting = false;
    if (!this.result || !this.controls.length) return;
    this.result.hidden = false;
    for (const control of this.controls) {
      control.disabled = false;
      control.addEventListener("input", () => this.ask(control));
    }
    this.reset.addEventListener("click", () => this.putBack());
    // Whoever comes near a control will ask soon: reading is done before the first key.
    const soon = () => setTimeout(() => this.read());
    for (const near of ["focusin", "pointerenter"]) panel.addEventListener(near, soon, { once: true });
    const preset = this.controls.find((control) => control.value !== "100");
    if (preset) this.answer(preset);
    else this.putBack();
  }

  /** At most one answer a frame, however fast a control is dragged. */
  ask(control) {
    for (const other of this.controls) if (other !== control) this.show(other, "100");
    this.show(control, control.value);
    this.asked = control;
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.answer(this.asked);
    });
  }

  answer(control) {
    const found = this.reschedule(control.dataset.label, Number(control.value) / 100);
    this.show(control, control.value, found);
    this.tell(control, found);
    this.draw(found);
    this.reset.disabled = control.value === "100";
    this.result.classList.toggle("is-moved", control.value !== "100");
  }

  read() {
    this.schedule ??= readSchedule(JSON.parse(this.panel.nextElementSibling.textContent));
  }

  reschedule(label, factor) {
    this.read();
    return reschedule(this.schedule, label, factor);
  }

  putBack() {
    for (const control of this.controls) this.show(control, "100");
    const whole = BigInt(this.panel.dataset.whole);
    this.panel.querySelector(".said").textContent = `as observed: ${duration(whole)}`;
    this.draw({ duration: whole, saves: 0n, savesLow: 0n, savesHigh: 0n });
    this.reset.disabled = true;
    this.result.classList.remove("is-moved");
  }

  show(control, value, found) {
    control.value = value;
    control.nextElementSibling.textContent = `${value}\u00a0%`;
    const row = control.closest("tr");
    row.classList.toggle("moved", value !== "100");
    const then = found ? `, then ${duration(found.duration)}` : "";
    control.setAttribute("aria-valuetext", `${value} %${then}`);
  }

  /** In the words of the terminal. */
  tell(control, found) {
    const costs = found.saves < 0n;
    const verb = costs ? "costs" : "saves";
    const sign = costs ? -1n : 1n;
    const parts = [
      `${control.dataset.label} at ${control.value} %: `,
      amountOf(found.duration, "duration_ns"),
      ` instead of ${duration(found.duration + found.saves)}, ${verb} `,
      amountOf(sign * found.saves, "saves_ns", found.saves),
    ];
    if (found.savesLow !== found.savesHigh) {
      const low = amountOf(sign * found.savesLow, "saves_low_ns", found.savesLow);
      const high = amountOf(sign * found.savesHigh, "saves_high_ns", found.savesHigh);
      const [less, more] = costs ? [high, low] : [low, high];
      parts.push(` (between `, less, ` and `, more, `, by what had to wait for what)`);
    }
    this.panel.querySelector(".said").replaceChildren(...parts);
  }

  draw({ duration: now, saves, savesLow, savesHigh }) {
    const was = now + saves;
    const [least, most] = [was - savesHigh, was - savesLow];
    const whole = [was, now, most].reduce(maximum) || 1n;
    const across = (part) => `${Number((10_000n * maximum(part, 0n)) / whole) / 100}%`;
    const [wasBar, newBar, range] = this.panel.querySelectorAll(".then i");
    wasBar.style.width = across(was);
    newBar.style.width = across(now);
    range.style.left = across(least);
    range.style.width = across(most - maximum(least, 0n));
    range.hidden = savesLow === savesHigh;
  }
}

function amountOf(shown, key, exact = shown) {
  const element = document.createElement("data");
  element.value = String(exact);
  element.dataset.answer = key;
  element.textContent = duration(shown);
  return element;
}

// ── The tree ───────────────────────────────────────────────────────────────────────────────────

/** Rows of one waterfall as a tree grid: one of them takes the focus, arrow keys move it. */
class Tree {
  constructor(waterfall) {
    this.waterfall = waterfall;
    this.rows = [...waterfall.querySelectorAll(".row")];
    this.position = new Map(this.rows.map((row, at) => [row, at]));
    this.levels = this.rows.map((row) => Number(row.getAttribute("aria-level")));
    this.parents = [];
    const above = [];
    this.levels.forEach((level, at) => {
      above.length = level - 1;
      this.parents.push(above.at(-1) ?? -1);
      above.push(at);
    });
    this.folded = new Uint8Array(this.rows.length);
    this.matches = null; // null: no filter
    this.focusable = null;
    this.enter(0);
    this.listen();
  }

  listen() {
    const grid = this.waterfall.querySelector(".rows");
    grid.addEventListener("keydown", (event) => this.pressed(event));
    grid.addEventListener("click", (event) => this.clicked(event));
    const tools = this.waterfall.querySelector(".tools");
    tools.hidden = false;
    this.filter = tools.querySelector(".filter");
    this.onlyPath = tools.querySelector(".only-path");
    this.count = tools.querySelector(".count");
    this.fold = tools.querySelector(".fold");
    this.filter.addEventListener("input", () => this.refilter());
    this.onlyPath.addEventListener("change", () => this.refilter());
    this.fold.addEventListener("click", () => this.foldAll(this.fold.textContent === "Collapse all"));
  }

  enter(at) {
    if (this.focusable !== null) this.rows[this.focusable].tabIndex = -1;
    this.focusable = at;
    if (this.rows[at]) this.rows[at].tabIndex = 0;
  }

  focus(at) {
    if (at < 0 || at >= this.rows.length) return;
    this.enter(at);
    this.rows[at].focus();
  }

  step(from, by) {
    let at = from + by;
    while (at >= 0 && at < this.rows.length && this.rows[at].hidden) at += by;
    return at >= 0 && at < this.rows.length ? at : from;
  }

  opens(at) {
    return this.rows[at].hasAttribute("aria-expanded");
  }

  pressed(event) {
    const row = event.target.closest(".row");
    if (!row || event.target !== row || event.ctrlKey || event.altKey || event.metaKey) return;
    const at = this.position.get(row);
    const moves = {
      ArrowDown: () => this.focus(this.step(at, 1)),
      ArrowUp: () => this.focus(this.step(at, -1)),
      Home: () => this.focus(this.step(-1, 1)),
      End: () => this.focus(this.step(this.rows.length, -1)),
      ArrowRight: () => {
        if (this.opens(at) && this.folded[at]) this.toggle(at, false);
        else if (this.opens(at)) this.focus(this.step(at, 1));
      },
      ArrowLeft: () => {
        if (this.opens(at) && !this.folded[at]) this.toggle(at, true);
        else this.focus(this.parents[at]);
      },
      Enter: () => this.choose(at),
      " ": () => this.choose(at),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }

  clicked(event) {
    const row = event.target.closest(".row");
    if (!row || event.target.closest("a")) return;
    const at = this.position.get(row);
    this.enter(at);
    row.focus({ preventScroll: true });
    if (event.target.closest(".twist") && this.opens(at)) this.toggle(at, !this.folded[at]);
    else if (!String(getSelection())) this.choose(at);
  }

  /** Show what stands beside a row, or hide it again. */
  choose(at) {
    const row = this.rows[at];
    const chosen = row.getAttribute("aria-selected") === "true";
    for (const other of this.waterfall.querySelectorAll('.row[aria-selected="true"]')) {
      other.removeAttribute("aria-selected");
    }
    if (!chosen) row.setAttribute("aria-selected", "true");
  }

  toggle(at, folded) {
    this.folded[at] = folded ? 1 : 0;
    this.rows[at].setAttribute("aria-expanded", String(!folded));
    this.refresh();
  }

  foldAll(folded) {
    this.rows.forEach((row, at) => {
      if (!this.opens(at)) return;
      this.folded[at] = folded && this.levels[at] > 1 ? 1 : 0;
      row.setAttribute("aria-expanded", String(!this.folded[at]));
    });
    this.fold.textContent = folded ? "Expand all" : "Collapse all";
    this.refresh();
  }

  /** Rows that match, and those above them. */
  refilter() {
    const words = this.filter.value.trim().toLowerCase();
    const onlyPath = this.onlyPath.checked;
    if (!words && !onlyPath) {
      this.matches = null;
      this.count.textContent = "";
      return this.refresh();
    }
    this.texts ??= this.rows.map((row) => row.firstElementChild.textContent.toLowerCase());
    this.matches = new Uint8Array(this.rows.length);
    let found = 0;
    this.rows.forEach((row, at) => {
      const { classList } = row;
      if (onlyPath && !classList.contains("e2e") && !classList.contains("ttft")) return;
      if (!this.texts[at].includes(words)) return;
      found += 1;
      for (let up = at; up >= 0 && !this.matches[up]; up = this.parents[up]) this.matches[up] = 1;
    });
    this.count.textContent = `${found} of ${this.rows.length} rows`;
    return this.refresh();
  }

  refresh() {
    const gone = new Uint8Array(this.rows.length);
    this.rows.forEach((row, at) => {
      const up = this.parents[at];
      const folded = up >= 0 && (gone[up] === 1 || (this.folded[up] && !this.matches));
      gone[at] = folded ? 1 : 0;
      const hidden = folded || (this.matches !== null && !this.matches[at]);
      if (row.hidden !== hidden) row.hidden = hidden;
    });
    if (this.rows[this.focusable].hidden) this.enter(this.step(-1, 1));
  }

  /** Open all above a row, so that it can be seen. */
  reveal(row) {
    const at = this.position.get(row);
    for (let up = this.parents[at]; up >= 0; up = this.parents[up]) {
      this.folded[up] = 0;
      this.rows[up].setAttribute("aria-expanded", "true");
    }
    this.filter.value = "";
    this.onlyPath.checked = false;
    this.refilter();
    this.enter(at);
  }
}

// ── The page ───────────────────────────────────────────────────────────────────────────────────

for (const panel of document.querySelectorAll(".what-if")) new WhatIfs(panel);

const trees = new Map();

/** Waterfalls of closed traces wait until somebody opens them. */
function treeOf(waterfall) {
  if (!trees.has(waterfall)) trees.set(waterfall, new Tree(waterfall));
  return trees.get(waterfall);
}

for (const waterfall of document.querySelectorAll(".waterfall")) {
  const trace = waterfall.closest("details.trace");
  if (!trace || trace.open) treeOf(waterfall);
  else trace.addEventListener("toggle", () => treeOf(waterfall), { once: true });
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
  }
});
addEventListener("afterprint", () => {
  for (const folded of document.querySelectorAll("details[data-was-closed]")) {
    folded.open = false;
    delete folded.dataset.wasClosed;
  }
});
