import { describe, expect, it } from 'vitest';
import {
  discount,
  grant,
  now,
  posting,
  runningDeployment,
  segment,
  team,
  teamId,
  usage,
} from '../../../test/support/rows/marketplace-rows.ts';
import type { LedgerAccount } from '../../marketplace/model/ledger-records.ts';
import { Duplicate, type Store, type Transaction } from '../../marketplace/model/store.ts';
import { describeSlices } from './slices.suite.ts';

/** The requirements for the ledger of every marketplace store. */
export function describeLedger(storeOf: () => Store): void {
  describe('the ledger', () => {
    const write = <T>(body: (tx: Transaction) => Promise<T>): Promise<T> => storeOf().transact(body);
    const balance = async () => (await storeOf().read.teams.byId(teamId))?.balanceMicroUsd;

    /** Posts one slice as billing does. */
    const post = async (tx: Transaction, segmentId: string, sliceEnd: number, amountMicroUsd: number) => {
      const id = `txn-${segmentId}-${sliceEnd}`;
      await tx.ledger.post([posting(amountMicroUsd, sliceEnd, { id }, segmentId)]);
    };

    describe('segments', () => {
      it('come back as they were written, by their subject and in pages of the open ones', async () => {
        const first = segment({ id: 'b', endedAt: now + 5, postedUntil: now + 5, postedMicroUsd: 7 });
        const second = segment({ id: 'a', startedAt: now + 5, discountPercentage: 12.5 });
        const other = segment({ id: 'c', subjectKind: 'volume', subjectId: 'vol-1', state: 'stored' });
        await write(async (tx) => {
          for (const record of [second, other]) await tx.ledger.insertSegment(record);
          await tx.ledger.insertSegment({ ...first, endedAt: now + 1 });
          await tx.ledger.updateSegment(first);
        });
        const { ledger } = storeOf().read;
        expect(await ledger.segmentById('b')).toEqual(first);
        expect(await ledger.segmentsOf('deployment', 'dep-1')).toEqual([first, second]);
        expect(await ledger.openSegmentOf('deployment', 'dep-1')).toEqual(second);
        expect(await ledger.openSegmentOf('volume', 'dep-1')).toBeNull();
        expect(await ledger.openSegmentsOfTeam(teamId)).toEqual([
          { segment: second, confirmedUntil: null },
          { segment: other, confirmedUntil: null },
        ]);
        expect(await ledger.openSegments({ limit: 1 })).toEqual([second]);
        expect(await ledger.openSegments({ afterId: 'a', limit: 9 })).toEqual([other]);
      });

      it('come with the cost of their deployment at that moment', async () => {
        await write(async (tx) => {
          await tx.deployments.insert(runningDeployment({ observedAt: now + 3 }));
          await tx.ledger.insertSegment(segment());
          await tx.ledger.insertSegment(segment({ id: 'c', subjectKind: 'volume', subjectId: 'vol-1' }));
          await tx.ledger.post([posting(7, now + 2)]);
        });
        const { ledger } = storeOf().read;
        expect(await ledger.openSegmentsOfDeployments(['dep-1', 'dep-9', 'vol-1'])).toEqual([
          {
            segment: segment({ postedUntil: now + 2, postedMicroUsd: 7 }),
            confirmedUntil: now + 3,
            totalCostMicroUsd: 7,
          },
        ]);
        expect(await ledger.openSegmentsOfDeployments([])).toEqual([]);
      });

      it('are open once for a subject', async () => {
        await write((tx) => tx.ledger.insertSegment(segment()));
        const second = write((tx) => tx.ledger.insertSegment(segment({ id: 'seg-2' })));
        await expect(second).rejects.toBeInstanceOf(Duplicate);
        await write((tx) => tx.ledger.updateSegment(segment({ endedAt: now + 1 })));
        await write((tx) => tx.ledger.insertSegment(segment({ id: 'seg-2', startedAt: now + 1 })));
      });

      it.each([{ endedAt: now - 1 }, { postedUntil: now - 1 }])(
        'are refused where they end before they begin: %o',
        async (changes) => {
          await expect(write((tx) => tx.ledger.insertSegment(segment(changes)))).rejects.toThrow();
          await write((tx) => tx.ledger.insertSegment(segment()));
          await expect(write((tx) => tx.ledger.updateSegment(segment(changes)))).rejects.toThrow();
          expect(await storeOf().read.ledger.segmentById('seg-1')).toEqual(segment());
        },
      );

      it.each([
        ['by its id', (tx: Transaction) => tx.ledger.segmentById('seg-1')],
        ['by its subject', (tx: Transaction) => tx.ledger.openSegmentOf('deployment', 'dep-1')],
      ])('are posted one after another where each is read %s first', async (_how, read) => {
        await write((tx) => tx.ledger.insertSegment(segment()));
        const postNext = () =>
          write(async (tx) => {
            const found = await read(tx);
            if (found === null) throw new Error('expected a segment');
            const postedUntil = found.postedUntil + 1;
            await post(tx, 'seg-1', postedUntil, 1);
            const postedMicroUsd = found.postedMicroUsd + 1;
            await tx.ledger.updateSegment({ ...found, postedUntil, postedMicroUsd });
          });
        await Promise.all(Array.from({ length: 8 }, postNext));
        expect(await storeOf().read.ledger.segmentById('seg-1')).toMatchObject({ postedMicroUsd: 8 });
        expect(await storeOf().read.ledger.slicesOf('seg-1')).toHaveLength(8);
        expect(await balance()).toBe(-8);
      });
    });

    it('sums up a period for statements, up to and including its last moment', async () => {
      const hour = 3_600_000;
      const [from, to] = [now + hour, now + 3 * hour];
      const providerRateMicroUsdPerHour = 1_500_000;
      await write(async (tx) => {
        await tx.deployments.insert(runningDeployment({ name: 'a "b"' }));
        await tx.ledger.insertSegment(segment({ providerRateMicroUsdPerHour }));
        await tx.ledger.insertSegment(segment({ id: 'other', subjectKind: 'volume', subjectId: 'vol-9' }));
        await grant(tx, 9_000_000);
        for (const [index, end] of [from, to, to + 1].entries()) {
          const amount = [2_000_000, 4_000_000, 1][index] ?? 0;
          const of = { id: `txn-${index}`, providerRateMicroUsdPerHour };
          await tx.ledger.post([posting(amount, end, of)]);
        }
      });
      const { ledger } = storeOf().read;
      const used = { subjectKind: 'deployment', amountMicroUsd: 4_000_000, providerId: 'provider-a' };
      expect(await ledger.usageRows(teamId, { from, to })).toMatchObject([
        { ...used, subjectId: 'dep-1', name: 'a "b"', state: 'running', from, to },
      ]);
      expect(await ledger.usageRows('none', { from, to })).toEqual([]);
      expect(await ledger.usageSums({ from, to })).toEqual([
        { ...used, teamId, ms: 2 * hour, providerMicroUsd: 3_000_000, unpricedMs: 0 },
      ]);
      expect(await ledger.firstUsageAt()).toBe(from);
      expect(await ledger.balancesAt(from, `team:${teamId}`)).toEqual([
        { account: `team:${teamId}`, amountMicroUsd: 7_000_000 },
      ]);
      expect(await ledger.balancesAt(now - 1)).toEqual([]);
      expect(await ledger.bookingsOf(teamId, { from: now - 1, to: now })).toMatchObject([
        { kind: 'grant', amountMicroUsd: 9_000_000 },
      ]);
      expect(await ledger.bookingsOf(teamId, { from: now, to })).toEqual([]);
      const days = await ledger.entriesByDay({ from, to });
      expect(
        days.map(({ account, isUsage, amountMicroUsd }) => [account, isUsage, amountMicroUsd]).toSorted(),
      ).toEqual([
        ['revenue:compute', true, 4_000_000],
        [`team:${teamId}`, true, -4_000_000],
      ]);
    });

    describe('due items', () => {
      const dueTeams = async () =>
        (await storeOf().read.teams.due({ now, limit: 9 })).map(({ id, at }) => [id, at]);
      const scheduled = (at: number | null, work: (tx: Transaction) => Promise<unknown>) =>
        write(async (tx) => {
          await tx.teams.scheduleCheck(teamId, at);
          await work(tx);
        });

      it('are open segments that are certain beyond what is posted, in pages', async () => {
        const at = (id: string, postedUntil: number) =>
          segment({ id, subjectId: id, startedAt: now - 9, postedUntil });
        const records = [at('a', now - 1), at('b', now - 5), at('c', now), at('d', now - 5)];
        await write(async (tx) => {
          for (const record of records) await tx.ledger.insertSegment({ ...record, subjectKind: 'volume' });
          await tx.ledger.insertSegment({ ...at('e', now - 9), subjectKind: 'volume', endedAt: now });
          for (const [id, observedAt] of [
            ['f', now],
            ['g', now - 1],
          ] as const) {
            await tx.deployments.insert(runningDeployment({ id, providerName: id, observedAt }));
            await tx.ledger.insertSegment(at(id, now - 7));
          }
        });
        const { ledger } = storeOf().read;
        const due = async (of: object, limit: number) =>
          (await ledger.dueSegments({ now: now + 1, sliceMs: 60_000, limit, ...of })).map(({ id }) => id);
        expect(await due({}, 9)).toEqual(['f', 'b', 'd', 'a']);
        expect(await due({ after: { at: now - 5, id: 'b' } }, 1)).toEqual(['d']);
      });

      it('include teams that a wrong clock put too far ahead, after all others [due-in-the-future]', async () => {
        const HOUR_MS = 3_600_000;
        const wrong = now + 24 * HOUR_MS;
        const moments = { a: wrong, b: now + HOUR_MS, c: wrong, d: now - 1 };
        await write(async (tx) => {
          for (const [id, checkAt] of Object.entries(moments)) {
            await tx.teams.insert(team({ id }));
            await tx.teams.scheduleCheck(id, checkAt);
          }
          await tx.teams.scheduleCheck(teamId, null);
        });
        const found = async (of: object, limit: number) =>
          (await storeOf().read.teams.due({ now, limit, ...of })).map(({ id }) => id);
        expect(await found({}, 9)).toEqual(['d', 'a', 'c']);
        expect(await found({}, 2)).toEqual(['d', 'a']);
        expect(await found({}, 1)).toEqual(['d']);
        expect(await found({ after: { at: now - 1, id: 'd' } }, 1)).toEqual(['a']);
        expect(await found({ after: { at: wrong, id: 'a' } }, 9)).toEqual(['c']);
        expect(await found({ after: { at: wrong, id: 'c' } }, 9)).toEqual([]);
      });

      it('are teams ordered by their next check, independent of their records', async () => {
        await write((tx) => tx.teams.insert(team({ id: 'other' })));
        expect(await dueTeams()).toEqual([]);
        await scheduled(now - 2, (tx) => tx.teams.scheduleCheck('other', now - 3));
        expect(await dueTeams()).toEqual([
          ['other', now - 3],
          [teamId, now - 2],
        ]);
        const after = { at: now - 3, id: 'other' };
        expect(await storeOf().read.teams.due({ now, after, limit: 9 })).toEqual([
          { at: now - 2, id: teamId },
        ]);
        await write(async (tx) => {
          const found = await tx.teams.byId(teamId);
          if (found !== null) await tx.teams.update(found);
        });
        expect(await dueTeams()).toHaveLength(2);
        await scheduled(now + 1, (tx) => tx.teams.scheduleCheck('other', null));
        expect(await dueTeams()).toEqual([]);
      });

      it.each<[string, (tx: Transaction) => Promise<unknown>]>([
        ['a segment begins', (tx) => tx.ledger.insertSegment(segment({ id: 'seg-2', subjectId: 'dep-2' }))],
        ['a segment ends', (tx) => tx.ledger.updateSegment(segment({ endedAt: now }))],
        ['a segment is priced anew', (tx) => tx.ledger.updateSegment(segment({ rateMicroUsdPerHour: 5 }))],
        ['it gets credit', (tx) => grant(tx, 5)],
        ['it gets a discount', (tx) => tx.discounts.insert(discount())],
        ['its discount changes', (tx) => tx.discounts.update(discount({ endsAt: now + 1 }))],
      ])('is a team at once where %s', async (_when, work) => {
        await write((tx) => tx.ledger.insertSegment(segment()));
        await scheduled(now + 1, work);
        expect(await dueTeams()).toEqual([[teamId, 0]]);
      });

      it('do not include teams because of usage postings, nor teams without anything billed or watched', async () => {
        await scheduled(null, (tx) => grant(tx, 5));
        await write((tx) => tx.discounts.insert(discount()));
        expect(await dueTeams()).toEqual([]);
        await write((tx) => tx.ledger.insertSegment(segment()));
        await scheduled(now + 1, (tx) => post(tx, 'seg-1', now + 1, 5));
        expect(await dueTeams()).toEqual([]);
      });
    });

    it('the most that a team owes is exact at the highest price, for weeks without a posting', async () => {
      const HOURS = 30 * 24;
      const rate = 1e12 + 7;
      await write((tx) => tx.ledger.insertSegment(segment({ originalRateMicroUsdPerHour: rate })));
      const { ledger, teams } = storeOf().read;
      const later = segment().postedUntil + HOURS * 3_600_000;
      expect(await ledger.mostAccrued(teamId, later)).toBe(HOURS * rate + 1);
      expect(await teams.spending(later)).toMatchObject([{ mostAccruedMicroUsd: HOURS * rate }]);
    });

    describe('transactions', () => {
      it('add their amount to the balance of the team, which no update writes', async () => {
        await write(async (tx) => {
          await tx.teams.insert(team({ id: 'other' }));
          await grant(tx, 100);
          await tx.ledger.book(...usage(30));
          await tx.teams.update(team({ name: 'renamed', balanceMicroUsd: 12345 }));
        });
        expect(await storeOf().read.teams.byId(teamId)).toEqual(
          team({ name: 'renamed', balanceMicroUsd: 70 }),
        );
        expect((await storeOf().read.teams.byId('other'))?.balanceMicroUsd).toBe(0);
        expect(await storeOf().read.ledger.balances()).toEqual([
          { account: 'promotion', amountMicroUsd: -100 },
          { account: 'revenue:compute', amountMicroUsd: 30 },
          { account: `team:${teamId}`, amountMicroUsd: 70 },
        ]);
      });

      it('are all kept when many are booked at once', async () => {
        const book = (number: number) => write((tx) => tx.ledger.book(...usage(1, { id: `txn-${number}` })));
        await Promise.all(Array.from({ length: 30 }, (_, number) => book(number)));
        expect(await balance()).toBe(-30);
      });

      it('keep amounts beyond 32 bits', async () => {
        await write((tx) => grant(tx, 2 ** 45));
        expect(await balance()).toBe(2 ** 45);
        expect(await storeOf().read.ledger.balances()).toContainEqual({
          account: 'promotion',
          amountMicroUsd: -(2 ** 45),
        });
      });

      const refused: [string, RegExp, { account: LedgerAccount; amountMicroUsd: number }[]][] = [
        ['do not add up', /add up to -1 micro-USD/, [{ account: 'cash', amountMicroUsd: -1 }]],
        ['are not there', /it has no entries/, []],
        [
          'have a fraction',
          /not a whole number/,
          [
            { account: 'cash', amountMicroUsd: 0.5 },
            { account: 'promotion', amountMicroUsd: -0.5 },
          ],
        ],
        [
          'are twice of one account',
          /of the same account/,
          [
            { account: 'cash', amountMicroUsd: 1 },
            { account: 'cash', amountMicroUsd: -1 },
          ],
        ],
        [
          'are of a team that there is not',
          /There is no team of the account team:nobody/,
          [
            { account: 'team:nobody', amountMicroUsd: 1 },
            { account: 'cash', amountMicroUsd: -1 },
          ],
        ],
      ];
      it.each(refused)('are refused if their entries %s', async (_what, sentence, entries) => {
        await expect(write((tx) => tx.ledger.book(usage(1)[0], entries))).rejects.toThrow(sentence);
        expect(await storeOf().read.ledger.transactionsOf(teamId, 9)).toEqual([]);
        expect(await storeOf().read.ledger.balances()).toEqual([]);
      });

      it('are booked once for a reference', async () => {
        const book = (id: string) => write((tx) => tx.ledger.book(...usage(5, { id, reference: 'order 1' })));
        const answers = await Promise.allSettled(['txn-1', 'txn-2', 'txn-3'].map(book));
        const failed = answers.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[];
        expect(failed.map(({ reason }) => reason)).toEqual([expect.any(Duplicate), expect.any(Duplicate)]);
        expect(await balance()).toBe(-5);
        expect(await storeOf().read.ledger.byReference('order 1')).toMatchObject({ reference: 'order 1' });
        expect(await storeOf().read.ledger.byReference('order 2')).toBeNull();
      });

      it('are listed newest first, and summed as usage by time', async () => {
        await write(async (tx) => {
          await tx.teams.insert(team({ id: 'other' }));
          await grant(tx, 1000);
          for (const at of [1, 2, 3])
            await tx.ledger.book(...usage(10 ** at, { id: `u${at}`, at: now + at }));
          await tx.ledger.book(...usage(7, { id: 'theirs', teamId: 'other', at: now + 2 }));
        });
        const { ledger } = storeOf().read;
        expect((await ledger.transactionsOf(teamId, 3)).map(({ id }) => id)).toEqual(['u3', 'u2', 'u1']);
        expect(await ledger.usageOf(teamId, now + 1, now + 3)).toBe(1100);
        expect(await ledger.usageOf(teamId, now, now + 9)).toBe(1110);
        expect(await ledger.usageOf(teamId, now + 3, now + 10)).toBe(0);
      });
    });

    describeSlices(storeOf);
  });
}
