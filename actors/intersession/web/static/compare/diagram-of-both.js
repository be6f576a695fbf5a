// Two runs in one diagram, row by row: what is the same, what was said otherwise, what only one of them has,
// and where a fork was cut.
import { createRef, html, signal, view } from '../base/drawing.js';
import { gapped } from '../base/words.js';
import { Failed, Loading } from '../parts/answers.js';
import { hueOf } from '../parts/hues.js';
import { Badge } from '../parts/speakers.js';
import { Seg } from '../parts/tabs.js';
import { LINE, cut, lines, needsTwo, widthOf } from '../parts/text-width.js';
import { calledBy, ofBoth, waiting, working } from '../run/layout.js';
import { Hatch, Words, endOf, signOf } from '../run/rows.js';
import { provenIn } from './proven-beginning.js';

/** @type {SideName[]} */
const SIDES = ['a', 'b'];
const LEAST = 760;
const ROW = 52;
const GAP = 26;
const HEAD = 8;
/** @type {Record<Pair['kind'], string>} */
const SIGNS = { same: '=', changed: '≠', a: 'A', b: 'B' };
/** @type {Record<Pair['kind'], string>} */
const SAID = { same: 'the same', changed: 'other words', a: 'only in A', b: 'only in B' };
/** @type {(side: SideName) => Signal<SideName>} */
const side = name => signal(name);
// `both` is what `bothOf` gave, `failed` why it gave nothing.
/**
 * @type {View<{
 *   found: Answers.CompareAnswer,
 *   both: Both | null,
 *   failed: Error | null,
 *   other: string,
 *   pick?: ((pair: Pair) => void),
 * }>}
 */
