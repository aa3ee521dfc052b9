import { beforeEach, expect, it } from 'vitest';
import { account, instance } from '../../../../test/support/rows/orchestrator-rows.ts';
import { openTestStore } from '../../../../test/support/rows/stores.ts';
import { VirtualClock } from '../../../../test/support/time/virtual-clock.ts';
import { audit } from '../../../operator-kit/audit.ts';
import type { Store } from '../../model/store.ts';
import { timeline } from './timeline.ts';

const MINUTE_MS = 60_000;
let clock: VirtualClock;
let store: Store;
let start: number;

/** One night: a platform goes down and comes back, while an operator and a server act. */
beforeEach(async () => {
  clock = new VirtualClock();
  start = clock.now();
  store = await openTestStore();
  const at = (minutes: number) => ({ now: () => start + minutes * MINUTE_MS });
  const down = { kind: 'platform_down', subject: 'east', platform: 'east', text: 'no answer' };
  const alarm = { ...down, acknowledgedBy: null, note: null, lastSeenAt: start };
  await store.transact(async (tx) => {
    await tx.credentials.insertAccount(account);
    await tx.instances.insert(instance('inst-1', { platform: 'east', host: 'rack-1' }));
    await tx.instances.insert(instance('inst-2', { platform: 'west', host: 'rack-2' }));
    await tx.alarms.put({ ...alarm, since: start + MINUTE_MS });
    const ann = { name: 'ann', source: 'api', address: '10.0.0.1' } as const;
    await audit(tx, at(2), ann, { action: 'alarm.acknowledge', subject: 'platform_down east' });
    await tx.alarms.acknowledge({ kind: 'platform_down' }, 'ann', 'the switch');
    await tx.alarms.end(down, start + 5 * MINUTE_MS);
    await tx.alarms.put({ ...alarm, subject: 'west', platform: 'west', since: start + 6 * MINUTE_MS });
    const server = { name: 'one', source: 'server', address: null } as const;
    await audit(tx, at(3), server, { action: 'server.start', subject: 'one' });
    await audit(tx, at(4), ann, { action: 'instance.retry', subject: 'inst-1', detail: { reason: 'asked' } });
  });
  for (const [minutes, instanceId] of [
    [4, 'inst-1'],
    [7, 'inst-2'],
  ] as const)
    await store.transact((tx) =>
      tx.history.moved({
        instanceId,
        at: start + minutes * MINUTE_MS,
        cause: 'observe',
        detail: null,
        fromStatus: 'ONLINE',
        toStatus: 'STOPPED',
      }),
    );
  await clock.advance(60 * MINUTE_MS);
});

type Query = Parameters<typeof timeline.read>[1];
async function show(query: Query = {}): Promise<string[]> {
  const { entries } = await timeline.read({ store, clock }, query);
  return entries.map(
    ({ at, event, subject }) => `${(Date.parse(at) - start) / MINUTE_MS} ${event} ${subject}`,
  );
}
const toTime = (minutes: number) => new Date(start + minutes * MINUTE_MS).toISOString();

it('shows alarms, actions, servers and instances by time, the newest first [timeline]', async () => {
  const { entries } = await timeline.read({ store, clock }, {});
  expect(await show()).toEqual([
    '7 observe: ONLINE → STOPPED inst-2',
    '6 platform_down began west',
    '5 platform_down ended east',
    '4 instance.retry inst-1',
    '4 observe: ONLINE → STOPPED inst-1',
    '3 server.start one',
    '2 alarm.acknowledge platform_down east',
    '1 platform_down began east',
  ]);
  expect(entries[2]).toMatchObject({ source: 'alarm', by: 'ann', text: 'the switch' });
  expect(entries[3]).toMatchObject({ source: 'operator', by: 'ann', text: 'reason: asked' });
  expect(entries[5]).toMatchObject({ source: 'server', by: 'one' });
});

it('shows a range of time, page by page, also through rows of one millisecond', async () => {
  const seen: string[] = [];
  const range = { from: toTime(2), to: toTime(6) };
  for (let after: string | null | undefined; after !== null; ) {
    const page = await timeline.read({ store, clock }, { ...range, after: after ?? undefined, limit: 1 });
    seen.push(...page.entries.map(({ event }) => event));
    after = page.next;
  }
  const whole = await timeline.read({ store, clock }, range);
  expect(seen).toEqual(whole.entries.map(({ event }) => event));
  expect(seen).toHaveLength(6);
});

it.each([
  ['an instance', { instance: 'inst-1' }, [4, 4]],
  ['a host', { host: 'rack-1' }, [4, 4]],
  ['a platform', { provider: 'east' }, [5, 4, 4, 2, 1]],
  ['an account', { account: account.id }, [7, 4, 4]],
  ['a platform and an account', { provider: 'west', account: account.id }, [7]],
  ['what does not exist', { instance: 'inst-9' }, []],
] as const)('shows what concerns %s', async (_what, filter, minutes) => {
  expect((await show(filter)).map((line) => Number(line.split(' ')[0]))).toEqual(minutes);
});
