// The sequence diagram of a run: lanes, and the rows that can be seen. What is behind the place is grey, thin, dotted.
import { createRef, html, kept, signal, view } from '../base/drawing.js';
import { Badge, KINDS } from '../parts/speakers.js';
import { cut, widthOf } from '../parts/text-width.js';
import { BAND, across, calledBy, laid, rowAt, rowBehind, waiting, working } from './layout.js';
import { showGiven } from './prompts.js';
import { Bar, Hatch, Row, moreFor } from './rows.js';

const BEYOND = 400; // drawn above and below what can be seen
const TALL_BY_TIME = 1200;
const MOST_BY_TIME = 2000; // rows; longer runs are drawn by order
const MOST_WITH_BARS = 5000; // steps
const MOST_ON_TWO = 500; // rows; longer runs come in parts, and what is above would move when another part is there

// What can be seen of the drawing: measured when it scrolls, or changes its size, never while it is drawn.
/** @param {Self} self */
function watched(self) {
  const made = {
    box: createRef(),
    size: signal({ width: 0, top: 0, height: 900 }),
    scrolls: false,
    top: 0,
    tall: 0,
    bandY: 0,
    /** @type {number | undefined} */
    at: undefined,
    /** @type {Element | null} */
    watched: null,
    /** @type {(box: Element | null) => void} */
    watch: box => {
      if (!box || box === made.watched) return;
      watch.disconnect();
      watch.observe(box);
      made.watched = box;
    },
  };
  const measure = () => {
    const box = made.box.current;
    if (!box) return;
    const rect = box.getBoundingClientRect();
    const height = Math.min(innerHeight, Math.max(box.clientHeight, 200));
    const next = { width: box.clientWidth, top: Math.max(0, box.scrollTop, -rect.top), height };
    made.scrolls = getComputedStyle(box).overflowY !== 'visible';
    made.top = box.scrollTop;
    if (isOther(next, made.size.peek())) made.size.value = next;
  };
  const watch = new ResizeObserver(measure);
  addEventListener('scroll', measure, { capture: true, passive: true });
  self.onEnd(() => {
    removeEventListener('scroll', measure, { capture: true });
    watch.disconnect();
  });
  return made;
}
/** @param {Seen} next @param {Seen} known */
const isOther = (next, known) =>
  next.width !== known.width || Math.abs(next.top - known.top) > 40 || Math.abs(next.height - known.height) > 4;

// Keeps the place in sight. Nothing of the layout is asked for here: it would be made anew for each step.
// Where it is the log that goes on, whoever has scrolled away from the place stays where they are.
/**
 * @param {ReturnType<typeof watched>} state
 * @param {{ hereRow: number, bandY: number, height: number, place: Place }} how
 */
function follow(state, { hereRow, bandY, height, place }) {
  const isLess = height < state.tall; // notes below have taken room, or the window is smaller
  state.tall = height;
  if (state.at === hereRow && !isLess) return;
  const isFirst = state.at === undefined;
  const isAway = place.followed && (state.bandY < state.top || state.bandY > state.top + height);
  state.at = hereRow;
  state.bandY = bandY;
  if (isAway) return;
  queueMicrotask(() => {
    const box = state.box.current;
    if (!box || !state.scrolls || (bandY >= state.top + 40 && bandY <= state.top + height - 110)) return;
    state.top = Math.max(0, bandY - height * (isFirst ? 0.55 : 0.5));
    box.scrollTop = state.top;
  });
}

// The last row that has happened. What was said stands where it was said, before it reaches the other's transcript.
/** @param {Place} place @param {string} kinds @param {number} position */
function rowOf(place, kinds, position) {
  for (let number = kinds.length - 1; number >= 0; number--)
    if ((place.rows[number]?.position ?? Infinity) <= position) return number;
  return -1;
}

// Of events in a row on a lane that is hidden, the first one stands for all.
/** @param {Place} place @param {Lane[]} lanes @param {Set<string>} hidden */
const foldedIn = (place, lanes, hidden) => (/** @type {number} */ number) => {
  const row = place.rows[number];
  const before = place.rows[number - 1];
  if (!hidden.size || row?.row !== 'mark' || before?.row !== 'mark' || row.lane === null) return false;
  return row.lane === before.lane && hidden.has(lanes[row.lane]?.id);
};
/** @param {string} kinds @param {number} number @param {(number: number) => boolean} isFolded */
const countOf = (kinds, number, isFolded) => {
  let next = number + 1;
  while (next < kinds.length && isFolded(next)) next++;
  return next - number;
};

