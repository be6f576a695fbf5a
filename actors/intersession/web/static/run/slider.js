// The slider of a run: its outline, with the place as its thumb, and the place in words.
import { html, kept, view } from '../base/drawing.js';
import { counted, ran, since, took } from '../base/words.js';
import { hueOf } from '../parts/hues.js';
import { Icon } from '../parts/icons.js';
import { Time } from '../parts/moments.js';
import { tickShape } from '../parts/outline.js';

const MOST_NUMBERED = 24; // ticks; with more, the numbers of turns would lie on each other

// What stands on the slider wherever one is: its ticks, the numbers of turns, the longest gaps.
/** @param {Place} place @param {Run} run */
function still(place, run) {
  /** @type {Map<number, string>} */
  const turns = new Map();
  for (const row of place.rows) {
    const turn = row?.position ? /^turn (\d+)/.exec(row.how ?? row.text ?? '')?.[1] : '';
    if (row?.position && turn) turns.set(row.position, turn);
  }
  const gaps = place.rows
    .flatMap((row, number) => {
      const next = row?.row === 'gap' && !row.forked ? place.rows.slice(number + 1).find(one => one?.position) : null;
      return next?.position && row?.ms ? [[place.indexOf(next.position) - 0.5, row.ms]] : [];
    })
    .sort((one, two) => two[1] - one[1])
    .slice(0, 8);
  /** @type {Tick[]} */
  const ticks = (run.outline ?? [])
    .filter(one => one[0] !== '/')
    .map(([letter, lane, at]) => [letter, run.lanes[lane], place.indexOf(at), at]);
  return { turns, gaps, ticks };
}

/** @type {View<{ place: Place }>} */
export const Slider = view(({ place }, self) => {
  const run = place.run.value;
  const index = place.index.value;
  const position = place.position.value;
  const step = place.step.value;
  const most = Math.max(run.steps, 1);
  const loaded = place.loaded.value;
  const said =
    place.said.value?.place.position === position
      ? place.said.value.place.text
      : index
        ? `after #${position}`
        : 'before the first event of this run';
  /** @param {number} number */
  const x = number => `${(number / most) * 100}%`;
  const { turns, gaps, ticks } = kept(self, 'still', [run, loaded], () => still(place, run));
  const numbers = ticks.length <= MOST_NUMBERED ? turns : new Map();
  const start = run.began ?? place.steps[0]?.timeMs ?? 0;
  return html`
    <div class="time">
      <${Transport} place=${place} />
      <div class="track">
        <input
          type="range"
          min="0"
          max=${run.steps}
          step="1"
          value=${index}
          aria-label="Place in the run"
          aria-valuetext=${`${said}, event ${index} of ${run.steps}`}
          onInput=${event => place.jump(Number(event.target.value))} />
        <svg aria-hidden="true">
          <line class="rail" x1="0" x2="100%" y1="38" y2="38" />
          <line class="rail past" x1="0" x2=${x(index)} y1="38" y2="38" />
          ${ticks.map(tick => html`<${Tick} tick=${tick} x=${x} position=${position} turns=${numbers} />`)}
          ${gaps.map(([number, ms]) => html`<${Gap} x=${x(number)} ms=${ms} />`)}
          ${run.smells.map(one => html`<${SmellMark} x=${x(place.indexOf(one.place.position))} />`)}
          <svg x=${x(index)} y="0" overflow="visible">
            <line class="needle" y1="22" y2="54" />
            <circle class="thumb" cy="38" r="6" />
          </svg>
        </svg>
      </div>
      <p class="now" aria-live="polite">
        <b title=${said}>#${position} · ${said}</b>
        <span>
          ${step ? html`<${Time} ms=${step.timeMs} /> · ${since(ran(step.timeMs, run.pauses) - start)} · ` : ''}
          ${index < run.steps
            ? `${counted(run.steps - index, 'event')} follow`
            : run.state === 'open'
              ? 'follows the log'
              : 'nothing follows'}
        </span>
      </p>
    </div>
  `;
});

/** @type {[string, string, (place: Place) => unknown][]} */
const MOVES = [
  ['To the start', 'first', place => place.jump(0)],
  ['An event back', 'back', place => place.event(-1)],
  ['An event on', 'on', place => place.event(1)],
  ['To the end', 'last', place => place.jump(place.length)],
];
/** @param {{ place: Place }} given */
const Transport = ({ place }) => html`
  <div class="xport" role="group" aria-label="Move">
    ${MOVES.map(
      ([said, icon, move]) => html`
        <button class="btn" type="button" aria-label=${said} onClick=${() => move(place)}>
          <${Icon} name=${icon} />
        </button>
      `,
    )}
  </div>
`;

/** @param {{ tick: Tick, x: (number: number) => string, position: number, turns: Map<number, string> }} given */
const Tick = ({ tick: [letter, lane, number, at], x, position, turns }) => {
  const grey = at > position ? 'future' : '';
  return html`
    <svg x=${x(number)} y="21" overflow="visible">
      <g class=${`tick ${lane ? hueOf(lane) : ''} ${grey}`}>${shapeOf(letter, grey)}</g>
      ${turns.has(at)
        ? html`<text class=${`tl ${grey}`} y=${letter === 'u' ? -2 : 42}>${turns.get(at)}</text>`
        : null}
    </svg>
  `;
};
/** @param {string} letter @param {string} grey */
function shapeOf(letter, grey) {
  if (letter === 'e') return html`<rect class=${`endsq ${grey}`} x="-4" y="13" width="8" height="8" />`;
  if (letter === 'x') return html`<path class="x" d="M-4 13l8 8m0-8-8 8" stroke="var(--bad)" stroke-width="2" />`;
  return tickShape(letter, 0, 17);
}
/** @param {{ x: string, ms: number }} given */
const Gap = ({ x, ms }) => html`
  <svg x=${x} y="21" overflow="visible">
    <rect class="gapbg" x="-7" y="11" width="14" height="12" />
    <path class="brk2" d="M-5 22l4-10m2 10 4-10" />
    <text class="tl" y="42">${took(ms)}</text>
  </svg>
`;
/** @param {{ x: string }} given */
const SmellMark = ({ x }) => html`
  <svg x=${x} y="2" overflow="visible">
    <g class="tri" transform="translate(-6 0)">
      <path d="M6 1 11.5 11H.5Z" />
      <path class="bang" d="M6 4.6v3M6 9.3v.1" />
    </g>
  </svg>
`;
