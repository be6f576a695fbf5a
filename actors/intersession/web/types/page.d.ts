// The types that the scripts of the pages share, besides those of the answers.

interface ReadonlySignal<T> {
  readonly value: T;
  peek(): T;
}
interface Signal<T> {
  value: T;
  peek(): T;
}

/** The answer to a question, by its name; any may say that secrets in it are hidden. */
type Answer<N extends keyof Answers.Questions> = Answers.Questions[N] & { redacted?: boolean };

/** An event of the page, at whatever it is listened for. */
type Happening = Omit<KeyboardEvent & MouseEvent & InputEvent, 'target' | 'currentTarget'> & {
  target: HTMLInputElement & HTMLFormElement;
  currentTarget: HTMLInputElement & HTMLFormElement;
};

/** What can stand in a template: a text, a value of an attribute, an element, a component, or what is called when something happens. */
type Part = object | string | number | boolean | null | undefined | ((event: Happening) => unknown);

/** A component that is drawn, as its function is handed it. */
interface Self {
  gone?: boolean;
  once<T>(make: (self: Self) => T): T;
  onEnd(stop: () => void): void;
}

/** A component. Its properties are not optional unless they are called so. */
interface View<P = {}> {
  new (props: P): object;
  readonly of?: P;
}

/** Whoever takes part in a run, with the colour that is theirs on the page. */
type Lane = Answers.LaneAnswer & { hue?: string };
type Run = Omit<Answers.RunAnswer, 'lanes'> & { lanes: Lane[] };
type None<K extends string> = { [name in K]?: undefined };
/** A row of a diagram: a message, a mark, or a stretch in which nothing was said. */
type Row =
  | (Answers.Arrow & None<'lane' | 'kind' | 'ms' | 'forked' | 'held'>)
  | (Answers.Mark & None<'source' | 'target' | 'how' | 'tokens' | 'arrived' | 'ms' | 'forked' | 'held'>)
  | (Answers.Gap &
      None<'position' | 'time' | 'text' | 'lane' | 'kind' | 'source' | 'target' | 'how' | 'tokens' | 'arrived' | 'caller'>);
type Timed = Exclude<Row, Answers.Gap>;
type Step = Answers.StepAnswer;

/** What an agent has said so far of an answer that goes on. */
interface Saying {
  runId: string;
  sessionKey: string;
  text: string;
}

/** A part of a message: words, the call of a tool, or a file. */
interface Block {
  type: string;
  text?: string;
  id?: string;
  name?: string;
  arguments?: unknown;
  sha256?: string;
  size?: number;
  mimeType?: string;
}
/** A message of a transcript. */
interface Message {
  id: string;
  role: string;
  content: string | Block[];
  timestamp: number;
  provenance?: Record<string, any>;
  runId?: string;
  /** Of an imported answer, which has no run. */
  position?: number;
  toolCallId?: string;
  toolName?: string;
  isError?: boolean;
  model?: string;
}

/** A list that is read page by page. */
interface Paged<R = any> {
  rows: Signal<R[] | null>;
  cursor: Signal<string | null>;
  error: Signal<Error | null>;
  busy: Signal<boolean>;
  sel: Signal<number>;
  answer: any;
  load(more?: boolean): Promise<unknown>;
  renew(): Promise<unknown>;
}
/** What a window over the page shows, and what its button does. */
interface Shown {
  title: string;
  body: Part;
  button?: string;
  doing?: string;
  done?(given: Record<string, any>): unknown;
  whose?: string;
  typed?: Record<string, any>;
}
/** What is looked for: whole words, what words begin with, pairs of letters. */
interface Terms {
  whole: Set<string>;
  begun: string[];
  pairs: string[];
}

/** Where one stands in a run. */
type Place = import('../static/run/place.js').Place;
/** A tool call that waits for a person. */
type HeldCall = NonNullable<Run["calls"]>[number];
/** A text that is held, until somebody lets it go on. */
interface HeldText {
  holdId: string;
  speaker: string;
  text: string;
  by: string;
  step?: string;
  to?: string;
  since?: number;
}
/** Where one stood when one asked for a fork. */
interface Standing {
  run: string;
  target?: string;
  position: number;
  answer?: Step;
}
/** A fork as it is told when it was made. */
type ForkMade = Record<string, any>;

/** A stretch on a lane: which one, from and to which position, and of which run. */
type Stretch = [number, number, number, string | undefined];
/** How wide a diagram is, and where its lanes stand. */
interface Shape {
  narrow: boolean;
  gutter: number;
  xs: number[];
  wide: number;
}
/** All that the parts of a diagram need to know. */
type Drawing = ReturnType<typeof import('../static/run/diagram.js').plan>;
/** The lanes that rows are drawn on: those of a run, or of one of two that are compared. */
interface LanesDrawn extends Shape {
  run: Run;
  lanes: Lane[];
  hidden: Signal<Set<string>>;
  onTwo: boolean;
}
/** A mark beside the rows of a diagram: a smell or a note. */
interface Marked {
  at: number;
  said: string;
  y: number;
  smell?: Answers.Smelled;
  note?: Answers.NoteAnswer;
}
/** What is drawn of a row. */
interface Drawn<R = Row> {
  row: R;
  y: number;
  tall: number;
  future: boolean;
  isHere: boolean;
  count: number;
  draw: Drawing;
  before?: Row;
  grey: string;
  lineY: number;
}
/** What can be seen of a diagram. */
interface Seen {
  width: number;
  top: number;
  height: number;
}
/** A difference between two states. */
interface Change {
  path: string;
  before?: any;
  after?: any;
}
/** A session as it stood, with its transcript. */
type Spoken = Record<string, any> & { key: string; transcript: Message[] };
/** A tick of a slider: its letter, whose it is, how many events are before it, and its position. */
type Tick = [string, Lane | undefined, number, number];

/** One of two runs that are compared. */
interface Side {
  run: Run;
  rows: Row[];
  steps: Step[];
}
type SideName = 'a' | 'b';
/** Rows of two runs that belong to each other; one of both may be missing. */
interface Pair {
  a?: Row;
  b?: Row;
  kind: 'a' | 'b' | 'same' | 'changed';
}
interface Both {
  a: Side;
  b: Side;
  pairs: Pair[];
}
/** A cut in the diagram of two runs: before which row it stands, and how far down. */
interface CutDrawn {
  side?: string;
  position: number;
  at: number;
  again: boolean;
  y?: number;
}
/** A fork that can be read. */
type MadeFork = Required<Pick<Answers.ForkAnswer, 'place' | 'edits' | 'outcome'>>;
/** What differs where a fork left its recording, as it was and as it is. */
interface Differs {
  part: string;
  then?: string;
  now?: string;
}