export const Beside = view(({ found, both, failed, other, pick }, self) => {
  const state = self.once(() => {
    const made = { box: createRef(), wide: signal(0), side: side('b'), measure: () => {} };
    made.measure = () => {
      const now = made.box.current?.clientWidth;
      if (now && now !== made.wide.peek()) made.wide.value = now;
    };
    addEventListener('resize', made.measure);
    self.onEnd(() => removeEventListener('resize', made.measure));
    return made;
  });
  queueMicrotask(state.measure);
  if (failed) return html`<${Failed} error=${failed} />`;
  if (!both) return html`<${Loading}/>`;
  const { a, b, pairs } = both;
  // Where there is no room for two, one of both is drawn, and which one can be chosen.
  const one = state.wide.value && state.wide.value < LEAST ? state.side.value : null;
  /** @type {SideName[]} */
  const sides = one ? [one] : ['a', 'b'];
  const wide = state.wide.value || LEAST;
  const middle = one ? wide - 24 : wide / 2;
  /** @param {Side} side @param {number} from */
  const shape = (side, from) => {
    const first = one ? 24 : from + (side === a ? 62 : 40);
    const last = one ? middle - 40 : from + middle - (side === a ? 40 : 62);
    const share = side.run.lanes
      .slice(1)
      .map((lane, number) => (lane.kind === 'channel' || side.run.lanes[number].kind === 'person' ? 0.55 : 1));
    const all = share.reduce((sum, one) => sum + one, 0) || 1;
    let x = first;
    return [x, ...share.map(one => (x += ((last - first) * one) / all))].slice(0, side.run.lanes.length);
  };
  const xs = { a: shape(a, 0), b: shape(b, one ? 0 : middle) };
  // Up to the first cut both have the same positions; behind it each has its own.
  /** @param {Pair} pair @param {Answers.CutAnswer} made @param {boolean} first */
  const isBehind = (pair, made, first) =>
    SIDES.some(side => (first || side === made.side) && (pair[side]?.position ?? 0) > made.position);
  /** @type {CutDrawn[]} */
  const cuts = found.cuts
    .map((made, number) => ({
      ...made,
      at: pairs.findIndex(pair => isBehind(pair, made, number === 0)),
      again: found.cuts.slice(0, number).some(other => other.side === made.side),
    }))
    .filter(made => made.at >= 0);
  const cutAt = cuts[0]?.at ?? -1;
  // Both rows of a pair are so much higher, where the words of either need two lines.
  /** @param {SideName} side @param {{ source: number, target: number }} row */
  const roomIn = (side, row) => {
    const [from, to] = [xs[side][row.source], xs[side][row.target]];
    return one ? wide - Math.min(from, to) - 34 : Math.abs(to - from) - 24;
  };
  /** @param {SideName} side @param {Row} [row] */
  const isLong = (side, row) =>
    row?.row === 'arrow' && row.source !== row.target && sides.includes(side) && needsTwo(row.text, roomIn(side, row));
  const mores = pairs.map(pair => (isLong('a', pair.a) || isLong('b', pair.b) ? LINE : 0));
  let y = HEAD;
  const tops = pairs.map((pair, number) => {
    for (const one of cuts)
      if (one.at === number) {
        one.y = y;
        y += 32;
      }
    const top = y;
    y += (pair.a ?? pair.b)?.row === 'gap' ? GAP : ROW + mores[number];
    return top;
  });
  const tall = y + 16;
  const lanes = { a: a.run.lanes, b: b.run.lanes };
  const bars = sides.flatMap(side => barsOf(side, both[side], pairs, tops, mores, tall));
  const proven = provenIn(found, both, other);
  return html`
    ${one
      ? html`
          <div class="bar">
            <${Seg}
              label="Which one is drawn"
              value=${one}
              options=${[
                ['a', 'A'],
                ['b', other ? 'B, the fork' : 'B'],
              ]}
              onChange=${(/** @type {SideName} */ side) => {
                state.side.value = side;
              }} />
          </div>
        `
      : null}
    <div class="scroll beside" ref=${state.box} tabindex="0" role="region" aria-label="Both runs, side by side">
      <div class="lanes" style=${{ width: `${wide}px` }}>
        ${sides.map(
          side => html`
            ${one
              ? null
              : html`
                  <span class=${`ab ${side} side`} style=${{ left: `${side === 'a' ? 12 : middle - 10}px` }}>
                    ${side.toUpperCase()}
                  </span>
                `}
            ${lanes[side].map(
              (lane, number) => html`
                <span
                  class=${`lane ${number === lanes[side].length - 1 && number ? 'r' : ''}`}
                  title=${lane.id}
                  style=${number === lanes[side].length - 1 && number
                    ? { right: `${wide - xs[side][number] - 14}px` }
                    : { left: `${xs[side][number] - 14}px` }}>
                  <${Badge} lane=${lane} />
                  ${isOutside(lane) && lanes[side].length > 2
                    ? html`<span class="vh">${lane.name}</span>`
                    : html`<b style=${{ maxWidth: `${roomFor(xs[side], number, wide)}px` }}>${lane.name}</b>`}
                </span>
              `,
            )}
          `,
        )}
      </div>
      <svg class="dg still" role="img" aria-labelledby="bs-title bs-desc" width=${wide} height=${tall}>
        <title id="bs-title">A and B side by side</title>
        <desc id="bs-desc">The table below has the same, part by part.</desc>
        <${Hatch}/>
        ${sides.map(side => xs[side].map(x => html`<line class="life" x1=${x} x2=${x} y1="0" y2=${tall} />`))}
        ${cutAt > 0 ? html`<rect class="shared" x="0" y="0" width=${wide} height=${cuts[0].y} />` : null}
        ${sides.map(side => xs[side].map(x => html`<line class="life" x1=${x} x2=${x} y1="0" y2=${tall} />`))}
        ${bars.map(({ side, lane, above, under, to, waits }) => {
          const isShared = side === 'b' && cutAt > 0 && to <= cuts[0].position;
          return html`
            <rect
              class=${`${waits ? 'wait-bar' : 'work-bar'} ${hueOf(lanes[side][lane])} ${isShared ? 'future' : ''}`}
              fill=${waits ? 'url(#hatch)' : null}
              x=${xs[side][lane] - 4}
              y=${above}
              width="8"
              height=${Math.max(8, under - above)}
              rx="2" />
          `;
        })}
        ${pairs.map(
          (pair, number) => html`
            <g key=${number} class=${`pair ${pair.kind}`}>
              ${sides.map(side =>
                pair[side]
                  ? html`
                      <${Half}
                        row=${pair[side]}
                        y=${tops[number]}
                        more=${mores[number]}
                        xs=${xs[side]}
                        run=${both[side].run}
                        grey=${side === 'b' && cutAt > 0 && number < cutAt}
                        alone=${Boolean(one)}
                        right=${side === 'b'}
                        from=${one || side === 'a' ? 0 : middle}
                        wide=${middle} />
                    `
                  : html`
                      <text
                        class="meta"
                        x=${(one || side === 'a' ? 0 : middle) + middle / 2}
                        y=${tops[number] + 30}
                        text-anchor="middle">
                        not in ${side.toUpperCase()}
                      </text>
                    `,
              )}
              ${(pair.a ?? pair.b)?.row === 'gap'
                ? null
                : html`
                    <g class="sign" onClick=${() => pick?.(pair)}>
                      <rect
                        class=${pair.kind === 'same' ? 'eq' : 'ne'}
                        x=${middle - 14}
                        y=${tops[number] + 14 + mores[number]}
                        width="28"
                        height="24"
                        rx="3" />
                      <text x=${middle} y=${tops[number] + 31 + mores[number]} text-anchor="middle">
                        ${SIGNS[pair.kind]}
                      </text>
                      <title>${SAID[pair.kind]}</title>
                    </g>
                  `}
            </g>
          `,
        )}
        ${cuts.map(
          (made, number) => html`
            <g>
              <rect class="placebg" x="0" y=${(made.y ?? 0) + 4} width=${wide} height="24" />
              <rect class="placeband" x="0" y=${(made.y ?? 0) + 4} width=${wide} height="2" />
              <text class="placetx" x="12" y=${(made.y ?? 0) + 21}>
                ${made.side?.toUpperCase()} was cut ${made.again ? 'again ' : ''}after #${made.position}
              </text>
              ${one || number
                ? null
                : html`<text class="placetx r" x=${wide - 12} y=${(made.y ?? 0) + 21}>above: ${sameAs(proven)}</text>`}
            </g>
          `,
        )}
      </svg>
    </div>
  `;
});

