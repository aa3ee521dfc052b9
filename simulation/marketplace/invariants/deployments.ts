import type { DeploymentRecord } from '../../../src/marketplace/model/deployment-record.ts';
import { hold } from '../../kernel/violation.ts';
import type { Machine, Moment } from '../providers/simulated-provider.ts';

/** The longest call: a poll may have begun that much before what it saw. */
const LONGEST_CALL_MS = 10_000;
const DEAD = ['DESTROYING', 'DESTROYED', 'OFFLINE', 'ERROR', 'gone'];

/** I23: a short absence of a machine neither stops nor ends its deployment, unless somebody asked for it. */
export function isNoBlink(record: DeploymentRecord, machine: Machine | undefined, now: number): void {
  hold(
    'I23',
    (machine?.blinksUntil ?? 0) <= now || machine?.history.at(-1)?.status === 'gone',
    () => `${record.id} is ${record.status}, and its machine is back at ${machine?.blinksUntil}`,
    wordsOf(record),
  );
}

/** I21: nothing is charged before the machine runs and lets its user in. */
export function startIsTrue(record: DeploymentRecord, machine: Machine | undefined, errorMs: number): void {
  const firstAt = machine?.history.find(({ status }) => status === 'ONLINE')?.at;
  hold(
    'I21',
    firstAt !== undefined && record.startedAt !== null && record.startedAt >= firstAt - errorMs,
    () => `${record.id} is charged from ${record.startedAt}, and its machine was ONLINE from ${firstAt}`,
    wordsOf(record),
  );
  const provedAt = machine?.provedAt ?? null;
  hold(
    'I21',
    provedAt !== null && (record.startedAt ?? 0) >= Math.floor(provedAt) - errorMs,
    () => `${record.id} is charged from ${record.startedAt}, and its machine let its user in at ${provedAt}`,
    wordsOf(record),
  );
}

/** I43: the machine of a deployment that ended by a 404 is kept until an operator says otherwise. */
export function lossIsKept(record: DeploymentRecord): void {
  hold(
    'I43',
    record.cleanup === 'none',
    () => `${record.id} ended by a 404, and its machine, which is there, is to be deleted`,
    wordsOf(record),
  );
}

/**
 * I20: the stopped rate counts from the moment of the stop. A stop that nobody asked for counts from when the machine was
 * first seen not ONLINE: while it stopped, or in a short absence before it if no poll saw it ONLINE in between. It never
 * counts from before the last confirmed observation. What a poll shows counts from the poll's begin, after which its process may
 * stand still.
 */
export function stopIsTrue(
  before: DeploymentRecord,
  record: DeploymentRecord,
  machine: Machine | undefined,
  { errorMs, stoodStillMs }: { errorMs: number; stoodStillMs: number },
): void {
  const wasAskedFor = before.suspicion === null && before.action?.kind === 'pause';
  const history = machine?.history ?? [];
  const last = history.findLast(({ status }) => status === 'STOPPED')?.at;
  const { pausedAt, startedAt } = record;
  // It may have stopped while the answer that started it was under way: then no time is charged as running.
  const latest = pausedAt !== null && pausedAt === startedAt ? pausedAt : (last ?? 0);
  const isWithin = (from: number, until: number) =>
    pausedAt !== null && pausedAt >= from - errorMs && pausedAt <= until + errorMs;
  hold(
    'I20',
    last !== undefined &&
      (wasAskedFor
        ? isWithin(last, latest)
        : (pausedAt ?? 0) >= (before.observedAt ?? 0) &&
          isWithin(0, latest) &&
          timesAway(history).some(({ from, until }) =>
            isWithin(from - LONGEST_CALL_MS - stoodStillMs, until),
          )),
    () => `${record.id} is stopped from ${pausedAt}, and its machine was from ${last}`,
    wordsOf(record),
  );
}

/** The times in which a machine was not ONLINE after it had been; the last may have no end. */
function timesAway(history: readonly Moment[]): { from: number; until: number }[] {
  return history.flatMap(({ at, status }, index) => {
    if (status === 'ONLINE' || history[index - 1]?.status !== 'ONLINE') return [];
    const back = history.slice(index).find((moment) => moment.status === 'ONLINE');
    return [{ from: at, until: back?.at ?? Number.POSITIVE_INFINITY }];
  });
}

/** I23: only a dead machine ends its deployment, which costs nothing from then on. */
export function endIsTrue(record: DeploymentRecord, machine: Machine | undefined, errorMs: number): void {
  const last = machine?.history.at(-1);
  hold(
    'I23',
    machine === undefined || DEAD.includes(last?.status ?? 'gone'),
    () => `${record.id} is ${record.status}, and its machine is ${last?.status}`,
    wordsOf(record),
  );
  const diedAt = firstDead(machine);
  // It may have died while the answer that started it was under way: then no time is charged.
  const isUncharged = record.stoppedAt === record.startedAt;
  hold(
    'I21',
    diedAt === undefined || isUncharged || (record.stoppedAt ?? 0) <= diedAt + errorMs,
    () => `${record.id} is charged until ${record.stoppedAt}, and its machine died at ${diedAt}`,
    wordsOf(record),
  );
}

/** Whether its last status is a dead one, and no short absence. */
export function isDeadForGood(machine: Machine | undefined, now: number): boolean {
  return DEAD.includes(machine?.history.at(-1)?.status ?? 'gone') && (machine?.blinksUntil ?? 0) <= now;
}

/** When the machine died, if it is dead. */
function firstDead(machine: Machine | undefined): number | undefined {
  const history = machine?.history ?? [];
  const lastAlive = history.findLastIndex(({ status }) => !DEAD.includes(status));
  return history[lastAlive + 1]?.at;
}

function wordsOf({ id, providerInstanceId }: DeploymentRecord): string[] {
  return providerInstanceId === null ? [id] : [id, `${providerInstanceId} `, `${providerInstanceId}:`];
}
