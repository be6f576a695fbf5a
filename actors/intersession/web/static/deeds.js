// What can be done, for whoever has the right: hold and release an exchange, try a text again.
// Each says first what it will do.
import { html, signal, view } from './lib.js';
import { ask, tell } from './api.js';
import { about, route } from './state.js';
import { Icon } from './parts.js';
import { open, say } from './window.js';
import { counted, short, took } from './words.js';

// What is done is done to the log itself: in a fork, only what concerns the fork is offered.
const IN_A_FORK = new Set(['file', 'reveal', 'forks.remove']);
export const can = name =>
  Boolean(about.value?.can.includes(name)) && (!route.value.query.get('fork') || IN_A_FORK.has(name));

async function done(method, params, said, after) {
  await tell('api/do', { method, params });
  say(said);
  after?.();
}

const BEFORE = [
  ['next', 'whatever goes on next'],
  ['reply', 'the next reply'],
  ['announce', 'the announce'],
  ['every-turn', 'every turn'],
];
// Why an exchange can't be held now; '' where it can. What is no exchange, and what nobody may hold, has no such deed.
const offersHold = run => run.kind === 'exchange' && can('exchanges.hold') && !run.held;
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
          ${BEFORE.map(([key, said]) => html`<option value=${key}>${said}</option>`)}
        </select>
      </label>
      <p class="muted">
        The text stays where it is until somebody releases it, over a restart too. Who held it is an event.
      </p>
    `,
  };
}
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
const release = (place, held, action, said, more = {}) =>
  done('exchanges.release', { runId: place.run.peek().runId, action, holdId: held.holdId, ...more }, said, () =>
    place.refresh(),
  );
const wouldSay = held => html`
  <p><b>${short(held.speaker)}</b> would say${held.to ? ` to ${short(held.to)}` : ''}: “${held.text}”</p>
`;
const sure = (title, button, action, said, body) => (place, held) => {
  open.value = { title, button, done: () => release(place, held, action, said), body };
};
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
const heldIn = run => ask('state', { of: run.id, messages: 0 }).then(state => state.exchanges[0]?.held ?? null);
export async function heldKey(key, place) {
  const run = place.run.peek();
  if (!run.held || !can('exchanges.release')) return;
  const held = await heldIn(run).catch(() => null);
  if (held) RELEASES[key](place, held);
}

export const Held = view(({ place }, self) => {
  const found = (self.found ??= signal(null));
  const run = place.run.value;
  if (!run.held) {
    self.known = null;
    return null;
  }
  if (self.known !== run.position) {
    self.known = run.position;
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

export const RetryButton = ({ row, after }) =>
  can('deliveries.retry') && ['failed', 'unknown', 'denied'].includes(row.state)
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
