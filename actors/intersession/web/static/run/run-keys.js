// The keys of a run's page: to move, to look closer, and to do something with it.
import { go, href, queried, setQuery } from '../asking/address.js';
import { inside } from '../asking/api.js';
import { copy, isForPage, prompted } from '../parts/window.js';
import { fork, whatIf } from '../deeds/forking.js';
import { heldKey, hold } from '../deeds/holding.js';
import { can } from '../deeds/rights.js';
import { filesOfRun, note } from '../deeds/sharing.js';

export const FORMS =
  'A position (412), event:ID, an ISO time, head, start, reply, turn:3, announce, end; +2 or -2 behind any of them.';

// Marks the place, to look back at it from another one; marked again, it is no more.
/** @param {Place} place */
export const mark = place => {
  const at = String(place.position.peek());
  setQuery({ mark: queried('mark') === at ? '' : at });
};

/** @param {Self} self @param {Place} place */
export function keys(self, place) {
  /** @param {string} name */
  const tab = name => setQuery({ tab: name === 'transcripts' ? '' : name, lens: '' });
  /** @param {string} [id] */
  const other = id => (id ? go(href('run', id)) : null);
  /** @type {Record<string, () => unknown>} */
  const does = {
    ArrowRight: () => place.event(1),
    ArrowLeft: () => place.event(-1),
    n: () => place.turn(1),
    p: () => place.turn(-1),
    c: () => place.cause(),
    e: () => place.effect(),
    Home: () => place.jump(0),
    End: () => place.jump(place.length),
    ']': () => other(place.run.peek()?.after),
    '[': () => other(place.run.peek()?.before),
    r: () => place.toBreak(1),
    R: () => place.toBreak(-1),
    t: () => tab('transcripts'),
    l: () => tab('lens'),
    L: () => setQuery({ tab: 'lens', lens: queried('lens') === 'next' ? 'given' : 'next' }),
    v: () => tab('event'),
    w: () => tab('why'),
    x: () => tab('raw'),
    g: () => prompted('Go to a place', 'Place', '', at => at && place.goTo(at), FORMS),
    d: () =>
      prompted(
        'Compare with',
        'Another run, or a place of one',
        '',
        other => other && go(href('diff', '', { a: place.id, b: other })),
      ),
    f: () =>
      can('forks.make') && !inside.fork ? fork(place) : go(href('forks', '', { run: place.run.peek().id })),
    F: () => can('forks.make') && !inside.fork && whatIf(place),
    m: () => mark(place),
    N: () => can('notes.pin') && note(place),
    s: () => can('file') && filesOfRun(place),
    y: () => copy(location.href, 'Link'),
    h: () => hold(place),
    ...Object.fromEntries(['u', 'U', 'o', 'O'].map(key => [key, () => heldKey(key, place)])),
    b: () =>
      prompted(
        'Break on',
        'Words, kind:NAME or session:NAME',
        place.breaks.peek(),
        words => {
          place.breaks.value = words;
        },
        'Then r runs on to it, R back.',
      ),
  };
  /** @param {KeyboardEvent} event */
  const heard = event => {
    if (!isForPage(event)) return;
    const { target } = event;
    if (target instanceof HTMLInputElement && target.type === 'range' && event.key.startsWith('Arrow')) return;
    const act = does[event.key];
    if (act && place.run.peek()) {
      event.preventDefault();
      act();
    }
  };
  addEventListener('keydown', heard);
  self.onEnd(() => removeEventListener('keydown', heard));
}
