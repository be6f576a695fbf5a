// Tool calls of a run that wait for a person: let go on, with other arguments, or refused, by whoever has the right.
import { html, view } from '../base/drawing.js';
import { short, took } from '../base/words.js';
import { open } from '../parts/window.js';
import { can, done } from './rights.js';

/** @param {Place} place @param {HeldCall} call @param {string} said @param {object} more */
const release = (place, call, said, more) =>
  done('calls.release', { holdId: call.holdId, ...more }, said, () => place.refresh());

/** @param {Place} place @param {HeldCall} call */
const goOn = (place, call) =>
  release(place, call, 'Released', {}).catch(error => {
    open.value = { title: 'That was not done', body: html`<p class="alert">${error.message}</p>` };
  });
/** @param {Place} place @param {HeldCall} call */
function edit(place, call) {
  open.value = {
    title: 'Let the call go on with other arguments',
    button: 'Release with these',
    done: given => release(place, call, 'Released with other arguments', { arguments: JSON.parse(given.text) }),
    body: html`
      <label>
        ${call.tool} is given, instead (JSON)<br/><textarea name="text" required>${call.arguments}</textarea>
      </label>
      <p class="muted">That it was edited, and by whom, goes with its result.</p>
    `,
  };
}
/** @param {Place} place @param {HeldCall} call */
function refuse(place, call) {
  open.value = {
    title: 'Refuse the call',
    button: 'Refuse it',
    done: given => release(place, call, 'Refused', { action: 'refuse', ...(given.text && { text: given.text }) }),
    body: html`
      <label>${short(call.sessionKey)} is told<br/><textarea name="text"></textarea></label>
      <p class="muted">The tool is not called. Its agent goes on without it.</p>
    `,
  };
}

/** @type {View<{ place: Place }>} */
export const HeldCalls = view(
  ({ place }) => html`
    ${(place.run.value?.calls ?? []).map(
      call => html`
        <section class="note held" aria-label="Held call" key=${call.holdId}>
          <p>
            <b>A tool call waits</b>, ${took(Math.max(0, Date.now() - call.since))}, as ${call.rule} says.
            <b> ${short(call.sessionKey)}</b> wants to call <code>${call.tool}</code>
            <span> with <code>${call.arguments}</code></span>
          </p>
          ${can('calls.release')
            ? html`
                <div class="acts">
                  <button class="btn pri" type="button" onClick=${() => goOn(place, call)}>Release</button>
                  <button class="btn" type="button" onClick=${() => edit(place, call)}>Edit</button>
                  <button class="btn" type="button" onClick=${() => refuse(place, call)}>Refuse</button>
                </div>
              `
            : null}
        </section>
      `,
    )}
  `,
);
