// What a change of one phase would have done to the end: the same as
// stages/critical_path/what_if.py from `reschedule` on, line by line and under the same names.
// Amounts are BigInt and factors exact fractions, so every figure equals Python's to the nanosecond.
"use strict";

const NOBODY = -1;
const STILL = [0n, 0n, 0n]; // headline, low, high

const maximum = (one, two) => (two > one ? two : one);
const minimum = (one, two) => (two < one ? two : one);
const plus = (one, two) => [one[0] + two[0], one[1] + two[1], one[2] + two[2]];
const exactly = (amount) => [amount, amount, amount];

/** A number of JavaScript as the exact fraction that it is: [numerator, denominator]. */
function fraction(number) {
  let denominator = 1n;
  while (!Number.isInteger(number)) {
    number *= 2;
    denominator *= 2n;
  }
  return [BigInt(number), denominator];
}

/** numerator / denominator (> 0) to the nearest whole number, halves to the even one. */
function round(numerator, denominator) {
  let below = numerator / denominator;
  if (numerator % denominator < 0n) below -= 1n; // BigInt divides towards zero
  const twice = 2n * (numerator - below * denominator);
  return twice > denominator || (twice === denominator && below % 2n !== 0n) ? below + 1n : below;
}

const scaled = (size, scale) => round(size * scale[0], scale[1]);

