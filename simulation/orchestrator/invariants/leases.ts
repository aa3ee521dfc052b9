import type { Lease } from '../../../src/orchestrator/model/work.ts';
import { hold } from '../../kernel/violation.ts';

/** Who claimed a row of work last. */
export interface Holder {
  process: string;
  token: string;
}

/** I25: a process that lost its lease writes nothing. */
export function leaseIsHeld(
  lease: Pick<Lease, 'resourceId' | 'token' | 'kind'>,
  hasWritten: boolean,
  holder: Holder | undefined,
  writer: string,
): void {
  const isHeld = holder === undefined || holder.token === lease.token;
  hold(
    'I25',
    isHeld || !hasWritten,
    () => `${writer} wrote after ${lease.kind} of ${lease.resourceId}, whose lease ${holder?.process} holds`,
    [lease.resourceId],
  );
}
