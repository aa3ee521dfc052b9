import type { DeploymentRecord } from '../../../src/marketplace/model/deployment-record.ts';
import { hold } from '../../kernel/violation.ts';
import type { Machine, Moment } from '../providers/simulated-provider.ts';

/** A look that began before what it saw. */
const LONGEST_CALL_MS = 10_000;
const DEAD = ['DESTROYING', 'DESTROYED', 'OFFLINE', 'ERROR', 'gone'];

/** I23: what comes back by itself has neither stopped nor ended, unless somebody asked for it. */
export function isNoBlink(record: DeploymentRecord, machine: Machine | undefined, now: number): void {
  hold(
    'I23',
    (machine?.blinksUntil ?? 0) <= now || machine?.history.at(-1)?.status === 'gone',
    () => `${record.id} is ${record.status}, and its machine is back at ${machine?.blinksUntil}`,
    wordsOf(record),
  );
}

/** I21: nothing is charged before the machine ran, and let its user in. */
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

/**
 * I20: a stop costs what it costs from the moment at which it was one. One that nobody asked for counts from when the
 * machine was first seen away from ONLINE, which may be on the way to it, or a blink before it where nobody saw the
 * machine ONLINE in between; never from before the record was last confirmed.
 */
export function stopIsTrue(
  before: DeploymentRecord,
  record: DeploymentRecord,
  machine: Machine | undefined,
  errorMs: number,
): void {
  const wasAskedFor = before.suspicion === null && before.action?.kind === 'pause';
  const history = machine?.history ?? [];
  const last = history.findLast(({ status }) => status === 'STOPPED')?.at;
  const { pausedAt, startedAt } = record;
  // It may have stopped while the answer by which it began was on its way: no time of it is charged as running then.
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
          timesAway(history).some(({ from, until }) => isWithin(from - LONGEST_CALL_MS, until))),
    () => `${record.id} is stopped from ${pausedAt}, and its machine was from ${last}`,
    wordsOf(record),
  );
}

/** From when until when a machine was not ONLINE after it was; the last time may go on. */
function timesAway(history: readonly Moment[]): { from: number; until: number }[] {
  return history.flatMap(({ at, status }, index) => {
    if (status === 'ONLINE' || history[index - 1]?.status !== 'ONLINE') return [];
    const back = history.slice(index).find((moment) => moment.status === 'ONLINE');
    return [{ from: at, until: back?.at ?? Number.POSITIVE_INFINITY }];
  });
}

/** I23: only what is dead at its provider ends by it, and costs nothing from then on. */
export function endIsTrue(record: DeploymentRecord, machine: Machine | undefined, errorMs: number): void {
  const last = machine?.history.at(-1);
  hold(
    'I23',
    machine === undefined || DEAD.includes(last?.status ?? 'gone'),
    () => `${record.id} is ${record.status}, and its machine is ${last?.status}`,
    wordsOf(record),
  );
  const diedAt = firstDead(machine);
  // It may have died while the answer by which it began was on its way: it is charged for no time then.
  const isUncharged = record.stoppedAt === record.startedAt;
  hold(
    'I21',
    diedAt === undefined || isUncharged || (record.stoppedAt ?? 0) <= diedAt + errorMs,
    () => `${record.id} is charged until ${record.stoppedAt}, and its machine died at ${diedAt}`,
    wordsOf(record),
  );
}

/** Whether it reads dead, and is: it does not come back by itself. */
export function isDeadForGood(machine: Machine | undefined, now: number): boolean {
  return DEAD.includes(machine?.history.at(-1)?.status ?? 'gone') && (machine?.blinksUntil ?? 0) <= now;
}

/** When what the machine is now began, if that is dead. */
function firstDead(machine: Machine | undefined): number | undefined {
  const history = machine?.history ?? [];
  const lastAlive = history.findLastIndex(({ status }) => !DEAD.includes(status));
  return history[lastAlive + 1]?.at;
}

function wordsOf({ id, providerInstanceId }: DeploymentRecord): string[] {
  return providerInstanceId === null ? [id] : [id, `${providerInstanceId} `, `${providerInstanceId}:`];
}
