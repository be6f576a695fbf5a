// Words cut to the room there is, by how wide they are drawn here: every system has other fonts.
const NORMAL = '';
const BOLD = '600 ';
const MOST_KEPT = 4000;
let pen = null;
let faces = {};
const kept = new Map();

// The fonts of the page as they are now: the largest screens have larger ones.
function ready() {
  if (pen) return;
  pen = document.createElement('canvas').getContext('2d');
  const { fontFamily } = getComputedStyle(document.body);
  const styles = getComputedStyle(document.documentElement);
  faces = {
    label: `${NORMAL}${styles.getPropertyValue('--s2')} ${fontFamily}`,
    strong: `${BOLD}${styles.getPropertyValue('--s2')} ${fontFamily}`,
    small: `${NORMAL}${styles.getPropertyValue('--s1')} ${fontFamily}`,
    term: `${BOLD}${styles.getPropertyValue('--s1')} ${fontFamily}`,
  };
}
addEventListener('resize', () => {
  pen = null;
  kept.clear();
});

// How wide a text is drawn, as a label, a strong one, a small one, or a small strong one (a term).
export function widthOf(text, face = 'label') {
  ready();
  pen.font = faces[face];
  return pen.measureText(text).width;
}

const LEAST = 8; // letters
export function cut(text, width, face = 'label') {
  const key = `${face} ${Math.round(width)} ${text}`;
  const known = kept.get(key);
  if (known !== undefined) return known;
  if (kept.size > MOST_KEPT) kept.clear();
  const made = shortened(text, width, face);
  kept.set(key, made);
  return made;
}
function shortened(text, width, face) {
  // More letters than this fit nowhere: a text of a megabyte is not measured.
  const whole = String(text).slice(0, 2000).replace(/\s+/g, ' ').trim();
  if (whole.length <= LEAST || widthOf(whole, face) <= width) return whole;
  let low = LEAST - 1;
  let high = whole.length - 1;
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if (widthOf(`${whole.slice(0, mid).trimEnd()}…`, face) <= width) low = mid;
    else high = mid - 1;
  }
  return `${clipped(whole, low).trimEnd()}…`;
}
// Never half a letter: a pair of code units stays whole.
const clipped = (text, length) => text.slice(0, /[\uD800-\uDBFF]/.test(text[length - 1]) ? length - 1 : length);
