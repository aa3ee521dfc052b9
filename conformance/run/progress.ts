import type { Clock } from '../http/clock.ts';
import { costUsd, formatUsd } from '../resources/budget.ts';
import { type Entry, isOpen } from '../resources/ledger.ts';
import { printable } from '../text/printable.ts';
import { duration } from '../text/wording.ts';
import type { TranscriptRecord } from '../transcript/records.ts';
import type { RunEvent } from './options.ts';

/** The live line is redrawn at most five times a second. */
const REDRAW_MS = 200;
/** Without a terminal, a wait is reported each time it has lasted this much longer. */
const LONG_WAIT_MS = 30_000;
const MAX_TEXT_CHARACTERS = 200;
const CLEAR_LINE = '\r\u001b[K';

export interface ProgressParts {
  write: (text: string) => void;
  isTerminal: boolean;
  /** The width of the terminal. */
  columns: number;
  clock: Pick<Clock, 'now' | 'wall'>;
  /**
   * Calls `tick` periodically until the returned function is called. Default: a timer that does not keep the process
   * alive.
   */
  every?: (ms: number, tick: () => void) => () => void;
}

export interface Progress {
  onEvent: (event: RunEvent) => void;
  /** Clears the line and stops the timer, for a run that ended without an event. */
  stop: () => void;
}

/**
 * Shows the progress of a run: in a terminal one live line (current scenario, wait, duration, cost so far), elsewhere
 * a line per change.
 */
export function progress(parts: ProgressParts): Progress {
  const state = new RunState(parts.clock);
  return parts.isTerminal ? liveLine(parts, state) : plainLines(parts, state);
}

function liveLine(
  { write, columns, clock, every = unrefInterval }: ProgressParts,
  state: RunState,
): Progress {
  let drawn = '';
  let drawnAt = Number.NEGATIVE_INFINITY;
  let isOver = false;
  const draw = (): void => {
    if (isOver || clock.now() - drawnAt < REDRAW_MS) return;
    const line = printable(state.line(), Number.POSITIVE_INFINITY);
    const room = Math.max(columns - 1, 20);
    const text = line.length > room ? `${line.slice(0, room - 1)}…` : line;
    if (text === drawn) return;
    write(`${CLEAR_LINE}${text}`);
    drawn = text;
    drawnAt = clock.now();
  };
  const stopTimer = every(REDRAW_MS, draw);
  const stop = (): void => {
    if (isOver) return;
    isOver = true;
    stopTimer();
    if (drawn !== '') write(CLEAR_LINE);
  };
  const onEvent = (event: RunEvent): void => {
    state.take(event);
    if (event.event === 'failed') {
      write(`${drawn === '' ? '' : CLEAR_LINE}${printable(event.text, MAX_TEXT_CHARACTERS)}\n`);
      drawn = '';
    }
    if (event.event === 'ended') stop();
    else draw();
  };
  return { onEvent, stop };
}

function plainLines({ write, clock, every = unrefInterval }: ProgressParts, state: RunState): Progress {
  let toldAt = clock.now();
  const say = (text: string): void => {
    toldAt = clock.now();
    write(`${printable(text, MAX_TEXT_CHARACTERS)}\n`);
  };
  const tick = (): void => {
    const { waiting } = state;
    if (clock.now() - Math.max(waiting?.since ?? 0, toldAt) < LONG_WAIT_MS) return;
    if (waiting === undefined) {
      say(`  still at it: ${state.line()}`);
      return;
    }
    const so = wholeSeconds(clock.now() - waiting.since);
    say(`  still waiting ${waiting.text}, ${so} by now (${state.elapsed}, ${state.cost})`);
  };
  const stop = every(1000, tick);
  const onEvent = (event: RunEvent): void => {
    const isNews = state.take(event);
    const text = isNews ? lineOf(event, state) : undefined;
    if (text !== undefined) say(text);
    if (event.event === 'ended') stop();
  };
  return { onEvent, stop };
}

