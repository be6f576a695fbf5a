// What all other modules draw with: the three libraries, bound together. A component that reads a signal is drawn again when it changes.
import { Component, Fragment, createRef, h, render } from './vendor/preact-11.2.0/preact.mjs';
import htm from './vendor/htm-3.1.1/htm.mjs';
import { batch, computed, effect, signal, untracked } from './vendor/signals-core-1.14.5/signals-core.mjs';

export { Component, Fragment, batch, computed, createRef, effect, h, render, signal, untracked };

export const html = htm.bind(h);

// view((props, self) => vnode): `self.once(make)` keeps a value for the life of the component, `self.onEnd(stop)` cleans up.
export function view(draw) {
  return class extends Component {
    once(make) { return (this.kept ??= make(this)); }
    onEnd(stop) { (this.ends ??= []).push(stop); }
    render(props) {
      this.stop?.();
      let drawn, first = true;
      this.stop = effect(() => {
        if (first) { first = false; drawn = draw(props, this); } else queueMicrotask(() => this.gone || this.setState({}));
      });
      return drawn;
    }
    componentWillUnmount() { this.gone = true; this.stop?.(); for (const end of this.ends ?? []) end(); }
  };
}
