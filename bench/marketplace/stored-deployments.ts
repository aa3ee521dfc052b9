import { marketplaceStores } from '../../src/compose/stores/marketplace.ts';
import { openIn } from '../../src/compose/stores/stores.ts';
import { grant } from '../../src/marketplace/ledger/credit.ts';
import { ensureInstallationId, newId, newIdAt, toProviderName } from '../../src/marketplace/model/names.ts';
import type { Transaction } from '../../src/marketplace/model/store.ts';
import { createKey } from '../../src/marketplace/teams/keys.ts';
import { createTeam } from '../../src/marketplace/teams/teams.ts';
import { addUser } from '../../src/marketplace/teams/users.ts';
import { systemClock as clock, systemRandom as random } from '../../src/runtime/system.ts';
import { runningDeployment, segment } from '../../test/support/rows/marketplace-rows.ts';

export interface StoredDeployments {
  /** The key of the first team's user. */
  apiKey: string;
}

const ROWS_PER_TRANSACTION = 2_000;
const CREDIT_MICRO_USD = 1e15;
const TEAM_SIZE = 50;

export interface WantedDeployments {
  /** Running deployments, each with its open segment. */
  live: number;
  /** Additional terminated deployments. */
  ended?: number;
  /** Number of teams that share them. */
  teams?: number;
}

/** Running deployments in teams of 50. */
export function ofTeams(live: number): WantedDeployments {
  return { live, teams: Math.ceil(live / TEAM_SIZE) };
}

/** Creates a marketplace's database through the store. */
export async function storeDeployments(
  database: string,
  { live, ended = 0, teams = 1 }: WantedDeployments,
): Promise<StoredDeployments> {
  const store = await openIn(marketplaceStores, database, {});
  const deps = { store, clock, random };
  try {
    const installationId = await ensureInstallationId(deps);
    const email = 'bench@berth.example';
    const user = await addUser(deps, { email, mayMakeKeys: true, createLimit: 1_000_000_000 });
    const teamIds: string[] = [];
    for (let number = 0; number < teams; number++) {
      const { id } = await createTeam(deps, { name: `Team ${number}`, owner: email });
      await grant(deps, { teamId: id, amountMicroUsd: CREDIT_MICRO_USD });
      teamIds.push(id);
    }
    const total = live + ended;
    for (let from = 0; from < total; from += ROWS_PER_TRANSACTION)
      await store.transact(async (tx) => {
        for (let row = from; row < Math.min(total, from + ROWS_PER_TRANSACTION); row++) {
          const teamId = teamIds[row % teamIds.length] ?? '';
          await insert(tx, { installationId, userId: user.id, teamId, isLive: row < live });
        }
      });
    const { key } = await createKey(deps, email);
    return { apiKey: key };
  } finally {
    await store.close();
  }
}

async function insert(
  tx: Transaction,
  {
    installationId,
    userId,
    teamId,
    isLive,
  }: { installationId: string; userId: string; teamId: string; isLive: boolean },
): Promise<void> {
  const id = newId(random, 'dep');
  const now = clock.now();
  const times = { createdAt: now, startedAt: now, observedAt: now };
  const deployment = runningDeployment({
    id,
    userId,
    teamId,
    ...times,
    providerName: toProviderName(installationId, id),
    providerId: 'provider-b',
    offerId: 'h100',
    region: 'eu-frankfurt',
    ipAddress: '203.0.113.17',
    ...(!isLive && { status: 'terminated', stoppedAt: now, cleanup: 'done' }),
  });
  await tx.deployments.insert(deployment);
  const { rateMicroUsd } = deployment;
  await tx.ledger.insertSegment(
    segment({
      id: newIdAt(random, 'seg', now),
      subjectId: id,
      teamId,
      startedAt: now,
      rateMicroUsdPerHour: rateMicroUsd,
      endedAt: isLive ? null : now,
    }),
  );
}