// All that the parts of the drawing need to know, for the place and the window that there is now.
/**
 * @param {Self} self
 * @param {ReturnType<typeof watched>} state
 * @param {{ place: Place, hidden: Signal<Set<string>>, timed: boolean }} how
 */
export function plan(self, state, { place, hidden, timed }) {
  const run = place.run.value;
  const position = place.position.value;
  const loaded = place.loaded.value;
  const { width, top, height } = state.size.value;
  const { lanes, kinds } = run;
  const isFolded = foldedIn(place, lanes, hidden.value);
  const spread = timed && kinds.length <= MOST_BY_TIME ? TALL_BY_TIME / (run.tookMs || 1) : 0;
  const shape = across(width, lanes.length);
  const onTwo = kinds.length <= MOST_ON_TWO;
  const tops = kept(self, 'tops', [run, loaded, timed, hidden.value, width], () =>
    laid(place.rows, kinds, spread, isFolded, onTwo ? moreFor(shape) : () => 0),
  );
  const hereRow = rowOf(place, kinds, position);
  const bandY = tops[hereRow + 1] - (hereRow < 0 ? tops[0] / 2 : 0);
  const from = Math.max(0, rowAt(tops, top - BEYOND));
  const to = Math.min(kinds.length - 1, rowAt(tops, top + height + BEYOND));
  /** @param {number} at */
  const yOf = at => {
    const row = rowBehind(place.rows, kinds.length, at);
    return tops[row] + (row > hereRow + 1 ? BAND : 0);
  };
  // A bar goes down to the arrow of its last words, which stands lower where they need two lines.
  /** @param {number} at */
  const moreAt = at => {
    const row = place.rows[rowBehind(place.rows, kinds.length, at)];
    return onTwo && row ? moreFor(shape)(row) : 0;
  };
  return {
    ...shape,
    onTwo,
    ...{ self, place, run, lanes, kinds, hidden, position, loaded, width, height, tops, hereRow, bandY, from, to },
    ...{ yOf, moreAt, isFolded },
    isSeen: (/** @type {number} */ above, /** @type {number} */ under) =>
      under > top - BEYOND && above < top + height + BEYOND,
    tall: tops[kinds.length] + BAND + 24,
    start: run.began ?? place.rows.find(row => row?.time)?.time ?? 0,
  };
}

/** @type {View<{ place: Place, hidden: Signal<Set<string>>, timed: boolean, mark?: number }>} */
export const Diagram = view(({ place, hidden, timed, mark }, self) => {
  const state = self.once(() => watched(self));
  queueMicrotask(() => state.watch(state.box.current));
  const draw = plan(self, state, { place, hidden, timed });
  if (draw.width) follow(state, draw);
  const { lanes, wide, tall, run } = draw;
  const said = sayings(place, draw.position);
  return html`
    <div class="scroll" ref=${state.box}>
      <${Heads} draw=${draw} />
      <div style=${{ height: `${tall}px`, position: 'relative', width: `${wide}px` }}>
        <svg class="dg" role="img" aria-labelledby="dg-title dg-desc" width=${wide} height=${tall}>
          <title id="dg-title">Sequence diagram: ${run.title}</title>
          <desc id="dg-desc">
            ${lanes.map(lane => lane.name).join(', ')}. You are ${said.words}. The table has the same.
          </desc>
          <${Lives} draw=${draw} />
          <${Bars} draw=${draw} />
          <${Rows} draw=${draw} />
          <${BarClicks} draw=${draw} />
          <${Marks} draw=${draw} />
          <${Marked} draw=${draw} at=${mark} />
          <${Band} draw=${draw} said=${said} />
        </svg>
      </div>
    </div>
  `;
});

/** @param {Place} place @param {number} position */
function sayings(place, position) {
  const said = place.said.value;
  if (!said || said.place.position !== position) return { words: `after #${position}`, next: null };
  return { words: said.place.text, next: said.next };
}

