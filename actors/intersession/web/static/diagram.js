// The sequence diagram of a run: lanes, and the rows that can be seen. What is behind the place is grey, thin, dotted.
import { createRef, html, kept, signal, view } from './lib.js';
import { Badge, KINDS, hueOf } from './parts.js';
import { clock, counted, since, took, utc } from './words.js';

const HEIGHT = { a: 56, m: 34, g: 30 };
const BAND = 30;
const HEAD = 12;
const LETTER = 6.7;
const WIDE = 7.6;
const cut = (text, width, letter = LETTER) => {
  const line = text.replace(/\s+/g, ' ').trim();
  const most = Math.max(8, Math.floor(width / letter));
  return line.length > most ? `${line.slice(0, most - 1).trimEnd()}…` : line;
};

// Where every row lies; with `times`, the space between rows is what lay between them.
function laid(place, kinds, spread, folded) {
  const tops = new Float64Array(kinds.length + 1);
  tops[0] = HEAD;
  for (let number = 0; number < kinds.length; number++) {
    let more = 0;
    if (spread && number) {
      const now = place.rows[number]?.time;
      const before = place.rows.slice(0, number).findLast(row => row?.time)?.time;
      if (now && before) more = Math.min(240, (now - before) * spread);
    }
    tops[number + 1] = tops[number] + (folded(number) ? 0 : HEIGHT[kinds[number]] + more);
  }
  return tops;
}
const rowAt = (tops, y) => {
  let low = 0;
  let high = tops.length - 1;
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if (tops[mid] <= y) low = mid;
    else high = mid - 1;
  }
  return Math.min(low, tops.length - 2);
};

// When each session was at work: a bar on its lane, from the start of a run to its end.
const OVER = new Set(['run_completed', 'run_failed', 'run_aborted']);
export function working(steps, lanes) {
  const bars = [];
  const open = new Map();
  for (const step of steps) {
    if (!step) continue;
    const lane = lanes.findIndex(one => one.id === step.stream.slice(8));
    if (lane < 0 || !step.stream.startsWith('session:')) continue;
    if (step.kind === 'run_started') {
      if (!open.has(lane)) open.set(lane, step.position);
    } else if (OVER.has(step.kind) && open.has(lane)) {
      bars.push([lane, open.get(lane), step.position]);
      open.delete(lane);
    }
  }
  for (const [lane, from] of open) bars.push([lane, from, Infinity]);
  return bars;
}

