// Tabs, by their ARIA pattern: one of them is reached by Tab, the others from it by the arrows.
import { html } from '../base/drawing.js';

/**
 * @param {{ label: string, id: string, tabs: [string, string][], tab: string, choose: (name: string) => void }} given
 */
export const Tabs = ({ label, id, tabs, tab, choose }) => {
  /** @param {Happening} event */
  const moved = event => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const next = tabs[(tabs.findIndex(([name]) => name === tab) + by + tabs.length) % tabs.length][0];
    choose(next);
    queueMicrotask(() => document.getElementById(`tab-${next}`)?.focus());
  };
  return html`
    <div class="tabs" role="tablist" aria-label=${label} onKeyDown=${moved}>
      ${tabs.map(
        ([name, said]) => html`
          <button
            type="button"
            role="tab"
            id=${`tab-${name}`}
            aria-selected=${tab === name}
            aria-controls=${id}
            tabindex=${tab === name ? 0 : -1}
            onClick=${() => choose(name)}>
            ${said}
          </button>
        `,
      )}
    </div>
  `;
};

// Buttons of which one is pressed.
/** @param {{ label: string, value: string, options: [string, string][], onChange: (key: any) => void }} given */
export const Seg = ({ label, value, options, onChange }) => html`
  <span class="seg" role="group" aria-label=${label}>
    ${options.map(
      ([key, name]) => html`
        <button type="button" aria-pressed=${value === key} onClick=${() => onChange(key)}>${name}</button>
      `,
    )}
  </span>
`;
