import { beforeEach, describe, expect, it } from 'vitest';
import {
  deployment,
  now,
  posting,
  runningDeployment,
  segment,
  team,
  teamId,
  usage,
  volume,
} from '../../../test/support/rows/marketplace-rows.ts';
import { Duplicate, type Store, type Transaction } from '../../marketplace/model/store.ts';

/** Slices, the day lines that replace them, and the audit of both. */
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

  describe('lines of days', () => {
    const DAY_MS = 86_400_000;
    const endsAt = now + DAY_MS;
    const ends = [now + 1, now + 2, endsAt];
    const line = (amountMicroUsd: number, changes: object = {}) => {
      const [transaction, entries] = usage(amountMicroUsd, { id: 'line', at: endsAt });
      const taken = { transaction, entries, amountMicroUsd };
      return { segmentId: 'seg-1', startsAt: now, endsAt, slices: 3, usage: taken, ...changes };
    };
    const rollUp = (...wanted: ReturnType<typeof line>[]) => write((tx) => tx.ledger.rollUp(wanted));
    const sumsOf = (from: number, to: number) =>
      storeOf().read.ledger.sumSlices({ segmentIds: ['seg-1', 'seg-9'], startsAt: from, endsAt: to });

    beforeEach(async () => {
      await write(async (tx) => {
        await tx.ledger.insertSegment(segment());
        for (const end of ends) await post(tx, 'seg-1', end, 5);
        await post(tx, 'seg-1', endsAt + 1, 5);
      });
    });

    it('replace the slices of their day with the same bookings, and change no sum', async () => {
      const { ledger } = storeOf().read;
      const sums = await ledger.balances();
      const due = { until: endsAt, periodMs: DAY_MS, limit: 9 };
      const slice = (sliceEnd: number) => ({ segmentId: 'seg-1', sliceEnd });
      expect(await ledger.toRollUp(due)).toEqual(ends.map(slice));
      expect(await ledger.toRollUp({ ...due, until: endsAt - 1, limit: 1 })).toEqual([slice(now + 1)]);
      expect(await ledger.toRollUp({ ...due, after: slice(now + 1) })).toEqual(ends.slice(1).map(slice));
      // A longer period may still receive postings.
      expect(await ledger.toRollUp({ ...due, periodMs: 3 * DAY_MS })).toEqual([]);
      const sum = { from: now, until: endsAt, slices: 3, amountMicroUsd: 15 };
      expect(await sumsOf(now, endsAt)).toMatchObject([{ segment: { id: 'seg-1' }, ...sum }]);
      const days = await ledger.daysOf('seg-1');
      await rollUp(line(15));
      expect(await ledger.slicesOf('seg-1')).toMatchObject([{ sliceEnd: endsAt + 1 }]);
      expect(await ledger.toRollUp(due)).toEqual([]);
      expect(await sumsOf(now, endsAt)).toEqual([]);
      expect(await sumsOf(endsAt, endsAt + DAY_MS)).toMatchObject([{ from: endsAt, slices: 1 }]);
      expect(await ledger.balances()).toEqual(sums);
      expect(await balance()).toBe(-20);
      expect(await ledger.daysOf('seg-1')).toEqual(days);
      expect(days).toEqual([
        { day: now, amountMicroUsd: 15 },
        { day: endsAt, amountMicroUsd: 5 },
      ]);
      expect(await ledger.malformed(9)).toEqual([]);
      expect((await ledger.transactionsOf(teamId, 9)).map(({ id }) => id).sort()).toEqual([
        'line',
        `txn-seg-1-${endsAt + 1}`,
      ]);
    });

    const sum = /is not the sum of its slices/;
    const time = /is of a time that is over, after the lines before it/;
    it.each([
      ['that take less', sum, line(14)],
      ['that take more', sum, line(16)],
      ['that count other slices', sum, line(15, { slices: 2 })],
      ['without one slice', time, line(15, { startsAt: now + 1 })],
      [
        'that end where no slice ends',
        sum,
        line(15, {
          usage: { ...line(15).usage, transaction: usage(15, { id: 'line', at: endsAt - 1 })[0] },
        }),
      ],
      [
        'whose booking is of another amount',
        sum,
        line(15, { usage: { ...line(16).usage, amountMicroUsd: 15 } }),
      ],
      ['of a time that may still get postings', time, line(20, { endsAt: endsAt + DAY_MS, slices: 4 })],
      ['that begin after slices that are left', time, line(5, { startsAt: now + 2, slices: 1 })],
      ['that end before they begin', time, line(15, { startsAt: endsAt + 1 })],
      ['of no slices', sum, line(15, { startsAt: now - DAY_MS, endsAt: now, slices: 0 })],
      [
        'of no segment',
        /is of a time that is over|day_lines_segment_id_fkey/,
        line(15, { segmentId: 'seg-9' }),
      ],
    ])('are refused %s, and nothing changes', async (_what, sentence, wanted) => {
      await expect(rollUp(wanted)).rejects.toThrow(sentence);
      expect(await storeOf().read.ledger.slicesOf('seg-1')).toHaveLength(4);
      expect(await storeOf().read.ledger.transactionsOf(teamId, 9)).toHaveLength(4);
      expect(await balance()).toBe(-20);
    });

    it('are written together for many segments, all or none', async () => {
      const lineOf = (number: number, amountMicroUsd: number) => {
        const booked = usage(amountMicroUsd, { id: `line-${number}`, at: endsAt });
        return {
          ...line(amountMicroUsd, { segmentId: `seg-${number}` }),
          usage: { transaction: booked[0], entries: booked[1], amountMicroUsd },
        };
      };
      await write(async (tx) => {
        await tx.ledger.insertSegment(segment({ id: 'seg-2', subjectId: 'dep-2' }));
        for (const end of [...ends, endsAt + 1]) await post(tx, 'seg-2', end, 7);
      });
      await expect(rollUp(lineOf(1, 15), lineOf(2, 22))).rejects.toThrow(sum);
      expect(await storeOf().read.ledger.slicesOf('seg-1')).toHaveLength(4);
      await rollUp(lineOf(1, 15), lineOf(2, 21));
      const { ledger } = storeOf().read;
      for (const [id, amountMicroUsd] of [
        ['seg-1', 15],
        ['seg-2', 21],
      ] as const) {
        expect(await ledger.slicesOf(id)).toHaveLength(1);
        expect((await ledger.daysOf(id))[0]).toEqual({ day: now, amountMicroUsd });
      }
      expect(await ledger.malformed(9)).toEqual([]);
      expect(await balance()).toBe(-20 - 28);
    });

    it('are written once, and no slice is added to their time', async () => {
      await rollUp(line(15));
      await expect(rollUp(line(15))).rejects.toThrow();
      await expect(write((tx) => post(tx, 'seg-1', now + 3, 5))).rejects.toThrow();
      expect(await balance()).toBe(-20);
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

    it('find no unbalanced transaction if none was written past the store', async () => {
      await write((tx) => tx.ledger.book(...usage(5)));
      expect(await storeOf().read.ledger.unbalanced(9)).toEqual([]);
    });
  });
}
