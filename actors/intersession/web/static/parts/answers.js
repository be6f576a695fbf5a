// What a page shows in place of an answer: that it is loading, or why it failed.
import { html } from '../base/drawing.js';
import { href, link } from '../asking/address.js';
import { about } from '../asking/about.js';
import { Said } from './texts.js';

// `title` is the heading of a page that has nothing else.
/** @param {{ error: { message: string, status?: number }, retry?: (() => void), title?: string }} given */
export const Failed = ({ error, retry, title }) => html`
  <div class="empty" role="alert">
    ${title ? html`<h1>${title}</h1>` : null}
    <div class="alert"><b>This could not be read.</b> <${Said} text=${error.message} /></div>
    ${error.status === 403 && !about.value?.isOperator
      ? html`<p class="muted">This credential sees a part of the log only.</p>`
      : null}
    <p class="acts">
      ${retry ? html`<button class="btn" type="button" onClick=${retry}>Try again</button>` : null}
      <a class="link" ...${link(href('runs'))}>All runs</a>
    </p>
  </div>
`;
export const Loading = () => html`<p class="loading" role="status">Reading the log…</p>`;