/** @param {{ draw: Drawing }} given */
const Heads = ({ draw }) => html`
  <div class="lanes" style=${{ width: `${draw.wide}px` }}>
    ${draw.lanes.map(
      (lane, number) => html`<${LaneHead} key=${lane.id} lane=${lane} number=${number} draw=${draw} />`,
    )}
  </div>
`;
// The name of a lane has the room up to the next one; the last two stand towards each other and share theirs.
const BESIDE_NAMES = 52; // badges and the space around them
/** @param {number} number @param {{ lanes: Lane[], xs: number[], wide: number, narrow: boolean }} how */
function roomFor(number, { lanes, xs, wide, narrow }) {
  const last = lanes.length - 1;
  if (last === 0) return wide - xs[0] - BESIDE_NAMES;
  const all = xs[1] - xs[0] - BESIDE_NAMES;
  const isPhone = narrow && innerWidth < 560; // where the last one has no name
  if (number < last - 1 || isPhone) return all;
  const other = widthOf(lanes[number === last ? last - 1 : last].name, 'strong');
  return Math.max(all / 2, all - other - 12);
}
/** @param {{ lane: Lane, number: number, draw: Drawing }} given */
const LaneHead = ({ lane, number, draw }) => {
  const { lanes, xs, wide, narrow, hidden } = draw;
  const off = hidden.value.has(lane.id);
  const last = number === lanes.length - 1 && lanes.length > 1;
  const half = narrow ? 12 : 14;
  const room = `${roomFor(number, draw)}px`;
  const toggle = () => {
    const after = new Set(hidden.peek());
    if (!after.delete(lane.id)) after.add(lane.id);
    hidden.value = after;
  };
  return html`
    <button
      type="button"
      class=${`lane ${off ? 'off' : ''} ${last ? 'r' : ''}`}
      aria-pressed=${off}
      title=${`${lane.id}: ${off ? 'show' : 'hide'} this lane`}
      style=${last ? { right: `${wide - xs[number] - half}px` } : { left: `${xs[number] - half}px` }}
      onClick=${toggle}>
      <${Badge} lane=${lane} />
      <span>
        <b style=${{ maxWidth: room }}>${lane.name}</b>
        <small style=${{ maxWidth: room }}>${KINDS[lane.kind] ?? lane.kind}${off ? ', hidden' : ''}</small>
      </span>
    </button>
  `;
};

/** @param {{ draw: Drawing }} given */
const Lives = ({ draw }) =>
  draw.xs.map((x, number) => {
    const off = draw.hidden.value.has(draw.lanes[number].id) ? 'off' : '';
    return html`
      <g key=${number}>
        <line class=${`life ${off}`} x1=${x} x2=${x} y1="0" y2=${draw.bandY} />
        <line class="life nx" x1=${x} x2=${x} y1=${draw.bandY} y2=${draw.tall} />
      </g>
    `;
  });

// When a session was at work, a bar; hatched while it waited for a tool.
/** @param {{ self: Self, place: Place, run: Run, lanes: Lane[], loaded: number }} given */
function stretchesOf({ self, place, run, lanes, loaded }) {
  if (run.steps > MOST_WITH_BARS) return [[], []];
  return kept(self, 'bars', [run, loaded], () => {
    const calling = calledBy(run);
    return [
      [...calling.works, ...working(place.steps, lanes)],
      [...calling.waits, ...waiting(place.steps, lanes)],
    ];
  });
}
/** @param {{ draw: Drawing }} given */
const Bars = ({ draw }) => {
  const [bars, waits] = stretchesOf(draw);
  return html`
    <${Hatch}/>
    ${bars.map(bar => html`<${BarSeen} bar=${bar} draw=${draw} above=${26} below=${26} waits=${false} />`)}
    ${waits.map(bar => html`<${BarSeen} bar=${bar} draw=${draw} above=${17} below=${-17} waits />`)}
  `;
};
/** @param {Stretch} given @param {{ above: number, below: number, waits?: boolean, draw: Drawing }} how */
function spanOf([, from, to], { above: before, below: behind, waits, draw }) {
  const above = draw.yOf(from) - before;
  const under = to === Infinity ? draw.tall - 24 : draw.yOf(to) + behind + (waits ? 0 : draw.moreAt(to));
  return draw.isSeen(above, under) ? { above, under } : null;
}
/** @param {{ bar: Stretch, draw: Drawing, above: number, below: number, waits: boolean }} given */
const BarSeen = given => {
  const { bar, draw, waits } = given;
  const [number, from] = bar;
  const span = spanOf(bar, given);
  const grey = from > draw.position;
  return span
    ? html`<${Bar} lane=${draw.lanes[number]} x=${draw.xs[number]} ...${span} waits=${waits} grey=${grey} />`
    : null;
};
// A click on a bar shows what was given to whoever was at work: it lies over the rows, whose clicks go to their place.
/** @param {{ draw: Drawing }} given */
const BarClicks = ({ draw }) =>
  stretchesOf(draw)[0].map(bar => {
    const [number, from, to, runId] = bar;
    const span = spanOf(bar, { draw, above: 26, below: 26 });
    return span
      ? html`
          <g class="given" onClick=${() => showGiven(draw.place, runId ?? '', to === Infinity ? from : to)}>
            <rect
              class="hit"
              x=${draw.xs[number] - 8}
              width="16"
              y=${span.above}
              height=${Math.max(8, span.under - span.above)} />
            <title>What ${draw.lanes[number].name} was given</title>
          </g>
        `
      : null;
  });

