// What every list page is made of: a title with its count, and a table, or what stands where nothing is found.
import { html, view } from '../base/drawing.js';
import { queried } from '../asking/address.js';
import { Failed, Loading } from '../parts/answers.js';
import { Chosen, chosen } from './filters.js';
import { More } from './paging.js';

/** @type {View<{ name: string, state: Paged<any>, more?: string }>} */
export const Title = view(
  ({ name, state, more }) => html`
    <div class="head">
      <div class="grow ttl">
        <h1>${name}</h1>
        ${state.rows.value
          ? html`
              <span class="muted">
                ${state.rows.value.length}
                ${state.cursor.value ? ' so far' : ''}
                ${more ?? ''}
              </span>
            `
          : null}
      </div>
    </div>
  `,
);

// `empty` is what stands where the log has none at all: its words, or a page of them.
/** @type {View<{ state: Paged<any>, what: string, names: string[], children: (rows: any[]) => Part, empty: Part }>} */
export const Body = view(({ state, what, names, children, empty }) => {
  const rows = state.rows.value;
  if (state.error.value) return html`<${Failed} error=${state.error.value} retry=${() => state.load()} />`;
  if (!rows) return html`<${Loading}/>`;
  if (rows.length) return html`${children(rows)}<${More} state=${state} />`;
  return chosen(names).some(name => queried(name).trim())
    ? html`
        <div class="empty">
          <h2>No ${what} matches</h2>
          <p class="muted">Take one of these away:</p>
          <${Chosen} names=${names} />
        </div>
      `
    : typeof empty === 'string'
      ? html`<div class="empty"><h2>${empty}</h2></div>`
      : empty;
});

// A table, by its columns: `[class, heading]`, with `num` as a third where it holds figures.
// On a narrow screen each row is a card, whose parts stand in the order of the columns.
/** @param {{ caption: string, columns: string[][], look?: string, children: Part }} given */
export const Listed = ({ caption, columns, look, children }) => html`
  <table class=${`list ${look ?? ''}`}>
    <caption class="vh">${caption}</caption>
    <colgroup>${columns.map(([name]) => html`<col class=${name} />`)}</colgroup>
    <thead>
      <tr>${columns.map(([, said, kind]) => html`<th scope="col" class=${kind ?? null}>${said}</th>`)}</tr>
    </thead>
    <tbody>${children}</tbody>
  </table>
`;
