// The outline of a run: what was said in it, in one line.
import { html } from '../base/drawing.js';
import { counted } from '../base/words.js';
import { hueOf } from './hues.js';

// The outline of a run: upper row asks, lower row is asked. The same marks stand on its slider.
/** @param {string} letter @param {number} x @param {number} y */
export const tickShape = (letter, x, y) => {
  switch (letter) {
    case 'p':
      return html`<circle cx=${x} cy=${y} r="4" />`;
    case 'u':
      return html`<rect x=${x - 2.5} y=${y - 14} width="5" height="11" rx="1" />`;
    case 'd':
      return html`<rect x=${x - 2.5} y=${y + 3} width="5" height="11" rx="1" />`;
    case 'c':
      return html`<path d=${`M${x} ${y + 2}l4.5 4.5-4.5 4.5-4.5-4.5Z`} />`;
    default:
      return null;
  }
};
const LIVE = 6; // what the dot of an open run needs behind the line's end
/** @param {{ run: Answers.ListedRun }} given */
export const Outline = ({ run }) => {
  const ticks = run.outline ?? [];
  const wide = Math.max(ticks.length * 12 + 8, 24);
  const isOpen = run.state === 'open';
  const fit = Math.min(wide, 184);
  const step = (fit - 12) / Math.max(ticks.length, 1);
  /** @param {string} letter */
  const many = letter => ticks.filter(one => one[0] === letter).length;
  const said = `${counted(ticks.length, 'step')}: ${many('u')} by the requester, ${many('d')} by the target`;
  return html`
    <svg class="ol" width=${isOpen ? fit + LIVE : fit} height="34" role="img" aria-label=${said}>
      <line class="base" x1="4" x2=${fit - 4} y1="17" y2="17" />
      ${ticks.map(([letter, lane], place) => {
        const x = 8 + place * step;
        const of = run.lanes[lane];
        if (letter === '/') return html`<path class="brk" d=${`M${x - 4} 21l3-8m2 8 3-8`} />`;
        if (letter === 'x') return html`<path class="x" d=${`M${x - 3.5} 13.5l7 7m0-7-7 7`} />`;
        if (letter === 'e')
          return place < ticks.length - 1
            ? html`<rect class="sq" x=${x - 3.5} y="13.5" width="7" height="7" />`
            : run.failed
              ? html`<path class="x" d=${`M${x - 3.5} 13.5l7 7m0-7-7 7`} />`
              : html`<path class="ok" d=${`M${x - 4} 17l3 3.5 5.5-7`} />`;
        return html`<g class=${`tick ${of ? hueOf(of) : 'c-grey'}`}>${tickShape(letter, x, 17)}</g>`;
      })}
      ${isOpen ? html`<circle class="live" cx=${fit} cy="17" r="4" />` : null}
    </svg>
  `;
};