/** @param {{ draw: Drawing }} given */
const Rows = ({ draw }) => {
  const { place, tops, hereRow, from, to, kinds, isFolded } = draw;
  /** @type {[number, Row][]} */
  const shown = [];
  for (let number = from; number <= to; number++) {
    const row = place.rows[number];
    if (!row) place.needRow(number);
    else if (!isFolded(number)) shown.push([number, row]);
  }
  return shown.map(
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
  );
};

// Smells and notes, at the right of where they belong; those of one place stand beside each other.
/** @param {{ draw: Drawing }} given */
const Marks = ({ draw }) => {
  const { place, run } = draw;
  const all = [
    ...(run.smells ?? []).map(smell => ({ smell, at: smell.place.position, said: smell.text })),
    ...(place.notes.value ?? []).map(note => ({ note, at: note.place.position, said: `${note.by}: ${note.text}` })),
  ].map(mark => ({ ...mark, y: draw.yOf(mark.at) - 17 }));
  const seen = all.filter(mark => draw.isSeen(mark.y, mark.y));
  return seen.map((mark, number) => {
    const beside = seen.slice(0, number).filter(one => Math.abs(one.y - mark.y) < 4).length;
    return html`<${Sign} key=${`${mark.at}/${number}`} mark=${mark} beside=${beside} draw=${draw} />`;
  });
};
/** @param {{ mark: Marked, beside: number, draw: Drawing }} given */
const Sign = ({ mark, beside, draw }) => {
  const { narrow, wide, place } = draw;
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
        : html`<text class="meta" x=${x - 6} y=${y + 4} text-anchor="end">${cut(mark.said, 230, 'small')}</text>`}
      <title>${mark.said}</title>
    </g>
  `;
};

// The place that was marked, to look back at it from another one.
/** @param {{ draw: Drawing, at?: number }} given */
const Marked = ({ draw, at }) => {
  if (!at) return null;
  const row = rowBehind(draw.place.rows, draw.kinds.length, at);
  const y = draw.tops[row] + (row > draw.hereRow + 1 ? BAND : 0) - (row === draw.hereRow + 1 ? 2 : 0);
  const from = draw.gutter ? draw.gutter - 8 : 0;
  return html`
    <g>
      <line class="marked" x1=${from} x2=${draw.wide} y1=${y} y2=${y} />
      <text class="meta markedtx" x=${draw.wide - 8} y=${y - 4} text-anchor="end">marked, after #${at}</text>
    </g>
  `;
};

// Where you are, in words, and what comes next as far as there is room.
/** @param {{ draw: Drawing, said: ReturnType<typeof sayings> }} given */
const Band = ({ draw, said }) => {
  const { width, wide, gutter, narrow, bandY } = draw;
  const x = gutter ? gutter - 8 : 0;
  const all = width - (gutter || 8) - 16;
  const you = `You are ${said.words}`;
  // What comes next gives way: where one is comes first.
  const left = all - widthOf(you, 'strong') - 24;
  const then = said.next && !narrow && left > 140 ? cut(`next: ${said.next.text}`, left) : '';
  return html`
    <g>
      <rect class="placebg" x=${x} y=${bandY} width=${wide} height=${BAND - 6} />
      <rect class="placeband" x=${x} y=${bandY + BAND - 8} width=${wide} height="2" />
      <text class="placetx" x=${gutter || 8} y=${bandY + 17}>${cut(you, all, 'strong')}</text>
      ${then ? html`<text class="placetx r" x=${width - 16} y=${bandY + 17}>${then}</text>` : null}
      <title>You are ${said.words}</title>
    </g>
  `;
};
