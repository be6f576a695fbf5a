// Which colour whoever takes part is drawn in: the same on all of a page, and never that of another session of its run.
import { speakers } from '../asking/about.js';
import { route } from '../asking/address.js';

const HUES = Array.from({ length: 12 }, (_, number) => `c-h${number}`);
const SUB = 'c-sub';
const page = { of: '', hues: new Map() };

// What was given out on a page is forgotten where another one is shown.
function given() {
  const { page: name, id, query } = route.peek();
  const of = `${name}/${id}/${name === 'diff' ? query : ''}`;
  if (page.of !== of) {
    page.of = of;
    page.hues = new Map();
  }
  return page.hues;
}
// A session has the colour of its place among the first of the log, as long as nobody else on the page has it; else the
// one that the fewest have. A sub-agent has its own colour, unless another one of its run has that.
/** @param {string} kind @param {string} id @param {Map<string, string>} hues @param {Set<string>} taken */
function chosen(kind, id, hues, taken) {
  const uses = new Map();
  for (const hue of hues.values()) uses.set(hue, (uses.get(hue) ?? 0) + 1);
  /** @param {string} hue */
  const used = hue => uses.get(hue) ?? 0;
  const own = kind === 'sub' ? SUB : HUES[speakers.peek().indexOf(id)];
  if (own && !taken.has(own) && (kind === 'sub' || !used(own))) return own;
  const free = HUES.filter(hue => !taken.has(hue));
  return free.reduce((best, hue) => (used(hue) < used(best) ? hue : best), free[0]) ?? 'c-grey';
}
/** @param {string} kind */
const isSession = kind => kind === 'session' || kind === 'sub';
/** @param {{ kind: string, id: string, hue?: string }} given */
export function hueOf({ kind, id, hue }) {
  if (hue) return hue;
  if (!isSession(kind)) return `c-${kind}`;
  const hues = given();
  if (!hues.has(id)) hues.set(id, chosen(kind, id, hues, new Set()));
  return hues.get(id);
}
// The lanes of one run, or of two that are compared, each with its colour. Where more sessions are on a page than there
// are colours, two of one colour can meet in a run: there the later one has another.
/** @param {Lane[]} lanes */
export function coloured(lanes) {
  const hues = given();
  const own = new Map();
  const taken = new Set();
  return lanes.map(lane => {
    const { kind, id } = lane;
    if (!isSession(kind)) return lane;
    if (!own.has(id)) {
      const known = hues.get(id);
      const hue = known && !taken.has(known) ? known : chosen(kind, id, hues, taken);
      if (!known) hues.set(id, hue);
      own.set(id, hue);
      taken.add(hue);
    }
    return { ...lane, hue: own.get(id) };
  });
}
