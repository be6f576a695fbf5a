// The keys: those of a page at its foot, and all of them in a window.
import { html } from '../base/drawing.js';
import { isForPage, open } from '../parts/window.js';

/** @param {...string} names */
const key = (...names) => names.map(name => html`<kbd>${name}</kbd>`);
/** @param {string} said */
const keysOf = said => said.split(' ').map(name => (name === 'then' ? ' then ' : key(name)));
/** @param {...[string[], string]} parts */
const bar = (...parts) =>
  html`<span class="keybar">${parts.map(([names, said]) => html`<span>${key(...names)}${said}</span>`)}</span>`;
/** @type {Record<string, object>} */
export const KEYS = {
  run: bar(
    [['←', '→'], 'event'],
    [['p', 'n'], 'turn'],
    [['[', ']'], 'same session'],
    [['c', 'e'], 'cause, effect'],
    [['g'], 'go to'],
    [['b'], 'break on'],
    [['R', 'r'], 'run back, on'],
    [['?'], 'all keys'],
  ),
  runs: bar(
    [['j', 'k'], 'down, up'],
    [['Enter'], 'open'],
    [['x'], 'pick two'],
    [['/'], 'search'],
    [[], 'Outline: upper row asks, lower row is asked, ● person, ◆ channel, ■ loop ended, ✓ over, × failed'],
  ),
  all: bar([['/'], 'search'], [['?'], 'all keys']),
};

const HELP = [
  ['← →', 'an event back, on'],
  ['p n', 'a turn back, on'],
  ['[ ]', 'the run before, behind, of the same session'],
  ['c e', 'to the cause, to the first effect'],
  ['g', 'go to a place'],
  ['/', 'search'],
  ['b then R r', 'break on words, kind:NAME or session:NAME; run back or on to it'],
  ['t l v w x', 'transcripts, prompts, event, why, raw'],
  ['L', 'what whoever is asked next is given, and back to what was given here'],
  ['Home End', 'to the start, to the end'],
  ['j k Enter x', 'in lists: down, up, open, pick two to compare'],
  ['d', 'compare this run with another'],
  ['f F', 'fork here; what if'],
  ['h', 'hold this exchange before a text goes on'],
  ['u U o O', 'of what is held: let it go on, with another text, leave it out, end the exchange'],
  ['N m', 'pin a note; mark this place, to see from another one what changed since'],
  ['y s', 'copy the link; send as a file'],
  ['m u i o', 'in the list of runs: only those with smells, failed, cut by a limit, not over'],
  ['.', 'in a comparison: the next difference'],
  ['?', 'this'],
];
addEventListener('keydown', event => {
  if (!isForPage(event)) return;
  if (event.key === '/') {
    event.preventDefault();
    document.getElementById('search')?.focus();
  }
  if (event.key === '?')
    open.value = {
      title: 'Keys',
      body: html`
        <div class="keys">
          ${HELP.map(([keys, said]) => html`<span>${keysOf(keys)}</span><span>${said}</span>`)}
        </div>
      `,
    };
});
