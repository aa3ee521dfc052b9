import { hold } from '../../kernel/violation.ts';
import type { Reply } from '../workload/clients.ts';

/** I31: only what has ended long enough ago is pruned. `endedAt`: undefined: it lives. */
export function onlyTombstonesArePruned(
  id: string,
  endedAt: number | undefined,
  now: number,
  leastAgeMs: number,
): void {
  hold('I31', endedAt !== undefined, () => `${id} lives, and its row is pruned`, [id]);
  const ageMs = now - endedAt;
  hold('I31', ageMs >= leastAgeMs, () => `${id} is pruned ${ageMs} ms after its end`, [id]);
}

/** I31: what was pruned comes back only as a tombstone, whose machine or volume is deleted again. */
export function onlyATombstoneIsWrittenAgain(id: string, isTombstone: boolean): void {
  hold('I31', isTombstone, () => `${id} was pruned, and lives again`, [id]);
}

/** I31: at rest an old tombstone is pruned. */
export function oldTombstonesArePruned(id: string, isPruned: boolean): void {
  hold('I31', isPruned, () => `the tombstone of ${id} is kept for ever`, [id]);
}

/** I31: what has ended reads 404 for ever. A revoked key is refused. */
export function theEndedRead404({ path, status }: Pick<Reply, 'path' | 'status'>): void {
  hold('I31', status === 404 || status === 401, () => `${path} has ended, and reads ${status}`, [
    path.slice(-40),
  ]);
}
