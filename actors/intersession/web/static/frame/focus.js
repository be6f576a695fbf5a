// Where what had the focus is taken away, by what was done with it or by the log that goes on, the focus stays
// beside it: lost, it would be at the top of the page, and a reader of the screen would begin anew.
/** @type {Element[]} */
const NONE = [];
let around = NONE;

document.addEventListener('focusin', ({ target }) => {
  if (!(target instanceof Element)) return;
  // A window gives the focus back to what has opened it, or to what is left of that.
  if (target.closest('dialog')) return;
  around = [];
  /** @type {Element | null} */
  let one = target;
  for (; one && one !== document.body; one = one.parentElement) around.push(one);
});
function keep() {
  if (!around.length || around[0].isConnected) return;
  if (document.activeElement && document.activeElement !== document.body) return;
  const left = around.find(one => one.isConnected);
  around = NONE;
  if (!left) return;
  if (!left.hasAttribute('tabindex')) left.setAttribute('tabindex', '-1');
  /** @type {HTMLElement} */ (left).focus({ preventScroll: true });
}
new MutationObserver(keep).observe(document.documentElement, { childList: true, subtree: true });
