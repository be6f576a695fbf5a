// Two runs in one diagram, row by row: what is the same, what was said otherwise, what only one of them has,
// and where a fork was cut.
import { createRef, html, signal, view } from '../base/drawing.js';
import { Failed, Loading } from '../parts/answers.js';
import { Badge } from '../parts/speakers.js';
import { Seg } from '../parts/tabs.js';
import { calledBy, waiting, working } from '../run/layout.js';
import { Bar, Hatch, RowLine, Silence, hueOfRow, moreFor } from '../run/rows.js';
import { provenIn } from './proven-beginning.js';

/** @type {SideName[]} */
const SIDES = ['a', 'b'];
const LEAST = 760;
const ROW = 52;
const GAP = 30;
const HEAD = 8;
/** @type {Record<Pair['kind'], string>} */
const SIGNS = { same: '=', changed: '≠', a: 'A', b: 'B' };
/** @type {Record<Pair['kind'], string>} */
const SAID = { same: 'the same', changed: 'other words', a: 'only in A', b: 'only in B' };
/** @type {(side: SideName) => Signal<SideName>} */
const side = name => signal(name);
/** @type {Signal<Set<string>>} */
const NONE_HIDDEN = signal(new Set());
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
  const { pairs } = both;
  // Where there is no room for two, one of both is drawn, and which one can be chosen.
  const one = state.wide.value && state.wide.value < LEAST ? state.side.value : null;
  /** @type {SideName[]} */
  const sides = one ? [one] : ['a', 'b'];
  const wide = state.wide.value || LEAST;
  const middle = one ? wide - 24 : wide / 2;
  // The lanes of a side, counted from where it begins; the numbers of its rows stand at the outer edge.
  /** @param {SideName} name */
  const lanesOf = name => {
    const { run } = both[name];
    const first = one ? 24 : name === 'a' ? 62 : 40;
    const last = middle - (one || name === 'a' ? 40 : 62);
    const share = run.lanes
      .slice(1)
      .map((lane, number) => (lane.kind === 'channel' || run.lanes[number].kind === 'person' ? 0.55 : 1));
    const all = share.reduce((sum, one) => sum + one, 0) || 1;
    let x = first;
    const xs = [x, ...share.map(one => (x += ((last - first) * one) / all))].slice(0, run.lanes.length);
    const room = { narrow: Boolean(one), gutter: one ? 0 : first - 4, wide: one ? middle : last + 16 };
    return { ...room, xs, run, lanes: run.lanes, hidden: NONE_HIDDEN, onTwo: true };
  };
  const drawn = { a: lanesOf('a'), b: lanesOf('b') };
  const from = { a: 0, b: one ? 0 : middle };
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
  const mores = pairs.map(pair => Math.max(...sides.map(side => moreFor(drawn[side])(pair[side]))));
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
  /** @param {SideName} side */
  const lives = side =>
    drawn[side].xs.map(x => html`<line class="life" x1=${x} x2=${x} y1="0" y2=${tall} />`);
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
            <${Heads} lanes=${drawn[side].lanes} xs=${drawn[side].xs.map(x => from[side] + x)} wide=${wide} />
          `,
        )}
      </div>
      <svg class="dg still" role="img" aria-labelledby="bs-title bs-desc" width=${wide} height=${tall}>
        <title id="bs-title">A and B side by side</title>
        <desc id="bs-desc">The table below has the same, part by part.</desc>
        <${Hatch}/>
        ${cutAt > 0 ? html`<rect class="shared" x="0" y="0" width=${wide} height=${cuts[0].y} />` : null}
        ${sides.map(
          side => html`
            <g transform=${`translate(${from[side]} 0)`}>
              ${lives(side)}
              ${barsOf(side, both[side], pairs, tops, mores, tall).map(({ lane, above, under, to, waits }) => {
                const { lanes, xs } = drawn[side];
                const isShared = side === 'b' && cutAt > 0 && to <= cuts[0].position;
                const look = { lane: lanes[lane], x: xs[lane], above, under, waits, grey: isShared };
                return html`<${Bar} ...${look} />`;
              })}
            </g>
          `,
        )}
        ${pairs.map(
          (pair, number) => html`
            <g key=${number} class=${`pair ${pair.kind}`}>
              ${sides.map(
                side => html`
                  <g transform=${`translate(${from[side]} 0)`}>
                    ${pair[side]
                      ? html`
                          <${Half}
                            row=${pair[side]}
                            y=${tops[number]}
                            more=${mores[number]}
                            draw=${drawn[side]}
                            grey=${side === 'b' && cutAt > 0 && number < cutAt}
                            at=${one ? null : side === 'b' ? middle - 10 : 10} />
                        `
                      : html`
                          <text class="meta" x=${middle / 2} y=${tops[number] + 30} text-anchor="middle">
                            not in ${side.toUpperCase()}
                          </text>
                        `}
                  </g>
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

/** @param {{ lanes: Lane[], xs: number[], wide: number }} given */
const Heads = ({ lanes, xs, wide }) =>
  lanes.map((lane, number) => {
    const isLast = number === lanes.length - 1 && number > 0;
    return html`
      <span
        class=${`lane ${isLast ? 'r' : ''}`}
        title=${lane.id}
        style=${isLast ? { right: `${wide - xs[number] - 14}px` } : { left: `${xs[number] - 14}px` }}>
        <${Badge} lane=${lane} />
        ${isOutside(lane) && lanes.length > 2
          ? html`<span class="vh">${lane.name}</span>`
          : html`<b style=${{ maxWidth: `${roomFor(xs, number, wide)}px` }}>${lane.name}</b>`}
      </span>
    `;
  });
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
    return { lane, to, waits, above: above + 2, under: under + 2 };
  };
  return [
    ...[...calling.works, ...working(steps, run.lanes)].map(made(false)),
    ...[...calling.waits, ...waiting(steps, run.lanes)].map(made(true)),
  ];
}

// A row of one side; `at` is where its number stands, at the edge that it is nearer to.
/** @param {{ row: Row, y: number, more: number, draw: LanesDrawn, grey: boolean, at: number | null }} given */
const Half = ({ row, y, more, draw, grey, at }) => {
  if (row.row === 'gap') return html`<${Silence} row=${row} y=${y} tall=${GAP} future=${grey} draw=${draw} />`;
  const lineY = y + 30 + more;
  const dim = grey ? 'future' : '';
  return html`
    <g class=${`${hueOfRow(row, draw.lanes)} ${dim}`}>
      ${at === null
        ? null
        : html`
            <text class=${`pos ${dim}`} x=${at} y=${lineY + 4} text-anchor=${at > 10 ? 'end' : 'start'}>
              #${row.position}
            </text>
          `}
      <${RowLine} row=${row} grey=${dim} lineY=${lineY} draw=${draw} />
    </g>
  `;
};
