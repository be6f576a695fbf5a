// Where one stands in a run, and how one moves: by event, by turn, by cause, to a place, to a breakpoint. No drawing.
import { batch, computed, effect, signal } from '../base/drawing.js';
import { learn } from '../base/words.js';
import { here, queried, route, setQuery } from '../asking/address.js';
import { ask, inside, moved } from '../asking/api.js';
import { coloured } from '../parts/hues.js';

const PAGE = 500;
const ALL = 3000;
const ANSWERS = new Set(['turn_ended', 'child_ended', 'announce_decided']);
const ENDS = new Set(['run_completed', 'run_failed', 'run_aborted']);

/** @param {Run} run @param {number} from */
const keyOf = (run, from) => `${from}/${run.steps}/${run.kinds.length}`;

export class Place {
  /** @param {string} id @param {Self} self */
  constructor(id, self) {
    this.id = id;
    /** @type {Signal<Run>} */
    this.run = /** @type {Signal<any>} */ (signal(null)); // none until it has come: its page draws nothing of it before
    /** @type {Signal<Error | null>} */
    this.error = signal(null);
    /** @type {Signal<string | null>} */
    this.refused = signal(null);
    this.index = signal(0);
    /** @type {Signal<Answers.WhereAnswer | null>} */
    this.said = signal(null);
    this.loaded = signal(0);
    this.breaks = signal('');
    /** @type {Signal<Answers.NoteAnswer[]>} */
    this.notes = signal([]);
    this.followed = false; // whether it was the log that has moved the place, and not whoever looks
    /** @type {(Step | undefined)[]} */
    this.steps = [];
    /** @type {(Row | undefined)[]} */
    this.rows = [];
    /** @type {Map<string, Promise<void>>} */
    this.asked = new Map();
    /** @type {string | null} */
    this.written = null;
    /** @type {number | undefined} */
    this.saying = undefined;
    /** @type {number | undefined} */
    this.writing = undefined;
    this.step = computed(() => {
      this.loaded.value;
      return this.index.value ? this.steps[this.index.value - 1] : null;
    });
    this.position = computed(() => this.step.value?.position ?? (this.run.value?.first ?? 1) - 1);
    self.onEnd(
      effect(() => {
        here.value = this.run.value ? this.position.value : null;
      }),
    );
    self.onEnd(
      effect(() => {
        if (this.run.value) this.say(this.position.value);
      }),
    );
    /** @type {string | null} */
    let last = null;
    let timer = 0;
    self.onEnd(
      effect(() => {
        const now = moved();
        const first = last === null;
        if (now === last) return;
        last = now;
        if (first) return;
        clearTimeout(timer);
        timer = setTimeout(() => this.refresh(), 300);
      }),
    );
    self.onEnd(() => {
      here.value = null;
      clearTimeout(timer);
      clearTimeout(this.saying);
    });
    self.onEnd(
      effect(() => {
        const at = route.value.query.get('at');
        if (this.run.peek() && at !== this.written) this.goTo(at || 'end', { write: false });
      }),
    );
    this.open();
  }

