import type { Deed, ProviderTruth } from '../support/doubles/journaled-provider.ts';
import { isSpare, ownersOf } from './deeds.ts';
import { isAccepted, mayHappen, type Order, openUntil } from './orders.ts';
import type { DeploymentRow, Rows, VolumeRow } from './rows.ts';

const HOUR_MS = 3_600_000;
/** Between a stop at the provider and the end of what is billed for running. */
const SLACK_MS = 1_000;
/** Between the clocks of the processes, on a machine with other work. */
const CLOCKS_MS = 3_000;
/** A change may be billed only when a server that is well again has seen it. */
const SEEN_MS = 120_000;
/** As in the profile of the provider. */
const MICRO_USD_PER_GB_HOUR = 100;

export interface Bills {
  findings: string[];
  /** What all that has ended was billed, and what the provider's journal says that it costs, in micro-USD. */
  billedMicroUsd: number;
  expectedMicroUsd: number;
}

/** Holds what was billed for all that has ended against the journal of the provider. */
export function auditBills(
  truth: ProviderTruth,
  rows: Rows,
  orders: readonly Order[],
  boundMs: number,
): Bills {
  const owners = ownersOf(truth, rows);
  const bills: Bills = { findings: [], billedMicroUsd: 0, expectedMicroUsd: 0 };
  const deedsOf = groupBy(truth.deeds, ({ id }) => id);
  const ordersOf = groupBy(orders, ({ subject }) => subject ?? '');
  const add = (id: string, billed: number, { least, exact, most }: Range): void => {
    bills.billedMicroUsd += billed;
    bills.expectedMicroUsd += exact;
    if (billed < least || billed > most)
      bills.findings.push(
        `${id} was billed ${billed} µUSD, by the provider's journal ${Math.floor(least)} to ${Math.ceil(most)}`,
      );
  };
  const billed = new Set<string>();
  for (const { kind, id } of truth.deeds) {
    const deeds = deedsOf.get(id) ?? [];
    const deployment = kind === 'create' ? owners.deploymentOf(id) : undefined;
    if (deployment !== undefined && !isSpare(deployment, id)) {
      billed.add(deployment.id);
      const own = ordersOf.get(deployment.id) ?? [];
      const ends = own.filter(({ verb }) => verb === 'terminate');
      bills.findings.push(...wrongTimes(deployment, deeds, ends, boundMs));
      add(deployment.id, deployment.totalCostMicroUsd, costOfDeployment(deployment, deeds, own));
    }
    const volume = kind === 'create volume' ? owners.volumeOf(id) : undefined;
    if (volume !== undefined) add(volume.volumeId, volume.totalCostMicroUsd, costOfVolume(volume, deeds));
  }
  for (const { id, totalCostMicroUsd } of rows.deployments)
    if (!billed.has(id) && totalCostMicroUsd > 0)
      bills.findings.push(`${id} never had a machine, and was billed ${totalCostMicroUsd} µUSD`);
  return bills;
}

/** What something costs, and between which bounds what is billed for it may be, in micro-USD. */
interface Range {
  least: number;
  exact: number;
  most: number;
}

const NOTHING: Range = { least: 0, exact: 0, most: 0 };

/** Billed before it was there, after it was gone, or until another moment than that of its user's order. */
function wrongTimes(
  { id, status, startedAt, stoppedAt }: DeploymentRow,
  deeds: readonly Deed[],
  ends: readonly Order[],
  boundMs: number,
): string[] {
  const found: string[] = [];
  const made = deeds.find(({ kind }) => kind === 'create');
  const deleted = deeds.find(({ kind }) => kind === 'delete');
  if (startedAt !== null && made !== undefined && startedAt < made.doneAt - CLOCKS_MS)
    found.push(`${id} is billed from ${startedAt}, and its machine was ONLINE at ${made.doneAt}`);
  if (stoppedAt === null) return [...found, `${id} has not ended`];
  if (deleted !== undefined && stoppedAt > deleted.at + CLOCKS_MS)
    found.push(`${id} is billed until ${stoppedAt}, and its machine was deleted at ${deleted.at}`);
  const isOfAnOrder = ends.some(
    (order) =>
      stoppedAt >= order.sentAt - CLOCKS_MS &&
      stoppedAt <= (order.answeredAt ?? openUntil(order, boundMs)) + CLOCKS_MS,
  );
  if (status === 'terminated' && !isOfAnOrder)
    found.push(`${id} ended at ${stoppedAt}, when nobody ordered that`);
  return found;
}

