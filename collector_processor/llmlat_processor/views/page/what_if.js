// What-ifs: a control for each phase, and the figure that follows from it. All other figures stand
// in the page without it.

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
    if (amount * 2000n >= scale * 1999n) return `${threeDigits(Number(amount) / Number(scale))} ${unit}`;
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
    const said = this.panel.querySelector(".said");
    said.ariaLive = "polite";
    said.textContent = `as observed: ${duration(whole)}`;
    this.draw({ duration: whole, saves: 0n, savesLow: 0n, savesHigh: 0n });
    this.reset.disabled = true;
    this.result.classList.remove("is-moved");
  }

  show(control, value, found) {
    control.value = value;
    control.nextElementSibling.textContent = `${value}\u00a0%`;
    const row = control.closest("tr");
    row.classList.toggle("moved", value !== "100");
    control.setAttribute("aria-valuetext", spoken(control.dataset.label, value, found));
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
    const said = this.panel.querySelector(".said");
    // Who moves the control hears its value, which says the same.
    said.ariaLive = document.activeElement === control ? "off" : "polite";
    said.replaceChildren(...parts);
  }

  draw({ duration: now, saves, savesLow, savesHigh }) {
    const was = now + saves;
    const [least, most] = [was - savesHigh, was - savesLow];
    const whole = [was, now, most].reduce(maximum) || 1n;
    const part = (amount) => Number((10_000n * maximum(amount, 0n)) / whole) / 10_000;
    const place = (bar, from, to, thinnest = 0) => {
      const size = Math.max(part(to) - part(from), thinnest);
      bar.style.transform = `translateX(${100 * part(from)}%) scaleX(${size})`;
    };
    const [wasBar, newBar, range] = this.panel.querySelectorAll(".then i");
    place(wasBar, 0n, was);
    place(newBar, 0n, now);
    place(range, least, most, 0.003);
    range.hidden = savesLow === savesHigh;
  }
}

/** A control's value as a screen reader says it. */
function spoken(label, percent, found) {
  const asked = `${label} at ${percent} percent`;
  if (!found) return percent === "100" ? `${asked}, as observed` : asked;
  const { saves, duration: then } = found;
  const change = saves < 0n ? `costs ${duration(-saves)}` : `saves ${duration(saves)}`;
  return `${asked}: ${duration(then)}, ${change}`;
}

function amountOf(shown, key, exact = shown) {
  const element = document.createElement("data");
  element.value = String(exact);
  element.dataset.answer = key;
  element.textContent = duration(shown);
  return element;
}
