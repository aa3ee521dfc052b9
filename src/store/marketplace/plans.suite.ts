import { describe, expect, it } from 'vitest';
import {
  deployment,
  now,
  posting,
  providerId,
  segment,
  team,
  teamId,
  usage,
  user,
  userId,
} from '../../../test/support/rows/marketplace-rows.ts';
import type { Transaction } from '../../marketplace/model/store.ts';

/** How a database accesses the rows of one table. */
export interface Access {
  table: string;
  /** Null: it scans the table. */
  index: string | null;
  /** The whole index is scanned. */
  isWholeIndex: boolean;
}

interface Setup {
  /** The accesses of the statements in `ask`, with each statement's text. */
  accessesOf(
    ask: (repositories: Transaction) => PromiseLike<unknown>,
  ): Promise<{ sql: string; accesses: Access[] }[]>;
  /** The partial indexes. */
  partialIndexes(): Promise<ReadonlySet<string>>;
}

/** Tables that grow with time or with the number of users. The others are as large as the configuration. */
const GROWING = [
  'users',
  'api_keys',
  'teams',
  'members',
  'discounts',
  'ssh_keys',
  'stock_alerts',
  'deployments',
  'volumes',
  'attachments',
  'losses',
  'segments',
  'slices',
  'ledger_transactions',
  'ledger_entries',
  'mails',
];

const active = ['deploying', 'running', 'stopped'] as const;
const page = { limit: 20, offset: 0 };
const changed = deployment();

