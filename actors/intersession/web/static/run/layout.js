// Where things lie in the diagram of a run: rows from above, lanes from the left, and when each lane was at work. Pure.
export const BAND = 30;
/** @type {Record<string, number>} */
const HEIGHT = { a: 56, m: 34, g: 30 };
const HEAD = 12;
const MOST_BETWEEN = 240;

// Where every row begins; `moreFor` says how much higher one is than others of its kind.
// With `spread`, pixels a millisecond, the space between rows is what lay between them.
/**
 * @param {(Row | undefined)[]} rows
 * @param {string} kinds
 * @param {number} spread
 * @param {(number: number) => boolean} isFolded
 * @param {(row: Row | undefined) => number} moreFor
 */
export function laid(rows, kinds, spread, isFolded, moreFor) {
  const tops = new Float64Array(kinds.length + 1);
  tops[0] = HEAD;
  let before = 0;
  for (let number = 0; number < kinds.length; number++) {
    const now = rows[number]?.time;
    const more = spread && now && before ? Math.min(MOST_BETWEEN, (now - before) * spread) : 0;
    tops[number + 1] = tops[number] + (isFolded(number) ? 0 : HEIGHT[kinds[number]] + moreFor(rows[number]) + more);
    before = now ?? before;
  }
  return tops;
}

// The row that has a height, by halves.
/** @param {Float64Array} tops @param {number} y */
export const rowAt = (tops, y) => {
  let low = 0;
  let high = tops.length - 1;
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if (tops[mid] <= y) low = mid;
    else high = mid - 1;
  }
  return Math.min(low, tops.length - 2);
};

/** @param {(Row | undefined)[]} rows @param {number} number */
const nextTimed = (rows, number) => {
  for (let next = number; next < rows.length; next++) {
    const row = rows[next];
    if (row?.position) return row;
  }
  return null;
};
// The first row behind a position, by halves.
/** @param {(Row | undefined)[]} rows @param {number} count @param {number} position */
export const rowBehind = (rows, count, position) => {
  let low = 0;
  let high = count;
  while (low < high) {
    const mid = (low + high) >> 1;
    const row = nextTimed(rows, mid);
    if (row === null || row.position > position) high = mid;
    else low = mid + 1;
  }
  return low;
};

// Where the words of a message begin, and how much room they have: between its lanes; on a narrow screen over all.
/** @param {{ source: number, target: number }} row @param {{ xs: number[], narrow: boolean, wide: number }} how */
export function roomOf(row, { xs, narrow, wide }) {
  const [a, b] = [xs[row.source], xs[row.target]];
  const x = Math.min(a, b) + 14;
  return { x, space: narrow ? wide - x - 22 : Math.abs(b - a) - 28 };
}

// How wide it is, and where its lanes stand.
/** @param {number} width @param {number} count */
export function across(width, count) {
  const narrow = width < 560;
  const gutter = narrow ? 0 : 128;
  const first = gutter + (narrow ? 22 : 26);
  const end = narrow ? 22 : 44;
  const least = narrow ? 72 : 150;
  const step = count > 1 ? Math.min(640, Math.max(least, (width - first - end) / (count - 1))) : 0;
  const xs = Array.from({ length: count }, (_, number) => first + step * number);
  return { narrow, gutter, xs, wide: Math.max(width, first + step * (count - 1) + end) };
}

const OVER = new Set(['run_completed', 'run_failed', 'run_aborted']);
/** @param {Step} step */
const begins = step => step.kind === 'run_started';
/** @param {Step} step */
const ends = step => OVER.has(step.kind);
/** @param {Step} step */
const waits = step => (step.calls ?? 0) > 0;
/** @param {Step} step */
const goesOn = step => Boolean(step.gives) || ends(step);

// Stretches on a lane, `[lane, from, to, run]`, from an event that opens one to one that closes it.
/**
 * @param {(Step | undefined)[]} steps
 * @param {Lane[]} lanes
 * @param {(step: Step) => boolean} opens
 * @param {(step: Step) => boolean} closes
 */
function stretches(steps, lanes, opens, closes) {
  /** @type {Stretch[]} */
  const found = [];
  /** @type {Map<number, Step>} */
  const open = new Map();
  const numbers = new Map(lanes.map((lane, number) => [`session:${lane.id}`, number]));
  for (const step of steps) {
    const lane = step && numbers.get(step.stream);
    if (lane === undefined || step === undefined) continue;
    const from = open.get(lane);
    if (closes(step) && from) {
      found.push([lane, from.position, step.position, from.runId]);
      open.delete(lane);
    }
    if (opens(step) && !open.has(lane)) open.set(lane, step);
  }
  for (const [lane, from] of open) found.push([lane, from.position, Infinity, from.runId]);
  return found;
}
// When each session was at work, from the start of a run to its end; and when it waited for a tool meanwhile.
/** @param {(Step | undefined)[]} steps @param {Lane[]} lanes */
export const working = (steps, lanes) => stretches(steps, lanes, begins, ends);
/** @param {(Step | undefined)[]} steps @param {Lane[]} lanes */
export const waiting = (steps, lanes) => stretches(steps, lanes, waits, goesOn);
// The same of the run that called, which has events that the run that is drawn does not have.
/** @param {{ caller?: Answers.CallerAnswer, lanes: Lane[] }} given @returns {{ works: Stretch[], waits: Stretch[] }} */
export function calledBy({ caller, lanes }) {
  const lane = caller ? lanes.findIndex(one => one.id === caller.sessionKey) : -1;
  if (!caller || lane < 0) return { works: [], waits: [] };
  return {
    works: [[lane, caller.from, caller.to ?? Infinity, caller.runId]],
    waits: caller.waits.map(([from, to]) => [lane, from, to ?? Infinity, caller.runId]),
  };
}
// Where the two stand that speak to each other in turn.
/** @param {{ lanes: Lane[], requester?: string, target?: string }} given @param {number[]} xs */
export const ofBoth = ({ lanes, requester, target }, xs) =>
  xs.filter((_, number) => [requester, target].includes(lanes[number].id));
