// Filters of a list: what they hold stands in the address. On a narrow screen they fold behind one button.
import { html, signal, view } from './lib.js';
import { queried, setQuery } from './state.js';

export const given = names => Object.fromEntries(names.map(name => [name, queried(name)]));
export const chosen = names => names.filter(name => queried(name));

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
export const Text = ({ name, label, wide }) => html`
  <label>
    <span class="vh">${label}</span>
    <input
      type="search"
      name=${name}
      placeholder=${label}
      aria-label=${label}
      value=${queried(name)}
      class=${wide ? 'wide' : ''}
      onChange=${event => setQuery({ [name]: event.target.value.trim() })} />
  </label>
`;
export const Choice = ({ name, label, options }) => html`
  <label>
    <span class="vh">${label}</span>
    <select aria-label=${label} onChange=${event => setQuery({ [name]: event.target.value })}>
      <option value="">${label}</option>
      ${options.map(([key, said]) => html`<option value=${key} selected=${queried(name) === key}>${said}</option>`)}
    </select>
  </label>
`;
export const Only = ({ name, children }) => html`
  <button
    type="button"
    class="chip"
    aria-pressed=${queried(name) === 'true'}
    onClick=${() => setQuery({ [name]: queried(name) === 'true' ? '' : 'true' })}>
    ${children}
  </button>
`;
export const Chosen = ({ names }) => html`
  <div class="chips">
    ${chosen(names).map(
      name => html`
        <button type="button" class="chip on" onClick=${() => setQuery({ [name]: '' })}>
          ${name} ${queried(name) === 'true' ? '' : queried(name)} ×<span class="vh"> take away</span>
        </button>
      `,
    )}
  </div>
`;
