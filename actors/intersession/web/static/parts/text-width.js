// Words cut to the room there is, by how wide they are drawn here: every system has other fonts.
const NORMAL = '';
const BOLD = '600 ';
const MOST_KEPT = 4000;
/** @type {CanvasRenderingContext2D | null} */
let pen = null;
/** @type {Record<string, string>} */
let faces = {};
const kept = new Map();

// The fonts of the page as they are now: the largest screens have larger ones.
function ready() {
  if (pen) return pen;
  pen = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d'));
  const { fontFamily } = getComputedStyle(document.body);
  const styles = getComputedStyle(document.documentElement);
  faces = {
    label: `${NORMAL}${styles.getPropertyValue('--s2')} ${fontFamily}`,
    strong: `${BOLD}${styles.getPropertyValue('--s2')} ${fontFamily}`,
    small: `${NORMAL}${styles.getPropertyValue('--s1')} ${fontFamily}`,
    term: `${BOLD}${styles.getPropertyValue('--s1')} ${fontFamily}`,
  };
  return pen;
}
addEventListener('resize', () => {
  pen = null;
  kept.clear();
});

// How wide a text is drawn, as a label, a strong one, a small one, or a small strong one (a term).
/** @param {string} text @param {string} [face] */
export function widthOf(text, face = 'label') {
  const drawn = ready();
  drawn.font = faces[face];
  return drawn.measureText(text).width;
}

export const LINE = 18; // from one line of a label to the next

// The words of a message on one line, or on two where they need them; what is left over is cut.
/** @param {string} text @param {number} width @param {string} [face] */
export function lines(text, width, face = 'label') {
  const whole = said(text);
  if (whole.length <= LEAST || widthOf(whole, face) <= width) return [whole];
  // There is another line for a word that would be broken here.
  const first = whole.slice(0, atWord(whole, fitting(whole, width, face, ''), 0.25)).trimEnd();
  const rest = whole.slice(first.length).trimStart();
  return rest ? [first, cut(rest, width, face)] : [first];
}
/** @param {string} text @param {number} width @param {string} [face] */
export const needsTwo = (text, width, face) => {
  const whole = said(text);
  return whole.length > LEAST && widthOf(whole, face) > width;
};

// More letters than this fit nowhere: a text of a megabyte is not measured.
/** @param {string} text */
const said = text => String(text).slice(0, 2000).replace(/\s+/g, ' ').trim();

const LEAST = 8; // letters
/** @param {string} text @param {number} width @param {string} [face] */
export function cut(text, width, face = 'label') {
  const key = `${face} ${Math.round(width)} ${text}`;
  const known = kept.get(key);
  if (known !== undefined) return known;
  if (kept.size > MOST_KEPT) kept.clear();
  const made = shortened(text, width, face);
  kept.set(key, made);
  return made;
}
/** @param {string} text @param {number} width @param {string} [face] */
function shortened(text, width, face) {
  const whole = said(text);
  if (whole.length <= LEAST || widthOf(whole, face) <= width) return whole;
  return `${whole.slice(0, atWord(whole, fitting(whole, width, face, '…'))).trimEnd()}…`;
}
// How many letters fit, by halves.
/** @param {string} whole @param {number} width @param {string | undefined} face @param {string} end */
function fitting(whole, width, face, end) {
  let low = LEAST - 1;
  let high = whole.length - 1;
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if (widthOf(`${whole.slice(0, mid).trimEnd()}${end}`, face) <= width) low = mid;
    else high = mid - 1;
  }
  return low;
}
// It ends with a word, unless that is a long one. Never with half a letter: a pair of code units stays whole.
/** @param {string} whole @param {number} length @param {number} [least] */
function atWord(whole, length, least = 0.6) {
  const space = whole[length] === ' ' ? length : whole.lastIndexOf(' ', length - 1);
  if (space > length * least) return space;
  return /[\uD800-\uDBFF]/.test(whole[length - 1]) ? length - 1 : length;
}
