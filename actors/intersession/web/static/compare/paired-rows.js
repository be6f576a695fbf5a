// The rows of two runs, each with the one of the other that it belongs to.
import { ask } from '../asking/api.js';
import { coloured } from '../parts/hues.js';

/** @typedef {{ row: Row, key: string }} Keyed */

const MOST = 500;
/** @param {Row} row @param {Lane[]} lanes */
const keyOf = (row, lanes) =>
  row.row === 'arrow'
    ? `${lanes[row.source].id}>${lanes[row.target].id}:${row.how}`
    : row.row === 'gap'
      ? 'gap'
      : `${row.lane === null ? '' : lanes[row.lane].id}:${row.kind}`;

// The longest course that both have in common, by who, to whom and when; the rest is one's alone.
/**
 * @template T
 * @param {T[]} a
 * @param {T[]} b
 * @param {(one: T, two: T) => boolean} equal
 * @returns {[T | null, T | null][]}
 */
export function aligned(a, b, equal) {
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      table[i][j] = equal(a[i], b[j]) ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
  /** @type {[T | null, T | null][]} */
  const pairs = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && equal(a[i], b[j])) pairs.push([a[i++], b[j++]]);
    else if (j >= b.length || (i < a.length && table[i + 1][j] >= table[i][j + 1])) pairs.push([a[i++], null]);
    else pairs.push([null, b[j++]]);
  }
  return pairs;
}
/** @param {Row[]} rows @param {number} position */
const upTo = (rows, position) => rows.filter(row => row.row === 'gap' || row.position <= position);
/** @param {Answers.CompareAnswer} found @param {string} other @returns {Promise<Both>} */
export async function bothOf(found, other) {
  /** @param {SideName} side @param {string} fork */
  const one = async (side, fork) => {
    const given = { run: found[side].run, fork };
    const part = { ...given, limit: MOST };
    const [run, rows, steps] = await Promise.all([ask('run', given), ask('rows', part), ask('steps', part)]);
    const to = found[side].place.position;
    const shown = upTo(/** @type {Row[]} */ (rows.rows), to);
    return { run, rows: shown, steps: steps.steps.filter(step => step.position <= to) };
  };
  const [a, b] = await Promise.all([one('a', ''), one('b', other)]);
  const lanes = coloured([...a.run.lanes, ...b.run.lanes]);
  const parts = lanes.length - b.run.lanes.length;
  a.run = { ...a.run, lanes: lanes.slice(0, parts) };
  b.run = { ...b.run, lanes: lanes.slice(parts) };
  const pairs = aligned(
    a.rows.map(row => ({ row, key: keyOf(row, a.run.lanes) })),
    b.rows.map(row => ({ row, key: keyOf(row, b.run.lanes) })),
    (one, two) => one.key === two.key,
  );
  /** @type {(one: Keyed | null, two: Keyed | null) => Pair['kind']} */
  const kindOf = (one, two) => (!two ? 'a' : !one ? 'b' : one.row.text === two.row.text ? 'same' : 'changed');
  return {
    a,
    b,
    pairs: pairs
      .map(([one, two]) => ({ a: one?.row, b: two?.row, kind: kindOf(one, two) }))
      .filter(pair => (pair.a ?? pair.b)?.row !== 'gap' || (pair.a && pair.b)),
  };
}
