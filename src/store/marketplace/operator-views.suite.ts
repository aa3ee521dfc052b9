import { beforeEach, describe, expect, it } from 'vitest';
import {
  deployment,
  grant,
  mail,
  now,
  posting,
  providerId,
  segment,
  team,
  teamId,
  volume,
} from '../../../test/support/rows/marketplace-rows.ts';
import type { DeploymentSearch, Store, Transaction } from '../../marketplace/model/store.ts';

/** What operators list and count. */
export function describeOperatorViews(storeOf: () => Store): void {
  let store: Store;
  beforeEach(() => {
    store = storeOf();
  });
  const write = <T>(body: (tx: Transaction) => Promise<T>): Promise<T> => store.transact(body);

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
      (await store.read.deployments.list({ ...of, limit })).map(({ id }) => id);

    it('list deployments of all teams, each once, page by page', async () => {
      expect(await idsOf({})).toEqual(['dep-e', 'dep-d', 'dep-c', 'dep-b', 'dep-a']);
      expect(await idsOf({ after: { at: now + 1, id: 'dep-c' } }, 1)).toEqual(['dep-b']);
      expect(await idsOf({ after: { at: now, id: 'dep-a' } })).toEqual([]);
    });

    it.each<[Omit<DeploymentSearch, 'limit'>, string[]]>([
      [{ statuses: ['running'] }, ['dep-e', 'dep-c', 'dep-b']],
      [{ statuses: ['running', 'failed'], providerId: 'provider-a' }, ['dep-d', 'dep-c', 'dep-b']],
      [{ teamIds: ['nobody'] }, []],
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
      expect(active.toSorted((a, b) => (a.providerId + a.status < b.providerId + b.status ? -1 : 1))).toEqual(
        [
          { providerId: 'provider-a', status: 'deploying', count: 1, confirmedUntil: null },
          { providerId: 'provider-a', status: 'running', count: 2, confirmedUntil: now + 5 },
          { providerId: 'provider-b', status: 'running', count: 1, confirmedUntil: expect.toBeOneOf([null]) },
        ],
      );
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
      expect(first).toMatchObject({ id: teamId });
      const rest = await store.read.teams.page({ after: first?.slug, limit: 9 });
      expect(rest.map(({ id }) => id)).toEqual(['team-2']);
      expect((await store.read.teams.page({ text: 'STRIPE', limit: 9 })).map(({ id }) => id)).toEqual([
        'team-2',
      ]);
      expect(await store.read.teams.count()).toBe(2);
      expect(await store.read.teams.spending(now)).toEqual([]);
      await write(async (tx) => {
        await tx.ledger.insertSegment(segment());
        await tx.ledger.insertSegment(segment({ id: 'seg-2', subjectId: 'dep-2' }));
      });
      const { originalRateMicroUsdPerHour: rate } = segment();
      expect(await store.read.teams.spending(now + 3_600_000)).toMatchObject([
        { id: teamId, burnMicroUsdPerHour: 2 * rate, mostAccruedMicroUsd: 2 * rate },
      ]);
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
      expect([await ids({ state: 'waiting' }), await ids({ state: 'sent' })]).toEqual([['waits'], ['sent']]);
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

  describe('figures over time', () => {
    const HOUR = 3_600_000;
    const hour = Math.floor(now / HOUR) * HOUR;

    it('count launches by hour and provider, and those that failed before they were running by reason', async () => {
      await write(async (tx) => {
        const made = (id: string, createdAt: number, changes: Parameters<typeof deployment>[0] = {}) =>
          tx.deployments.insert(deployment({ id, createdAt, ...changes }));
        await made('a', hour - 1);
        await made('b', hour);
        await made('c', hour + 1, { status: 'failed', failureReason: 'out_of_stock' });
        await made('d', hour + 2, {
          status: 'failed',
          failureReason: 'runtime_failure',
          startedAt: hour + 9,
        });
        await made('e', hour + HOUR, { providerId: 'provider-b' });
      });
      const found = await store.read.deployments.countLaunches(hour);
      expect(found.toSorted((a, b) => a.hour - b.hour || a.count - b.count)).toEqual([
        { providerId, hour, reason: 'out_of_stock', count: 1 },
        { providerId, hour, reason: null, count: 2 },
        { providerId: 'provider-b', hour: hour + HOUR, reason: null, count: 1 },
      ]);
    });

    it('read used segments page by page with their providers: open ones, those that ended, and of one team', async () => {
      await write(async (tx) => {
        await tx.teams.insert(team({ id: 'team-2', slug: 'two', balanceMicroUsd: -3 }));
        await tx.deployments.insert(deployment({ id: 'dep-1', observedAt: now + 4 }));
        await tx.deployments.insert(deployment({ id: 'dep-2', teamId: 'team-2', providerId: 'provider-b' }));
        await tx.volumes.insert(volume({ id: 'vol-1', providerId: 'provider-b' }));
        for (const id of ['seg-1', 'seg-2', 'seg-3'])
          await tx.ledger.insertSegment(segment({ id, startedAt: now - 9, endedAt: now + 1 }));
        await tx.ledger.insertSegment(segment({ id: 'seg-0', startedAt: now - 9, endedAt: now }));
        await tx.ledger.insertSegment(segment({ id: 'seg-5' }));
        await tx.ledger.insertSegment(segment({ id: 'seg-6', subjectId: 'dep-2', teamId: 'team-2' }));
        const ofVolume = { subjectKind: 'volume', subjectId: 'vol-1', state: 'stored' } as const;
        await tx.ledger.insertSegment(segment({ id: 'seg-7', ...ofVolume, rateMicroUsdPerHour: 5 }));
      });
      const read = async (isOpen: boolean, of?: string) => {
        const ids: string[] = [];
        const page = { since: now, isOpen, teamId: of, limit: 2 };
        let found = await store.read.ledger.used(page);
        while (found.length > 0) {
          ids.push(...found.map(({ id, providerId: at }) => `${id} ${at}`));
          found = await store.read.ledger.used({ ...page, after: found.at(-1) });
        }
        return ids;
      };
      expect(await read(false)).toEqual(['seg-1', 'seg-2', 'seg-3'].map((id) => `${id} ${providerId}`));
      expect(await read(true)).toEqual([`seg-5 ${providerId}`, 'seg-6 provider-b', 'seg-7 provider-b']);
      expect(await read(true, 'team-2')).toEqual(['seg-6 provider-b']);
      expect(await read(false, 'team-2')).toEqual([]);
      const [open] = await store.read.ledger.used({ since: now, isOpen: true, limit: 1 });
      expect(open).toMatchObject({ confirmedUntil: now + 4, endedAt: null, rateMicroUsdPerHour: 2_000_000 });
      expect(await store.read.ledger.burnByProvider()).toEqual([
        { providerId, microUsdPerHour: 2_000_000 },
        { providerId: 'provider-b', microUsdPerHour: 2_000_005 },
      ]);
      expect(await store.read.teams.debt(now)).toBe(3);
      // By then team-1, whose balance is 0, owes twice 2 USD, and team-2 2 USD more: rates before discounts.
      expect(await store.read.teams.debt(now + HOUR)).toBe(3 + 2_000_000 + 2 * 2_000_000);
    });
  });

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
}
