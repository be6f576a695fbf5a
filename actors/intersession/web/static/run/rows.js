// The rows of a diagram, of one run or of two, each drawn by what it is: a message, a mark on a lane, an end, or a
// stretch of silence; and the bars of the lanes that they stand on.
import { html } from '../base/drawing.js';
import { clock, counted, gapped, gave, given, parsed, ran, since, took, utc } from '../base/words.js';
import { hueOf } from '../parts/hues.js';
import { LINE, cut, lines, needsTwo, widthOf } from '../parts/text-width.js';
import { ofBoth, roomOf } from './layout.js';

const NOTABLE_MS = 100;
/** @param {number} gutter */
const left = gutter => (gutter ? gutter - 8 : 0);

/** @param {Drawn} props */
export const Row = ({ draw, ...given }) => {
  const { row } = given;
  if (row.row === 'gap') return html`<${Silence} ...${given} draw=${draw} />`;
  const lineY = row.row === 'arrow' ? given.y + given.tall - 26 : given.y + given.tall / 2;
  return html`
    <g
      class=${`row ${hueOfRow(row, draw.lanes)} ${given.future ? 'future' : ''}`}
      onClick=${() => draw.place.toPosition(row.position)}>
      <rect class="hit" x="0" y=${given.y} width=${draw.wide} height=${given.tall} />
      <${Gutter} ...${given} lineY=${lineY} draw=${draw} />
      <${RowLine} ...${given} grey=${given.future ? 'future' : ''} lineY=${lineY} draw=${draw} />
    </g>
  `;
};
// What is said of a row at its line, on the lanes of a run.
/** @param {{ row: Timed, grey: string, lineY: number, draw: LanesDrawn, count?: number, before?: Row }} given */
export const RowLine = given => {
  const { lanes, hidden } = given.draw;
  return html`<${kindOf(given.row, lanes, hidden.value)} ...${given} />`;
};
/** @param {Timed} row @param {Lane[]} lanes @param {Set<string>} hidden */
function kindOf(row, lanes, hidden) {
  if (row.row === 'arrow') return row.source === row.target ? ToItself : Message;
  if (row.lane === null || row.lane === undefined) return ToAll;
  return hidden.has(lanes[row.lane].id) ? Folded : OnLane;
}
/** @param {Timed} row @param {Lane[]} lanes */
export function hueOfRow(row, lanes) {
  const number = row.row === 'arrow' ? row.source : row.lane;
  return number === null || number === undefined ? '' : hueOf(lanes[number]);
}

/** @param {{ row: Timed, future: boolean, isHere: boolean, lineY: number, draw: Drawing }} given */
const Gutter = ({ row, future, isHere, lineY, draw }) => {
  if (draw.narrow) return null;
  const look = `${future ? 'future' : ''} ${isHere ? 'here' : ''}`;
  return html`
    <text class=${`pos ${look}`} x="16" y=${lineY + 4}>#${row.position}</text>
    <text class=${`tm ${look}`} x=${draw.gutter - 16} y=${lineY + 4}>
      ${since(ran(row.time, draw.run.pauses) - draw.start)}
      <title>${clock(row.time)}, ${utc(row.time)}</title>
    </text>
  `;
};

/** @param {{ row: Answers.Gap, y: number, tall: number, future: boolean, draw: LanesDrawn }} given */
export const Silence = ({ row, y, tall, future, draw }) => {
  const { xs, wide, gutter } = draw;
  const x = left(gutter);
  const middle = (xs[0] + xs[xs.length - 1]) / 2;
  return html`
    <g>
      <rect class="gap" x=${x} y=${y + 3} width=${wide - x} height=${tall - 8} />
      ${[y + 3, y + tall - 5].map(at => html`<line class="gapl" x1=${x} x2=${wide} y1=${at} y2=${at} />`)}
      ${xs.map(
        at => html`
          <g>
            <line class="brk" x1=${at} x2=${at} y1=${y + 4} y2=${y + tall - 6} />
            <path class="brk2" d=${`M${at - 6} ${y + 19}l6-9m0 9 6-9`} />
          </g>
        `,
      )}
      <text class=${`meta ${future ? 'future' : ''}`} x=${middle} y=${y + 18} text-anchor="middle">
        ${gapped(row)}
      </text>
    </g>
  `;
};

