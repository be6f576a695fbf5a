// A window over the page with one form or text in it, and the short word on what was done.
import { batch, createRef, html, signal, view } from '../base/drawing.js';
import { about } from '../asking/about.js';

// `open.value` is what it shows: {title, body, button, done, doing}. `done(given)` does what the button says; where it
// gives a promise, the window stays until that is kept (`doing` says what goes on), and says so where it is broken:
// what somebody has typed is theirs until it is done, or until they close the window themselves.
/** @type {Signal<Shown | null>} */
export const open = signal(null);

/** @type {Signal<{ text: string } | null>} */
const told = signal(null);
const TOLD_MS = 6000;
let telling = 0;
/** @param {string} text */
export const say = text => {
  told.value = { text };
  clearTimeout(telling);
  telling = setTimeout(() => {
    told.value = null;
  }, TOLD_MS);
};
export const Told = view(
  () => html`
    <p class="told" role="status">
      ${told.value ? html`<span key=${told.value}>${told.value.text}</span>` : null}
    </p>
  `,
);

// Whether a key is meant for the page: not for a field, a window, or the browser. Between the key that closes a window
// and the word that it is closed there is a frame, in which the focus is still in it: what comes then is for the page.
const FIELDS = 'input:not([type=range]),textarea,select';
/** @param {KeyboardEvent | Happening} event @param {string} [also] */
export function isForPage(event, also = FIELDS) {
  if (event.metaKey || event.ctrlKey || event.altKey || document.querySelector('dialog[open]')) return false;
  const { target } = event;
  if (!(target instanceof Element)) return true;
  return !target.closest(`${FIELDS},${also}`) || target.closest('dialog') !== null;
}

// What one person has begun to write is not shown to another one, who has come in since.
export const Window = view(() => {
  const shown = open.value;
  if (!shown) return null;
  const who = about.value?.who;
  shown.whose ??= who;
  if (shown.whose === who) return html`<${Shown} key=${shown} shown=${shown} />`;
  queueMicrotask(() => {
    open.value = null;
  });
  return null;
});

// A window that comes back, since its page was away for a login, has what was typed in it. A choice may bring further
// fields with it: it is made first.
/** @param {HTMLFormElement} form @param {Record<string, any>} typed */
async function refill(form, typed) {
  for (const field of form.querySelectorAll('select')) {
    if (!(field.name in typed) || field.value === typed[field.name]) continue;
    field.value = typed[field.name];
    field.dispatchEvent(new Event('change', { bubbles: true }));
  }
  await new Promise(requestAnimationFrame);
  for (const field of /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll('input,textarea')))
    if (field.name in typed) field.value = typed[field.name];
}

/** @type {View<{ shown: Shown }>} */
const Shown = view(({ shown }, self) => {
  const state = self.once(() => {
    /** @type {{ current: HTMLDialogElement | null }} */
    const box = createRef();
    const made = { box, busy: signal(false), refused: signal('') };
    // A dialog that is taken away while it is open leaves the focus nowhere; closed, it gives it back.
    self.onEnd(() => made.box.current?.close());
    queueMicrotask(() => {
      const dialog = made.box.current;
      if (!dialog) return;
      dialog.showModal();
      const form = dialog.querySelector('form');
      if (form && shown.typed) refill(form, shown.typed);
    });
    return made;
  });
  const { box, busy, refused } = state;
  const close = () => {
    if (!self.gone && open.peek() === shown) open.value = null;
  };
  /** @param {Happening} event */
  const typed = event => {
    shown.typed = Object.fromEntries(new FormData(event.currentTarget));
  };
  /** @param {Happening} event */
  const done = async event => {
    event.preventDefault();
    if (busy.peek()) return;
    const doing = shown.done?.(Object.fromEntries(new FormData(event.target)));
    if (doing instanceof Promise) {
      batch(() => {
        busy.value = true;
        refused.value = '';
      });
      try {
        await doing;
      } catch (caught) {
        const error = /** @type {Error} */ (caught);
        if (open.peek() !== shown) say(`${shown.title}: that was not done. ${error.message}`);
        refused.value = error.message;
        return;
      } finally {
        busy.value = false;
      }
    }
    close();
  };
  /** @param {Happening} event */
  const hurry = event => {
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) {
      event.preventDefault();
      event.currentTarget.requestSubmit();
    }
  };
  return html`
    <dialog ref=${box} onCancel=${close} onClose=${close} aria-labelledby="window-title">
      <h2 id="window-title">${shown.title}</h2>
      <form onSubmit=${done} onKeyDown=${hurry} onInput=${typed} onChange=${typed}>
        ${shown.body}
        ${refused.value
          ? html`<p class="alert" role="alert"><b>That was not done.</b> ${refused.value}</p>`
          : null}
        ${busy.value ? html`<p class="muted" role="status">${shown.doing ?? 'It is being done.'}</p>` : null}
        <div class="acts">
          ${shown.button
            ? html`<button class="btn pri" type="submit" aria-disabled=${busy.value}>${shown.button}</button>`
            : null}
          <button class="btn" type="button" onClick=${close}>
            ${shown.button && !busy.value ? 'Cancel' : 'Close'}
          </button>
          ${shown.button ? html`<span class="muted small hint"><kbd>Ctrl</kbd> <kbd>Enter</kbd></span>` : null}
        </div>
      </form>
    </dialog>
  `;
});

/**
 * @param {string} title
 * @param {string} label
 * @param {string | undefined} value
 * @param {(text: string) => void} done
 * @param {string} [help]
 */
export const prompted = (title, label, value, done, help) => {
  open.value = {
    title,
    button: 'Go',
    done: given => {
      done(given.value.trim());
    },
    body: html`
      <label class="muted">
        ${label}
        <br/>
        <input class="field" name="value" value=${value ?? ''} autofocus autocomplete="off" />
      </label>
      ${help ? html`<p class="muted small">${help}</p>` : null}
    `,
  };
};
/** @param {string} text @param {string} what */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} copied`);
  } catch {
    open.value = {
      title: `${what}, to copy`,
      body: html`
        <textarea readonly aria-label=${what} onFocus=${event => event.target.select()}>${text}</textarea>
      `,
    };
  }
}
