import { beforeEach, describe, expect, it } from 'vitest';
import {
  deployment,
  intent,
  now,
  posting,
  providerId,
  runningDeployment,
  segment,
  team,
  teamId,
  user,
  volume,
} from '../../../test/support/rows/marketplace-rows.ts';
import { activeStatuses } from '../../marketplace/contract/deployment.ts';
import type { Store, Transaction } from '../../marketplace/model/store.ts';
import { toAttachment } from '../../marketplace/model/volume-record.ts';

/** Deployments and volumes. */
export function describeResources(storeOf: () => Store): void {
  let store: Store;
  beforeEach(() => {
    store = storeOf();
  });
  const write = <T>(body: (tx: Transaction) => Promise<T>): Promise<T> => store.transact(body);

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
        },
        action: intent('pause', { until: now + 1, answer: 500 }),
        refusal: { id: 7, code: 'PROVIDER_REFUSED', message: 'no', details: { a: 1 } },
        suspicion: { status: 'GONE', since: now, polls: 1 },
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
        runningDeployment({ id: 'g', ...stopped, action: intent('restart') }),
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
        action: { ...intent('resize'), toSizeGb: 20, name: 'more' },
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
        await tx.volumes.insert(volume({ id: 'gone', status: 'deleted', providerSizeGb: 50 }));
        await tx.volumes.insert(
          volume({ id: 'larger', volumeId: 'larger', providerId: 'other', providerSizeGb: 120 }),
        );
      });
      expect(await store.read.volumes.countOfOtherSize()).toEqual([{ providerId: 'other', count: 1 }]);
      expect(await store.read.volumes.countByProvider()).toContainEqual({ providerId, count: 1 });
    });

    it('are listed in pages, newest first, and synced while there is something to do', async () => {
      await write(async (tx) => {
        for (const [index, id] of ['a', 'b', 'c', 'd'].entries())
          await tx.volumes.insert(volume({ id, createdAt: now + index }));
        await tx.volumes.update(volume({ id: 'b', status: 'deleted', createdAt: now + 1 }));
        await tx.volumes.update(volume({ id: 'c', cleanup: 'wanted', createdAt: now + 2 }));
        await tx.volumes.update(volume({ id: 'd', action: intent('resize'), createdAt: now + 3 }));
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

    it('are synced while they are created, attached or detached', async () => {
      await write(async (tx) => {
        await tx.deployments.insert(deployment({ id: 'd1' }));
        await tx.volumes.insert(volume({ id: 'made', status: 'creating' }));
        for (const id of ['moving', 'resting', 'elsewhere'])
          await tx.volumes.insert(volume({ id, providerId: id === 'elsewhere' ? 'other' : providerId }));
        for (const id of ['moving', 'elsewhere'])
          await tx.volumes.putAttachment(toAttachment({ id }, 'd1', intent('detach')));
        await tx.volumes.putAttachment(toAttachment({ id: 'resting' }, 'd1', null));
      });
      expect(await store.read.volumes.newToSync(providerId)).toEqual(['made', 'moving']);
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
          await tx.volumes.putAttachment(
            toAttachment({ id: volumeId }, deploymentId, { ...intent('attach'), deploymentId }),
          );
        await tx.volumes.putAttachment(toAttachment({ id: 'v1' }, 'd1', null));
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
}
