import type { Clock } from '../http/clock.ts';
import type { StoredLedger } from '../resources/ledger-file.ts';
import { openEntries, sweep } from '../resources/sweep.ts';
import { Draws } from '../transcript/draws.ts';
import { type Certificate, certificateOf } from './certificate/certificate.ts';
import { Moments } from './moments.ts';
import { machineProbe, type ProbeParts, readProbe } from './probe/probe.ts';
import { drawRental, machineGapHours } from './probe/rental.ts';
import type { Alert, Priced, ProbeKind, StoredProbe } from './records.ts';
import { dayOf, leftUsd, MS_PER_DAY, spentOn } from './spending.ts';

const MS_PER_HOUR = 3_600_000;
/** The longest sleep: after it the wall clock is read again, which may have been set. */
const LONGEST_SLEEP_MS = MS_PER_HOUR;
/** What is left behind is looked for again after this. */
const SWEEP_AGAIN_MS = MS_PER_HOUR;
/** After an error of the state or of the suite. */
const AFTER_ERROR_MS = 60_000;
/** An availability that is older is read again before a purchase. */
const OFFERS_AGE_MS = 2 * MS_PER_HOUR;
/** How long nothing is bought after a machine that was read as gone is listed again. */
const AFTER_RETURN_MS = 7 * MS_PER_DAY;
/** The machines whose cost tells that of the next. */
const RECENT = 20;

export interface WatchParts extends ProbeParts {
  /** A sentence for the log. */
  log: (text: string) => void;
  /** Called after each probe. */
  onProbe: () => void;
  alert: (alert: Omit<Alert, 'at' | 'provider'>) => void;
}

/** Watches one provider: probes at drawn moments, within the budget of each day. */
export class ProviderWatch {
  readonly #parts: WatchParts;
  #probes: StoredProbe[] = [];
  #left = 0;

  constructor(parts: WatchParts) {
    this.#parts = parts;
  }

  get name(): string {
    return this.#parts.provider.name;
  }

  /** Resources that may still exist. */
  get left(): number {
    return this.#left;
  }

  get lastProbeAt(): number | undefined {
    return this.#probes.at(-1)?.startedAt;
  }

  /** Reads the probes of the window. */
  load(): void {
    const { state, config, clock } = this.#parts;
    this.#probes = state.probesSince(this.name, clock.wall() - config.window_days * MS_PER_DAY);
  }

  certificate(): Certificate {
    const { config, provider, baseUrl, clock } = this.#parts;
    return certificateOf(config, provider, baseUrl, this.#probes, clock.wall());
  }

  /** USD spent on the current day. */
  spentToday(): number {
    const { state, clock } = this.#parts;
    const now = clock.wall();
    return spentOn(now, state.entriesSince(this.name, dayOf(now)), now);
  }

  /** Probes until the signal is aborted, and cleans up. What an earlier process left is destroyed first. */
  async run(): Promise<void> {
    await this.#attempt(() => this.#sweep());
    await Promise.all([this.#loop('read'), this.#loop('machine'), this.#sweepAgain()]);
  }

  async #loop(kind: ProbeKind): Promise<void> {
    const { state, seed, clock, signal } = this.#parts;
    const moments = new Moments(state, seed, this.name, kind);
    while (!signal.aborted)
      await this.#attempt(async () => {
        await this.#sleepUntil(() => moments.resume(clock.wall(), this.#meanHours(kind)));
        if (kind === 'read') await this.#read();
        else await this.#rent();
      });
  }

