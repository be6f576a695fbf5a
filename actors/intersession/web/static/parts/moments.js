// When something was, and where in the log.
import { html } from '../base/drawing.js';
import { clock, day, moment, utc } from '../base/words.js';
import { href, link } from '../asking/address.js';

/** @param {{ ms: number, dated?: boolean }} given */
export const Time = ({ ms, dated }) => html`
  <time datetime=${new Date(ms).toISOString()} title=${utc(ms)}>${dated ? `${day(ms)}, ` : ''}${clock(ms)}</time>
`;
// In a list: the time alone, where it was today.
/** @param {{ ms: number }} given */
export const Moment = ({ ms }) =>
  html`<time datetime=${new Date(ms).toISOString()} title=${utc(ms)}>${moment(ms)}</time>`;

/** @param {{ at: number }} given */
export const Position = ({ at }) => html`<a class="num-link" ...${link(href('log', '', { at }))}>#${at}</a>`;