/** @param {{ row: Answers.Arrow, grey: string, lineY: number, draw: LanesDrawn }} given */
const ToItself = ({ row, grey, lineY, draw }) => {
  const x = draw.xs[row.source];
  return html`
    <circle class="dotm" cx=${x} cy=${lineY} r="4" />
    <text class=${`lab ${grey}`} x=${x + 12} y=${lineY + 4}>
      ${cut(`${row.how}: ${row.text}`, draw.wide - x - 24)}
    </text>
    <title>${row.text}</title>
  `;
};

// What stands below the arrow: which turn it is, how long it took, and what it cost, as far as there is room.
/** @param {{ how: string, tokens?: number | null }} row @param {number} gap @param {number} space */
function below(row, gap, space) {
  const more = [gap >= NOTABLE_MS ? took(gap) : '', row.tokens ? counted(row.tokens, 'token') : ''];
  let said = '';
  for (const one of more)
    if (one && widthOf(row.how, 'term') + widthOf(`${said} · ${one}`, 'small') < space) said += ` · ${one}`;
  return said;
}
// Words above a line, on one line or on two.
/** @param {{ said: string[], x: number, y: number, grey: string }} given */
const Words = ({ said, x, y, grey }) => html`
  <text class=${`lab ${grey}`} x=${x} y=${y - (said.length - 1) * LINE}>
    ${said.length === 1
      ? said[0]
      : said.map(
          (line, number) => html`<tspan x=${x} dy=${number ? LINE : 0}>${number ? line : `${line} `}</tspan>`,
        )}
  </text>
`;
// A message whose words need two lines is so much higher.
/** @param {Shape} shape */
export const moreFor = shape => (/** @type {Row | undefined} */ row) =>
  row?.row === 'arrow' && row.source !== row.target && needsTwo(row.text, roomOf(row, shape).space) ? LINE : 0;
/** @param {{ row: Answers.Arrow, grey: string, lineY: number, draw: LanesDrawn, before?: Row }} given */
const Message = ({ row, grey, lineY, draw, before }) => {
  const { xs, lanes, hidden } = draw;
  const a = xs[row.source];
  const b = xs[row.target];
  const source = lanes[row.source];
  const target = lanes[row.target];
  const off = hidden.value.has(source.id) || hidden.value.has(target.id) ? 'dash' : '';
  const way = b > a ? 1 : -1;
  const { x, space } = roomOf(row, draw);
  const words = row.text || '(no text)';
  const said = draw.onTwo ? lines(words, space) : [cut(words, space)];
  const gap = before?.time ? row.time - before.time : 0;
  return html`
    <line class=${`arr ${grey} ${off}`} x1=${a + 6 * way} x2=${b - 8 * way} y1=${lineY} y2=${lineY} />
    <path class="hd" d=${`M${b - 2 * way} ${lineY}l${-9 * way}-4.5v9Z`} />
    <${Words} said=${said} x=${x} y=${lineY - 8} grey=${grey} />
    <text class=${`meta ${grey}`} x=${x} y=${lineY + 16}>
      <tspan class="st">${cut(row.how, space, 'term')}</tspan>
      ${below(row, gap, space)}
    </text>
    <title>${source.name} → ${target.name}, ${row.how}: ${row.text}</title>
  `;
};

// What stands in brackets at the end is left out, where there is no room for it.
/** @param {string} text @param {number} room */
const endOf = (text, room) => (widthOf(text, 'strong') > room ? text.replace(/ \([^()]*\)([.]?)$/, '$1') : text);
// An end, or what nobody's lane has: a line over all of them, a double one where the run is over.
/** @param {{ row: Answers.Mark, grey: string, lineY: number, draw: LanesDrawn }} given */
const ToAll = ({ row, grey, lineY, draw }) => {
  const { xs, wide, gutter } = draw;
  const isEnd = row.kind === 'end';
  const isOver = isEnd && /is over/.test(row.text);
  const room = wide - gutter - 44;
  const text = cut(endOf(row.text, room), room, 'strong');
  const middle = (gutter + wide) / 2;
  const half = widthOf(text, 'strong') / 2 + 10;
  const from = gutter ? gutter - 4 : 4;
  /** @param {number} x1 @param {number} x2 @param {number} y */
  const line = (x1, x2, y) => html`<line class=${`endl ${grey}`} x1=${x1} x2=${x2} y1=${y} y2=${y} />`;
  return html`
    ${(isOver ? [lineY - 2, lineY + 2] : [lineY]).map(y => [
      line(from, Math.max(from, middle - half), y),
      line(Math.min(wide - 8, middle + half), wide - 8, y),
    ])}
    ${isEnd && !isOver
      ? ofBoth(draw.run, xs)
          .filter(x => Math.abs(x - middle) > half)
          .map(x => html`<rect class=${`end ${grey}`} x=${x - 4.5} y=${lineY - 4.5} width="9" height="9" />`)
      : null}
    <text
      class=${`lab strong ${row.kind === 'failed' ? 'badt' : ''} ${grey}`}
      x=${middle}
      y=${lineY + 4}
      text-anchor="middle">
      ${text}
    </text>
    <title>${row.text}</title>
  `;
};

