// The words that were looked for stand out in what was found: whole words, as the search matches them. In scripts
// without spaces it matches any two letters in a row.
import { html } from '../base/drawing.js';

const WORDS = /([\p{L}\p{N}]+)/u;
const UNSPACED = new RegExp(
  '([\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u3040-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff' +
    '\\u{20000}-\\u{3134f}]+)',
  'u',
);
/** @param {string} text */
const folded = text => text.normalize('NFKC').toLowerCase().replaceAll('ß', 'ss').replaceAll('ς', 'σ');

// `whole` are words, `begun` what words begin with (`word*`), `pairs` what stands anywhere in a script without spaces.
/** @param {string} asked */
export function termsOf(asked) {
  /** @type {Terms} */
  const terms = { whole: new Set(), begun: [], pairs: [] };
  for (const [, word, star] of folded(asked).matchAll(new RegExp(`${WORDS.source}([*]?)`, 'gu'))) {
    const pieces = word.split(UNSPACED).filter(Boolean);
    pieces.forEach((piece, number) => {
      if (UNSPACED.test(piece)) {
        const letters = [...piece];
        const many = Math.max(letters.length - 1, 1);
        for (let at = 0; at < many; at++) terms.pairs.push(letters.slice(at, at + 2).join(''));
      } else if (star && number === pieces.length - 1) terms.begun.push(piece);
      else terms.whole.add(piece);
    });
  }
  return terms;
}
/** @param {string} piece @param {{ whole: Set<string>, begun: string[] }} given */
const isAsked = (piece, { whole, begun }) => whole.has(piece) || begun.some(one => piece.startsWith(one));

// A run of letters in a script without spaces, parted where two of them were looked for.
/** @param {string} piece @param {string[]} pairs */
function parted(piece, pairs) {
  const letters = [...piece];
  const on = letters.map(() => false);
  for (const pair of pairs.map(one => [...one]))
    letters.forEach((_, at) => {
      if (pair.every((letter, step) => letters[at + step] === letter)) on.fill(true, at, at + pair.length);
    });
  /** @type {[string, boolean][]} */
  const parts = [];
  letters.forEach((letter, at) => {
    if (at && on[at] === on[at - 1]) parts[parts.length - 1][0] += letter;
    else parts.push([letter, on[at]]);
  });
  return parts;
}
/** @param {string} word @param {Terms} terms */
function partsOf(word, terms) {
  return word
    .split(UNSPACED)
    .filter(Boolean)
    .flatMap(piece =>
      UNSPACED.test(piece) ? parted(piece, terms.pairs) : [[piece, isAsked(folded(piece), terms)]],
    );
}
/** @param {string} text @param {Terms} terms */
export const marked = (text, terms) =>
  text
    .split(WORDS)
    .flatMap((part, number) => (number % 2 ? partsOf(part, terms) : [[part, false]]))
    .map(([part, isOn]) => (isOn ? html`<mark>${part}</mark>` : part));
