import type { InstanceRecord } from '../../../src/orchestrator/model/records.ts';
import type { Lease } from '../../../src/orchestrator/model/work.ts';
import { hold } from '../../kernel/violation.ts';
import type { Call } from '../platform/network.ts';
import type { Machine } from '../platform/platform.ts';

/** I2: a row exists before its machine is made. */
export function rowComesFirst(ref: string, row: InstanceRecord | undefined): void {
  hold('I2', row !== undefined, () => `a machine was made for ${ref}, which no row owns`, [ref]);
}

/** I2: a row has at most one machine. `machines`: those that carry the ref of the new one, itself included. */
export function oneMachineForARow(machines: readonly Machine[]): void {
  const ref = machines[0]?.spec.ref ?? '';
  hold('I2', machines.length <= 1, () => `${machines.length} machines carry ${ref}`, [ref]);
}

/** I12: no machine is made for an instance that is DESTROYED. */
export function nothingMadeForTheDead(ref: string, row: InstanceRecord | undefined): void {
  hold('I12', row?.status !== 'DESTROYED', () => `a machine was made for ${ref}, which is DESTROYED`, [ref]);
}

/** I14: an instance that was ONLINE once keeps its machine, and so its disk. */
export function diskIsKept(
  ref: string,
  { wasOnline, isLost }: { wasOnline: boolean; isLost: boolean },
): void {
  hold('I14', !wasOnline || isLost, () => `${ref} was given a second machine, with an empty disk`, [ref]);
}

/** I15: a volume that cannot be shared is on one machine at a time. */
export function singleStaysSingle(ref: string, type: string | undefined, holders: readonly string[]): void {
  hold('I15', type === 'shared' || holders.length <= 1, () => `${ref} is on ${holders.join(' and ')}`, [ref]);
}

const ORDERS = new Set(['create', 'stop', 'start', 'restart', 'destroy']);

/** I25: the calls that change one instance come one after another, from whoever holds its lease. */
export function callsAreSerial(call: Call, earlier: readonly Call[], callTimeoutMs: number): void {
  if (!ORDERS.has(call.method) || isExcused(call)) return;
  const overlapping = earlier.find(
    (other) =>
      ORDERS.has(other.method) &&
      !isExcused(other) &&
      other.answeredAt === undefined &&
      call.sentAt < other.sentAt + callTimeoutMs,
  );
  hold(
    'I25',
    overlapping === undefined,
    () =>
      `${call.method} by ${call.process.name} beside ${overlapping?.method} by ${overlapping?.process.name}`,
    [(call.ref ?? '').replace(/^berth-/, '')],
  );
}

/** A process that was paused, or died, cannot know that its lease has a new holder. */
function isExcused({ process }: Call): boolean {
  return process.isDead || process.pausedUntil > 0;
}

/** I3: a database with live instances is not served with the driver of another platform: they would all look gone. */
export function servesItsOwnPlatform(name: string, isServingAnother: boolean): void {
  hold('I3', !isServingAnother, () => `${name} serves live instances of another platform`, [name]);
}

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
