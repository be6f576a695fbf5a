// A list that is read page by page, newest first, and the keys that go through it.
import { batch, effect, html, signal, view } from './lib.js';
import { ask, live } from './api.js';
import { go, route } from './state.js';

// paged(self, name, given): `name` is the question, `given()` what is asked for;
// it is asked again when the address changes.
export function paged(self, name, field, given, { fresh = true } = {}) {
  const state = {
    rows: signal(null),
    cursor: signal(null),
    error: signal(null),
    busy: signal(false),
    sel: signal(-1),
  };
  let asked = 0;
  let timer = 0;
  state.load = async (more = false) => {
    const turn = ++asked;
    state.busy.value = true;
    try {
      const found = await ask(name, { ...given(), cursor: more ? state.cursor.peek() : undefined });
      if (turn !== asked || self.gone) return;
      batch(() => {
        state.rows.value = more ? [...state.rows.peek(), ...found[field]] : found[field];
        state.cursor.value = found.cursor ?? null;
        state.error.value = null;
        state.answer = found;
      });
    } catch (error) {
      if (turn === asked) state.error.value = error;
    }
    if (turn === asked) state.busy.value = false;
  };
  let known = null;
  const { page } = route.peek();
  self.onEnd(
    effect(() => {
      if (route.value.page !== page) return;
      const search = route.value.query.toString();
      if (search !== known) {
        known = search;
        state.load();
      }
    }),
  );
  if (fresh) {
    let head = live.peek().head;
    self.onEnd(
      effect(() => {
        const now = live.value.head;
        if (now === head) return;
        head = now;
        clearTimeout(timer);
        // Whoever has read on stays where they are.
        timer = setTimeout(() => {
          if ((state.rows.peek()?.length ?? 0) <= 120) state.load();
        }, 400);
      }),
    );
  }
  return state;
}

export function listKeys(self, state, address) {
  const heard = event => {
    if (
      event.target.closest?.('input,textarea,select,dialog,button,summary') ||
      event.metaKey ||
      event.ctrlKey ||
      event.altKey
    )
      return;
    const rows = state.rows.peek() ?? [];
    const to = { j: 1, k: -1 }[event.key];
    if (to) {
      state.sel.value = Math.max(0, Math.min(rows.length - 1, state.sel.peek() + to));
      queueMicrotask(() => document.querySelector('tr.sel')?.scrollIntoView({ block: 'nearest' }));
    }
    // One that is alone is meant.
    if (event.key === 'Enter' && rows.length === 1 && state.sel.peek() < 0) state.sel.value = 0;
    if (event.key === 'Enter' && rows[state.sel.peek()] && !event.target.closest?.('a'))
      go(address(rows[state.sel.peek()]));
  };
  addEventListener('keydown', heard);
  self.onEnd(() => removeEventListener('keydown', heard));
}

export const More = view(({ state }) =>
  state.cursor.value
    ? html`
        <p class="more">
          <button class="btn" type="button" onClick=${() => state.load(true)}>
            ${state.busy.value ? 'Reading…' : 'Show older'}
          </button>
        </p>
      `
    : null,
);