/** The reads of each request, each poll, or every few seconds. */
const asked: Readonly<Record<string, (read: Transaction) => PromiseLike<unknown>>> = {
  'who sends a request': async ({ keys, users, teams }) => {
    await keys.byDigest(Buffer.from('digest'));
    await keys.recordUse('key-1', now);
    await users.byId(userId);
    await teams.byId(teamId);
    await teams.membershipsOf(userId);
    await teams.member(teamId, userId);
  },
  'a deployment by its id, by its name at the provider': async ({ deployments }) => {
    await deployments.byId('dep-1');
    await deployments.byProviderName('bm-1');
  },
  'the deployments of a team': ({ deployments }) => deployments.list({ teamIds: [teamId], ...page }),
  'the active deployments of a team': ({ deployments }) =>
    deployments.list({ teamIds: [teamId], statuses: active, ...page }),
  'the deployments of a user': ({ deployments }) => deployments.list({ userId, ...page }),
  'what a team pays for': ({ deployments }) => deployments.activeByPrice(teamId),
  'what a provider has to sync': ({ deployments }) => deployments.toSync(providerId),
  'new rows to sync': ({ deployments }) => deployments.newToSync(providerId),
  'the deployments for the metrics': async ({ deployments }) => {
    await deployments.countToSync();
    await deployments.countActive();
    await deployments.countUnproved();
  },
  'which GPUs are popular': ({ deployments }) => deployments.countByGpuType(now),
  'the writes of a deployment': async ({ deployments }) => {
    await deployments.update(changed);
    await deployments.setCleanup('dep-1', 'done');
    await deployments.recordObservations([{ id: 'dep-1', revision: 1, at: now }]);
  },
  'a volume': async ({ volumes }) => {
    await volumes.byId('vol-1');
    await volumes.byVolumeId('vvol-1');
    await volumes.byProviderVolume(providerId, 'pv-vol-1');
    await volumes.attachmentsOf({ volumeId: 'vol-1' });
    await volumes.attachmentsOf({ deploymentId: 'dep-1' });
  },
  'the volumes of a team': async ({ volumes }) => {
    await volumes.ofTeam(teamId);
    await volumes.page({ teamId, ...page });
  },
  'the volumes of a provider to sync': async ({ volumes }) => {
    await volumes.toSync(providerId);
    await volumes.newToSync(providerId);
    await volumes.countByProvider();
    await volumes.countOfOtherSize();
  },
  'what a provider has lost': async ({ losses }) => {
    await losses.bySubject('dep-1');
    await losses.countSince(providerId, now);
    await losses.held(providerId);
    await losses.countHeld();
    await losses.countLive(providerId);
    await losses.release('dep-1');
  },
  'mails that are due': async ({ mail }) => {
    await mail.due(now, 20);
    await mail.waiting();
    await mail.byId('mail-1');
    await mail.deleteEnded(now, 20);
  },
  'the prices of teams': async ({ discounts }) => {
    await discounts.ofTeam(teamId);
    await discounts.ofTeams([teamId, 'team-2']);
  },
  'SSH keys': async ({ sshKeys }) => {
    await sshKeys.byId('ssh-1');
    await sshKeys.list({ teamIds: [teamId] });
    await sshKeys.remove('ssh-1');
  },
  'stock alerts of a user': ({ stockAlerts }) => stockAlerts.ofUser(userId),
  'the deployments of all teams, page by page': async ({ deployments }) => {
    await deployments.list({ limit: 50 });
    await deployments.list({ text: 'train', after: { at: now, id: 'dep-1' }, limit: 50 });
    await deployments.list({ statuses: active, providerId, limit: 50 });
    await deployments.list({ teamIds: [teamId], limit: 50 });
  },
  'what an operator reads of providers': async ({ deployments }) => {
    await deployments.countActiveByProvider();
    await deployments.countOutcomes(now);
  },
  'what an operator reads of money and mails': async ({ ledger, teams, mail }) => {
    await ledger.bookings({ limit: 50 });
    await teams.page({ limit: 50 });
    await mail.list({ limit: 50 });
    await mail.countGivenUpSince(now);
  },
  'the open rows to bill': async ({ ledger, teams }) => {
    await ledger.openSegments({ limit: 200 });
    await ledger.openSegments({ afterId: 'seg-1', limit: 200 });
    await ledger.openSegmentOf('deployment', 'dep-1');
    await ledger.openSegmentsOfTeam(teamId);
    await ledger.billedSegmentsOfTeam(teamId);
    await ledger.dueSegments({ now, sliceMs: 86_400_000, limit: 200 });
    await ledger.dueSegments({ now, sliceMs: 86_400_000, after: { at: 1, id: 'seg-1' }, limit: 200 });
    await teams.due({ now, limit: 200 });
    await teams.due({ now, after: { at: 1, id: teamId }, limit: 200 });
    await ledger.openSegmentsOfDeployments(['dep-1']);
    await ledger.segmentById('seg-1');
    await ledger.segmentsOf('deployment', 'dep-1');
  },
  slices: async ({ ledger }) => {
    await ledger.slicesOf('seg-1');
    await ledger.daysOf('seg-1');
  },
  'the writes of the ledger': async ({ users, teams, ledger }) => {
    const billed = segment({ id: 'seg-9', subjectId: 'dep-9' });
    const kept = segment({ id: 'seg-8', subjectKind: 'volume', subjectId: 'vol-8' });
    await users.insert(user());
    await teams.insert(team());
    for (const record of [billed, kept]) await ledger.insertSegment(record);
    await ledger.updateSegment(billed);
    await ledger.lockBilled([billed, kept]);
    await ledger.post([posting(5, billed.startedAt + 1, { id: 'txn-9', subjectId: 'dep-9' }, 'seg-9')]);
    await ledger.book(...usage(5, { id: 'txn-8' }));
  },
  'the transactions of a team': async ({ ledger }) => {
    await ledger.transactionsOf(teamId, 20);
    await ledger.usageOf(teamId, now, now + 1);
    await ledger.byReference('payment-1');
  },
};

/** Tests that no frequent statement scans a table that grows. */
export function describePlans(database: string, { accessesOf, partialIndexes }: Setup): void {
  describe(`the plans of ${database}`, () => {
    it.each(Object.entries(asked))('%s', async (_what, ask) => {
      const statements = await accessesOf(ask);
      const partial = await partialIndexes();
      const scans = statements.flatMap(({ sql, accesses }) =>
        accesses
          .filter(({ table }) => GROWING.includes(table))
          .filter(({ index, isWholeIndex }) => index === null || (isWholeIndex && !partial.has(index)))
          .map(({ table, index }) => `${table} by ${index ?? 'nothing'}: ${sql}`),
      );
      expect(statements.length).toBeGreaterThan(0);
      expect(statements.flatMap(({ accesses }) => accesses).length).toBeGreaterThan(0);
      expect(scans).toEqual([]);
    });

    it('detects a scan', async () => {
      const statements = await accessesOf(({ teams }) => teams.list());
      expect(statements[0]?.accesses).toEqual([{ table: 'teams', index: null, isWholeIndex: true }]);
    });
  });
}