export const Diagram = view(({ place, hidden, timed }, self) => {
  const state = self.once(() => {
    const made = { box: createRef(), size: signal({ width: 0, top: 0, height: 900 }) };
    const measure = () => {
      const box = made.box.current;
      if (!box) return;
      const rect = box.getBoundingClientRect();
      const known = made.size.peek();
      const next = {
        width: box.clientWidth,
        top: Math.max(0, box.scrollTop, -rect.top),
        height: Math.min(innerHeight, Math.max(box.clientHeight, 200)),
      };
      made.scrolls = getComputedStyle(box).overflowY !== 'visible';
      made.top = box.scrollTop;
      if (
        next.width !== known.width ||
        Math.abs(next.top - known.top) > 40 ||
        Math.abs(next.height - known.height) > 4
      )
        made.size.value = next;
    };
    addEventListener('scroll', measure, { capture: true, passive: true });
    const watch = new ResizeObserver(measure);
    self.onEnd(() => {
      removeEventListener('scroll', measure, { capture: true });
      watch.disconnect();
    });
    made.watch = box => {
      if (box && box !== made.watched) {
        watch.disconnect();
        watch.observe(box);
        made.watched = box;
      }
    };
    return made;
  });
  queueMicrotask(() => state.watch(state.box.current));
  const run = place.run.value;
  const position = place.position.value;
  const { width, top, height } = state.size.value;
  const loaded = place.loaded.value;
  const lanes = run.lanes;
  const kinds = run.kinds;
  const narrow = width < 560;
  const gutter = narrow ? 0 : 128;
  const least = narrow ? 72 : 150;
  const first = gutter + (narrow ? 22 : 26);
  const end = narrow ? 22 : 44;
  const step = lanes.length > 1 ? Math.min(640, Math.max(least, (width - first - end) / (lanes.length - 1))) : 0;
  const wide = Math.max(width, first + step * (lanes.length - 1) + end);
  const xs = lanes.map((_, number) => first + step * number);
  const isFolded = number => {
    const row = place.rows[number];
    const before = place.rows[number - 1];
    return (
      hidden.value.size > 0 &&
      row?.row === 'mark' &&
      before?.row === 'mark' &&
      row.lane !== null &&
      row.lane === before.lane &&
      hidden.value.has(lanes[row.lane]?.id)
    );
  };
  const total = run.tookMs || 1;
  const tops = kept(self, 'tops', [run, loaded, timed, hidden.value], () =>
    laid(place, kinds, timed && kinds.length <= 2000 ? 1200 / total : 0, isFolded),
  );
  let hereRow = -1;
  // What was said has happened when it was said, before it reaches the other's transcript.
  for (let number = kinds.length - 1; number >= 0; number--) {
    const row = place.rows[number];
    if (row?.position && place.saidAt(number) <= position) {
      hereRow = number;
      break;
    }
  }
  const bandY = hereRow < 0 ? HEAD / 2 : tops[hereRow + 1];
  const tall = tops[kinds.length] + BAND + 24;
  const from = Math.max(0, rowAt(tops, top - 400));
  const to = Math.min(kinds.length - 1, rowAt(tops, top + height + 400));
  const shown = [];
  for (let number = from; number <= to; number++) {
    const row = place.rows[number];
    if (row) shown.push([number, row]);
    else place.needRow(number);
  }
  if (state.at !== hereRow && width) {
    const before = state.at;
    state.at = hereRow;
    // Nothing of the layout is asked for here: it would be made anew for each step.
    queueMicrotask(() => {
      const box = state.box.current;
      if (box && state.scrolls && (bandY < state.top + 40 || bandY > state.top + height - 110))
        box.scrollTop = state.top = Math.max(0, bandY - height * (before === undefined ? 0.55 : 0.5));
    });
  }
  const start = place.rows.find(row => row?.time)?.time ?? 0;
  const said = place.said.value;
  const words = said && said.place.position === position ? said.place.text : `after #${position}`;
  const next = said && said.place.position === position ? said.next : null;
  const then = next && !narrow ? cut(`next: ${next.text}`, width * 0.3) : '';
  const draw = { place, lanes, xs, wide, narrow, gutter, position, hidden, start };
  const yOf = at => {
    let low = 0;
    let high = kinds.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      const row = nextTimed(place.rows, mid);
      if (row === null || row.position > at) high = mid;
      else low = mid + 1;
    }
    return tops[low] + (low > hereRow + 1 ? BAND : 0);
  };
  const bars =
    run.steps <= 5000
      ? kept(self, 'bars', [run, loaded], () => working(place.steps, lanes))
          .map(([lane, from, to]) => [
            lane,
            yOf(from) - 26,
            to === Infinity ? tall - 24 : yOf(to) + 26,
            from > position,
          ])
          .filter(([, a, b]) => b > top - 400 && a < top + height + 400)
      : [];
  const marks = [
    ...(run.smells ?? []).map(smell => ({ smell, at: smell.place.position })),
    ...(place.notes.value ?? []).map(note => ({ note, at: note.place.position })),
  ]
    .map(mark => ({ ...mark, y: yOf(mark.at) - 17 }))
    .filter(mark => mark.y > top - 400 && mark.y < top + height + 400);
  const toggle = id => {
    const after = new Set(hidden.peek());
    if (!after.delete(id)) after.add(id);
    hidden.value = after;
  };
  return html`
    <div class="scroll" ref=${state.box}>
      <div class="lanes" style=${{ width: `${wide}px` }}>
        ${lanes.map((lane, number) => {
          const off = hidden.value.has(lane.id);
          const last = number === lanes.length - 1 && lanes.length > 1;
          return html`
            <button
              type="button"
              class=${`lane ${off ? 'off' : ''} ${last ? 'r' : ''}`}
              aria-pressed=${off}
              title=${`${lane.id}: ${off ? 'show' : 'hide'} this lane`}
              style=${last
                ? { right: `${wide - xs[number] - (narrow ? 12 : 14)}px` }
                : { left: `${xs[number] - (narrow ? 12 : 14)}px` }}
              onClick=${() => toggle(lane.id)}>
              <${Badge} lane=${lane} />
              <span>
                <b>${lane.name}</b>
                <small>${KINDS[lane.kind] ?? lane.kind}${off ? ', hidden' : ''}</small>
              </span>
            </button>
          `;
        })}
      </div>
      <div style=${{ height: `${tall}px`, position: 'relative', width: `${wide}px` }}>
        <svg class="dg" role="img" aria-labelledby="dg-title dg-desc" width=${wide} height=${tall}>
          <title id="dg-title">Sequence diagram: ${run.title}</title>
          <desc id="dg-desc">
            ${lanes.map(lane => lane.name).join(', ')}. You are ${words}. The table has the same.
          </desc>
          ${xs.map(
            (x, number) => html`
              <g>
                <line
                  class=${`life ${hidden.value.has(lanes[number].id) ? 'off' : ''}`}
                  x1=${x}
                  x2=${x}
                  y1="0"
                  y2=${bandY} />
                <line class="life nx" x1=${x} x2=${x} y1=${bandY} y2=${tall} />
              </g>
            `,
          )}
          ${bars.map(
            ([lane, a, b, later]) => html`
              <rect
                class=${`work-bar ${hueOf(lanes[lane].kind, lanes[lane].id)} ${later ? 'future' : ''}`}
                x=${xs[lane] - 4}
                y=${a}
                width="8"
                height=${Math.max(8, b - a)}
                rx="2" />
            `,
          )}
          ${shown
            .filter(([number]) => !isFolded(number))
            .map(
              ([number, row]) => html`
                <${Row}
                  key=${number}
                  row=${row}
                  y=${tops[number] + (number > hereRow ? BAND : 0)}
                  tall=${tops[number + 1] - tops[number]}
                  future=${number > hereRow}
                  isHere=${number === hereRow}
                  count=${countOf(kinds, number, isFolded)}
                  draw=${draw}
                  before=${place.rows[number - 1]} />
              `,
            )}
          ${marks.map((mark, number) => {
            const beside = marks.slice(0, number).filter(one => Math.abs(one.y - mark.y) < 4).length;
            const x = wide - 20 - (narrow ? beside * 20 : 0);
            const y = mark.y + (narrow ? 0 : beside * 16);
            return html`
              <g class="mark" onClick=${() => place.toPosition(mark.at)}>
                ${mark.smell
                  ? html`
                      <g class="tri" transform=${`translate(${x} ${y - 6})`}>
                        <path d="M6 1 11.5 11H.5Z" />
                        <path class="bang" d="M6 4.6v3M6 9.3v.1" />
                      </g>
                    `
                  : html`<path class="slip" d=${`M${x} ${y - 6}h12v8l-4 4h-8Z`} />`}
                ${narrow || mark.smell
                  ? null
                  : html`
                      <text class="meta" x=${x - 6} y=${y + 4} text-anchor="end">
                        ${mark.note.by}: ${cut(mark.note.text, 200)}
                      </text>
                    `}
                <title>${mark.smell ? mark.smell.text : `${mark.note.by}: ${mark.note.text}`}</title>
              </g>
            `;
          })}
          <g>
            <rect class="placebg" x=${gutter ? gutter - 8 : 0} y=${bandY} width=${wide} height=${BAND - 6} />
            <rect class="placeband" x=${gutter ? gutter - 8 : 0} y=${bandY + BAND - 8} width=${wide} height="2" />
            <text class="placetx" x=${gutter || 8} y=${bandY + 17}>
              ${cut(`You are ${words}`, width - gutter - 16 - (then ? then.length * LETTER + 24 : 0), WIDE)}
            </text>
            ${then ? html`<text class="placetx r" x=${width - 16} y=${bandY + 17}>${then}</text>` : null}
          </g>
        </svg>
      </div>
    </div>
  `;
});

