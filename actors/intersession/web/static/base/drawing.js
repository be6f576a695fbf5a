// What all other modules draw with: the three libraries, bound together.
// A component that reads a signal is drawn again when it changes.
import { Component, Fragment, createRef, h, render } from '../vendor/preact-11.2.0/preact.mjs';
import htm from '../vendor/htm-3.1.1/htm.mjs';
import { batch, computed, effect, signal, untracked } from '../vendor/signals-core-1.14.5/signals-core.mjs';

export { Component, Fragment, batch, computed, createRef, effect, h, render, signal, untracked };

// What anybody wrote may hold letters that nobody sees: that steer a terminal, or turn the order of what stands after
// them. They are shown by their numbers, wherever a text is drawn. What can be edited or copied keeps them.
const UNSEEN = new RegExp(
  '[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u061c\\u200b\\u200e\\u200f\\u202a-\\u202e' +
    '\\u2060-\\u206f\\ufeff\\u{e0000}-\\u{e007f}]|\\r(?!\\n)',
  'gu',
);
/** @param {string} letter */
const numbered = letter => {
  const number = (letter.codePointAt(0) ?? 0).toString(16);
  return number.length > 4 ? `\\u{${number}}` : `\\u${number.padStart(4, '0')}`;
};
/** @param {string} text */
export const seen = text => text.replace(UNSEEN, numbered);
/** @type {(child: unknown) => unknown} */
const shown = child => (typeof child === 'string' ? seen(child) : Array.isArray(child) ? child.map(shown) : child);
const SAID = ['title', 'aria-label', 'aria-valuetext'];
const KEEPS = new Set(['textarea', 'option']);
/** @param {any} type @param {Record<string, any> | null} props @param {any[]} children */
function drawn(type, props, ...children) {
  for (const name of SAID) if (props && typeof props[name] === 'string') props[name] = seen(props[name]);
  return h(type, props, ...(KEEPS.has(type) ? children : children.map(shown)));
}
export const html = htm.bind(drawn);

// kept(self, name, of, make): what `make` gave, as long as the values in `of` are the same ones.
/** @type {WeakMap<object, Record<string, { of: unknown[], made: any }>>} */
const keptBy = new WeakMap();
/**
 * @template T
 * @param {object} self
 * @param {string} name
 * @param {unknown[]} of
 * @param {() => T} make
 * @returns {T}
 */
export const kept = (self, name, of, make) => {
  const all = keptBy.get(self) ?? {};
  keptBy.set(self, all);
  const known = all[name];
  if (known && known.of.every((one, number) => one === of[number])) return known.made;
  return (all[name] = { of, made: make() }).made;
};

/** @param {Record<string, unknown>} a @param {Record<string, unknown>} b */
const differ = (a, b) => {
  for (const key in a) if (a[key] !== b[key]) return true;
  for (const key in b) if (!(key in a)) return true;
  return false;
};

// view((props, self) => vnode): drawn again when a signal that it reads changes, or its own props,
// and not when its parent is.
// `self.once(make)` keeps a value for the life of the component, `self.onEnd(stop)` cleans up.
/**
 * @template P
 * @param {(props: P, self: Self) => Part} draw
 * @returns {View<P>}
 */
export function view(draw) {
  return class extends Component {
    stale = false;
    gone = false;
    /** @type {{ value: any } | null} */
    kept = null;
    /** @type {(() => void)[]} */
    ends = [];
    stop = () => {};
    /** @template T @param {(self: Self) => T} make @returns {T} */
    once(make) {
      return (this.kept ??= { value: make(this) }).value;
    }
    /** @param {() => void} stop */
    onEnd(stop) {
      this.ends.push(stop);
    }
    /** @param {Record<string, unknown>} next */
    shouldComponentUpdate(next) {
      return this.stale || differ(this.props, next);
    }
    /** @param {any} props */
    render(props) {
      this.stale = false;
      this.stop();
      /** @type {Part} */
      let drawn;
      let first = true;
      this.stop = effect(() => {
        if (first) {
          first = false;
          drawn = draw(props, this);
        } else
          queueMicrotask(() => {
            if (!this.gone) {
              this.stale = true;
              this.setState({});
            }
          });
      });
      return drawn;
    }
    componentWillUnmount() {
      this.gone = true;
      this.stop();
      for (const end of this.ends) end();
    }
  };
}