// Whoever is no session has little room: the badge stands for the name, which a pointer shows.
/** @param {Lane} lane */
const isOutside = lane => ['channel', 'person', 'operator'].includes(lane.kind);

const BADGES = 44; // half of two badges, and the space between them and a name
/** @param {number[]} xs @param {number} number @param {number} wide */
const roomFor = (xs, number, wide) => Math.max(24, (xs[number + 1] ?? wide) - xs[number] - BADGES);

/** @param {ReturnType<typeof provenIn>} proven */
const sameAs = proven =>
  proven?.ok
    ? `the same in both, ${proven.events}proved by hash`
    : proven
      ? 'not proved to be the same'
      : 'the same in both';

// When each session was at work, from the line behind which it began to the line of its last words.
/** @param {number} number @param {number[]} tops @param {number[]} mores */
const lineIn = (number, tops, mores) => tops[number] + 30 + mores[number];
/**
 * @param {SideName} side
 * @param {{ run: Run, steps: Step[] }} how
 * @param {Pair[]} pairs
 * @param {number[]} tops
 * @param {number[]} mores
 * @param {number} tall
 */
function barsOf(side, { run, steps }, pairs, tops, mores, tall) {
  const calling = calledBy(run);
  /** @param {boolean} waits */
  const made = waits => (/** @type {Stretch} */ [lane, from, to]) => {
    const rows = pairs.map((pair, number) => ({ at: pair[side]?.position, number }));
    const before = rows.findLast(({ at }) => at && at <= from);
    const behind = rows.find(({ at }) => at && at >= to);
    const above = before ? lineIn(before.number, tops, mores) : HEAD;
    const under = behind ? lineIn(behind.number, tops, mores) : tall - 16;
    return { side, lane, to, waits, above: above + 2, under: under + 2 };
  };
  return [
    ...[...calling.works, ...working(steps, run.lanes)].map(made(false)),
    ...[...calling.waits, ...waiting(steps, run.lanes)].map(made(true)),
  ];
}

/**
 * @param {{
 *   row: Row,
 *   y: number,
 *   more: number,
 *   xs: number[],
 *   run: Run,
 *   grey: boolean,
 *   right: boolean,
 *   from: number,
 *   wide: number,
 *   alone: boolean,
 * }} given
 */
