import { expect, it } from 'vitest';
import type {
  AlarmNotice,
  AlarmReader,
  AlarmWriter,
  NoticeReader,
  NoticeWriter,
} from '../operator-kit/alarms/model.ts';

interface StoreOfAlarms {
  read: { alarms: AlarmReader; alarmNotices: NoticeReader };
  transact<T>(body: (tx: { alarms: AlarmWriter; alarmNotices: NoticeWriter }) => Promise<T>): Promise<T>;
}

/** Tests of alarms and of the messages about them, for the database of either product. */
export function describeAlarms(storeOf: () => StoreOfAlarms, now: number): void {
  const alarm = { kind: 'platform_down', platform: 'east', text: 'it is down' } as const;
  const put = (subject: string, at: number, text: string = alarm.text) =>
    storeOf().transact((tx) =>
      tx.alarms.put({
        ...alarm,
        ...{ subject, text, since: at, lastSeenAt: at },
        acknowledgedBy: null,
        note: null,
      }),
    );
  const ended = (by: 'since' | 'until', from = 0, to = now + 100) =>
    storeOf().read.alarms.ended({ by, from, to, limit: 10 });

  it('keeps the start and the acknowledgement of alarms, however often they are seen, also after their end [alarm-history]', async () => {
    const store = storeOf();
    await put('west', now + 1);
    await put('east', now);
    const rows = await store.transact((tx) =>
      tx.alarms.acknowledge({ kind: 'platform_down' }, 'ann', 'the switch'),
    );
    expect(rows).toHaveLength(2);
    await put('east', now + 5, 'it is down still');
    await store.transact((tx) =>
      tx.alarms.acknowledge({ kind: 'platform_down', subject: 'west' }, 'bob', null),
    );
    const kept = { ...alarm, acknowledgedBy: 'ann', note: 'the switch' };
    const east = { ...kept, subject: 'east', text: 'it is down still', since: now };
    const west = { ...kept, subject: 'west', since: now + 1, acknowledgedBy: 'bob' };
    expect(await store.read.alarms.list()).toEqual([
      { ...east, lastSeenAt: now + 5 },
      { ...west, lastSeenAt: now + 1 },
    ]);
    await store.transact((tx) => tx.alarms.endSeenBefore(now + 5, ['disk_lost'], now + 9));
    expect(await ended('until')).toEqual([]);
    await store.transact((tx) => tx.alarms.endSeenBefore(now + 5, ['disk_lost', 'platform_down'], now + 9));
    await store.transact((tx) => tx.alarms.end({ kind: 'platform_suspect', subject: 'east' }, now + 9));
    expect((await store.read.alarms.list()).map(({ subject }) => subject)).toEqual(['east']);
    await store.transact((tx) => tx.alarms.end({ kind: 'platform_down', subject: 'east' }, now + 10));
    expect(await store.read.alarms.list()).toEqual([]);
    const of = { kind: 'platform_down', subject: 'east' } as const;
    expect(await store.transact((tx) => tx.alarms.acknowledge(of, 'ann', null))).toEqual([]);

    const id = expect.any(Number);
    expect(await ended('until')).toEqual([
      { ...east, id, until: now + 10 },
      { ...west, id, until: now + 9 },
    ]);
    expect((await ended('since')).map(({ subject }) => subject)).toEqual(['west', 'east']);
    expect((await ended('until', now + 10, now + 10)).map(({ subject }) => subject)).toEqual(['east']);
    expect(
      await store.read.alarms.ended({ by: 'until', from: 0, to: now + 99, limit: 10, subject: 'west' }),
    ).toHaveLength(1);
    expect(await store.transact((tx) => tx.alarms.pruneOldest(now + 10, 10))).toBe(1);
    expect((await ended('until')).map(({ subject }) => subject)).toEqual(['east']);
    // Another server still sees it: it had not ended.
    await put('east', now);
    expect(await ended('until')).toEqual([]);
  });

  it('gives each due message about an alarm to one caller [alarm-notice-claim]', async () => {
    const store = storeOf();
    const notice = (subject: string, dueAt: number): AlarmNotice => ({
      route: 'on-call',
      ...{ ...alarm, subject, since: now, until: null },
      ...{ told: 'nothing', dueAt, attempts: 0, lastError: null },
    });
    const due = (at: number) => ({ now: at, latest: at + 1_000 });
    const claim = (at: number, route = 'on-call') =>
      store.transact((tx) => tx.alarmNotices.claim({ route, ...due(at), claimedUntil: at + 60 }));
    for (const one of [notice('a', now + 30), notice('b', now + 40), { ...notice('c', now), route: 'other' }])
      await store.transact((tx) => tx.alarmNotices.add(one));
    // Another server adds the same.
    await store.transact((tx) => tx.alarmNotices.add({ ...notice('a', now + 99), text: 'later' }));
    expect(await store.read.alarmNotices.open()).toHaveLength(3);
    expect(await store.read.alarmNotices.dueRoutes(due(now))).toEqual(['other']);
    // The clock was set back.
    expect(await store.read.alarmNotices.dueRoutes(due(now - 980))).toEqual(['on-call']);
    expect((await store.read.alarmNotices.dueRoutes(due(now + 30))).toSorted()).toEqual(['on-call', 'other']);

    // What was not tried yet goes with what is due.
    const claims = await Promise.all([claim(now + 30), claim(now + 30)]);
    const [first] = claims.filter((one) => one.length > 0);
    expect(claims.map((one) => one.length).toSorted()).toEqual([0, 2]);
    const [a, b] = (first ?? []).toSorted((x, y) => x.subject.localeCompare(y.subject));
    if (a === undefined || b === undefined) throw new Error('nothing was claimed');
    expect(a).toEqual({ ...notice('a', now + 90), attempts: 1 });

    // The alarm of `b` ends while its message is sent; that of `a` is not accepted.
    await store.transact((tx) => tx.alarmNotices.end(b, { until: now + 35, dueAt: now + 65 }));
    await store.transact(async ({ alarmNotices }) => {
      await alarmNotices.settle(a, { told: 'nothing', dueAt: now + 120, attempts: 1, lastError: 'refused' });
      await alarmNotices.settle(b, { told: 'began', dueAt: null, attempts: 0, lastError: null });
    });
    expect(await claim(now + 64)).toEqual([
      { ...notice('b', now + 124), until: now + 35, told: 'began', attempts: 1 },
    ]);
    expect(await claim(now + 119)).toEqual([]);
    expect(await claim(now + 120)).toEqual(
      expect.arrayContaining([{ ...notice('a', now + 180), attempts: 2, lastError: 'refused' }]),
    );

    // It is open after all, before its end was told; then it ends, is told, and is open again.
    const again = () => store.transact((tx) => tx.alarmNotices.add(notice('b', now + 500)));
    await again();
    expect((await claim(now + 500)).map(({ subject }) => subject)).toEqual(['a']);
    await store.transact((tx) => tx.alarmNotices.end(b, { until: now + 510, dueAt: now + 540 }));
    const [end] = (await claim(now + 540)).filter(({ subject }) => subject === 'b');
    if (end === undefined) throw new Error('the end is not due');
    await store.transact((tx) =>
      tx.alarmNotices.settle(end, { told: 'ended', dueAt: null, attempts: 0, lastError: null }),
    );
    await again();
    expect(await claim(now + 545)).toEqual([{ ...notice('b', now + 605), attempts: 1 }]);
    await store.transact((tx) => tx.alarmNotices.end(notice('a', 0), { until: now + 1, dueAt: now + 1 }));
    await store.transact((tx) => tx.alarmNotices.deleteEndedBefore(now + 2));
    expect((await store.read.alarmNotices.open()).map(({ subject }) => subject).toSorted()).toEqual([
      'b',
      'c',
    ]);
  });
}
