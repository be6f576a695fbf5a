// What all other modules draw with: the three libraries, bound together.
// A component that reads a signal is drawn again when it changes.
import { Component, Fragment, createRef, h, render } from './vendor/preact-11.2.0/preact.mjs';
import htm from './vendor/htm-3.1.1/htm.mjs';
import { batch, computed, effect, signal, untracked } from './vendor/signals-core-1.14.5/signals-core.mjs';

export { Component, Fragment, batch, computed, createRef, effect, h, render, signal, untracked };

export const html = htm.bind(h);

// kept(self, name, of, make): what `make` gave, as long as the values in `of` are the same ones.
export const kept = (self, name, of, make) => {
  const known = (self.kepts ??= {})[name];
  if (known && known.of.every((one, number) => one === of[number])) return known.made;
  return (self.kepts[name] = { of, made: make() }).made;
};

const differ = (a, b) => {
  for (const key in a) if (a[key] !== b[key]) return true;
  for (const key in b) if (!(key in a)) return true;
  return false;
};

// view((props, self) => vnode): drawn again when a signal that it reads changes, or its own props,
// and not when its parent is.
// `self.once(make)` keeps a value for the life of the component, `self.onEnd(stop)` cleans up.
export function view(draw) {
  return class extends Component {
    once(make) {
      return (this.kept ??= make(this));
    }
    onEnd(stop) {
      (this.ends ??= []).push(stop);
    }
    shouldComponentUpdate(next) {
      return this.stale || differ(this.props, next);
    }
    render(props) {
      this.stale = false;
      this.stop?.();
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
      this.stop?.();
      for (const end of this.ends ?? []) end();
    }
  };
}