function lineOf(event: RunEvent, state: RunState): string | undefined {
  switch (event.event) {
    case 'begun':
      return `run ${event.runId}: ${event.scenarios} ${event.scenarios === 1 ? 'scenario' : 'scenarios'}`;
    case 'scenario':
      return `[${event.index}/${event.of}] ${event.title} (${state.elapsed}, ${state.cost})`;
    case 'resource':
      return resourceLine(event.entry);
    case 'cleaning':
      return `cleaning up: ${event.open} to destroy`;
    case 'ended':
      return `ended: ${event.reason} (${state.elapsed}, ${state.cost})`;
    case 'notice':
      return `  ${event.text}`;
    case 'failed':
      return event.text;
    case 'waiting':
    case 'record':
      return undefined;
  }
}

function resourceLine({ type, name, id, state, pricePerHour }: Entry): string | undefined {
  const what = `${type} ${name}${id === undefined ? '' : ` (${id})`}`;
  const price = pricePerHour === undefined ? '' : `, ${formatUsd(pricePerHour)} an hour`;
  if (state === 'made') return `  made ${what}${price}`;
  if (state === 'unknown') return `  perhaps made ${what}${price}: no clear answer came`;
  return state === 'gone' ? `  gone ${what}` : undefined;
}

interface Wait {
  text: string;
  since: number;
  /** The step name of its polls, once known. */
  step?: string;
}

/** The state of a run in progress. */
class RunState {
  readonly #clock: ProgressParts['clock'];
  readonly #entries = new Map<number, Entry>();
  readonly #startedAt: number;
  #doing = 'beginning';
  #isCleaning = false;
  waiting: Wait | undefined;

  constructor(clock: ProgressParts['clock']) {
    this.#clock = clock;
    this.#startedAt = clock.now();
  }

  /** Returns whether the event changes the state. */
  take(event: RunEvent): boolean {
    switch (event.event) {
      case 'scenario':
        this.#doing = `[${event.index}/${event.of}] ${event.title}`;
        this.waiting = undefined;
        return true;
      case 'cleaning':
        this.#doing = 'cleaning up';
        this.#isCleaning = true;
        this.waiting = undefined;
        return true;
      case 'waiting':
        this.#wait(event.text.startsWith('until ') ? event.text : `for ${event.text}`);
        return true;
      case 'notice':
        this.waiting = { text: `: ${event.text}`, since: this.#clock.now() };
        return true;
      case 'resource': {
        const isNews = this.#entries.get(event.entry.n)?.state !== event.entry.state;
        this.#entries.set(event.entry.n, event.entry);
        return isNews;
      }
      case 'record':
        this.#endWaitWith(event.record);
        return false;
      default:
        return true;
    }
  }

  #wait(text: string): void {
    if (this.waiting?.text !== text) this.waiting = { text, since: this.#clock.now() };
  }

  /** A wait ends with the first request that is not one of its polls. */
  #endWaitWith(record: TranscriptRecord): void {
    if (this.waiting === undefined || this.#isCleaning) return;
    if (record.kind !== 'exchange' && record.kind !== 'ssh') return;
    if (this.waiting.step === undefined) this.waiting.step = record.step;
    else if (this.waiting.step !== record.step) this.waiting = undefined;
  }

  get elapsed(): string {
    return wholeSeconds(this.#clock.now() - this.#startedAt);
  }

  get cost(): string {
    const now = this.#clock.wall();
    const usd = [...this.#entries.values()].reduce((sum, entry) => sum + costUsd(entry, now), 0);
    return formatUsd(Number(usd.toFixed(4)));
  }

  line(): string {
    const open = [...this.#entries.values()].filter(isOpen).length;
    return [
      this.#doing,
      ...(this.waiting === undefined ? [] : [`waiting ${this.waiting.text}`]),
      ...(open === 0 ? [] : [`${open} running`]),
      this.elapsed,
      this.cost,
    ].join(' · ');
  }
}

/** Whole seconds, so that the line changes once per second. */
function wholeSeconds(ms: number): string {
  return ms < 1000 ? '0 s' : duration(Math.floor(ms / 1000) * 1000);
}

function unrefInterval(ms: number, tick: () => void): () => void {
  const timer = setInterval(tick, ms).unref();
  return () => clearInterval(timer);
}