  /** Sleeps until a moment. It is asked for again if the clock was set back. */
  async #sleepUntil(momentOf: () => number): Promise<void> {
    const { clock, signal } = this.#parts;
    let dueAt = momentOf();
    for (let now = clock.wall(); now < dueAt; ) {
      await clock.sleep(Math.min(dueAt - now, LONGEST_SLEEP_MS), signal);
      const later = clock.wall();
      if (later < now) dueAt = momentOf();
      now = later;
    }
  }

  #meanHours(kind: ProbeKind): number {
    const { config, provider } = this.#parts;
    if (kind === 'read') return config.reads.mean_hours;
    const costs = this.#machines.slice(-RECENT).flatMap(({ summary }) => summary.costUsd || []);
    const usdEach = costs.reduce((sum, cost) => sum + cost, 0) / (costs.length || 1);
    return machineGapHours(config, provider.budget_usd_per_day, usdEach);
  }

  get #machines(): StoredProbe[] {
    return this.#probes.filter(({ kind }) => kind === 'machine');
  }

  async #read(): Promise<void> {
    this.#add(await readProbe(this.#parts));
  }

  async #rent(): Promise<void> {
    const { config, provider, state, seed, clock, alert } = this.#parts;
    await this.#sweep();
    const now = clock.wall();
    const day = new Date(now).toISOString().slice(0, 10);
    const why = this.#whyNotBuy(now);
    if (why !== undefined) return alert({ id: `${this.name}/${day}/buy`, kind: 'cannot buy', text: why });
    const left = leftUsd(provider.budget_usd_per_day, state.entriesSince(this.name, dayOf(now)), now);
    const rental = drawRental(
      config,
      provider,
      await this.#offers(now),
      left,
      new Draws(`${seed}/${this.name}/machine/${now}`),
    );
    if ('why' in rental) {
      // A budget that is used up is the usual end of a day.
      if (left >= provider.budget_usd_per_day)
        alert({ id: `${this.name}/${day}/buy`, kind: 'cannot buy', text: rental.why });
      return;
    }
    this.#add(await machineProbe(this.#parts, rental));
    await this.#sweep();
  }

  /** Nothing more is bought while something may be running, after a deletion that was none, or on a day of wrong prices. */
  #whyNotBuy(now: number): string | undefined {
    if (this.#left > 0) return `${this.#left} resources may still be running: nothing more is bought`;
    const isBack = this.#probes.some(
      ({ startedAt, summary }) =>
        startedAt >= now - AFTER_RETURN_MS && summary.failed.some(({ check }) => check === 'MON-GONE-001'),
    );
    if (isBack) return 'a machine that was read as gone was listed again: nothing more is bought for a week';
    const today = this.#machines.filter(({ startedAt }) => startedAt >= dayOf(now));
    const isOverpriced = today.some(({ summary }) => summary.priced.good < summary.priced.of);
    return isOverpriced ? 'a machine cost more than its offer: nothing more is bought today' : undefined;
  }

  async #offers(now: number): Promise<readonly Priced[]> {
    const known = this.#probes.findLast(({ summary }) => summary.offers !== undefined);
    if (known !== undefined && now - known.startedAt < OFFERS_AGE_MS) return known.summary.offers ?? [];
    await this.#read();
    return this.#probes.findLast(({ summary }) => summary.offers !== undefined)?.summary.offers ?? [];
  }

  #add(probe: StoredProbe): void {
    const { clock, config, onProbe } = this.#parts;
    const from = clock.wall() - config.window_days * MS_PER_DAY;
    this.#probes = [...this.#probes.filter(({ startedAt }) => startedAt >= from), probe];
    onProbe();
  }

  async #sweepAgain(): Promise<void> {
    const { clock, signal } = this.#parts;
    while (!signal.aborted)
      await this.#attempt(async () => {
        await clock.sleep(SWEEP_AGAIN_MS, signal);
        if (this.#left > 0) await this.#sweep();
      });
  }

  /** Destroys what earlier runs left, and nothing else. */
  async #sweep(): Promise<void> {
    const { alert, state } = this.#parts;
    const { open, unreadable } = state.readLedgers(this.name);
    const why = unreadable.map(({ path }) => `${path} cannot be read`);
    let left = unreadable.length;
    for (const stored of open) {
      const swept = await this.#sweepRun(stored);
      left += swept.left;
      if (swept.why !== undefined) why.push(swept.why);
    }
    this.#left = left;
    if (left === 0) return;
    const text = `${left} resources may still be running and billed: ${why.join('; ')}`;
    alert({ id: `${this.name}/left/${text}`, kind: 'may be running', text });
  }

  async #sweepRun(stored: StoredLedger): Promise<{ left: number; why?: string }> {
    const { config, provider, baseUrl, apiKey, transport, clock, abandon } = this.#parts;
    const open = openEntries(stored);
    if (stored.baseUrl !== baseUrl) {
      const names = open.map(({ name, id }) => id ?? name).join(', ');
      const why = `${names} may be running at ${stored.baseUrl}, which is no longer its base_url`;
      return { left: open.length, why };
    }
    const swept = await sweep(stored, {
      apiKey,
      transport,
      clock,
      pollIntervalMs: config.poll_interval_ms,
      patienceMs: config.ready_timeout_s * 1000,
      // A stop lets it finish.
      signal: abandon,
      absent: [],
      isOtherKeyAccepted: provider.accepts_other_key,
      isFolderHeld: true,
      onWait: () => {},
    });
    if (swept.result !== 'swept') return { left: open.length, why: swept.why };
    const notes = swept.left.map(({ name, id, note }) => `${id ?? name}: ${note ?? 'not confirmed gone'}`);
    return { left: notes.length, ...(notes.length > 0 && { why: notes.join('; ') }) };
  }

  /** Runs one step. An error is logged, and does not end the watch. */
  async #attempt(step: () => Promise<void>): Promise<void> {
    const { clock, signal, log } = this.#parts;
    try {
      await step();
    } catch (error) {
      if (signal.aborted) return;
      // A fault of the suite, too: what one provider answers must not end the watch of the others.
      log(`${this.name}: ${error instanceof Error ? error.message : error}; trying again in a minute`);
      await sleepUnlessAborted(clock, AFTER_ERROR_MS, signal);
    }
  }
}

async function sleepUnlessAborted(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  await clock.sleep(ms, signal).catch(() => {});
}
