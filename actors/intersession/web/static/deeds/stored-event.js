// An event as it is stored, with its hashes; and how its secrets are shown on demand.
import { html } from '../base/drawing.js';
import { inside, tell } from '../asking/api.js';
import { Shield } from '../parts/icons.js';
import { open } from '../parts/window.js';
import { can } from './rights.js';

// A secret is hidden, whoever looks. That one was looked at is recorded.
/** @param {Answers.EventAnswer} event */
async function reveal(event) {
  const asked = inside.fork ? { at: event.position, fork: inside.fork } : { at: event.position };
  const whole = await tell('api/reveal', asked);
  const body = html`<pre tabindex="0">${JSON.stringify(whole.data, null, 2)}</pre>`;
  return { title: `#${event.position}, with its secrets`, body };
}
/** @param {Answers.EventAnswer} event */
const askFirst = event => {
  const asking = {
    title: `Reveal the secrets of #${event.position}`,
    button: 'Reveal them',
    body: html`<p>They are shown to you, once. That you have looked is recorded in the log.</p>`,
    done: async () => {
      const revealed = await reveal(event);
      if (open.peek() === asking) open.value = revealed;
    },
  };
  open.value = asking;
};
/** @param {{ event: Answers.EventAnswer }} given */
export const Hidden = ({ event }) => {
  if (!event.redacted) return null;
  return html`
    <p class="as hidden">
      <span>Secrets in it are hidden.</span>
      ${can('reveal')
        ? html`<button type="button" class="btn" onClick=${() => askFirst(event)}>Reveal</button>`
        : null}
    </p>
  `;
};

/** @param {{ event: Answers.EventAnswer }} given */
export const Raw = ({ event }) => {
  const { data, holds, redacted, said, ...row } = event;
  return html`
    <div>
      <${Hidden} event=${event} />
      <div class="sec">
        <p class=${`rec ${holds ? 'ok' : 'no'}`}>
          <${Shield} ok=${holds} />
          <b>${holds ? 'Hash confirmed' : 'The chain does not hold'}</b>
          <span class="muted">
            ${row.linkedTo ? `linked to #${row.linkedTo}` : row.version === 1 ? 'the first of its stream' : ''}
          </span>
        </p>
      </div>
      <div class="sec">
        <h2>#${row.position} ${row.topic}</h2>
        <pre class="all" tabindex="0">${JSON.stringify({ ...row, data }, null, 1)}</pre>
      </div>
    </div>
  `;
};