const nextTimed = (rows, number) => {
  for (let next = number; next < rows.length; next++) if (rows[next]?.position) return rows[next];
  return null;
};
const countOf = (kinds, number, isFolded) => {
  let next = number + 1;
  while (next < kinds.length && isFolded(next)) next++;
  return next - number;
};

const Row = ({ row, y, tall, future, isHere, count, draw, before }) => {
  const { place, xs, lanes, wide, gutter, narrow, position, hidden, start } = draw;
  const grey = future ? 'future' : '';
  if (row.row === 'gap')
    return html`
      <g>
        <rect class="gap" x=${gutter ? gutter - 8 : 0} y=${y + 3} width=${wide} height=${tall - 8} />
        <line class="gapl" x1=${gutter ? gutter - 8 : 0} x2=${wide} y1=${y + 3} y2=${y + 3} />
        <line class="gapl" x1=${gutter ? gutter - 8 : 0} x2=${wide} y1=${y + tall - 5} y2=${y + tall - 5} />
        ${xs.map(
          x => html`
            <g>
              <line class="brk" x1=${x} x2=${x} y1=${y + 4} y2=${y + tall - 6} />
              <path class="brk2" d=${`M${x - 6} ${y + 19}l6-9m0 9 6-9`} />
            </g>
          `,
        )}
        <text class=${`meta ${grey}`} x=${(xs[0] + xs.at(-1)) / 2} y=${y + 18} text-anchor="middle">
          ${took(row.ms)} in which nothing was said
        </text>
      </g>
    `;
  const lineY = row.row === 'arrow' ? y + tall - 26 : y + tall / 2;
  const gut = narrow
    ? null
    : html`
        <text class=${`pos ${grey} ${isHere ? 'here' : ''}`} x="16" y=${lineY + 4}>#${row.position}</text>
        <text class=${`tm ${grey} ${isHere ? 'here' : ''}`} x=${gutter - 16} y=${lineY + 4}>
          ${since(row.time - start)}
          <title>${clock(row.time)}, ${utc(row.time)}</title>
        </text>
      `;
  const hit = html`<rect class="hit" x="0" y=${y} width=${wide} height=${tall} />`;
  const go = () => place.toPosition(row.position);
  const gap = before?.time ? row.time - before.time : 0;
  if (row.row === 'arrow') {
    const a = xs[row.source];
    const b = xs[row.target];
    const source = lanes[row.source];
    const target = lanes[row.target];
    const off = hidden.value.has(source.id) || hidden.value.has(target.id);
    const hue = hueOf(source.kind, source.id);
    if (row.source === row.target)
      return html`
        <g class=${`row ${hue} ${grey}`} onClick=${go}>
          ${hit}
          ${gut}
          <circle class="dotm" cx=${a} cy=${lineY} r="4" />
          <text class=${`lab ${grey}`} x=${a + 12} y=${lineY + 4}>
            ${cut(`${row.how}: ${row.text}`, wide - a - 24)}
          </text>
          <title>${row.text}</title>
        </g>
      `;
    const way = b > a ? 1 : -1;
    const left = Math.min(a, b);
    const space = narrow ? wide - left - 36 : Math.abs(b - a) - 28;
    return html`
      <g class=${`row ${hue} ${grey}`} onClick=${go}>
        ${hit}
        ${gut}
        <line
          class=${`arr ${grey} ${off ? 'dash' : ''}`}
          x1=${a + 6 * way}
          x2=${b - 8 * way}
          y1=${lineY}
          y2=${lineY} />
        <path class="hd" d=${`M${b - 2 * way} ${lineY}l${-9 * way}-4.5v9Z`} />
        <text class=${`lab ${grey}`} x=${left + 14} y=${lineY - 8}>${cut(row.text || '(no text)', space)}</text>
        <text class=${`meta ${grey}`} x=${left + 14} y=${lineY + 16}>
          <tspan class="st">${cut(row.how, space)}</tspan>
          ${gap >= 100 && row.how.length * LETTER < space - 60 ? ` · ${took(gap)}` : ''}
        </text>
        <title>${source.name} → ${target.name}, ${row.how}: ${row.text}</title>
      </g>
    `;
  }
  const bad = row.kind === 'failed' ? `badt ${grey}` : '';
  if (row.lane === null || row.lane === undefined) {
    const over = row.kind === 'end' && /is over/.test(row.text);
    const text = cut(row.text, wide - gutter - (row.kind === 'end' ? 120 : 72), WIDE);
    const middle = (gutter + wide) / 2;
    const half = (text.length * WIDE) / 2 + 10;
    return html`
      <g class=${`row ${grey}`} onClick=${go}>
        ${hit}
        ${gut}
        ${(over ? [-2, 2] : [0]).map(
          by => html`
            <g>
              <line
                class=${`endl ${grey}`}
                x1=${gutter ? gutter - 4 : 4}
                x2=${middle - half}
                y1=${lineY + by}
                y2=${lineY + by} />
              <line class=${`endl ${grey}`} x1=${middle + half} x2=${wide - 8} y1=${lineY + by} y2=${lineY + by} />
            </g>
          `,
        )}
        ${row.kind === 'end' && !over
          ? xs
              .slice(0, 2)
              .map(x => html`<rect class=${`end ${grey}`} x=${x - 4.5} y=${lineY - 4.5} width="9" height="9" />`)
          : null}
        <text class=${`lab strong ${bad} ${grey}`} x=${middle} y=${lineY + 4} text-anchor="middle">${text}</text>
        <title>${row.text}</title>
      </g>
    `;
  }
  const x = xs[row.lane];
  const lane = lanes[row.lane];
  const last = (row.lane === lanes.length - 1 && lanes.length > 1) || x > wide * 0.66;
  if (hidden.value.has(lane.id))
    return html`
      <g class=${`row ${grey}`} onClick=${go}>
        ${hit}
        ${gut}
        <circle class="dotm" cx=${x} cy=${lineY} r=${count > 1 ? 8 : 3} />
        ${count > 1 ? html`<text class="count" x=${x} y=${lineY + 4} text-anchor="middle">${count}</text>` : null}
        <title>${counted(count, 'event')} of ${lane.name}</title>
      </g>
    `;
  const told = lane.kind === 'channel' && row.kind === 'note';
  const withheld = told && /withheld|would deliver/i.test(row.text);
  const sign =
    row.kind === 'tool'
      ? html`<path class="tool" d=${`M${x} ${lineY - 7}l7 7-7 7-7-7Z`} />`
      : row.kind === 'failed'
        ? html`<path class=${`badx ${grey}`} d=${`M${x - 5} ${lineY - 5}l10 10m0-10-10 10`} />`
        : withheld
          ? html`
              <g>
                <circle class="okc" cx=${x} cy=${lineY} r="8" />
                <path class="okc" d=${`M${x - 5.5} ${lineY + 5.5}l11-11`} />
              </g>
            `
          : told
            ? html`
                <g>
                  <circle class="okc" cx=${x} cy=${lineY} r="8" />
                  <path class="okc" d=${`M${x - 4} ${lineY}l3 3 5-6`} />
                </g>
              `
            : html`<circle class="dotm" cx=${x} cy=${lineY} r="4" />`;
  const space = last
    ? x - (row.lane ? xs[row.lane - 1] : gutter) - 32
    : (narrow ? wide - x : step(xs, row.lane, wide)) - 28;
  return html`
    <g class=${`row ${hueOf(lane.kind, lane.id)} ${grey}`} onClick=${go}>
      ${hit}
      ${gut}
      ${sign}
      <text
        class=${`meta ${bad} ${grey}`}
        x=${last ? x - 14 : x + 14}
        y=${lineY + 4}
        text-anchor=${last ? 'end' : 'start'}>
        ${cut(row.text, space)}
      </text>
      <title>${lane.name}: ${row.text}</title>
    </g>
  `;
};
const step = (xs, lane, wide) => (xs[lane + 1] ?? wide) - xs[lane];
