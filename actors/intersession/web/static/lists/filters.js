// Filters of a list: what they hold stands in the address. On a narrow screen they fold behind one button.
import { html, signal, view } from '../base/drawing.js';
import { about } from '../asking/about.js';
import { queried, setQuery } from '../asking/address.js';

// What is looked for by these is said, or was sent, in sessions of others, too: the server refuses them to all others.
const OPERATORS = new Set(['words', 'person', 'channel', 'to']);
/** @param {string} name */
const isOffered = name => about.value?.isOperator || !OPERATORS.has(name);

// A filter is a step that the browser's own way back undoes.
// Each reads the address itself, and is drawn again when that changes.
/** @param {Record<string, string>} changes */
const filterBy = changes => setQuery(changes, { replace: false });

/** @param {string[]} names */
export const given = names => Object.fromEntries(names.map(name => [name, queried(name)]));
/** @param {string[]} names */
export const chosen = names => names.filter(name => queried(name));

/** @type {View<{ names: string[], children: Part }>} */
export const Filters = view(({ names, children }, self) => {
  const open = self.once(() => signal(false));
  const unfold = () => {
    open.value = !open.value;
  };
  return html`
    <div class=${`filters fold ${open.value ? 'open' : ''}`} role="group" aria-label="Filters">
      <button type="button" class="btn unfold" aria-expanded=${String(open.value)} onClick=${unfold}>Filter</button>
      <${Chosen} names=${names} />
      ${children}
    </div>
  `;
});
/** @type {View<{ name: string, label: string, wide?: boolean }>} */
export const Text = view(({ name, label, wide }) =>
  isOffered(name)
    ? html`
        <label>
          <span class="vh">${label}</span>
          <input
            type="search"
            name=${name}
            placeholder=${label}
            aria-label=${label}
            value=${queried(name)}
            class=${wide ? 'wide' : ''}
            onChange=${event => filterBy({ [name]: event.target.value.trim() })} />
        </label>
      `
    : null,
);
/** @type {View<{ name: string, label: string, options: string[][] }>} */
export const Choice = view(({ name, label, options }) => html`
  <label>
    <span class="vh">${label}</span>
    <select aria-label=${label} onChange=${event => filterBy({ [name]: event.target.value })}>
      <option value="">${label}</option>
      ${options.map(
        ([key, said]) => html`<option value=${key} selected=${queried(name) === key}>${said}</option>`,
      )}
    </select>
  </label>
`);
/** @type {View<{ name: string, children: Part }>} */
export const Only = view(({ name, children }) => html`
  <button
    type="button"
    class="chip"
    aria-pressed=${queried(name) === 'true'}
    onClick=${() => filterBy({ [name]: queried(name) === 'true' ? '' : 'true' })}>
    ${children}
  </button>
`);
/** @type {View<{ names: string[] }>} */
export const Chosen = view(({ names }) => html`
  <div class="chips">
    ${chosen(names).map(
      name => html`
        <button type="button" class="chip on" onClick=${() => filterBy({ [name]: '' })}>
          ${name} ${queried(name) === 'true' ? '' : queried(name)} ×<span class="vh"> take away</span>
        </button>
      `,
    )}
  </div>
`);
