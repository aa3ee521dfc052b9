import { activeStatuses, type DeploymentStatus } from '../contract/deployment.ts';
import { realTimeBalance } from '../ledger/balance.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { TeamRecord } from '../model/people.ts';
import type { Reader } from '../model/store.ts';

/** What a provider has of ours. */
export interface ProviderOverview {
  id: string;
  active: Partial<Record<DeploymentStatus, number>>;
  volumes: number;
  /** When the provider last confirmed the deployment that it has been silent about for longest; null: none was confirmed. */
  confirmedUntil: number | null;
  /** ONLINE there, and could not be logged in to yet. */
  waitingForSsh: number;
  /** With work that is not finished: active, or over and still to be cleaned up there. */
  toSync: number;
  lossesHeld: number;
}

/** What a team has, and how long it lasts. */
export interface TeamOverview {
  team: TeamRecord;
  balanceMicroUsd: number;
  /** What its open segments cost an hour, before discounts. */
  burnMicroUsdPerHour: number;
}

/** What an operator looks at first. */
export interface Overview {
  providers: ProviderOverview[];
  teams: TeamOverview[];
  /** When the oldest mail that was not sent was due; null: there is none. */
  mailDueAt: number | null;
}

/** Reads all that is active; `providerIds` are those of the configuration, and rows may name others. */
export async function readOverview(
  read: Reader,
  providerIds: readonly string[],
  now: number,
): Promise<Overview> {
  const active = await read.deployments.list({ statuses: activeStatuses });
  const [volumes, unproved, toSync, held] = await Promise.all([
    read.volumes.countByProvider(),
    read.deployments.countUnproved(),
    read.deployments.countToSync(),
    read.losses.countHeld(),
  ]);
  const named = [active, volumes, unproved, toSync, held].flatMap((rows) =>
    rows.map((row) => row.providerId),
  );
  const ids = [...new Set([...providerIds, ...named])];
  const providers = ids.map((id): ProviderOverview => {
    const own = active.filter(({ providerId }) => providerId === id);
    return {
      id,
      active: countByStatus(own),
      volumes: countOf(volumes, id),
      confirmedUntil: leastOf(own.map(({ observedAt }) => observedAt)),
      waitingForSsh: countOf(unproved, id),
      toSync: countOf(toSync, id),
      lossesHeld: countOf(held, id),
    };
  });
  const teams: TeamOverview[] = [];
  for (const team of await read.teams.list()) teams.push(await readTeam(read, team, now));
  return { providers, teams, mailDueAt: await read.mail.nextDueAt() };
}

async function readTeam(read: Reader, team: TeamRecord, now: number): Promise<TeamOverview> {
  const load = await read.teams.load(team.id);
  return {
    team,
    balanceMicroUsd: await realTimeBalance(read, team.id, now),
    burnMicroUsdPerHour: (load?.openRateMilliUsd ?? 0) * 1000,
  };
}

function countByStatus(deployments: readonly DeploymentRecord[]): ProviderOverview['active'] {
  const count = (wanted: DeploymentStatus): number =>
    deployments.filter(({ status }) => status === wanted).length;
  return Object.fromEntries(activeStatuses.map((status) => [status, count(status)]));
}

function countOf(counts: readonly { providerId: string; count: number }[], id: string): number {
  return counts.find(({ providerId }) => providerId === id)?.count ?? 0;
}

function leastOf(times: readonly (number | null)[]): number | null {
  const known = times.filter((time) => time !== null);
  return known.length === 0 ? null : Math.min(...known);
}
