// A list that is read page by page, newest first, and the keys that go through it.
import { batch, effect, html, signal, view } from '../base/drawing.js';
import { go, route, scrolling } from '../asking/address.js';
import { ask, moved } from '../asking/api.js';
import { isForPage } from '../parts/window.js';

// What tells a row from all others, whatever comes before it.
/** @param {any} row */
const keyOf = row => row.id ?? row.canonical ?? row.position;

// The newest page, and behind it what has been read on to. Of what it reaches over, it alone says what is there still;
// where it reaches nothing that is known, so much has come meanwhile that the list begins anew.
/** @param {any[]} newest @param {any[]} known */
export function joined(newest, known) {
  const last = newest.at(-1);
  const reached = last ? known.findIndex(row => keyOf(row) === keyOf(last)) : -1;
  if (reached < 0) return null;
  const fresh = new Set(newest.map(keyOf));
  return [...newest, ...known.slice(reached + 1).filter(row => !fresh.has(keyOf(row)))];
}
// A list that has grown so long begins anew, once nobody reads further down.
const MOST = 600;
const readOn = () => scrolling().find(box => (box?.scrollTop ?? 0) > 80);
// Rows that come above what is read do not push it down.
/** @param {() => void} change */
function steady(change) {
  const box = readOn();
  /** @param {Element} row */
  const topOf = row => row.getBoundingClientRect().top;
  const row = box && [...document.querySelectorAll('.list tbody tr')].find(one => topOf(one) > topOf(box) + 40);
  const was = row ? topOf(row) : 0;
  change();
  if (row)
    requestAnimationFrame(() => {
      if (row.isConnected) box.scrollTop += topOf(row) - was;
    });
}

// paged(self, name, field, given): `name` is the question, `given()` what is asked for (null: nothing).
// It is asked again when the address changes, and when the log goes on: then nothing that is shown is taken away.
/**
 * @param {Self} self
 * @param {keyof Answers.Questions} name
 * @param {string} field
 * @param {() => Record<string, any> | null} given
 * @param {{ fresh?: boolean }} [how]
 */
export function paged(self, name, field, given, { fresh = true } = {}) {
  const state = /** @type {Paged} */ ({
    rows: signal(null),
    cursor: signal(null),
    error: signal(null),
    busy: signal(false),
    sel: signal(-1),
  });
  let asked = 0;
  let timer = 0;
  /** @param {any[]} rows @param {any} found @param {string | null} [cursor] */
  const show = (rows, found, cursor) =>
    batch(() => {
      const chosen = state.rows.peek()?.[state.sel.peek()];
      state.rows.value = rows;
      state.cursor.value = cursor ?? null;
      state.error.value = null;
      state.answer = found;
      // What was chosen stays chosen, wherever it stands now.
      if (chosen) state.sel.value = rows.findIndex(row => keyOf(row) === keyOf(chosen));
    });
  state.load = async (more = false) => {
    const turn = ++asked;
    const wanted = given();
    if (!wanted) return show([], {}, null);
    state.busy.value = true;
    try {
      /** @type {any} */
      const found = await ask(name, { ...wanted, cursor: more ? state.cursor.peek() : undefined });
      if (turn !== asked || self.gone) return null;
      show(more ? [...(state.rows.peek() ?? []), ...found[field]] : found[field], found, found.cursor);
    } catch (error) {
      if (turn === asked) state.error.value = /** @type {Error} */ (error);
    }
    if (turn === asked) state.busy.value = false;
    return null;
  };
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(state.renew, 400);
  };
  state.renew = async () => {
    const known = state.rows.peek();
    if (!known) return state.load();
    if (state.busy.peek()) return later();
    const turn = asked;
    try {
      /** @type {any} */
      const found = await ask(name, given() ?? {});
      if (turn !== asked || self.gone) return null;
      const grown = found.cursor ? joined(found[field], known) : null;
      const isLong = (grown?.length ?? 0) > MOST;
      if (isLong && readOn()) return null;
      if (grown && !isLong) steady(() => show(grown, found, state.cursor.peek()));
      else steady(() => show(found[field], found, found.cursor));
    } catch {
      /* what is shown stays; the next event asks again */
    }
    return null;
  };
  /** @type {string | null} */
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
    /** @type {string | null} */
    let last = null;
    self.onEnd(
      effect(() => {
        const now = moved();
        if (last !== null && now !== last) later();
        last = now;
      }),
    );
    self.onEnd(() => clearTimeout(timer));
  }
  return state;
}

/** @param {Self} self @param {Paged} state @param {(row: any) => string} address */
export function listKeys(self, state, address) {
  /** @param {KeyboardEvent} event */
  const heard = event => {
    if (!isForPage(event, 'button,summary')) return;
    const rows = state.rows.peek() ?? [];
    const to = event.key === 'j' ? 1 : event.key === 'k' ? -1 : 0;
    if (to) {
      state.sel.value = Math.max(0, Math.min(rows.length - 1, state.sel.peek() + to));
      queueMicrotask(() => document.querySelector('tr.sel')?.scrollIntoView({ block: 'nearest' }));
    }
    // One that is alone is meant.
    if (event.key === 'Enter' && rows.length === 1 && state.sel.peek() < 0) state.sel.value = 0;
    const isLink = event.target instanceof Element && event.target.closest('a');
    if (event.key === 'Enter' && rows[state.sel.peek()] && !isLink) go(address(rows[state.sel.peek()]));
  };
  addEventListener('keydown', heard);
  self.onEnd(() => removeEventListener('keydown', heard));
}

/** @type {View<{ state: Paged }>} */
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
