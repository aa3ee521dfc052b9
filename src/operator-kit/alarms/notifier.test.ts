import { afterEach, beforeEach, expect, it } from 'vitest';
import { openTestStore } from '../../../test/support/rows/stores.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { findSilenced } from '../../orchestrator/alarms/silenced.ts';
import { type AlarmKind, alarmKindFacts } from '../../orchestrator/model/alarm.ts';
import type { Store } from '../../orchestrator/model/store.ts';
import { Alarms } from './alarms.ts';
import type { AlarmMessage } from './message.ts';
import { AlarmNotifier, type AlarmRoute } from './notifier.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

let clock: VirtualClock;
let store: Store;
let sent: AlarmMessage[];
/** The route refuses everything. */
let isRefusing: boolean;
let started: { stop(): Promise<void> }[];

beforeEach(async () => {
  clock = new VirtualClock();
  store = await openTestStore();
  sent = [];
  isRefusing = false;
  started = [];
});
afterEach(async () => {
  for (const one of started) await one.stop();
  expect(clock.pendingTimers).toBe(0);
});

function route(name: string, changes: Partial<AlarmRoute> = {}): AlarmRoute {
  return {
    name,
    type: 'webhook',
    severity: 'warning',
    send: async (message) => {
      if (isRefusing) throw new Error('it answered with status 500');
      sent.push(message);
    },
    close: () => undefined,
    ...changes,
  };
}

/** The alarms and the notifier of one server. */
function serve(routes: readonly AlarmRoute[], server = 'one') {
  const log = { warn: () => undefined, error: () => undefined };
  const common = { store, clock, log, kinds: alarmKindFacts };
  const alarms = new Alarms<AlarmKind>({ ...common, server });
  const notifier = new AlarmNotifier({
    ...{ ...common, alarms, routes },
    findSilenced: (open) => findSilenced({ store, clock }, open),
  });
  notifier.start();
  started.push(notifier);
  return { alarms, notifier };
}
const down = {
  kind: 'platform_down',
  subject: 'east',
  platform: 'east',
  text: 'it does not answer',
} as const;
const clockSkew = { kind: 'clock_skew', subject: 'one', platform: null, text: 'the clock is wrong' } as const;
const told = () =>
  sent.map(({ route: to, alarms }) => [to, ...alarms.map(({ status, kind }) => `${kind} ${status}`)]);

it('a route is told once of what begins within 30 seconds, and of its end', async () => {
  const { alarms } = serve([route('on-call')]);
  alarms.raise(down);
  await clock.advance(20 * SECOND_MS);
  alarms.raise(clockSkew);
  await clock.advance(10 * SECOND_MS);
  expect(sent).toEqual([]);
  await clock.advance(MINUTE_MS);
  expect(told()).toEqual([['on-call', 'platform_down open', 'clock_skew open']]);
  expect(sent[0]?.title).toBe('Berth on one: 2 alarms (critical): platform_down east, …');
  expect(sent[0]?.text).toContain('CRITICAL platform_down east\nit does not answer\nsince ');
  expect(sent[0]?.alarms[1]).toMatchObject({
    severity: 'warning',
    runbook: 'docs/runbook.md#the-clock-is-wrong',
  });
  alarms.end(down);
  await clock.advance(60 * MINUTE_MS);
  expect(told().slice(1)).toEqual([['on-call', 'platform_down ended']]);
  expect(sent[1]?.title).toBe('Berth on one: 1 ended alarm: platform_down east');
});

it('an alarm that ends before it is told is told as ended', async () => {
  const { alarms } = serve([route('on-call')]);
  alarms.raise(down);
  await clock.advance(10 * SECOND_MS);
  alarms.end(down);
  await clock.advance(5 * MINUTE_MS);
  expect(told()).toEqual([['on-call', 'platform_down ended']]);
});

it('a route is told only of its severity, kinds and platforms', async () => {
  const { alarms } = serve([
    route('pager', { severity: 'critical' }),
    route('clock', { kinds: ['clock_skew'] }),
    route('west', { platforms: ['west'] }),
  ]);
  alarms.raise(down);
  alarms.raise(clockSkew);
  alarms.raise({ kind: 'inventory_unknown', subject: 'west', platform: 'west', text: 'it does not count' });
  await clock.advance(2 * MINUTE_MS);
  expect(told().toSorted()).toEqual([
    ['clock', 'clock_skew open'],
    ['pager', 'platform_down open'],
    ['west', 'inventory_unknown open'],
  ]);
});