/**
 * From its start to its end, at the rate of what the machine was by the provider's journal. Where its user ended it before any
 * server saw a change that had no clear answer, the change may not be billed.
 */
function costOfDeployment(row: DeploymentRow, deeds: readonly Deed[], orders: readonly Order[]): Range {
  const { startedAt, stoppedAt, rateMicroUsd, stoppedRateMicroUsd } = row;
  if (startedAt === null || stoppedAt === null) return NOTHING;
  const changes = deeds
    .filter(({ kind }) => kind === 'stop' || kind === 'start')
    .map(({ kind, doneAt }) => ({
      at: doneAt,
      rate: kind === 'start' ? rateMicroUsd : (stoppedRateMicroUsd ?? 0),
    }));
  const life = { from: startedAt, until: stoppedAt, rate: rateMicroUsd };
  const { cost, parts } = integral({ ...life, changes });
  const mayBeUnseen = orders.some(
    (order) =>
      (order.verb === 'pause' || order.verb === 'resume') &&
      mayHappen(order) &&
      !isAccepted(order) &&
      order.sentAt >= stoppedAt - SEEN_MS,
  );
  const last = Math.max(...changes.map(({ at }) => at).filter((at) => at < stoppedAt));
  const unseen = mayBeUnseen
    ? integral({ ...life, changes: changes.filter(({ at }) => at < last) }).cost
    : cost;
  const slack = (parts - 1) * toCost(rateMicroUsd, SLACK_MS) + parts;
  return { least: Math.min(cost, unseen) - slack, exact: cost, most: Math.max(cost, unseen) + slack };
}

function costOfVolume(row: VolumeRow, deeds: readonly Deed[]): Range {
  const { startedAt, deletedAt } = row;
  if (startedAt === null || deletedAt === null) return NOTHING;
  const made = deeds.find(({ kind }) => kind === 'create volume');
  const resizes = deeds.filter(({ kind }) => kind === 'resize');
  const cost = (laterMs: number) =>
    integral({
      ...{ from: startedAt, until: deletedAt, rate: MICRO_USD_PER_GB_HOUR * (made?.sizeGb ?? 0) },
      changes: resizes.map(({ doneAt, sizeGb = 0 }) => ({
        at: doneAt + laterMs,
        rate: MICRO_USD_PER_GB_HOUR * sizeGb,
      })),
    });
  const parts = resizes.length + 1;
  return {
    least: cost(SEEN_MS).cost - parts,
    exact: cost(0).cost,
    most: cost(-SLACK_MS).cost + parts,
  };
}

/** What something costs whose rate per hour changes at some moments. */
function integral(of: {
  from: number;
  until: number;
  rate: number;
  changes: readonly { at: number; rate: number }[];
}): { cost: number; parts: number } {
  let [cost, parts, at, rate] = [0, 1, of.from, of.rate];
  for (const change of of.changes.toSorted((a, b) => a.at - b.at)) {
    const until = Math.min(Math.max(change.at, of.from), of.until);
    cost += toCost(rate, until - at);
    [at, rate, parts] = [until, change.rate, parts + 1];
  }
  return { cost: cost + toCost(rate, of.until - at), parts };
}

function toCost(rateMicroUsdPerHour: number, ms: number): number {
  return (rateMicroUsdPerHour * ms) / HOUR_MS;
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}