/** @param {{ row: Answers.Mark & { lane: number }, lineY: number, count: number, draw: LanesDrawn }} given */
const Folded = ({ row, lineY, count, draw }) => {
  const x = draw.xs[row.lane];
  return html`
    <circle class="dotm" cx=${x} cy=${lineY} r=${count > 1 ? 8 : 3} />
    ${count > 1 ? html`<text class="count" x=${x} y=${lineY + 4} text-anchor="middle">${count}</text>` : null}
    <title>${counted(count, 'event')} of ${draw.lanes[row.lane].name}</title>
  `;
};

/** @param {number} x @param {number} y @param {Part} sign */
const ring = (x, y, sign) => html`
  <g><circle class="okc" cx=${x} cy=${y} r="8" /><path class="okc" d=${sign} /></g>
`;
/** @param {Answers.Mark} row @param {Lane} lane @param {number} x @param {number} y @param {string} grey */
function signOf(row, lane, x, y, grey) {
  if (row.kind === 'tool') return html`<path class="tool" d=${`M${x} ${y - 7}l7 7-7 7-7-7Z`} />`;
  if (row.kind === 'failed')
    return html`<path class=${`badx ${grey}`} d=${`M${x - 5} ${y - 5}l10 10m0-10-10 10`} />`;
  if (lane.kind !== 'channel' || row.kind !== 'note') return html`<circle class="dotm" cx=${x} cy=${y} r="4" />`;
  const withheld = /withheld|would (be )?deliver/i.test(row.text);
  return ring(x, y, withheld ? `M${x - 5.5} ${y + 5.5}l11-11` : `M${x - 4} ${y}l3 3 5-6`);
}
// What a tool was given, or gave, in words; all else as it stands.
const TOOL = /^(calls|gets from) (\S+) (.*)$/s;
/** @param {Answers.Mark} row */
function wordsOf(row) {
  const found = row.kind === 'tool' && TOOL.exec(row.text);
  if (!found) return row.text;
  const [, how, name, text] = found;
  return how === 'calls' ? `calls ${name} ${given(parsed(text))}` : `${name} gave ${gave(text)}`;
}
/** @param {{ row: Answers.Mark & { lane: number }, grey: string, lineY: number, draw: LanesDrawn }} given */
const OnLane = ({ row, grey, lineY, draw }) => {
  const { xs, lanes, wide, gutter, narrow } = draw;
  const x = xs[row.lane];
  const lane = lanes[row.lane];
  const toTheLeft = (row.lane === lanes.length - 1 && lanes.length > 1) || x > wide * 0.66;
  const next = narrow ? wide : (xs[row.lane + 1] ?? wide);
  const space = toTheLeft ? x - (row.lane ? xs[row.lane - 1] : gutter) - 32 : next - x - 28;
  return html`
    ${signOf(row, lane, x, lineY, grey)}
    <text
      class=${`meta ${row.kind === 'failed' ? 'badt' : ''} ${grey}`}
      x=${toTheLeft ? x - 14 : x + 14}
      y=${lineY + 4}
      text-anchor=${toTheLeft ? 'end' : 'start'}>
      ${cut(wordsOf(row), space, 'small')}
    </text>
    <title>${lane.name}: ${row.text}</title>
  `;
};

// When a session was at work, or waited for a tool (`waits`, hatched).
/** @param {{ lane: Lane, x: number, above: number, under: number, waits: boolean, grey: boolean }} given */
export const Bar = ({ lane, x, above, under, waits, grey }) => html`
  <rect
    class=${`${waits ? 'wait-bar' : 'work-bar'} ${hueOf(lane)} ${grey ? 'future' : ''}`}
    fill=${waits ? 'url(#hatch)' : null}
    x=${x - 4}
    y=${above}
    width="8"
    height=${Math.max(8, under - above)}
    rx="2" />
`;
// What a session does while it waits for a tool.
export const Hatch = () => html`
  <defs>
    <pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <rect class="hatching" width="2" height="5" />
    </pattern>
  </defs>
`;
