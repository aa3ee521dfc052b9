import type { Diagnosis } from './diagnosis.ts';
import { note, ok } from './diagnosis.ts';
import type { Probe } from './probe.ts';

const TOLERATED_MS = 30_000;

/** Compares the clock of this machine with the `Date` of an answer. No verdict is made of either. */
export function clockSkew({ answer }: Probe, wallMs: number): Diagnosis[] {
  const dateMs = Date.parse(answer?.headers['date'] ?? '');
  if (!Number.isFinite(dateMs)) return [];
  const skewMs = dateMs - wallMs;
  if (Math.abs(skewMs) <= TOLERATED_MS) return [ok('Clock', 'it agrees with that of the target')];
  const seconds = Math.round(Math.abs(skewMs) / 1000);
  const said = `the target's clock is ${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} the one of this machine`;
  return [
    note('Clock', said, 'synchronise whichever is wrong: timestamps that are read side by side will mislead'),
  ];
}
