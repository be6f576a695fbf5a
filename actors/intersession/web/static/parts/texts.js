// Words that have a look: data, code, smells.
import { html } from '../base/drawing.js';
import { Tri } from './icons.js';

// The words of an event in a list. What a tool was given, and what it gave, is data, and looks like it.
const DATA = /^[\w.-]*\(?[{[]["{[\]}]/;
export const Brief = ({ text = '' }) => (DATA.test(text) ? html`<span class="mono data">${text}</span>` : text);
// Words in which what stands between two grave accents is code.
/** @param {{ text: string }} given */
export const Said = ({ text }) =>
  String(text)
    .split('`')
    .map((part, number) => (number % 2 ? html`<code>${part}</code>` : part));

/** @param {{ smell: Answers.Smelled }} given */
export const Smell = ({ smell }) =>
  html`<span class="chip smell" title=${smell.text}><${Tri}/>${smell.name}</span>`;
