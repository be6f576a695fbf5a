// A text that did not get through is tried once more.
import { html } from '../base/drawing.js';
import { counted } from '../base/words.js';
import { open } from '../parts/window.js';
import { can, done } from './rights.js';

/** @param {Record<string, any>} row */
export const isLost = row => ['failed', 'unknown', 'denied'].includes(row.state);
/** @param {{ row: Record<string, any>, after?: (() => void) }} given */
export const RetryButton = ({ row, after }) =>
  can('deliveries.retry') && isLost(row)
    ? html`
        <button
          class="btn"
          type="button"
          onClick=${() => {
            open.value = {
              title: 'Try this text once more',
              button: 'Try again',
              done: () => done('deliveries.retry', { deliveryId: row.id }, 'It is tried again', after),
              body: html`
                <p>The send policy decides again. A channel that may have shown it already shows it twice.</p>
                <p class="muted">
                  “${row.text}” to ${row.channel}, ${counted(row.attempts, 'try').replace('trys', 'tries')} so far.
                </p>
              `,
            };
          }}>
          Try again
        </button>
      `
    : null;
