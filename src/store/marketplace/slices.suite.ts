import { describe, expect, it } from 'vitest';
import {
  deployment,
  now,
  posting,
  runningDeployment,
  segment,
  team,
  teamId,
  volume,
} from '../../../test/support/rows/marketplace-rows.ts';
import { Duplicate, type Store, type Transaction } from '../../marketplace/model/store.ts';

/** Slices, and the audit of them. */
export function describeSlices(storeOf: () => Store): void {
  const write = <T>(body: (tx: Transaction) => Promise<T>): Promise<T> => storeOf().transact(body);
  const balance = async () => (await storeOf().read.teams.byId(teamId))?.balanceMicroUsd;
  const post = async (tx: Transaction, segmentId: string, sliceEnd: number, amountMicroUsd: number) => {
    const id = `txn-${segmentId}-${sliceEnd}`;
    await tx.ledger.post([posting(amountMicroUsd, sliceEnd, { id }, segmentId)]);
  };

  describe('slices', () => {
    it('are posted once per segment and end, also by two writers at once [slices-posted-once]', async () => {
      await write((tx) => tx.ledger.insertSegment(segment()));
      const postOnce = (id: string) => write((tx) => tx.ledger.post([posting(5, now + 1, { id })]));
      const answers = await Promise.allSettled([postOnce('txn-1'), postOnce('txn-2')]);
      expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
      const lost = answers.find(({ status }) => status === 'rejected') as PromiseRejectedResult;
      expect(lost.reason).toBeInstanceOf(Duplicate);
      expect(await storeOf().read.ledger.slicesOf('seg-1')).toHaveLength(1);
      expect(await balance()).toBe(-5);
    });

    it('are posted together for many segments, each with its booking and the cost of its subject', async () => {
      await write(async (tx) => {
        await tx.deployments.insert(runningDeployment());
        await tx.volumes.insert(volume());
        await tx.ledger.insertSegment(segment());
        const stored = { subjectKind: 'volume', subjectId: 'vol-1', state: 'stored' } as const;
        await tx.ledger.insertSegment(segment({ id: 'seg-2', ...stored }));
        await tx.ledger.insertSegment(segment({ id: 'seg-3', subjectId: 'dep-2' }));
        await tx.ledger.post([
          posting(5, now + 1),
          posting(7, now + 1, { id: 'txn-2', ...stored }, 'seg-2'),
          { segment: segment({ id: 'seg-3', postedUntil: now + 1 }), usage: null },
        ]);
      });
      const { ledger, deployments, volumes } = storeOf().read;
      expect(await balance()).toBe(-12);
      expect(await deployments.byId('dep-1')).toMatchObject({ totalCostMicroUsd: 5, revision: 1 });
      expect(await volumes.byId('vol-1')).toMatchObject({ totalCostMicroUsd: 7, revision: 1 });
      expect(await ledger.segmentById('seg-2')).toMatchObject({ postedUntil: now + 1, postedMicroUsd: 7 });
      expect(await ledger.segmentById('seg-3')).toMatchObject({ postedUntil: now + 1, postedMicroUsd: 0 });
      expect(await ledger.slicesOf('seg-3')).toEqual([]);
    });

    it('are posted together in any number, also beyond the limit of one statement [more-slices-than-a-statement]', async () => {
      const count = 11_000;
      await write(async (tx) => {
        await tx.ledger.insertSegment(segment());
        const postings = Array.from({ length: count }, (_, index) =>
          posting(1, now + index + 1, { id: `txn-${index}` }),
        );
        await tx.ledger.post(postings);
      });
      expect(await balance()).toBe(-count);
      expect(await storeOf().read.ledger.countRows()).toMatchObject({ usages: count, uses: count });
      expect(await storeOf().read.ledger.segmentById('seg-1')).toMatchObject({ postedUntil: now + count });
    });

    it('are charged to the balance of each team, and to none if one team does not exist', async () => {
      const ofTeam = (id: string, number: number, amountMicroUsd: number) => {
        const taken = { id: `txn-${number}`, teamId: id, subjectId: `dep-${number}` };
        return posting(amountMicroUsd, now + 1, taken, `seg-${number}`);
      };
      await write(async (tx) => {
        await tx.teams.insert(team({ id: 'other' }));
        await tx.ledger.insertSegment(segment({ id: 'seg-2', subjectId: 'dep-2' }));
        await tx.ledger.insertSegment(segment({ id: 'seg-3', subjectId: 'dep-3', teamId: 'other' }));
        await tx.ledger.post([ofTeam(teamId, 2, 5), ofTeam('other', 3, 7)]);
      });
      const balances = async () => [
        await balance(),
        (await storeOf().read.teams.byId('other'))?.balanceMicroUsd,
      ];
      expect(await balances()).toEqual([-5, -7]);
      const wrong = write((tx) => tx.ledger.post([ofTeam(teamId, 4, 5), ofTeam('nobody', 5, 7)]));
      await expect(wrong).rejects.toThrow();
      expect(await balances()).toEqual([-5, -7]);
    });

    it('are shown with the open segments and the totals of their subjects', async () => {
      await write(async (tx) => {
        await tx.deployments.insert(runningDeployment({ observedAt: now + 3, discountPercentage: 10 }));
        await tx.volumes.insert(volume({ discountPercentage: 20 }));
        await tx.ledger.insertSegment(segment());
        await tx.ledger.insertSegment(segment({ id: 'seg-2', subjectKind: 'volume', subjectId: 'vol-1' }));
      });
      const found = await storeOf().read.ledger.billedSegmentsOfTeam(teamId);
      expect(found).toEqual([
        { segment: segment(), status: 'running', confirmedUntil: now + 3, discountPercentage: 10 },
        {
          segment: segment({ id: 'seg-2', subjectKind: 'volume', subjectId: 'vol-1' }),
          status: null,
          confirmedUntil: null,
          discountPercentage: 20,
        },
      ]);
      await write(async (tx) => {
        expect(await tx.ledger.lockBilled(found.map((each) => each.segment))).toEqual(found);
        await tx.ledger.updateSegment(segment({ endedAt: now + 1 }));
        expect(await tx.ledger.lockBilled(found.map((each) => each.segment))).toEqual(found.slice(1));
      });
    });
  });

  describe('audits', () => {
    it('show each segment with the totals of its slices and their entries, in pages', async () => {
      const ids = ['a', 'b', 'c'];
      await write(async (tx) => {
        for (const [index, id] of ids.entries())
          await tx.ledger.insertSegment(segment({ id, subjectId: `dep-${index}` }));
        for (const end of [1, 2, 3]) await post(tx, 'a', now + end, 10 ** end);
        await post(tx, 'c', now + 4, 5);
        const { segment: posted, usage: taken } = posting(3, now + 5, { id: 'wrong' }, 'c');
        if (taken !== null)
          await tx.ledger.post([{ segment: posted, usage: { ...taken, amountMicroUsd: 2 } }]);
      });
      const found: unknown[] = [];
      for (let afterId = ''; ; ) {
        const page = await storeOf().read.ledger.auditSegments({ afterId, limit: 2 });
        found.push(...page.map((row) => [row.segment.id, row.slices, row.slicesMicroUsd, row.lastSliceEnd]));
        const last = page.at(-1);
        if (last === undefined) break;
        afterId = last.segment.id;
      }
      expect(found).toEqual([
        ['a', 3, 1110, now + 3],
        ['b', 0, 0, null],
        ['c', 2, 7, now + 5],
      ]);
      expect(await storeOf().read.ledger.malformed(9)).toEqual([{ id: 'wrong', isBalanced: true }]);
      expect(await storeOf().read.ledger.countRows()).toEqual({
        transactions: 5,
        entries: 10,
        usages: 5,
        uses: 5,
      });
    });

    it('show each subject with the time that must be covered, in pages over both kinds', async () => {
      await write(async (tx) => {
        await tx.deployments.insert(deployment({ id: 'a-never', stoppedAt: now + 9, status: 'failed' }));
        await tx.volumes.insert(volume({ id: 'b-kept', startedAt: now + 1 }));
        await tx.deployments.insert(runningDeployment({ id: 'c-runs' }));
        await tx.volumes.insert(volume({ id: 'd-deleted', deletedAt: now + 5 }));
        await tx.deployments.insert(runningDeployment({ id: 'e-over', stoppedAt: now + 7 }));
        await tx.volumes.insert(volume({ id: 'f-never', startedAt: null, status: 'creating' }));
        await tx.deployments.insert(runningDeployment({ id: 'g-unbilled', startedAt: null }));
        await tx.ledger.insertSegment(segment({ subjectKind: 'volume', subjectId: 'b-kept' }));
        await tx.ledger.post([posting(11, now + 2, { subjectKind: 'volume', subjectId: 'b-kept' })]);
      });
      const read = (afterId: string | undefined) =>
        storeOf().read.ledger.auditSubjects({ limit: 4, afterId });
      const first = await read(undefined);
      const second = await read(first.at(-1)?.id);
      const subject = (kind: string, id: string, from: number, until: number | null, cost = 0) => ({
        kind,
        id,
        teamId,
        from,
        until,
        totalCostMicroUsd: cost,
      });
      expect([first, second]).toEqual([
        [
          subject('deployment', 'a-never', now, now),
          subject('volume', 'b-kept', now + 1, null, 11),
          subject('deployment', 'c-runs', now, null),
          subject('volume', 'd-deleted', now, now + 5),
        ],
        [
          subject('deployment', 'e-over', now, now + 7),
          subject('volume', 'f-never', now, now),
          subject('deployment', 'g-unbilled', now, null),
        ],
      ]);
    });
  });
}
