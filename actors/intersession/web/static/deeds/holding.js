// An exchange is held, and what is held is released, by whoever has the right. Each window says first what it will do.
import { html, signal, view } from '../base/drawing.js';
import { short, took } from '../base/words.js';
import { about } from '../asking/about.js';
import { ask } from '../asking/api.js';
import { Icon } from '../parts/icons.js';
import { open, say } from '../parts/window.js';
import { can, done } from './rights.js';

// Why an exchange can't be held now; '' where it can. What is no exchange, and what nobody may hold, has no such deed.
/** @param {Run} run */
const offersHold = run => run.kind === 'exchange' && can('exchanges.hold') && !run.held;
/** @param {Place} place */
export function hold(place) {
  const run = place.run.peek();
  if (!offersHold(run)) return;
  if (run.state !== 'open') {
    say('The exchange is over: there is nothing to hold');
    return;
  }
  open.value = {
    title: 'Hold this exchange',
    button: 'Hold it',
    done: given =>
      done('exchanges.hold', { runId: run.runId, before: given.before }, 'It will be held', () => place.refresh()),
    body: html`
      <label>
        Before<br/>
        <select class="field" name="before">
          ${Object.entries(about.peek()?.heldBefore ?? {}).map(
            ([key, said]) => html`<option value=${key}>${said}</option>`,
          )}
        </select>
      </label>
      <p class="muted">
        The text stays where it is until somebody releases it, over a restart too. Who held it is an event.
      </p>
    `,
  };
}
/** @type {View<{ place: Place }>} */
export const HoldButton = view(({ place }) => {
  const run = place.run.value;
  if (!offersHold(run)) return null;
  if (run.state !== 'open')
    return html`
      <button class="btn" type="button" aria-disabled="true" title="The exchange is over: there is nothing to hold">
        <${Icon} name="hold" />Hold
      </button>
    `;
  return html`
    <button
      class="btn"
      type="button"
      aria-keyshortcuts="h"
      title="Hold it before a text goes on (h)"
      onClick=${() => hold(place)}>
      <${Icon} name="hold" />Hold
    </button>
  `;
});

// What can be done with a text that is held: by a button, or by its key.
/** @param {Place} place @param {HeldText} held @param {string} action @param {string} said @param {object} [more] */
const release = (place, held, action, said, more = {}) =>
  done('exchanges.release', { runId: place.run.peek().runId, action, holdId: held.holdId, ...more }, said, () =>
    place.refresh(),
  );
/** @param {HeldText} held */
const wouldSay = held => html`
  <p><b>${short(held.speaker)}</b> would say${held.to ? ` to ${short(held.to)}` : ''}: “${held.text}”</p>
`;
/** @param {string} title @param {string} button @param {string} action @param {string} said @param {object} body */
const sure = (title, button, action, said, body) => (/** @type {Place} */ place, /** @type {HeldText} */ held) => {
  open.value = { title, button, done: () => release(place, held, action, said), body };
};
/** @type {Record<string, (place: Place, held: HeldText) => void>} */
const RELEASES = {
  u: (place, held) => sure('Let this text go on', 'Release', 'go_on', 'Released', wouldSay(held))(place, held),
  U: (place, held) => {
    open.value = {
      title: 'Let another text go on',
      button: 'Release with this text',
      done: given => release(place, held, 'edit', 'Released with another text', { text: given.text }),
      body: html`
        <label>
          ${short(held.speaker)} says, instead<br/><textarea name="text" required>${held.text}</textarea>
        </label>
        <p class="muted">That it was edited, and by whom, goes with it.</p>
      `,
    };
  },
  o: sure(
    'Leave this text out',
    'Leave it out',
    'drop',
    'Left out',
    html`<p>It is as if it had not been said. What follows is what the rules say of no text.</p>`,
  ),
  O: sure(
    'End the exchange',
    'End it',
    'end',
    'Ended',
    html`<p>Nothing more of it happens; what was said stays in the log.</p>`,
  ),
};
/** @param {Run} run */
const heldIn = run => ask('state', { of: run.id, messages: 0 }).then(state => state.exchanges[0]?.held ?? null);
/** @param {string} key @param {Place} place */
export async function heldKey(key, place) {
  const run = place.run.peek();
  if (!run.held || !can('exchanges.release')) return;
  const held = await heldIn(run).catch(() => null);
  if (held) RELEASES[key](place, held);
}

/** @type {() => Signal<HeldText | null>} */
const heldNow = () => signal(null);
/** @type {View<{ place: Place }>} */
export const Held = view(({ place }, self) => {
  const state = self.once(() => ({ found: heldNow(), known: 0 }));
  const { found } = state;
  const run = place.run.value;
  if (!run?.held) {
    state.known = 0;
    return null;
  }
  if (state.known !== run.position) {
    state.known = run.position;
    heldIn(run).then(
      held => {
        found.value = held;
      },
      () => {},
    );
  }
  const held = found.value;
  if (!held) return null;
  const goOn = () =>
    release(place, held, 'go_on', 'Released').catch(error => {
      open.value = { title: 'That was not done', body: html`<p class="alert">${error.message}</p>` };
    });
  /** @param {string} key @param {string} said @param {() => void} [act] @param {string} [look] */
  const button = (key, said, act = () => RELEASES[key](place, held), look = 'btn') => html`
    <button class=${look} type="button" aria-keyshortcuts=${key} title=${`${said} (${key})`} onClick=${act}>
      ${said}
    </button>
  `;
  return html`
    <section class="note held" aria-label="Held">
      <p>
        <b>Held before ${held.step === 'announce' ? 'the announce' : 'this goes on'}</b>
        ${held.since ? `, ${took(Math.max(0, Date.now() - held.since))}` : ''},
        as ${short(held.by)} wants. <b>${short(held.speaker)}</b> would say${held.to ? ` to ${short(held.to)}` : ''}:
        “${held.text}”
      </p>
      ${can('exchanges.release')
        ? html`
            <div class="acts">
              ${button('u', 'Release', goOn, 'btn pri')} ${button('U', 'Edit')} ${button('o', 'Leave out')}
              ${button('O', 'End the exchange')}
            </div>
          `
        : null}
    </section>
  `;
});