  // A sub-agent is called on the whole page as its run calls it: by its label, where it has one.
  /** @param {Answers.RunAnswer} run */
  #named(run) {
    learn(Object.fromEntries(run.lanes.filter(lane => lane.kind === 'sub').map(lane => [lane.id, lane.name])));
    return { ...run, lanes: coloured(run.lanes) };
  }
  async open() {
    try {
      const at = queried('at');
      const [run, part, found] = await Promise.all([
        ask('run', { run: this.id }).then(run => this.#named(run)),
        this.#part(this.id, 0),
        at ? this.where(at) : null,
      ]);
      this.#keep(0, part);
      this.asked.set(keyOf(run, 0), Promise.resolve());
      batch(() => {
        this.run.value = run;
        this.index.value = found ? Math.min(found.index ?? 0, run.steps) : run.steps;
      });
      this.error.value = null;
      this.written = at || null;
      this.rest(run).catch(() => {}); // what is missing is asked for again where it is to be seen
      this.noted(run.id);
    } catch (error) {
      this.error.value = /** @type {Error} */ (error);
    }
  }

  // Notes are pinned to places of the log itself; in a fork, other events stand there.
  async noted(id = this.id) {
    if (inside.fork) return;
    try {
      this.notes.value = (await ask('notes', { run: id })).notes;
    } catch {
      /* an older server has none */
    }
  }

  /** @param {string | number} at */
  async where(at) {
    try {
      this.refused.value = null;
      return await ask('place', { run: this.id, at });
    } catch (error) {
      this.refused.value = /** @type {Error} */ (error).message;
      return null;
    }
  }

  /** @param {Run} run */
  async rest(run) {
    for (let from = PAGE; from < Math.min(run.steps, ALL); from += PAGE) await this.fetch(run, from);
    await this.need(this.index.peek());
  }

  // What is shown is asked for page by page, once.
  /** @param {Run} run @param {number} from @returns {Promise<void>} */
  fetch(run, from) {
    const key = keyOf(run, from);
    const known = this.asked.get(key);
    if (known) return known;
    const asked = this.#part(run.id, from, run).then(
      part => this.#keep(from, part),
      error => {
        this.asked.delete(key);
        throw error;
      },
    );
    this.asked.set(key, asked);
    return asked;
  }
  // As far as the run is known, what it does not have is not asked for.
  /** @param {string} id @param {number} from @param {Run | null} [known] */
  #part(id, from, known = null) {
    const part = { run: id, from, limit: PAGE };
    return Promise.all([
      !known || from < known.steps ? ask('steps', part) : { steps: [] },
      !known || from < known.kinds.length ? ask('rows', part) : { rows: [] },
    ]);
  }
  /** @param {number} from @param {[{ steps: Step[] }, { rows: Row[] }]} how */
  #keep(from, [steps, rows]) {
    steps.steps.forEach((step, number) => {
      this.steps[from + number] = step;
    });
    rows.rows.forEach((row, number) => {
      this.rows[from + number] = row;
    });
    this.loaded.value += 1;
  }
  /** @param {number} index */
  async need(index) {
    const run = this.run.peek();
    if (run && index > 0 && !this.steps[index - 1]) await this.fetch(run, Math.floor((index - 1) / PAGE) * PAGE);
  }
  /** @param {number} number */
  needRow(number) {
    const run = this.run.peek();
    if (run && !this.rows[number]) this.fetch(run, Math.floor(number / PAGE) * PAGE).catch(() => {});
  }

  async refresh() {
    const known = this.run.peek();
    if (!known) return;
    try {
      const run = this.#named(await ask('run', { run: known.id }));
      this.noted(run.id);
      if (run.steps === known.steps && run.kinds === known.kinds && run.told === known.told) return;
      const follows = this.index.peek() === known.steps;
      const first = Math.floor(Math.max(known.steps - 1, 0) / PAGE) * PAGE;
      for (let from = first; from < run.steps; from += PAGE) await this.fetch(run, from);
      batch(() => {
        this.run.value = run;
        this.followed = follows;
        if (follows) this.index.value = run.steps;
      });
    } catch {
      /* the frame says that there is no answer */
    }
  }

  /** @param {number} position */
  say(position) {
    clearTimeout(this.saying);
    this.saying = setTimeout(async () => {
      try {
        const found = await ask('place', { run: this.id, at: position });
        if (position !== this.position.peek()) return;
        this.said.value = this.index.peek()
          ? found
          : { ...found, place: { ...found.place, text: 'before the first event of this run' } };
      } catch {
        /* the next one says it */
      }
    }, 60);
  }

  get length() {
    return this.run.peek()?.steps ?? 0;
  }

  /** @param {number} index @param {{ write?: boolean }} [how] */
  async jump(index, { write = true } = {}) {
    const to = Math.max(0, Math.min(this.length, index));
    if (to === this.index.peek()) return false;
    await this.need(to);
    this.followed = false;
    this.index.value = to;
    if (write) this.write();
    return true;
  }
  write() {
    clearTimeout(this.writing);
    this.writing = setTimeout(() => {
      const turn = this.step.peek()?.turn;
      const named = turn ? `turn:${turn}` : String(this.position.peek());
      const at = this.index.peek() === this.length ? '' : named;
      this.written = at || null;
      setQuery({ at });
    }, 120);
  }
  /** @param {string | number} at @param {{ write?: boolean }} [options] */
  async goTo(at, options) {
    const found = await this.where(at);
    if (found) await this.jump(found.index ?? 0, options);
  }
  /** @param {number} position @param {{ write?: boolean }} [options] */
  toPosition(position, options) {
    const index = this.steps.findLastIndex(step => step && step.position <= position) + 1;
    return this.jump(index, options);
  }
  /** @param {number} way */
  event(way) {
    return this.jump(this.index.peek() + way);
  }
  /** @param {number} way @param {(step: Step) => unknown} wanted */
  async seek(way, wanted) {
    for (let index = this.index.peek() + way; index > 0 && index <= this.length; index += way) {
      await this.need(index);
      const step = this.steps[index - 1];
      if (step && wanted(step)) return this.jump(index);
    }
    return this.jump(way > 0 ? this.length : 0);
  }
  /** @param {number} way */
  turn(way) {
    const answers = this.steps.some(step => step && ANSWERS.has(step.kind)) ? ANSWERS : ENDS;
    return this.seek(way, step => answers.has(step.kind));
  }
  cause() {
    const cause = this.step.peek()?.cause;
    return cause ? this.toPosition(cause) : false;
  }
  effect() {
    const at = this.step.peek()?.position;
    const found = this.steps.find(step => step && step.cause === at);
    return found ? this.toPosition(found.position) : false;
  }
  /** @param {number} way */
  toBreak(way) {
    const breaks = this.breaks.peek();
    if (!breaks) return this.jump(way > 0 ? this.length : 0);
    const [kind, name] = breaks.includes(':')
      ? [breaks.slice(0, breaks.indexOf(':')), breaks.slice(breaks.indexOf(':') + 1).trim()]
      : ['', ''];
    const words = breaks.toLowerCase();
    return this.seek(way, step =>
      kind === 'kind'
        ? step.kind === name
        : kind === 'session'
          ? [step.who, step.to].some(
              one => one && (one === name || one.includes(`:${name}:`) || one.endsWith(`:${name}`)),
            )
          : (step.text ?? '').toLowerCase().includes(words),
    );
  }
  // The last answer up to this place: what a fork can have otherwise.
  get answer() {
    const here = this.step.peek();
    if (
      here &&
      (ENDS.has(here.kind) || (here.kind === 'message_recorded' && here.stream === `session:${here.who}`))
    )
      return here;
    return (
      this.steps.slice(0, this.index.peek()).findLast(step => step && ANSWERS.has(step.kind)) ??
      this.steps.slice(0, this.index.peek()).findLast(step => step && ENDS.has(step.kind))
    );
  }
  // A start of a run; of an import, which has none, a message that an agent was asked with, by its position.
  /** @param {Step | undefined} step @returns {Step[]} */
  #begun(step) {
    if (step?.kind === 'run_started') return [step];
    return step?.kind === 'message_recorded' && step.to && this.run.peek()?.imported
      ? [{ ...step, who: step.to, runId: `#${step.position}` }]
      : [];
  }
  get nextRun() {
    return this.steps.slice(this.index.peek()).flatMap(step => this.#begun(step))[0];
  }
  // What agents were given around this place, each the start of a run: `given` to whoever is at work or has answered
  // here, `next` to whoever is asked next. At an answer, as in a run, what it was given comes first: `turn:2` is the
  // prompt of turn 2.
  get prompts() {
    const before = this.steps.slice(0, this.index.peek());
    const started = before.flatMap(step => this.#begun(step));
    const here = this.step.peek()?.runId;
    const own = this.run.peek()?.imported
      ? started.at(-1)
      : here && started.findLast(step => step.runId === here);
    const given = own || started.at(-1);
    const attempt = given && started.filter(step => step.runId === given.runId).length;
    const next = this.nextRun;
    return { given, attempt, next, first: own || !next ? 'given' : 'next' };
  }
  /** @param {number} position */
  indexOf(position) {
    const index = this.steps.findIndex(step => step && step.position >= position);
    return index < 0 ? this.length : index + 1;
  }
}
