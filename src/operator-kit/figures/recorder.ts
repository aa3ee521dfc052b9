import { type Clock, DAY_MS } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { FigureRecord, FigureWriter } from '../model.ts';
import { addRows, HOUR_MS } from './rows.ts';

/** How often a state is sampled. */
export const SAMPLE_MS = 5 * 60_000;
/** How many hours are counted again after a start. Others may have been written while no server ran. */
const HOURS_AFTER_START = 48;
/** How long figures are kept, in days. */
const KEPT_DAYS = { sample: 1, hour: 100, day: 400 } as const;
const PRUNED_AT_ONCE = 500;

/** Figures of an hour, whose day follows from its hours. */
export interface HourOfFigures extends Omit<FigureRecord, 'step'> {
  /**
   * `sample`: a state, added once for each time of a sample · `add`: what only this process knows, added to what others
   * have written · `replace`: counted from the database, which gives the same result in every process.
   */
  how: 'sample' | 'add' | 'replace';
}

/** Where a product's figures come from. */
export interface FigureSource {
  /** The state now. `hour` is the start of the hour. */
  sample(hour: number): Promise<HourOfFigures[]>;
  /** Counts the hours from `from` to now. An hour in which nothing happened is left out, except for the last two. */
  count(from: number, hour: number): Promise<HourOfFigures[]>;
  /** How many hours are counted again when an hour begins: their rows may have been written late. */
  hoursToRecount: number;
  /** Takes what this process has counted since the last call. */
  take?(): HourOfFigures[];
  /** Takes back what could not be written. */
  putBack?(taken: readonly HourOfFigures[]): void;
}

interface Deps {
  store: { transact<T>(body: (tx: { figures: FigureWriter }) => Promise<T>): Promise<T> };
  clock: Pick<Clock, 'now'>;
  log: Pick<Log, 'warn'>;
  source: FigureSource;
}

/**
 * Keeps figures over time by hour and by day. Several servers may record on one database: samples are claimed, counts
 * from the database replace each other, and what each process counts is added up.
 */
export class FigureRecorder {
  readonly #deps: Deps;
  #sampledAt: number | undefined;
  #hour: number | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Records what is due. Call it several times in {@link SAMPLE_MS}. Never rejects. */
  async run(): Promise<void> {
    const now = this.#deps.clock.now();
    if (startOf(SAMPLE_MS, now) === this.#sampledAt) return;
    await this.#attempt(() => this.#record(now));
  }

  /** Writes what this process has counted. Never rejects. */
  async stop(): Promise<void> {
    await this.#attempt(() => this.#write(startOf(SAMPLE_MS, this.#deps.clock.now()), []));
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (err) {
      this.#deps.log.warn({ err }, 'figures over time could not be written; it will be retried');
    }
  }

  async #record(now: number): Promise<void> {
    const { source } = this.#deps;
    const at = startOf(SAMPLE_MS, now);
    const hour = startOf(HOUR_MS, now);
    const isNewHour = hour !== this.#hour;
    const sampled = await source.sample(hour);
    const counted = await source.count(hour - this.#hoursBack(isNewHour) * HOUR_MS, hour);
    await this.#write(at, [...sampled, ...counted]);
    this.#hour = hour;
    this.#sampledAt = at;
    await this.#prune(now);
  }

  /** The hour before is counted each time: its last rows may be committed after its end. */
  #hoursBack(isNewHour: boolean): number {
    if (this.#hour === undefined) return HOURS_AFTER_START;
    return isNewHour ? this.#deps.source.hoursToRecount : 1;
  }

  async #write(at: number, found: readonly HourOfFigures[]): Promise<void> {
    const { store, source } = this.#deps;
    const taken = source.take?.() ?? [];
    try {
      await store.transact((tx) => writeFigures(tx, at, [...found, ...taken]));
    } catch (error) {
      source.putBack?.(taken);
      throw error;
    }
  }

  async #prune(now: number): Promise<void> {
    for (const step of ['sample', 'hour', 'day'] as const)
      await this.#deps.store.transact((tx) =>
        tx.figures.prune(step, now - KEPT_DAYS[step] * DAY_MS, PRUNED_AT_ONCE),
      );
  }
}

export function startOf(lengthMs: number, at: number): number {
  return Math.floor(at / lengthMs) * lengthMs;
}

/** Writes hours, and the days that they belong to. `at`: the time of the samples. */
async function writeFigures(
  { figures }: { figures: FigureWriter },
  at: number,
  found: readonly HourOfFigures[],
): Promise<void> {
  if (found.length === 0) return;
  await figures.lock();
  const ofDays = Map.groupBy(found, (hour) =>
    JSON.stringify([hour.series, hour.subject, startOf(DAY_MS, hour.at)]),
  );
  for (const hours of ofDays.values()) await writeDay(figures, at, hours);
}

/** Writes hours of the same series, subject and day. */
async function writeDay(figures: FigureWriter, at: number, hours: readonly HourOfFigures[]): Promise<void> {
  const [first] = hours;
  if (first === undefined) return;
  const { series, subject } = first;
  const day = startOf(DAY_MS, first.at);
  const known = await figures.list({ step: 'hour', series, subject, from: day, until: day + DAY_MS });
  const rowsOf = new Map(known.map((record) => [record.at, record.rows]));
  let isChanged = false;
  for (const { how, rows, at: hour } of hours) {
    if (how === 'sample' && !(await figures.claimSample({ series, subject, at }))) continue;
    const before = rowsOf.get(hour);
    const after = addRows(how === 'replace' ? rows : [...(before ?? []), ...rows]);
    if (JSON.stringify(before) === JSON.stringify(after)) continue;
    isChanged = true;
    rowsOf.set(hour, after);
    await figures.put({ step: 'hour', at: hour, series, subject, rows: after });
  }
  if (isChanged)
    await figures.put({ step: 'day', at: day, series, subject, rows: addRows([...rowsOf.values()].flat()) });
}