const Half = ({ row, y, more, xs, run, grey, right, from, wide, alone }) => {
  const { lanes } = run;
  const line = y + 30 + more;
  const dim = grey ? 'future' : '';
  if (row.row === 'gap')
    return html`
      <text class=${`meta ${dim}`} x=${from + wide / 2} y=${y + 16} text-anchor="middle">
        ${gapped(row)}
      </text>
    `;
  const at = alone
    ? null
    : html`
    <text
      class=${`pos ${dim}`}
      x=${right ? from + wide - 10 : from + 10}
      y=${line + 4}
      text-anchor=${right ? 'end' : 'start'}>
      #${row.position}
    </text>
  `;
  if (row.row === 'arrow' && row.source !== row.target) {
    const a = xs[row.source];
    const b = xs[row.target];
    const way = b > a ? 1 : -1;
    const space = alone ? wide - Math.min(a, b) - 34 : Math.abs(b - a) - 24;
    const withheld = row.how === 'would deliver' || /withheld/.test(row.how);
    return html`
      <g class=${`${hueOf(lanes[row.source])} ${dim}`}>
        ${at}
        <line
          class=${`arr ${dim} ${withheld ? 'dash' : ''}`}
          x1=${a + 6 * way}
          x2=${b - 8 * way}
          y1=${line}
          y2=${line} />
        <path class="hd" d=${`M${b - 2 * way} ${line}l${-9 * way}-4.5v9Z`} />
        <${Words} said=${lines(row.text || '(no text)', space)} x=${Math.min(a, b) + 12} y=${line - 7} grey=${dim} />
        <text class=${`meta ${dim}`} x=${Math.min(a, b) + 12} y=${line + 15}>
          <tspan class="st">${cut(row.how, space, 'term')}</tspan>
        </text>
        <title>${row.how}: ${row.text}</title>
      </g>
    `;
  }
  const lane = row.row === 'arrow' ? row.source : row.lane;
  if (lane === null || lane === undefined)
    return html`
      <${OverAll}
        row=${row}
        run=${run}
        xs=${xs}
        line=${line}
        dim=${dim}
        room=${wide - (alone ? 40 : 110)}
        at=${at} />
    `;
  const last = lane === lanes.length - 1 && lanes.length > 1;
  return html`
    <g class=${`${hueOf(lanes[lane])} ${dim}`}>
      ${at}
      ${signOf(/** @type {Answers.Mark} */ (row), lanes[lane], xs[lane], line, dim)}
      <text
        class=${`meta ${dim}`}
        x=${xs[lane] + (last ? -14 : 14)}
        y=${line + 4}
        text-anchor=${last ? 'end' : 'start'}>
        ${cut(
          row.text,
          last ? xs[lane] - (xs[lane - 1] ?? from) - 24 : (xs[lane + 1] ?? from + wide) - xs[lane] - 24,
          'small',
        )}
      </text>
      <title>${row.text}</title>
    </g>
  `;
};
// An end, as in the diagram of a run: a line over all lanes, a double one where the run is over.
/**
 * @param {{
 *   row: Timed,
 *   run: Run,
 *   xs: number[],
 *   line: number,
 *   dim: string,
 *   room: number,
 *   at: Part,
 * }} given
 */
const OverAll = ({ row, run, xs, line, dim, room, at }) => {
  const isEnd = row.kind === 'end';
  const isOver = isEnd && /is over/.test(row.text);
  const said = cut(endOf(row.text, room), room, 'strong');
  const [first, last] = [xs[0], xs[xs.length - 1]];
  const middle = (first + last) / 2;
  const half = widthOf(said, 'strong') / 2 + 10;
  const ends = [
    [first - 8, middle - half],
    [middle + half, last + 8],
  ].filter(([from, to]) => isEnd && to - from > 12);
  return html`
    <g class=${dim}>
      ${at}
      ${ends.map(([from, to]) =>
        (isOver ? [line - 2, line + 2] : [line]).map(
          y => html`<line class=${`endl ${dim}`} x1=${from} x2=${to} y1=${y} y2=${y} />`,
        ),
      )}
      ${isEnd && !isOver
        ? ofBoth(run, xs)
            .filter(x => Math.abs(x - middle) > half)
            .map(x => html`<rect class=${`end ${dim}`} x=${x - 4.5} y=${line - 4.5} width="9" height="9" />`)
        : null}
      <text
        class=${`lab strong ${row.kind === 'failed' ? 'badt' : ''} ${dim}`}
        x=${middle}
        y=${line + 4}
        text-anchor="middle">
        ${said}
      </text>
      <title>${row.text}</title>
    </g>
  `;
};