/** Position of the first element that is greater than a value. */
function bisectRight(ascending, value) {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (value < ascending[middle]) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Position of the first element that is not less than a value. */
function bisectLeft(ascending, value) {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The schedule as html.py wrote it: numbers, or strings where a number would not be exact. */
function readSchedule(rows) {
  return rows.map(([start, until, length, epsilon, joined, ended, before, callee, pieces]) => ({
    start: BigInt(start),
    until: BigInt(until),
    length: BigInt(length),
    epsilon: BigInt(epsilon),
    joined,
    ended,
    before: before.map(([sibling, at, clipped]) => ({
      sibling,
      at: BigInt(at),
      clipped: clipped && clipped.map(([number, label, size]) => [number, label, BigInt(size)]),
    })),
    callee,
    pieces: Object.fromEntries(
      Object.entries(pieces).map(([label, stretches]) => [
        label,
        stretches.map(([from, to]) => [BigInt(from), BigInt(to)]),
      ]),
    ),
  }));
}

/** Schedule a root's operations anew, the innermost first, with a phase `factor` times as long. */
function reschedule(operations, label, factor) {
  const [numerator, denominator] = fraction(factor);
  const moved = new Moved(operations, label, [numerator - denominator, denominator]);
  for (let number = operations.length - 1; number >= 0; number--) {
    moved.longer[number] = moved.longerOf(number);
  }
  const [headline, low, high] = moved.longer[0];
  return {
    saves: -headline,
    savesLow: minimum(-low, -high),
    savesHigh: maximum(-low, -high),
    duration: operations[0].length + headline,
  };
}

/** Where in its own time an operation holds what changes; one budget, however many pieces. */
class Changing {
  constructor(pieces, scale) {
    this.starts = pieces.map(([start]) => start);
    this.ends = pieces.map(([, end]) => end);
    this.before = [0n];
    for (const [start, end] of pieces) this.before.push(this.before.at(-1) + end - start);
    this.scale = scale;
  }

  total() {
    return scaled(this.before.at(-1), this.scale);
  }

  within(from, to) {
    return from < to ? this.upTo(to) - this.upTo(from) : 0n;
  }

  upTo(at) {
    const passed = bisectRight(this.ends, at);
    let size = this.before[passed];
    if (passed < this.starts.length && this.starts[passed] < at) size += at - this.starts[passed];
    return scaled(size, this.scale);
  }
}

/** Shifts of ends relative to starts, by the operation's number. */
class Moved {
  constructor(operations, label, scale) {
    this.operations = operations;
    this.label = label;
    this.scale = scale;
    this.longer = new Array(operations.length).fill(STILL);
    this.changing = new Array(operations.length);
  }

  longerOf(number) {
    const operation = this.operations[number];
    const pieces = operation.pieces[this.label] ?? [];
    const changing = (this.changing[number] = new Changing(pieces, this.scale));
    let shift = operation.joined.length
      ? new Siblings(this, operation, changing).endShift()
      : exactly(changing.total());
    if (operation.callee !== NOBODY) shift = plus(shift, this.longer[operation.callee]);
    return shift;
  }

  shiftAt(edge, shift) {
    if (edge.clipped === null) return shift;
    let inside = 0n;
    for (const [number, label, size] of edge.clipped) {
      if (label === this.label) inside += scaled(size, this.changing[number].scale);
    }
    const whole = this.longer[edge.sibling];
    return shift.map((end, bound) => end - whole[bound] + inside);
  }
}

/** Those that one operation waits for, scheduled anew in the order in which they started. */
class Siblings {
  constructor(moved, parent, changing) {
    this.moved = moved;
    this.parent = parent;
    this.changing = changing;
    this.shifts = new Map();
    this.order = [];
    this.starts = [];
  }

  endShift() {
    const { operations } = this.moved;
    const { ended } = this.parent;
    const running = new Running();
    let position = 0;
    for (const number of this.parent.joined) {
      const child = operations[number];
      const reach = child.start + this.parent.epsilon;
      while (position < ended.length && operations[ended[position]].until <= reach) {
        const other = ended[position];
        if (this.shifts.has(other)) running.add(operations[other].until, this.shifts.get(other));
        position += 1;
      }
      let [bound, start] = [running.latest, running.shift()];
      if (child.before.length) [bound, start] = this.afterExplicit(child);
      const gap = this.changing.within(bound, child.start);
      this.shifts.set(number, plus(plus(start, exactly(gap)), this.moved.longer[number]));
      this.order.push(number);
      this.starts.push(child.start);
    }
    const last = new Running();
    for (const number of ended) last.add(operations[number].until, this.shifts.get(number));
    const tail = this.changing.within(last.latest, this.parent.length);
    return plus(last.exact(), exactly(tail));
  }

  /** Explicit predecessors, and siblings wholly between the last of them and the child. */
  afterExplicit(child) {
    const { operations } = this.moved;
    const waited = new Running();
    const known = child.before.filter((edge) => this.shifts.has(edge.sibling));
    for (const edge of known) {
      waited.add(edge.at, this.moved.shiftAt(edge, this.shifts.get(edge.sibling)));
    }
    if (!known.length) return [waited.latest, waited.shift()];
    const latest = known.map((edge) => edge.at).reduce(maximum);
    const awaited = new Set(known.map((edge) => edge.sibling));
    const reach = child.start + this.parent.epsilon;
    const between = this.order
      .slice(bisectLeft(this.starts, latest))
      .filter((other) => !awaited.has(other) && operations[other].until <= reach);
    const exact = waited.exact();
    for (const other of between) waited.add(operations[other].until, this.shifts.get(other));
    return [waited.latest, between.length ? waited.shiftAmong() : exact];
  }
}

/** The latest of several instants, before and after they moved; at least the start. */
class Running {
  constructor() {
    this.latest = 0n;
    this.moved = STILL;
    this.low = null;
    this.high = null;
  }

  add(at, shift) {
    this.latest = maximum(this.latest, at);
    this.moved = this.moved.map((moved, bound) => maximum(moved, at + shift[bound]));
    this.low = this.low === null ? shift[1] : minimum(this.low, shift[1]);
    this.high = this.high === null ? shift[2] : maximum(this.high, shift[2]);
  }

  exact() {
    return this.moved.map((moved) => moved - this.latest);
  }

  shiftAmong() {
    return [this.moved[0] - this.latest, this.low ?? 0n, this.high ?? 0n];
  }

  shift() {
    return [
      this.moved[0] - this.latest,
      minimum(0n, this.low ?? 0n),
      maximum(0n, this.high ?? 0n),
    ];
  }
}
