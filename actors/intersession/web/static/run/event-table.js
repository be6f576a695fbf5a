// The table of a run, which is the diagram's equal: every event, a window of them around the place.
import { html, signal, view } from '../base/drawing.js';
import { clock, ofKind, short, utc } from '../base/words.js';
import { Brief } from '../parts/texts.js';
import { Listed } from '../lists/table.js';

const COLUMNS = [
  ['w-pos', '#'],
  ['w-time', 'Time'],
  ['w-kind', 'Event'],
  ['w-stream', 'Who'],
  ['w-words', 'Words'],
];
/** @type {() => Signal<number | null>} */
const nowhere = () => signal(null);
/** @type {View<{ place: Place }>} */
export const Table = view(({ place }, self) => {
  const around = self.once(nowhere);
  const index = place.index.value;
  const run = place.run.value;
  place.loaded.value;
  const many = 200;
  const from = around.value ?? Math.max(0, Math.min(index - 100, run.steps - many));
  const to = Math.min(run.steps, from + many);
  /** @param {number} first */
  const show = first => {
    around.value = Math.max(0, Math.min(run.steps - many, first));
  };
  /** @type {[number, Step][]} */
  const shown = [];
  for (let number = Math.max(from, 0); number < to; number++) {
    const step = place.steps[number];
    if (step) shown.push([number, step]);
    else place.need(number + 1).catch(() => {});
  }
  return html`
    <div class="scroll" tabindex="0" role="region" aria-label="Events of the run">
      <${Listed} caption=${`Events ${from + 1} to ${to} of ${run.steps}`} columns=${COLUMNS} look="dense close">
        ${from > 0 ? html`<${More} said="Earlier" show=${() => show(from - 100)} />` : null}
        ${shown.map(
          ([number, step]) => html`
            <${Row} key=${number} number=${number} step=${step} index=${index} place=${place} />
          `,
        )}
        ${to < run.steps ? html`<${More} said="Later" show=${() => show(from + 100)} />` : null}
      <//>
    </div>
  `;
});

/** @param {{ said: string, show: () => void }} given */
const More = ({ said, show }) => html`
  <tr><td class="all" colspan="5"><button class="btn" type="button" onClick=${show}>${said}</button></td></tr>
`;
/** @param {{ number: number, step: Step, index: number, place: Place }} given */
const Row = ({ number, step, index, place }) => {
  const isHere = number === index - 1;
  const look = number >= index ? 'muted' : '';
  return html`
    <tr class=${isHere ? 'sel' : ''} aria-current=${isHere ? 'true' : null}>
      <td>
        <button type="button" class="num-link" onClick=${() => place.jump(number + 1)}>#${step.position}</button>
      </td>
      <td class="mono muted" title=${utc(step.timeMs)}>${clock(step.timeMs)}</td>
      <td class=${look}>${ofKind(step.kind)}${step.turn ? ` ${step.turn}` : ''}</td>
      <td>${step.who ? short(step.who) : ''}${step.to ? ` → ${short(step.to)}` : ''}</td>
      <td class=${`all ${look}`} title=${step.text}><${Brief} text=${step.text} /></td>
    </tr>
  `;
};
