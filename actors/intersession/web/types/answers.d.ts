// The answers of the web debugger's questions. Made by tests/support/pages/answers.py; not to be edited.
declare namespace Answers {
  type AboutAnswer = {
    logId: string;
    head: number | null;
    speakers: string[];
    ends: Record<string, string>;
    archivals: Record<string, string>;
    deliveryStates: Record<string, string>;
    edits: Record<string, string>;
    heldBefore: Record<string, string>;
    who: string;
    isOperator: boolean;
    readOnly: boolean;
    can: string[];
    store: string | null;
    version: string;
  };
  type Arrow = {
    row: "arrow";
    position: number;
    time: number;
    source: number;
    target: number;
    text: string;
    how: string;
    tokens?: number | null;
    arrived?: number | null;
    caller?: boolean;
  };
  type CallAnswer = {
    attempt: number;
    id: string;
    kind: "agent" | "channel";
    name: string;
    offeredMs: number;
    sessionKey: string | null;
    state: "answered" | "silent" | "underWay" | "waiting";
    worker: string | null;
  };
  type CallerAnswer = {
    runId: string;
    sessionKey: string;
    from: number;
    to?: number | null;
    waits: ([number, number | null])[];
  };
  type Change = {
    after: any;
    before: any;
    path: string;
  };
  type ChangesAnswer = {
    changes: Change[];
    from: PlaceAnswer;
    to: PlaceAnswer;
  };
  type CompareAnswer = {
    a: ComparedAnswer;
    b: ComparedAnswer;
    cut: CutAnswer | null;
    cuts: CutAnswer[];
    firstDivergence: DivergenceAnswer | null;
    same: boolean;
    titles: Record<string, string>;
    totals: Record<string, any>;
    turns: TurnAnswer[];
  };
  type ComparedAnswer = {
    kind: "exchange" | "run" | "spawn";
    place: PlaceAnswer;
    run: string;
    totals: Record<string, any>;
  };
  type CutAnswer = {
    position: number;
    edits: ForkEdit[];
    side?: string;
  };
  type DeliveriesAnswer = {
    count: number;
    cursor: string | null;
    deliveries: Record<string, any>[];
    limitApplied?: number;
  };
  type DescribedEvent = {
    carried: boolean;
    eventId: string;
    how: string;
    position: number;
    stream: string;
    text: string;
    timeMs: number;
    to: string | null;
    topic: string;
    way: string;
    who: string | null;
  };
  type DivergenceAnswer = {
    a: PlaceAnswer | null;
    b: PlaceAnswer | null;
    kind: "changed" | "only_a" | "only_b" | "same";
    place: PlaceAnswer;
    turn: string;
  };
  type EffectAnswer = {
    carried: boolean;
    effects: EffectAnswer[];
    eventId: string;
    how: string;
    more: number;
    position: number;
    stream: string;
    text: string;
    timeMs: number;
    to: string | null;
    topic: string;
    way: string;
    who: string | null;
  };
  type EffectsAnswer = {
    effects: EffectAnswer[];
    event: DescribedEvent;
    open: Record<string, any>[];
  };
  type EventAnswer = {
    position: number;
    eventId: string;
    timeMs: number;
    stream: string;
    version: number;
    kind: string;
    topic: string;
    text: string;
    who?: string;
    to?: string;
    said: string | null;
    causation: string | null;
    correlation: string | null;
    decision: Record<string, any> | null;
    epoch: number;
    hash: string;
    prev: string;
    digest: string;
    linkedTo: number | null;
    holds: boolean;
    redacted: boolean;
    data: Record<string, any>;
  };
  type EventListed = {
    position: number;
    eventId: string;
    timeMs: number;
    stream: string;
    version: number;
    kind: string;
    topic: string;
    text: string;
    who?: string;
    to?: string;
  };
  type EventsListed = {
    count: number;
    events: EventListed[];
    cursor: string | null;
    head: number | null;
  };
  type FindingAnswer = {
    code: string;
    problem: string;
    position?: number | null;
    stream?: string | null;
  };
  type ForkAnswer = {
    id: string;
    file: string;
    timeMs: number;
    problem?: string;
    parent?: string;
    run?: string;
    place?: PlaceAnswer;
    edits?: ForkEdit[];
    by?: string;
    outcome?: OutcomeAnswer;
    title?: string;
  };
  type ForkEdit = {
    kind: "agent" | "drop" | "inject" | "message" | "reply" | "set" | "skip";
    place?: string;
    key?: string;
    value?: string;
  };
  type ForksAnswer = {
    forks: ForkAnswer[];
    from: Record<string, any> | null;
    state: string;
  };
  type Gap = {
    row: "gap";
    ms: number;
    forked?: boolean;
    held?: boolean;
  };
  type HeldCallAnswer = {
    holdId: string;
    sessionKey: string;
    runId: string;
    callId: string;
    tool: string;
    arguments: string;
    rule: string;
    since: number;
    until?: number;
  };
  type HitAnswer = {
    kind: string;
    position: number;
    runId: string | null;
    sessionKey: string | null;
    snippet: string;
    timeMs: number;
  };
  type HopAnswer = {
    cause: number | null;
    editedBy?: string;
    eventId: string;
    position: number;
    runId?: string;
    sessionKey: string;
    text: string;
    timeMs: number;
    to: string | null;
    via: "agent" | "delivery" | "person" | "sessions_send" | "sessions_spawn" | "subagents" | "system" | "tool";
    who: string;
  };
  type HostsAnswer = {
    calls: ServedAnswer[];
    count: number;
    doors: PresentAnswer[];
    position: number;
    standbys: PresentAnswer[];
    underWay: CallAnswer[];
    unread: string | null;
    workers: WorkerAnswer[];
    writer: WriterAnswer | null;
  };
  type IntegrityAnswer = {
    head?: number;
    verifiedTo?: number | null;
    ok?: boolean | null;
    events?: number;
    streams?: number;
    erased?: number;
    erasures?: Record<string, any>[];
    counts?: Record<string, number>;
    findings?: FindingAnswer[];
    unproven?: string[];
    checkpoints?: Record<string, any>;
    logHead?: Record<string, any>;
    problem?: string;
  };
  type JobAnswer = {
    id: string;
    name: string | null;
    enabled: boolean;
    paused: boolean;
    schedule: Record<string, any>;
    sessionTarget: string;
    sessionKey: string | null;
    catchUp: string;
    delivery: Record<string, any>;
    state: Record<string, any>;
  };
  type LaneAnswer = {
    id: string;
    name: string;
    kind: string;
  };
  type LeftOut = {
    earlierChars: number | null;
    messageChars: number | null;
    messages: number;
    partial: number;
    told: string;
  };
  type LensAnswer = {
    asRecorded: boolean;
    attempt: number;
    before?: number;
    contextHash: string | null;
    contextTokens: number | null;
    deadlineMs: number | null;
    fresh?: any[];
    imported?: boolean;
    leftOut: LeftOut | null;
    madeBefore: MadeBefore[];
    message: any;
    messages: any[];
    model: string | null;
    partial: any[];
    place: PlaceAnswer;
    problem?: string;
    prompt?: string;
    rebuiltHash: string | null;
    rendered?: any[];
    run: string;
    sessionKey: string;
    settings: Record<string, string>;
    summary?: StandingSummary;
    systemContext: string;
    thinking: string | null;
    tools: Record<string, any>[] | null;
    total?: number;
    usedTokens: number | null;
  };
  type ListedRun = {
    id: string;
    kind: "exchange" | "run" | "spawn";
    runId: string;
    acceptedAt: number;
    accepted: number;
    position: number;
    state: "closed" | "open";
    title: string;
    lanes: LaneAnswer[];
    outline: [string, number, number][];
    began: number;
    told: string;
    ended: [string, string];
    smells: Smelled[];
    atWork?: boolean;
    requester?: string;
    target?: string;
    status?: string;
    label?: string;
    closeReason?: string;
    closedAt?: number;
    loopEnd?: string;
    limit?: string;
    turns?: number;
    maxTurns?: number;
    hold?: string;
    archived?: boolean;
    attempt?: number;
    errorCode?: string;
    error?: string;
    retryOf?: string;
    inferred?: string[];
    endedMs?: number;
    tookMs?: number;
    heldMs?: number;
    heldSince?: number;
    held?: Record<string, any>;
    pauses?: [number, number][];
    deliveries?: Record<string, any>[];
    failed?: boolean;
    waits?: Record<string, any>;
    retriedBy?: string;
    frozen?: boolean;
  };
  type LoadedAnswer = {
    position: number;
    timeMs: number;
    digest: string;
  };
  type LookAnswer = {
    call: string;
    position: number;
    sessions: string[];
    timeMs: number;
    who: string;
  };
  type MadeBefore = {
    callId: string;
    hasEnded: boolean;
    name: string;
    ordinal: number;
  };
  type Mark = {
    row: "mark";
    position: number;
    time: number;
    lane: number | null;
    text: string;
    kind: "end" | "failed" | "note" | "tool";
    caller?: boolean;
  };
  type MomentAnswer = {
    position: number;
    timeMs: number;
  };
  type NoteAnswer = {
    position: number;
    timeMs: number;
    by: string;
    text: string;
    place: PlaceAnswer;
  };
  type NotesAnswer = {
    notes: NoteAnswer[];
  };
  type OpenAnswer = {
    deliveries: string[];
    exchanges: string[];
    runs: string[];
    spawns: string[];
  };
  type OriginAnswer = {
    cursor?: string | null;
    cut: number | null;
    first: HopAnswer | null;
    hops: HopAnswer[];
    leftOut?: number;
    looks?: LookAnswer[];
    match: "exact" | "folded" | "shared" | null;
    outside?: OutsideAnswer[];
    seen?: SeenAnswer[];
    sessions?: SeenInSession[];
    words: string | null;
  };
  type OutcomeAnswer = {
    state: string;
    run: string;
    events: number;
    turns?: number | null;
    end?: string | null;
    close?: string | null;
    left?: Record<string, any> | null;
  };
  type OutsideAnswer = {
    count: number;
    first: MomentAnswer;
    last: MomentAnswer;
    route: Record<string, any>;
    sessions: string[];
    states: Record<string, number>;
  };
  type PersonTextsAnswer = {
    chats: Record<string, any>[];
    count: number;
    cursor: string | null;
    imported: boolean;
    limitApplied?: number;
    people: Record<string, any>[];
    texts: Record<string, any>[];
  };
  type PlaceAnswer = {
    eventId: string | null;
    position: number;
    text: string;
    timeMs: number | null;
  };
  type PresentAnswer = {
    gateway: string | null;
    host: string;
    lag: number | null;
    name: string;
    pid: number;
    sinceMs: number;
    version: string;
  };
  type RootAnswer = {
    by: string | null;
    carried: boolean;
    eventId: string;
    how: string;
    kind: "import" | "operator" | "person" | "start" | "system" | "timer";
    position: number;
    stream: string;
    text: string;
    timeMs: number;
    to: string | null;
    topic: string;
    way: string;
    who: string | null;
  };
  type RowsAnswer = {
    from: number;
    rows: (Arrow | Mark | Gap)[];
  };
  type RunAnswer = {
    id: string;
    kind: "exchange" | "run" | "spawn";
    runId: string;
    acceptedAt: number;
    accepted: number;
    position: number;
    state: "closed" | "open";
    title: string;
    lanes: LaneAnswer[];
    outline: [string, number, number][];
    began: number;
    told: string;
    ended: [string, string];
    smells: Smelled[];
    atWork?: boolean;
    requester?: string;
    target?: string;
    status?: string;
    label?: string;
    closeReason?: string;
    closedAt?: number;
    loopEnd?: string;
    limit?: string;
    turns?: number;
    maxTurns?: number;
    hold?: string;
    archived?: boolean;
    attempt?: number;
    errorCode?: string;
    error?: string;
    retryOf?: string;
    inferred?: string[];
    endedMs?: number;
    tookMs?: number;
    heldMs?: number;
    heldSince?: number;
    held?: Record<string, any>;
    pauses?: [number, number][];
    deliveries?: Record<string, any>[];
    failed?: boolean;
    waits?: Record<string, any>;
    retriedBy?: string;
    frozen?: boolean;
    kinds: string;
    steps: number;
    first: number;
    last: number;
    sessions: string[];
    before?: string;
    after?: string;
    calls?: HeldCallAnswer[];
    imported?: string[];
    caller?: CallerAnswer;
  };
  type RunsListed = {
    count: number;
    runs: ListedRun[];
    cursor: string | null;
    imported?: boolean;
    limitApplied?: number;
  };
  type SchedulesAnswer = {
    jobs: JobAnswer[];
  };
  type SearchAnswer = {
    cursor: string | null;
    hits: HitAnswer[];
    indexed: boolean;
  };
  type SeenAnswer = {
    attempt: number;
    imported?: boolean;
    position: number;
    runId: string;
    sessionKey: string;
    summarises?: boolean;
    timeMs: number;
    tools?: string[];
    within: string[];
  };
  type SeenInSession = {
    count: number;
    first: MomentAnswer;
    imported?: boolean;
    last: MomentAnswer;
    sessionKey: string;
    tools?: string[];
    ways: ("inherited" | "line" | "own" | "search" | "sent" | "summary" | "system" | "told" | "tool")[];
  };
  type ServedAnswer = {
    answered: number;
    kind: "agent" | "channel";
    name: string;
    parked: number;
    silent: number;
    underWay: number;
    waiting: number;
    workers: string[];
  };
  type SessionsAnswer = {
    sessions: Record<string, any>[];
    asOf: number;
    cursor: string | null;
  };
  type SettingsAnswer = {
    settings: Record<string, any>;
    digest: string;
    loaded: LoadedAnswer[];
  };
  type Smelled = {
    code: string;
    place: PlaceAnswer;
    text: string;
    name: string;
  };
  type StandingSummary = {
    messages: number;
    run: string;
    text: string;
  };
  type StateAnswer = {
    config?: Record<string, any>;
    deliveries: Record<string, any>[];
    exchanges: Record<string, any>[];
    more?: string[];
    next: PlaceAnswer | null;
    open: OpenAnswer;
    place: PlaceAnswer;
    runs: Record<string, any>[];
    sessions: Record<string, any>[];
    spawns: Record<string, any>[];
  };
  type StepAnswer = {
    position: number;
    timeMs: number;
    kind: string;
    stream: string;
    text: string;
    who?: string;
    to?: string;
    cause?: number;
    turn?: number;
    runId?: string;
    messageId?: string;
    calls?: number;
    gives?: boolean;
  };
  type StepsAnswer = {
    from: number;
    steps: StepAnswer[];
  };
  type TurnAnswer = {
    a: Record<string, any> | null;
    b: Record<string, any> | null;
    differs?: Record<string, any>[];
    kind: "changed" | "only_a" | "only_b" | "same";
    turn: string;
  };
  type WhereAnswer = {
    place: PlaceAnswer;
    next: PlaceAnswer | null;
    index?: number;
  };
  type WhyAnswer = {
    begun?: RootAnswer;
    causes: DescribedEvent[];
    event: DescribedEvent;
    explanations: Record<string, any>[];
    root: RootAnswer | null;
    waits?: Record<string, any>;
  };
  type WorkerAnswer = {
    agents: string[];
    channels: string[];
    draining: boolean;
    host: string;
    name: string;
    seats: number;
    sinceMs: number;
    taken: number;
    version: string;
  };
  type WriterAnswer = {
    epoch: number;
    gateway: string | null;
    host: string;
    pid: number;
    version: string;
  };
  interface Questions {
    about: AboutAnswer;
    compare: CompareAnswer;
    deliveries: DeliveriesAnswer;
    event: EventAnswer;
    events: EventsListed;
    forks: ForksAnswer;
    hosts: HostsAnswer;
    integrity: IntegrityAnswer;
    lens: LensAnswer;
    notes: NotesAnswer;
    origin: OriginAnswer;
    place: WhereAnswer;
    rows: RowsAnswer;
    run: RunAnswer;
    runs: RunsListed;
    schedules: SchedulesAnswer;
    search: SearchAnswer;
    sessions: SessionsAnswer;
    settings: SettingsAnswer;
    state: StateAnswer;
    steps: StepsAnswer;
    told: PersonTextsAnswer;
    why: WhyAnswer;
  }
}
