// What stands before the pages: the login, and the wait for a log that is imported just now.
import { html, signal, view } from '../base/drawing.js';
import { counted } from '../base/words.js';
import { begin } from '../asking/about.js';
import { BASE, coming, live, login, turnedAway } from '../asking/api.js';

export const Door = view((_, self) => {
  const state = self.once(() => ({ problem: signal(''), busy: signal(false) }));
  /** @param {Happening} event */
  const enter = async event => {
    event.preventDefault();
    state.busy.value = true;
    try {
      await login(String(new FormData(event.target).get('token') ?? '').trim());
      await begin();
    } catch (caught) {
      const error = /** @type {Error & { status?: number }} */ (caught);
      state.problem.value = error.status === 401 ? 'That is not the token.' : error.message;
    }
    state.busy.value = false;
  };
  if (turnedAway.value)
    return html`
      <main class="door">
        <h1>Intersession</h1>
        <p class="alert" role="alert">${turnedAway.value}</p>
      </main>
    `;
  return html`
    <main class="door">
      <h1>Intersession</h1>
      <p class="muted">
        Who said what to whom, what each agent saw, and why it ended so. It takes the gateway's token: the operator

        has it, as gateway.auth.token or INTERSESSION_GATEWAY_TOKEN.
      </p>
      <form onSubmit=${enter}>
        <label>
          Token<input
            class="field"
            name="token"
            type="password"
            autocomplete="current-password"
            required
            autofocus />
        </label>
        <p class="bad" role="alert">${state.problem.value}</p>
        <button class="btn pri" type="submit" disabled=${state.busy.value}>Come in</button>
      </form>
      <p class="muted small">
        Programs send it with each

        request: <code>Authorization: Bearer …</code>; <a
          class="link"
          href=${`${BASE.replace(/debug\/$/, '')}openapi.json`}>
          openapi.json
        </a> says

        what they can ask.
      </p>
    </main>
  `;
});

export const Opening = view(() => {
  const found = coming.value;
  const { state, why } = live.value;
  if (!found && state === 'away')
    return html`
      <main class="door">
        <h1>The log can't be read now</h1>
        <p class="alert">${why}</p>
        <p class="muted" role="status">It is tried again by itself, until it can.</p>
      </main>
    `;
  if (!found) return html`<p class="loading" role="status">Opening the log…</p>`;
  const far = found.total
    ? `${found.done.toLocaleString('en-GB')} of ${counted(found.total, 'event')}`
    : 'Reading it';
  return html`
    <main class="door">
      <h1>Importing</h1>
      <p class="mono">${found.what}</p>
      <progress
        aria-label="How far the import is"
        max=${found.total || 1}
        value=${found.total ? found.done : null} />
      <p class="muted" role="status">${far}. It goes to a temporary log; what is imported is only read.</p>
    </main>
  `;
});
