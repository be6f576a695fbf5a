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
export const HoldButton = view(({ place }) => {
  const run = place.run.value;
  if (run.kind !== 'exchange' || !can('exchanges.hold') || run.held) return null;
  if (run.state !== 'open')
    return html`
      <button class="btn" type="button" aria-disabled="true" title="The exchange is over: there is nothing to hold">
        <${Icon} name="hold" />Hold
      </button>
    `;
  const hold = () => {
    open.value = {
      title: 'Hold this exchange',
      button: 'Hold it',
      done: given =>
        done('exchanges.hold', { runId: run.runId, before: given.before }, 'It will be held', () =>
          place.refresh(),
        ),
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
  };
  return html`<button class="btn" type="button" onClick=${hold}><${Icon} name="hold" />Hold</button>`;
});

export const Held = view(({ place }, self) => {
  const found = (self.found ??= signal(null));
  const run = place.run.value;
  if (!run.held) {
    self.known = null;
    return null;
  }
  if (self.known !== run.position) {
    self.known = run.position;
    ask('state', { of: run.id, messages: 0 }).then(
      state => {
        found.value = state.exchanges[0]?.held ?? null;
      },
      () => {},
    );
  }
  const held = found.value;
  if (!held) return null;
  const release = (action, said, more = {}) =>
    done('exchanges.release', { runId: run.runId, action, holdId: held.holdId, ...more }, said, () =>
      place.refresh(),
    );
  const edit = () => {
    open.value = {
      title: 'Let another text go on',
      button: 'Release with this text',
      done: given => release('edit', 'Released with another text', { text: given.text }),
      body: html`
        <label>
          ${short(held.speaker)} says, instead<br/><textarea name="text" required>${held.text}</textarea>
        </label>
        <p class="muted">That it was edited, and by whom, goes with it.</p>
      `,
    };
  };
  const goOn = () =>
    release('go_on', 'Released').catch(error => {
      open.value = { title: 'That was not done', body: html`<p class="alert">${error.message}</p>` };
    });
  const sure = (title, body, button, act) => () => {
    open.value = { title, button, done: act, body: html`<p>${body}</p>` };
  };
  return html`
    <section class="note held" aria-label="Held">
      <p>
        <b>Held before ${held.step === 'announce' ? 'the announce' : 'this goes on'}</b>
        ${held.since ? `, ${took(Math.max(0, Date.now() - held.since))}` : ''},
        as ${held.by} wants. <b>${short(held.speaker)}</b> would say${held.to ? ` to ${short(held.to)}` : ''}:
        “${held.text}”
      </p>
      ${can('exchanges.release')
        ? html`
            <div class="acts">
              <button class="btn pri" type="button" onClick=${goOn}>Release</button>
              <button class="btn" type="button" onClick=${edit}>Edit</button>
              <button
                class="btn"
                type="button"
                onClick=${sure(
                  'Leave this text out',
                  'It is as if it had not been said. What follows is what the rules say of no text.',
                  'Leave it out',
                  () => release('drop', 'Left out'),
                )}>
                Leave out
              </button>
              <button
                class="btn"
                type="button"
                onClick=${sure(
                  'End the exchange',
                  'Nothing more of it happens; what was said stays in the log.',
                  'End it',
                  () => release('end', 'Ended'),
                )}>
                End the exchange
              </button>
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
