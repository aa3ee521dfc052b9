import { createHash } from 'node:crypto';
import { emptyTally, type Tally } from '../kernel/tally.ts';
import type { Outcome } from './run-world.ts';
import { type DatabaseKind, flagsOf, type Subject } from './subject.ts';

const HOUR_MS = 3_600_000;

/** The sums over many runs. */
export interface Report {
  seeds: number;
  failed: number;
  tally: Tally;
  driverCalls: number;
  faultedShare: number;
  faults: Record<string, number>;
  simulatedHours: number;
  /** Simulated time divided by real time. */
  speed: number;
  realSeconds: number;
  /** Of every event of every run, in the order of the seeds: the same seeds and the same code give the same. */
  history: string;
}

/** Adds up runs. */
export class Summary {
  readonly #tally: Tally = emptyTally();
  readonly #faults = new Map<string, number>();
  #seeds = 0;
  #failed = 0;
  #calls = 0;
  #simulatedMs = 0;
  readonly #histories = new Map<number, string>();

  add({ seed, hash, tally, faults, calls, simulatedMs, failure }: Outcome): void {
    this.#seeds++;
    this.#histories.set(Number(seed), hash);
    if (failure !== undefined) this.#failed++;
    this.#calls += calls;
    this.#simulatedMs += simulatedMs;
    for (const name of Object.keys(tally) as (keyof Tally)[]) this.#tally[name] += tally[name];
    for (const [name, count] of Object.entries(faults))
      this.#faults.set(name, (this.#faults.get(name) ?? 0) + count);
  }

  toReport(realMs: number): Report {
    const faulted = [...this.#faults.values()].reduce((sum, count) => sum + count, 0);
    return {
      seeds: this.#seeds,
      failed: this.#failed,
      tally: this.#tally,
      driverCalls: this.#calls,
      faultedShare: this.#calls === 0 ? 0 : faulted / this.#calls,
      faults: Object.fromEntries([...this.#faults].sort(([, a], [, b]) => b - a)),
      simulatedHours: this.#simulatedMs / HOUR_MS,
      speed: this.#simulatedMs / realMs,
      realSeconds: realMs / 1_000,
      history: this.#history(),
    };
  }

  #history(): string {
    const inOrder = [...this.#histories].sort(([a], [b]) => a - b).map(([, hash]) => hash);
    return createHash('sha256').update(inOrder.join()).digest('hex').slice(0, 16);
  }

  toText(realMs: number): string {
    const { seeds, failed, tally, driverCalls, faultedShare, faults, ...rest } = this.toReport(realMs);
    const count = (value: number): string => value.toLocaleString('en-US', { maximumFractionDigits: 0 });
    return [
      `${count(seeds)} seeds, ${count(tally.commands)} commands: ${failed === 0 ? 'every invariant held' : `${failed} seeds failed`}`,
      `${count(driverCalls)} driver calls, ${(100 * faultedShare).toFixed(1)} % of them faulted: ${Object.entries(
        faults,
      )
        .map(([name, number]) => `${name} ${count(number)}`)
        .join(', ')}`,
      `${count(tally.crashes)} crashes, ${count(tally.powerCuts)} power cuts, ${count(tally.pauses)} pauses, ${count(tally.partitions)} partitions, ${count(tally.clockJumps)} clock jumps, ${count(tally.outages)} outages`,
      `${count(rest.simulatedHours)} simulated hours in ${count(rest.realSeconds)} s: ${count(rest.speed)} times real time; history ${rest.history}`,
      '',
    ].join('\n');
  }
}

/** What was simulated, and the fault that was planted into it, if any. */
interface Planted {
  subject?: Subject;
  on?: DatabaseKind;
  mutant?: string | undefined;
}

/** The line that repeats a run exactly. */
function toRepro(
  { seed, commands }: { seed: number | string; commands: number },
  { subject = 'orchestrator', on, mutant }: Planted,
): string {
  const of = flagsOf(subject, on)
    .map((flag) => `${flag} `)
    .join('');
  const planted = mutant === undefined ? '' : `--mutant ${mutant} `;
  return `npm run sim -- ${of}${planted}--seed ${seed} --commands ${commands}`;
}

export function describeFailure(outcome: Outcome, planted: Planted = {}): string {
  const { failure } = outcome;
  if (failure === undefined) return '';
  return [...failure.trace, '', failure.message, `repeat it: ${toRepro(outcome, planted)}`, ''].join('\n');
}
