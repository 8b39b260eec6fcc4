// The waterfall as a tree that keys move through, with branches that open and close and a filter.

/** Rows of one waterfall as a tree grid: one of them takes the focus, arrow keys move it. */
class Tree {
  constructor(waterfall) {
    this.waterfall = waterfall;
    this.rows = [...waterfall.querySelectorAll(".row")];
    this.groups = [...waterfall.querySelectorAll(".some")];
    this.position = new Map(this.rows.map((row, at) => [row, at]));
    for (const row of this.rows) row.tabIndex = -1;
    this.levels = this.rows.map((row) => Number(row.getAttribute("aria-level")));
    this.parents = [];
    const above = [];
    this.levels.forEach((level, at) => {
      above.length = level - 1;
      this.parents.push(above.at(-1) ?? -1);
      above.push(at);
    });
    this.folded = new Uint8Array(this.rows.length);
    this.hidden = new Uint8Array(this.rows.length);
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
    while (at >= 0 && at < this.rows.length && this.hidden[at]) at += by;
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
    this.rows.forEach((_, at) => {
      const up = this.parents[at];
      const folded = up >= 0 && (gone[up] === 1 || (this.folded[up] && !this.matches));
      gone[at] = folded ? 1 : 0;
      this.hidden[at] = folded || (this.matches !== null && !this.matches[at]) ? 1 : 0;
    });
    let first = 0;
    for (const group of this.groups) first = this.redraw(group, first);
    const seen = this.step(-1, 1); // -1: no row matches, so that none can take the focus
    if (this.hidden[this.focusable] && seen >= 0) this.enter(seen);
  }

  /** Hide what is hidden in a group of rows; rows of a group of which nothing is left can wait. */
  redraw(group, first) {
    const end = first + group.childElementCount;
    const left = this.hidden.subarray(first, end).filter((hidden) => !hidden).length;
    group.hidden = !left;
    group.style.setProperty("--rows", left); // its height while nobody looks at it
    for (let at = first; left && at < end; at++) {
      if (this.rows[at].hidden !== Boolean(this.hidden[at])) this.rows[at].hidden = !this.rows[at].hidden;
    }
    return end;
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