it('of several servers one tells, also after a restart [alarm-told-once]', async () => {
  const routes = [route('on-call')];
  const { alarms, notifier } = serve(routes);
  serve(routes, 'two');
  alarms.raise(down);
  await clock.advance(2 * MINUTE_MS);
  await notifier.stop();
  serve(routes, 'three');
  await clock.advance(10 * MINUTE_MS);
  expect(sent).toHaveLength(1);
});

it('a message whose server crashed after the claim is sent by another one', async () => {
  let isStuck = true;
  const stuck = route('on-call', {
    send: (message) => (isStuck ? new Promise(() => undefined) : Promise.resolve(void sent.push(message))),
  });
  const { alarms } = serve([stuck]);
  // The first server never gets its answer.
  started = [];
  alarms.raise(down);
  await clock.advance(MINUTE_MS);
  isStuck = false;
  serve([stuck], 'two');
  await clock.advance(MINUTE_MS);
  expect(sent).toEqual([]);
  await clock.advance(MINUTE_MS);
  expect(told()).toEqual([['on-call', 'platform_down open']]);
});

it('a refused message is sent again ten times, and its route is an alarm that other routes are told of', async () => {
  let attempts = 0;
  const refusing = route('broken', {
    send: async () => {
      attempts++;
      throw new Error('it answered with status 500');
    },
  });
  const { alarms } = serve([refusing, route('other')]);
  alarms.raise(down);
  await clock.advance(5 * MINUTE_MS);
  expect(attempts).toBe(4);
  expect(told()).toEqual([
    ['other', 'platform_down open'],
    ['other', 'alarm_route_failing open'],
  ]);
  expect(sent[1]?.text).toContain('it answered with status 500');
  for (let hours = 0; hours < 12; hours++) await clock.skip(60 * MINUTE_MS);
  expect(attempts).toBe(10);
});

it('a message that was given up goes with the next one of its route', async () => {
  isRefusing = true;
  const { alarms } = serve([route('on-call')]);
  alarms.raise(down);
  for (let hours = 0; hours < 12; hours++) await clock.skip(60 * MINUTE_MS);
  isRefusing = false;
  await clock.advance(60 * MINUTE_MS);
  expect(sent).toEqual([]);
  alarms.raise(clockSkew);
  await clock.advance(MINUTE_MS);
  expect(told()).toEqual([['on-call', 'platform_down open', 'clock_skew open']]);
});

it('messages are due although the clock was set back by a day', async () => {
  const { alarms } = serve([route('on-call')]);
  alarms.raise(down);
  await clock.advance(10 * SECOND_MS);
  const past = new VirtualClock(clock.now() - 24 * 60 * MINUTE_MS);
  const log = { warn: () => undefined, error: () => undefined };
  const common = { store, clock: past, log, kinds: alarmKindFacts };
  const again = new Alarms<AlarmKind>({ ...common, server: 'one' });
  const notifier = new AlarmNotifier({ ...common, alarms: again, routes: [route('on-call')] });
  await notifier.run();
  expect(told()).toEqual([['on-call', 'platform_down open']]);
});

it('the alarm about a route ends when the route accepts a message', async () => {
  isRefusing = true;
  const { alarms } = serve([route('on-call')]);
  alarms.raise(down);
  await clock.advance(3 * MINUTE_MS);
  expect(alarms.listOpen().map(({ kind }) => kind)).toContain('alarm_route_failing');
  isRefusing = false;
  await clock.advance(10 * MINUTE_MS);
  expect(alarms.listOpen().map(({ kind }) => kind)).toEqual(['platform_down']);
  expect(told()).toEqual([['on-call', 'platform_down open']]);
});

it('nobody is told during a maintenance of the platform or the host, and of what lasts after it [alarm-silenced]', async () => {
  const until = clock.now() + 30 * MINUTE_MS;
  const window = {
    ...{ since: clock.now(), until, isMaintenance: true, reason: null, by: 'ann', refusals: null },
  };
  await store.transact(async ({ cordons }) => {
    await cordons.insert({ id: 'a', kind: 'platform', name: 'east', platform: null, ...window });
    await cordons.insert({ id: 'b', kind: 'host', name: 'rack-1', platform: 'west', ...window });
  });
  const { alarms } = serve([route('on-call')]);
  const host = { kind: 'host_unknown', platform: 'west', text: 'it is gone' } as const;
  alarms.raise(down);
  alarms.raise({ ...host, subject: 'west/rack-1' });
  alarms.raise({ ...host, subject: 'west/rack-2' });
  await clock.advance(5 * MINUTE_MS);
  expect(sent.flatMap((one) => one.alarms.map(({ subject }) => subject))).toEqual(['west/rack-2']);
  alarms.end({ ...host, subject: 'west/rack-1' });
  await clock.advance(30 * MINUTE_MS);
  expect(told().slice(1)).toEqual([['on-call', 'platform_down open']]);
});
