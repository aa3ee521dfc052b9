import { createHash } from 'node:crypto';
import { emptyTally, type Tally } from '../kernel/tally.ts';
import type { Outcome } from './run-world.ts';
import { type DatabaseKind, flagsOf, type Subject } from './subject.ts';

const HOUR_MS = 3_600_000;

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

  /** The share of calls that met a fault. */
  get faultedShare(): number {
    const faulted = [...this.#faults.values()].reduce((sum, count) => sum + count, 0);
    return this.#calls === 0 ? 0 : faulted / this.#calls;
  }

  /** Of every event of every run, in the order of the seeds: the same seeds and the same code give the same. */
  get #history(): string {
    const inOrder = [...this.#histories].sort(([a], [b]) => a - b).map(([, hash]) => hash);
    return createHash('sha256').update(inOrder.join()).digest('hex').slice(0, 16);
  }

  toText(realMs: number): string {
    const count = (value: number): string => value.toLocaleString('en-US', { maximumFractionDigits: 0 });
    const faults = [...this.#faults].sort(([, a], [, b]) => b - a);
    const tally = this.#tally;
    const outcome = this.#failed === 0 ? 'every invariant held' : `${this.#failed} seeds failed`;
    return [
      `${count(this.#seeds)} seeds, ${count(tally.commands)} commands: ${outcome}`,
      `${count(this.#calls)} driver calls, ${(100 * this.faultedShare).toFixed(1)} % of them faulted: ${faults
        .map(([name, number]) => `${name} ${count(number)}`)
        .join(', ')}`,
      `${count(tally.crashes)} crashes, ${count(tally.powerCuts)} power cuts, ${count(tally.pauses)} pauses, ${count(tally.partitions)} partitions, ${count(tally.clockJumps)} clock jumps, ${count(tally.outages)} outages`,
      `${count(this.#simulatedMs / HOUR_MS)} simulated hours in ${count(realMs / 1_000)} s: ${count(this.#simulatedMs / realMs)} times real time; history ${this.#history}`,
      '',
    ].join('\n');
  }
}

/** A failure, with the line that repeats it exactly. */
export function describeFailure(
  { failure, seed, commands }: Outcome,
  {
    subject = 'orchestrator',
    on,
    mutant,
  }: { subject?: Subject; on?: DatabaseKind; mutant?: string | undefined } = {},
): string {
  if (failure === undefined) return '';
  const planted = mutant === undefined ? [] : ['--mutant', mutant];
  const flags = [...flagsOf(subject, on), ...planted, `--seed ${seed} --commands ${commands}`];
  return [...failure.trace, '', failure.message, `repeat it: npm run sim -- ${flags.join(' ')}`, ''].join(
    '\n',
  );
}
