import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { activeStatuses } from '../../marketplace/contract/deployment.ts';
import type { CatalogRecord } from '../../marketplace/model/catalog-record.ts';
import {
  type DeploymentSearch,
  Duplicate,
  type Store,
  type Transaction,
} from '../../marketplace/model/store.ts';
import {
  apiKey,
  deployment,
  discount,
  grant,
  intent,
  mail,
  member,
  now,
  posting,
  providerId,
  runningDeployment,
  seed,
  segment,
  sshKey,
  stockAlert,
  team,
  teamId,
  user,
  userId,
  volume,
} from '../../testing/marketplace-rows.ts';
import type { LeaseRecord } from '../../work/lease.ts';
import { describeOperators } from '../operators.suite.ts';
import { describeLedger } from './ledger.suite.ts';

export interface StoreOfSuite {
  setup: () => Promise<Store>;
  teardown: (store: Store) => Promise<void>;
  /** Whether reads outside a transaction see its uncommitted writes, as in an in-memory database. */
  hasOneConnection?: boolean;
}

/** The requirements for every marketplace store. `setup` creates an empty one. */
export function describeMarketplaceStore(
  name: string,
  { setup, teardown, hasOneConnection = false }: StoreOfSuite,
): void {
  describe(name, () => {
    let store: Store;
    beforeEach(async () => {
      store = await setup();
      await seed(store);
    });
    afterEach(() => teardown(store));
    const write = <T>(body: (tx: Transaction) => Promise<T>): Promise<T> => store.transact(body);

    it('closes once, however often close is called', async () => {
      await Promise.all([store.close(), store.close()]);
      await store.close();
    });

    describe('transactions', () => {
      it('keep all or nothing', async () => {
        const broken = write(async (tx) => {
          await tx.deployments.insert(deployment());
          throw new Error('broken off');
        });
        await expect(broken).rejects.toThrow('broken off');
        expect(await store.read.deployments.byId('dep-1')).toBeNull();
      });

      it.skipIf(hasOneConnection)('show only committed data to reads outside', async () => {
        await write(async (tx) => {
          await tx.deployments.insert(deployment());
          expect(await tx.deployments.byId('dep-1')).not.toBeNull();
          expect(await store.read.deployments.byId('dep-1')).toBeNull();
        });
        expect(await store.read.deployments.byId('dep-1')).toEqual(deployment());
      });

      it('continue after one that failed', async () => {
        await write(() => Promise.reject(new Error('first'))).catch(() => undefined);
        await write((tx) => tx.deployments.insert(deployment()));
        expect(await store.read.deployments.byId('dep-1')).not.toBeNull();
      });

      const lockedBy: [string, (tx: Transaction) => Promise<unknown>][] = [
        ['a user', (tx) => tx.users.byId(userId)],
        ['a team', (tx) => tx.teams.byId(teamId)],
        ['a deployment', (tx) => tx.deployments.byId('dep-1')],
        ['a volume', (tx) => tx.volumes.byId('vol-1')],
        ['a volume, by the id of paths', (tx) => tx.volumes.byVolumeId('vvol-1')],
        ['a mail', (tx) => tx.mail.byId('mail-1')],
      ];
      it.each(lockedBy)('run one after another where they read %s by its id', async (_what, read) => {
        await write(async (tx) => {
          await tx.deployments.insert(deployment());
          await tx.volumes.insert(volume());
          await tx.mail.insert(mail());
        });
        const log: string[] = [];
        // Opens a connection for each of them before they begin.
        await Promise.all([1, 2, 3].map(() => write((tx) => tx.users.list())));
        const run = () =>
          write(async (tx) => {
            expect(await read(tx)).not.toBeNull();
            log.push('begins');
            for (let step = 0; step < 5; step++) {
              await tx.users.list();
              await new Promise((resolve) => setImmediate(resolve));
            }
            log.push('ends');
          });
        await Promise.all([run(), run(), run()]);
        expect(log).toEqual(['begins', 'ends', 'begins', 'ends', 'begins', 'ends']);
      });

      const unique: [string, (tx: Transaction) => Promise<unknown>, RegExp][] = [
        ['an e-mail address', (tx) => tx.users.insert(user({ id: 'u', email: user().email })), /users/],
        ['a slug', (tx) => tx.teams.insert(team({ id: 't', slug: team().slug })), /teams/],
        ['a key', (tx) => tx.keys.insert(apiKey({ id: 'k', digest: apiKey().digest })), /api_keys/],
        [
          'a name at the provider',
          (tx) => tx.deployments.insert(deployment({ id: 'd', providerName: deployment().providerName })),
          /deployments/,
        ],
        ['a volume id', (tx) => tx.volumes.insert(volume({ id: 'v', volumeId: 'vvol-1' })), /volumes/],
        [
          'a name of a volume at the provider',
          (tx) => tx.volumes.insert(volume({ id: 'v', providerName: volume().providerName })),
          /volumes/,
        ],
      ];
      it.each(unique)('refuse the second row with %s as a duplicate', async (_what, insert, table) => {
        await write(async (tx) => {
          await tx.keys.insert(apiKey());
          await tx.deployments.insert(deployment());
          await tx.volumes.insert(volume());
        });
        const second = write(insert);
        await expect(second).rejects.toBeInstanceOf(Duplicate);
        await expect(second).rejects.toThrow(table);
      });
    });

    describe('people', () => {
      it('come back as they were written', async () => {
        const changed = user({ name: 'имя 🚀', createLimit: -1, minimumRuntimeMinutes: 0.5 });
        await write((tx) => tx.users.update(changed));
        expect(await store.read.users.byId(userId)).toEqual(changed);
        expect(await store.read.users.byEmail(changed.email)).toEqual(changed);
        expect(await store.read.users.list()).toEqual([changed]);
        expect(await store.read.teams.bySlug(team().slug)).toEqual(team());
        expect(await store.read.users.byId('nobody')).toBeNull();
      });

      it('have keys that are found by their digest, revoked and marked as used', async () => {
        const record = apiKey({ label: 'ci', expiresAt: now + 5 });
        await write((tx) => tx.keys.insert(record));
        expect(await store.read.keys.byDigest(Buffer.from('another'))).toBeNull();
        await write(async (tx) => {
          await tx.keys.revoke(record.id, now + 1);
          await tx.keys.recordUse(record.id, now + 2);
        });
        const changed = { ...record, revokedAt: now + 1, lastUsedAt: now + 2 };
        expect(await store.read.keys.byDigest(record.digest)).toEqual(changed);
        expect(await store.read.keys.ofUser(userId)).toEqual([changed]);
      });

      it('are members of teams: the owner first, then by when they joined', async () => {
        const joined = { a: now + 3, b: now + 1, c: now + 2 };
        await write(async (tx) => {
          for (const [id, joinedAt] of Object.entries(joined)) {
            await tx.users.insert(user({ id }));
            await tx.teams.putMember(member({ userId: id, role: 'member', joinedAt }));
          }
          await tx.teams.putMember(member({ userId: 'a', role: 'admin', joinedAt: joined.a }));
          await tx.teams.removeMember(teamId, 'c');
          await tx.teams.insert(team({ id: 'older' }));
          await tx.teams.putMember(member({ teamId: 'older', userId: 'a', joinedAt: now }));
        });
        const members = await store.read.teams.members(teamId);
        expect(members.map((one) => `${one.userId} ${one.role}`)).toEqual([
          `${userId} owner`,
          'b member',
          'a admin',
        ]);
        expect((await store.read.teams.membershipsOf('a')).map((one) => one.teamId)).toEqual([
          'older',
          teamId,
        ]);
        expect(await store.read.teams.member(teamId, 'c')).toBeNull();
      });

      it('have discounts, alerts and SSH keys; lists omit temporary keys', async () => {
        await write(async (tx) => {
          await tx.discounts.insert(discount({ id: 'later', startsAt: now + 1 }));
          await tx.discounts.insert(discount({ percentage: 12.5 }));
          await tx.discounts.update(discount({ percentage: 12.5, endsAt: now + 9 }));
          await tx.stockAlerts.insert(stockAlert());
          await tx.stockAlerts.insert(stockAlert({ id: 'gone', region: 'eu-1' }));
          await tx.stockAlerts.update(stockAlert({ wasSoldOut: true }));
          await tx.stockAlerts.remove('gone');
          await tx.sshKeys.insert(sshKey());
          await tx.sshKeys.insert(sshKey({ id: 'new', createdAt: now + 1, name: 'a "b" 12 \u0000' }));
          await tx.sshKeys.insert(sshKey({ id: 'temporary', isTemporary: true }));
          await tx.sshKeys.insert(sshKey({ id: 'removed' }));
          await tx.sshKeys.remove('removed');
        });
        const ended = discount({ percentage: 12.5, endsAt: now + 9 });
        expect(await store.read.discounts.ofTeam(teamId)).toEqual([
          ended,
          discount({ id: 'later', startsAt: now + 1 }),
        ]);
        expect(await store.read.discounts.ofTeams([teamId, 'nobody'])).toEqual([
          ended,
          discount({ id: 'later', startsAt: now + 1 }),
        ]);
        expect(await store.read.discounts.ofTeams(['nobody'])).toEqual([]);
        expect(await store.read.stockAlerts.ofUser(userId)).toEqual([stockAlert({ wasSoldOut: true })]);
        const keys = await store.read.sshKeys.list({ teamIds: [teamId] });
        expect(keys.map(({ id }) => id)).toEqual(['new', 'ssh-1']);
        expect(keys[0]?.name).toBe('a "b" 12 \u0000');
        expect(await store.read.sshKeys.list({ teamIds: [teamId], userId: 'nobody' })).toEqual([]);
        expect(await store.read.sshKeys.list({ teamIds: [] })).toEqual([]);
        expect(await store.read.sshKeys.byId('temporary')).not.toBeNull();
      });
    });

    describe('deployments', () => {
      const insert = (...records: ReturnType<typeof deployment>[]) =>
        write(async (tx) => {
          for (const record of records) await tx.deployments.insert(record);
        });
      const ids = (records: { id: string }[]): string[] => records.map(({ id }) => id);

      it('come back as they were written, whatever their name is', async () => {
        const record = runningDeployment({
          name: '12 "\u0000\ud800 имя 🚀',
          failureDetails: 'null',
          failureReason: 'conflict',
          portForwards: [{ internal_port: 22, external_port: 2222 }],
          extras: { z: [1, null], a: { b: true } },
          launch: {
            state: 'sent',
            request: { configuration_id: 'c', region: 'r', ssh_keys: ['k'] },
            sentAt: now,
            looks: 2,
          },
          action: intent('pause', { until: now + 1, answer: 500 }),
          refusal: { id: 7, code: 'PROVIDER_REFUSED', message: 'no', details: { a: 1 } },
          suspicion: { status: 'GONE', since: now, polls: 1, isListed: false },
          rateMicroUsd: 3_000_000_000,
          orderedProviderRateMicroUsd: 2_500_000_000,
        });
        await insert(record);
        expect(await store.read.deployments.byId(record.id)).toEqual(record);
        expect(await store.read.deployments.byProviderName(record.providerName)).toEqual(record);
        expect(JSON.stringify((await store.read.deployments.byId(record.id))?.extras)).toBe(
          JSON.stringify(record.extras),
        );
      });

      it('are listed newest first, by team, user and status', async () => {
        await write(async (tx) => {
          await tx.users.insert(user({ id: 'other' }));
          await tx.teams.insert(team({ id: 'theirs', ownerId: 'other' }));
        });
        await insert(
          deployment({ id: 'old' }),
          runningDeployment({ id: 'new', createdAt: now + 2 }),
          deployment({ id: 'failed', status: 'failed', createdAt: now + 1 }),
          deployment({ id: 'foreign', teamId: 'theirs', userId: 'other' }),
        );
        const { list } = store.read.deployments;
        expect(ids(await list({ teamIds: [teamId] }))).toEqual(['new', 'failed', 'old']);
        expect(ids(await list({ teamIds: [teamId], statuses: ['failed', 'deploying'] }))).toEqual([
          'failed',
          'old',
        ]);
        expect(ids(await list({ userId: 'other' }))).toEqual(['foreign']);
        expect(ids(await list({ teamIds: [] }))).toEqual([]);
        expect(ids(await list({ providerId: 'provider-b' }))).toEqual([]);
        expect(await list({ providerId })).toHaveLength(4);
        expect(await list({})).toHaveLength(4);
        const active = await store.read.deployments.countActive();
        expect(active.reduce((sum, { count }) => sum + count, 0)).toBe(
          (await list({ statuses: activeStatuses })).length,
        );
        expect(active.map(({ status }) => status)).not.toContain('failed');
        expect(await store.read.deployments.countByGpuType(now + 1)).toEqual([{ gpuType: 'H100', count: 2 }]);
      });

      it('are synced while they are active, and until they are cleaned up', async () => {
        await insert(
          deployment({ id: 'deploying' }),
          runningDeployment({ id: 'running', createdAt: now + 1 }),
          deployment({ id: 'over', status: 'terminated' }),
          deployment({ id: 'left', status: 'terminated', cleanup: 'wanted', createdAt: now + 2 }),
          deployment({ id: 'elsewhere', providerId: 'provider-b' }),
        );
        const setup = async () => ids(await store.read.deployments.toSync(providerId));
        expect(await setup()).toEqual(['deploying', 'running', 'left']);
        expect(await store.read.deployments.countToSync()).toEqual([
          { providerId, count: 3 },
          { providerId: 'provider-b', count: 1 },
        ]);
        const endsIn = async (digits: string) => ids(await store.read.deployments.toSync(providerId, digits));
        expect([await endsIn('0g'), await endsIn('gt'), await endsIn('0123')]).toEqual([
          ...[['deploying', 'running'], ['deploying', 'running', 'left'], []],
        ]);
        const setupNew = async () => ids(await store.read.deployments.newToSync(providerId));
        expect(await setupNew()).toEqual(['deploying', 'left']);
        await write((tx) => tx.deployments.setCleanup('left', 'done'));
        expect(await setup()).toEqual(['deploying', 'running']);
        expect(await setupNew()).toEqual(['deploying']);
        expect(await store.read.deployments.toSync(providerId)).toEqual([
          { id: 'deploying', status: 'deploying', stoppedAt: null, launchState: 'wanted', isAsked: false },
          { id: 'running', status: 'running', stoppedAt: null, launchState: 'made', isAsked: false },
        ]);
      });

      it('report when a synced machine of a provider was last proved', async () => {
        const last = () => store.read.deployments.lastProvedAt(providerId);
        expect(await last()).toBeNull();
        const proof = {
          keys: [],
          onlineAt: now,
          attempts: 1,
          failedAt: null,
          provedEndpoint: '192.0.2.1:22',
        };
        await insert(
          deployment({ id: 'unproved' }),
          runningDeployment({ id: 'first', sshProof: { ...proof, provedAt: now + 900 } }),
          runningDeployment({ id: 'last', sshProof: { ...proof, provedAt: now + 1000 } }),
          deployment({ id: 'over', status: 'failed', sshProof: { ...proof, provedAt: now + 5000 } }),
          runningDeployment({
            id: 'foreign',
            providerId: 'provider-b',
            sshProof: { ...proof, provedAt: now + 5000 },
          }),
        );
        expect(await last()).toBe(now + 1000);
      });

      it('are counted by price while they are active, with starting ones counted separately', async () => {
        const stopped = {
          status: 'stopped',
          originalRateMicroUsd: 7,
          originalStoppedRateMicroUsd: 3,
        } as const;
        const resume = intent('resume');
        await write((tx) => tx.teams.insert(team({ id: 'team-2' })));
        await insert(
          deployment({ id: 'a', originalRateMicroUsd: 5 }),
          deployment({ id: 'b', originalRateMicroUsd: 5 }),
          runningDeployment({ id: 'c', originalRateMicroUsd: 5 }),
          runningDeployment({ id: 'd', ...stopped }),
          runningDeployment({ id: 'e', ...stopped }),
          runningDeployment({ id: 'f', ...stopped, action: resume }),
          runningDeployment({ id: 'g', ...stopped, action: intent('volume') }),
          deployment({ id: 'over', status: 'terminated' }),
          deployment({ id: 'foreign', teamId: 'team-2' }),
        );
        const sums = new Map<string, number>();
        for (const { count, ...prices } of await store.read.deployments.activeByPrice(teamId)) {
          const { status, isResuming, originalRateMicroUsd, originalStoppedRateMicroUsd } = prices;
          const key = [status, isResuming, originalRateMicroUsd, originalStoppedRateMicroUsd].join(' ');
          sums.set(key, (sums.get(key) ?? 0) + count);
        }
        expect(Object.fromEntries(sums)).toEqual({
          'deploying false 5 ': 2,
          'running false 5 ': 1,
          'stopped false 7 3': 3,
          'stopped true 7 3': 1,
        });
      });

      it('are counted by provider while they are ONLINE there but not proved over SSH', async () => {
        const tried = { keys: [], attempts: 1, failedAt: 'auth', provedEndpoint: null } as const;
        const sshProof = { ...tried, keys: [], onlineAt: now, provedAt: null };
        await insert(
          deployment({ id: 'not-made' }),
          deployment({ id: 'boots', sshProof: { ...sshProof, onlineAt: null } }),
          deployment({ id: 'a', sshProof }),
          deployment({ id: 'b', sshProof }),
          deployment({ id: 'c', sshProof, providerId: 'provider-b' }),
          deployment({ id: 'proved', sshProof: { ...sshProof, provedAt: now } }),
          deployment({ id: 'over', sshProof, status: 'failed' }),
          runningDeployment({ id: 'running', sshProof }),
        );
        expect(await store.read.deployments.countUnproved()).toEqual([
          { providerId, count: 2 },
          { providerId: 'provider-b', count: 1 },
        ]);
      });

      it('increase their revision with each update, which keeps the columns of the ledger', async () => {
        await insert(runningDeployment());
        await write(async (tx) => {
          await tx.ledger.insertSegment(segment());
          await tx.ledger.post([posting(70, now + 7)]);
          await tx.ledger.post([posting(5, now + 3, { id: 'txn-2' })]);
          await tx.deployments.update(runningDeployment({ status: 'stopped', revision: 4 }));
        });
        const record = await store.read.deployments.byId('dep-1');
        expect(record).toEqual(
          runningDeployment({
            status: 'stopped',
            revision: 5,
            totalCostMicroUsd: 75,
            lastCreditDeductionAt: now + 7,
          }),
        );
      });

      it('accept an observation only of the observed revision, and no older one', async () => {
        const many = Array.from({ length: 1_201 }, (_, index) => runningDeployment({ id: `many-${index}` }));
        await insert(
          deployment({ id: 'never' }),
          runningDeployment({ id: 'later' }),
          runningDeployment({ id: 'changed', revision: 2 }),
          ...many,
        );
        const left = await write((tx) =>
          tx.deployments.recordObservations([
            { id: 'never', revision: 1, at: now },
            { id: 'later', revision: 1, at: now - 1 },
            { id: 'changed', revision: 1, at: now + 5 },
            ...many.map(({ id }) => ({ id, revision: 1, at: now + 9 })),
          ]),
        );
        expect(left.toSorted()).toEqual(['changed', 'later']);
        expect(await write((tx) => tx.deployments.recordObservations([]))).toEqual([]);
        const seen = async (id: string) => {
          const record = await store.read.deployments.byId(id);
          return [record?.observedAt, record?.revision];
        };
        expect(await seen('never')).toEqual([now, 1]);
        expect(await seen('later')).toEqual([now, 1]);
        expect(await seen('changed')).toEqual([now, 2]);
        const all = await store.read.deployments.list({ statuses: ['running'] });
        expect(all.filter(({ observedAt }) => observedAt === now + 9)).toHaveLength(many.length);
      });
    });

    describe('volumes', () => {
      it('come back as they were written, with the columns of the ledger', async () => {
        const record = volume({
          name: '12',
          cloudId: 'c',
          type: 'nvme',
          sizeGb: 10.5,
          providerVolumeId: null,
          action: { ...intent('resize'), toSizeGb: 20, before: intent('create') },
          refusal: { id: 7, code: 'PROVIDER_REFUSED', message: 'no' },
        });
        await write(async (tx) => {
          await tx.volumes.insert(record);
          await tx.ledger.insertSegment(segment({ subjectKind: 'volume', subjectId: record.id }));
          await tx.ledger.post([posting(9, now + 1, { subjectKind: 'volume', subjectId: record.id })]);
          await tx.volumes.update({ ...record, action: null });
        });
        const written = { ...record, action: null, revision: 2, totalCostMicroUsd: 9 };
        expect(await store.read.volumes.byId(record.id)).toEqual(written);
        expect(await store.read.volumes.byVolumeId(record.volumeId)).toEqual(written);
      });

      it('are found by their id at the provider, also deleted ones', async () => {
        const records = [
          volume({ id: 'a', providerVolumeId: 'one' }),
          volume({ id: 'b', providerVolumeId: 'one', status: 'deleted', createdAt: now + 1 }),
          volume({ id: 'c', providerVolumeId: 'one', providerId: 'provider-b' }),
          volume({ id: 'd', providerVolumeId: 'two' }),
          volume({ id: 'e', providerVolumeId: null }),
        ];
        await write(async (tx) => {
          for (const record of records) await tx.volumes.insert(record);
        });
        expect(await store.read.volumes.byProviderVolume(providerId, 'one')).toEqual(records.slice(0, 2));
        expect(await store.read.volumes.byProviderVolume(providerId, 'three')).toEqual([]);
      });

      it('are counted by provider until they are deleted', async () => {
        await write(async (tx) => {
          await tx.volumes.insert(volume());
          await tx.volumes.insert(volume({ id: 'gone', status: 'deleted' }));
        });
        expect(await store.read.volumes.countByProvider()).toEqual([{ providerId, count: 1 }]);
      });

      it('are listed in pages, newest first, and synced while there is something to do', async () => {
        await write(async (tx) => {
          for (const [index, id] of ['a', 'b', 'c', 'd'].entries())
            await tx.volumes.insert(volume({ id, createdAt: now + index }));
          await tx.volumes.update(volume({ id: 'b', status: 'deleted', createdAt: now + 1 }));
          await tx.volumes.update(volume({ id: 'c', cleanup: 'wanted', createdAt: now + 2 }));
          await tx.volumes.update(volume({ id: 'd', action: intent('attach'), createdAt: now + 3 }));
        });
        const page = async (offset: number, statuses?: ['available']) => {
          const filter = { teamId, offset, limit: 2, ...(statuses && { statuses }) };
          const { volumes, total } = await store.read.volumes.page(filter);
          return [...volumes.map(({ id }) => id), total];
        };
        expect(await page(0)).toEqual(['d', 'c', 4]);
        expect(await page(2)).toEqual(['b', 'a', 4]);
        expect(await page(2, ['available'])).toEqual(['a', 3]);
        expect(await store.read.volumes.newToSync(providerId)).toEqual(['c', 'd']);
        expect(await store.read.volumes.toSync(providerId)).toEqual(['a', 'c', 'd']);
      });

      it('are attached to deployments, and found from both sides', async () => {
        await write(async (tx) => {
          for (const id of ['d1', 'd2']) await tx.deployments.insert(deployment({ id }));
          for (const id of ['v1', 'v2']) await tx.volumes.insert(volume({ id }));
          const pairs = [
            ['v1', 'd1'],
            ['v1', 'd2'],
            ['v2', 'd1'],
          ] as const;
          for (const [volumeId, deploymentId] of pairs)
            await tx.volumes.putAttachment({ volumeId, deploymentId, state: 'attaching' });
          await tx.volumes.putAttachment({ volumeId: 'v1', deploymentId: 'd1', state: 'attached' });
          await tx.volumes.removeAttachment('v1', 'd2');
        });
        const found = async (subject: { volumeId?: string; deploymentId?: string }) =>
          (await store.read.volumes.attachmentsOf(subject)).map(
            (one) => `${one.volumeId} ${one.deploymentId} ${one.state}`,
          );
        expect(await found({ volumeId: 'v1' })).toEqual(['v1 d1 attached']);
        expect(await found({ deploymentId: 'd1' })).toEqual(['v1 d1 attached', 'v2 d1 attaching']);
        expect(await found({ deploymentId: 'd2' })).toEqual([]);
      });
    });

    describeLedger(() => store);

    it('losses that are held are counted by provider', async () => {
      const loss = (subjectId: string, provider: string, isHeld: boolean) =>
        ({ subjectId, kind: 'deployment', providerId: provider, at: now, isHeld }) as const;
      await write(async (tx) => {
        for (const id of ['a', 'b']) await tx.losses.put(loss(id, providerId, true));
        await tx.losses.put(loss('c', 'provider-b', true));
        await tx.losses.put(loss('ended', providerId, false));
        await tx.losses.release('b');
      });
      expect(await store.read.losses.countHeld()).toEqual([
        { providerId, count: 1 },
        { providerId: 'provider-b', count: 1 },
      ]);
    });

    describe('mail', () => {
      it('is stored once per event, and handed out when due, oldest first', async () => {
        await write(async (tx) => {
          await tx.mail.insert(mail({ id: 'late', dueAt: now + 2, text: '7' }));
          await tx.mail.insert(mail({ id: 'first', dueAt: now - 1 }));
          await tx.mail.insert(mail({ id: 'again', dedupeKey: 'about first', subject: 'other' }));
          await tx.mail.insert(mail({ id: 'sent', sentAt: now }));
          await tx.mail.insert(mail({ id: 'given-up', failedAt: now, lastError: 'no' }));
        });
        const due = async (at: number, limit = 9) =>
          (await store.read.mail.due(at, limit)).map(({ id }) => id);
        expect(await due(now)).toEqual(['first']);
        expect(await due(now + 2)).toEqual(['first', 'late']);
        expect(await due(now + 2, 1)).toEqual(['first']);
        expect(await store.read.mail.waiting()).toEqual({
          count: 2,
          oldestCreatedAt: now,
          nextDueAt: now - 1,
        });
        await write((tx) => tx.mail.update(mail({ id: 'first', sentAt: now, attempts: 1 })));
        expect(await due(now + 1)).toEqual([]);
        expect(await store.read.mail.waiting()).toEqual({
          count: 1,
          oldestCreatedAt: now,
          nextDueAt: now + 2,
        });
        expect(await write((tx) => tx.mail.byId('late'))).toMatchObject({ text: '7' });
        expect(await store.read.mail.list({ to: 'nobody', limit: 9 })).toEqual([]);
        expect(await store.read.mail.list({ limit: 9 })).toHaveLength(4);
      });

      it('is deleted in pages when it is old and was sent or given up', async () => {
        await write(async (tx) => {
          await tx.mail.insert(mail({ id: 'waits', createdAt: now - 9 }));
          await tx.mail.insert(mail({ id: 'second', createdAt: now - 7, sentAt: now }));
          await tx.mail.insert(mail({ id: 'third', createdAt: now - 6, sentAt: now }));
          await tx.mail.insert(mail({ id: 'first', createdAt: now - 8, failedAt: now }));
          await tx.mail.insert(mail({ id: 'new', createdAt: now, sentAt: now }));
        });
        const left = async () => (await store.read.mail.list({ limit: 9 })).map(({ id }) => id);
        expect(await write((tx) => tx.mail.deleteEnded(now, 2))).toBe(2);
        expect(await left()).toEqual(['new', 'third', 'waits']);
        expect(await write((tx) => tx.mail.deleteEnded(now, 2))).toBe(1);
        expect(await write((tx) => tx.mail.deleteEnded(now, 2))).toBe(0);
        expect(await left()).toEqual(['new', 'waits']);
      });
    });

    describe('leases', () => {
      const claim = async (holder: string, at: number, ttlMs = 10) => {
        const [lease = null] = await write((tx) => tx.leases.claim(['job'], holder, at, ttlMs));
        return lease;
      };

      it('have one holder at a time, and are renewed under the same token', async () => {
        expect(await claim('a', now)).toEqual({ name: 'job', token: 1, holder: 'a', until: now + 10 });
        expect(await claim('b', now + 9)).toBeNull();
        expect(await claim('a', now + 9)).toMatchObject({ token: 1, until: now + 19 });
        expect(await claim('b', now + 18)).toBeNull();
        expect(await claim('b', now + 19)).toMatchObject({ token: 2, holder: 'b' });
        expect(await claim('a', now + 20)).toBeNull();
      });

      it('are granted to one of many concurrent requests', async () => {
        const holders = Array.from({ length: 20 }, (_, index) => `h${index}`);
        const answers = await Promise.all(holders.map((holder) => claim(holder, now)));
        expect(answers.filter((lease) => lease !== null)).toHaveLength(1);
      });

      it('are given back, and their next holder has a greater token', async () => {
        await claim('a', now);
        await write((tx) => tx.leases.release(['job'], 'b'));
        expect(await claim('b', now)).toBeNull();
        await write((tx) => tx.leases.release(['job'], 'a'));
        expect(await claim('a', now)).toMatchObject({ token: 2, holder: 'a' });
      });

      it('belong to their holder by token, expired or not, until another holder takes them', async () => {
        const first = await claim('a', now);
        if (first === null) throw new Error('nobody has it');
        const isHeld = (changes: Partial<LeaseRecord> = {}) =>
          write((tx) => tx.leases.isHeld({ ...first, ...changes }));
        expect([await isHeld(), await isHeld({ token: 2 }), await isHeld({ holder: 'b' })]).toEqual([
          ...[true, false, false],
        ]);
        expect(await isHeld({ name: 'another' })).toBe(false);
        await claim('b', now + 60);
        expect(await isHeld()).toBe(false);
        await write((tx) => tx.leases.release(['job'], 'b'));
        await claim('a', now + 61);
        expect([await isHeld(), await isHeld({ token: 3 })]).toEqual([false, true]);
      });

      it('are claimed, listed and released several at once, each for itself [leases-as-a-set]', async () => {
        const names = ['job', 'one', 'two'];
        await claim('a', now);
        const won = await write((tx) => tx.leases.claim(names, 'b', now, 20));
        expect(won.map(({ name }) => name).sort()).toEqual(['one', 'two']);
        const taken = async (holder: string, at: number) => {
          const leases = await write((tx) => tx.leases.taken(names, holder, at));
          return leases.map((lease) => `${lease.name} ${lease.holder}`).sort();
        };
        expect(await taken('b', now)).toEqual(['job a', 'one b', 'two b']);
        // An expired lease is listed only for its last holder.
        expect(await taken('b', now + 10)).toEqual(['one b', 'two b']);
        expect(await taken('a', now + 20)).toEqual(['job a']);
        await write((tx) => tx.leases.release(['one', 'job'], 'b'));
        expect(await taken('c', now)).toEqual(['job a', 'two b']);
      });

      it('are free if they end later than any lease can', async () => {
        await claim('a', now + 3 * 60 * 60 * 1000);
        expect(await claim('b', now)).toMatchObject({ token: 2, holder: 'b' });
      });
    });

    it('keeps the catalog of each provider as it was read', async () => {
      const configuration = {
        id: 'gpu-1',
        name: 'a NUL \0, a lone surrogate \ud800',
        instance_type: 'DEDICATED' as const,
        vcpus: 8,
        memory_gb: 64,
        storage_gb: 500,
        price_per_hour: 0.1,
        available: true,
        regions: ['eu-one'],
        supports_cloud_init: true,
        extras: { z: 1, a: { nested: null } },
      };
      const record: CatalogRecord = {
        providerId,
        version: 1,
        readAt: null,
        published: null,
        problems: ['no answer'],
      };
      expect(await store.read.catalogs.byProvider(providerId)).toBeNull();
      await write((tx) => tx.catalogs.put(record));
      expect(await store.read.catalogs.byProvider(providerId)).toEqual(record);
      const published = {
        configurations: [configuration],
        available: [],
        withdrawn: [],
        volumeLocations: [{ id: 'eu-one', name: 'EU One', types: ['ssd'] }],
      };
      const next: CatalogRecord = { ...record, version: 2, readAt: now, published, problems: [] };
      await write((tx) => tx.catalogs.put(next));
      await write((tx) => tx.catalogs.put({ ...record, providerId: 'other' }));
      await write((tx) => tx.catalogs.confirm(providerId, now + 5));
      const kept = await store.read.catalogs.byProvider(providerId);
      expect(kept).toEqual({ ...next, readAt: now + 5 });
      // A changed catalog is detected by its text.
      expect(JSON.stringify(kept?.published)).toBe(JSON.stringify(published));
      expect(new Set(await store.read.catalogs.versions())).toEqual(
        new Set([
          { providerId, version: 2, readAt: now + 5 },
          { providerId: 'other', version: 1, readAt: null },
        ]),
      );
    });

    it('keeps the first value of a setting unless it is explicitly put', async () => {
      const putIfAbsent = (value: string) => write((tx) => tx.settings.putIfAbsent('installation', value));
      const values = await Promise.all(['a', 'b', 'c'].map(putIfAbsent));
      expect(new Set(values).size).toBe(1);
      expect(await store.read.settings.get('installation')).toBe(values[0]);
      await write((tx) => tx.settings.put('installation', 'd'));
      expect(await putIfAbsent('e')).toBe('d');
      expect(await store.read.settings.get('other')).toBeNull();
    });

    it('counts requests in windows that begin with their first one', async () => {
      const count = (name: string, at: number) => store.countRequest({ name, now: at, lengthMs: 100 });
      expect(await count('a', now)).toEqual({ count: 1, endsAt: now + 100 });
      expect(await count('a', now + 99)).toEqual({ count: 2, endsAt: now + 100 });
      expect(await count('b', now + 50)).toEqual({ count: 1, endsAt: now + 150 });
      expect(await count('a', now + 100)).toEqual({ count: 1, endsAt: now + 200 });
      const many = await Promise.all(Array.from({ length: 50 }, () => count('many', now)));
      expect(many.map((one) => one.count).sort((a, b) => a - b)).toEqual(many.map((_, index) => index + 1));
    });

    it('starts a new count if a window was begun by a clock far ahead', async () => {
      await store.countRequest({ name: 'a', now: now + 1_000_000, lengthMs: 100 });
      expect(await store.countRequest({ name: 'a', now, lengthMs: 100 })).toEqual({
        count: 1,
        endsAt: now + 100,
      });
    });

    it('a snapshot does not see commits after its first read', async () => {
      await store.snapshot(async (read) => {
        expect(await read.deployments.byId('dep-1')).toBeNull();
        await write((tx) => tx.deployments.insert(deployment()));
        expect(await read.deployments.list({})).toEqual([]);
      });
      expect(await store.read.deployments.list({})).toHaveLength(1);
      await expect(store.snapshot(() => Promise.reject(new Error('broken off')))).rejects.toThrow(
        'broken off',
      );
    });

    describe('the operator views', () => {
      beforeEach(() =>
        write(async (tx) => {
          const made = (id: string, at: number, changes: Parameters<typeof deployment>[0] = {}) =>
            tx.deployments.insert(deployment({ id, createdAt: at, name: `job ${id}`, ...changes }));
          await made('dep-a', now);
          await made('dep-b', now + 1, { status: 'running', observedAt: now + 8 });
          await made('dep-c', now + 1, { status: 'running', observedAt: now + 5, ipAddress: '192.0.2.77' });
          await made('dep-d', now + 2, { status: 'failed', failureReason: 'out_of_stock', name: '100% _Ü' });
          await made('dep-e', now + 3, { status: 'running', providerId: 'provider-b' });
        }),
      );
      const idsOf = async (of: Omit<DeploymentSearch, 'limit'>, limit = 9) =>
        (await store.read.deployments.search({ ...of, limit })).map(({ id }) => id);

      it('list deployments of all teams, each once, page by page', async () => {
        expect(await idsOf({})).toEqual(['dep-e', 'dep-d', 'dep-c', 'dep-b', 'dep-a']);
        expect(await idsOf({ after: { at: now + 1, id: 'dep-c' } }, 1)).toEqual(['dep-b']);
        expect(await idsOf({ after: { at: now, id: 'dep-a' } })).toEqual([]);
      });

      it.each<[Omit<DeploymentSearch, 'limit'>, string[]]>([
        [{ statuses: ['running'] }, ['dep-e', 'dep-c', 'dep-b']],
        [{ statuses: ['running', 'failed'], providerId: 'provider-a' }, ['dep-d', 'dep-c', 'dep-b']],
        [{ teamId: 'nobody' }, []],
        [{ text: 'JOB dep-B' }, ['dep-b']],
        [{ text: '2.0.2.77' }, ['dep-c']],
        [{ text: 'out_of' }, ['dep-d']],
        [{ text: '100% _' }, ['dep-d']],
        [{ text: '0%_' }, []],
        [{ text: '_Ü' }, ['dep-d']],
        [{ text: '_ü' }, []],
      ])('finds deployments by %j', async (of, found) => {
        expect(await idsOf(of)).toEqual(found);
      });

      it('show what each provider runs, its last confirmation, and the outcome of its creates', async () => {
        const active = await store.read.deployments.countActiveByProvider();
        expect(
          active.toSorted((a, b) => (a.providerId + a.status < b.providerId + b.status ? -1 : 1)),
        ).toEqual([
          { providerId: 'provider-a', status: 'deploying', count: 1, confirmedUntil: null },
          { providerId: 'provider-a', status: 'running', count: 2, confirmedUntil: now + 5 },
          { providerId: 'provider-b', status: 'running', count: 1, confirmedUntil: expect.toBeOneOf([null]) },
        ]);
        expect(await store.read.deployments.countOutcomes(now + 2)).toEqual(
          expect.arrayContaining([
            { providerId: 'provider-a', status: 'failed', failureReason: 'out_of_stock', count: 1 },
            { providerId: 'provider-b', status: 'running', failureReason: null, count: 1 },
          ]),
        );
        expect(await store.read.deployments.countOutcomes(now + 4)).toEqual([]);
      });

      it('list teams by slug, and those that spend', async () => {
        await write((tx) => tx.teams.insert(team({ id: 'team-2', slug: 'zebra', name: 'Stripes' })));
        const first = (await store.read.teams.page({ limit: 1 }))[0];
        expect(first).toMatchObject({ id: teamId, openSegments: 0, openRateMilliUsd: 0 });
        const rest = await store.read.teams.page({ after: first?.slug, limit: 9 });
        expect(rest.map(({ id }) => id)).toEqual(['team-2']);
        expect((await store.read.teams.page({ text: 'STRIPE', limit: 9 })).map(({ id }) => id)).toEqual([
          'team-2',
        ]);
        expect(await store.read.teams.count()).toBe(2);
        expect(await store.read.teams.spending()).toEqual([]);
        await write((tx) => tx.ledger.insertSegment(segment()));
        expect(await store.read.teams.spending()).toMatchObject([{ id: teamId, openSegments: 1 }]);
      });

      it('list mails by state, with the number waiting and given up since a time', async () => {
        await write(async (tx) => {
          await tx.mail.insert(mail({ id: 'sent', createdAt: now, sentAt: now }));
          await tx.mail.insert(mail({ id: 'given-up', createdAt: now + 1, failedAt: now + 9 }));
          await tx.mail.insert(mail({ id: 'waits', createdAt: now + 2 }));
        });
        const ids = async (of: Partial<Parameters<typeof store.read.mail.list>[0]>) =>
          (await store.read.mail.list({ limit: 9, ...of })).map(({ id }) => id);
        expect(await ids({})).toEqual(['waits', 'given-up', 'sent']);
        expect(await ids({ after: { at: now + 2, id: 'waits' }, limit: 1 })).toEqual(['given-up']);
        expect([await ids({ state: 'waiting' }), await ids({ state: 'sent' })]).toEqual([
          ['waits'],
          ['sent'],
        ]);
        expect(await ids({ state: 'given_up' })).toEqual(['given-up']);
        expect((await store.read.mail.waiting()).count).toBe(1);
        const givenUpSince = (time: number) => store.read.mail.countGivenUpSince(time);
        expect([await givenUpSince(now + 9), await givenUpSince(now + 10)]).toEqual([1, 0]);
      });

      it('list bookings of teams, without usage', async () => {
        await write(async (tx) => {
          await grant(tx, 5_000_000);
          await tx.ledger.insertSegment(segment());
          await tx.ledger.post([posting(100, now + 60_000)]);
        });
        const [booked, ...others] = await store.read.ledger.bookings({ limit: 9 });
        expect([booked, others]).toMatchObject([{ kind: 'grant', teamId, amountMicroUsd: 5_000_000 }, []]);
        const after = { at: booked?.at ?? 0, id: booked?.id ?? '' };
        expect(await store.read.ledger.bookings({ after, limit: 9 })).toEqual([]);
      });
    });

    describeOperators(() => store, now);
  });
}
