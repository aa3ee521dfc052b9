import { beforeEach, expect, it } from 'vitest';
import { deployment, mail, seed, teamId } from '../../../test/support/rows/marketplace-rows.ts';
import { openTestMarketStore } from '../../../test/support/rows/stores.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { Alarms } from '../../operator-kit/alarms/alarms.ts';
import { DAY_MS } from '../../ports/clock.ts';
import { type AlarmKind, alarmKindFacts } from '../model/alarm.ts';
import type { Store } from '../model/store.ts';
import { AlarmWatch } from './alarm-watch.ts';
import { keepVerdict } from './views/books.ts';

const MINUTE_MS = 60_000;
let clock: VirtualClock;
let store: Store;
let alarms: Alarms<AlarmKind>;
let watch: AlarmWatch;
let refreshedAt: number | null;
let failingMs: Map<'unreachable', number>;
let isActive: boolean;
let configured: string[];
let free: number;

beforeEach(async () => {
  clock = new VirtualClock();
  store = await openTestMarketStore();
  await seed(store);
  const log = { warn: () => undefined, error: () => undefined };
  alarms = new Alarms({ store, clock, log, kinds: alarmKindFacts, server: 'one' });
  refreshedAt = null;
  failingMs = new Map();
  isActive = true;
  configured = ['provider-a'];
  free = 1e12;
  watch = watchWith(alarms);
});

function watchWith(own: Alarms<AlarmKind>): AlarmWatch {
  return new AlarmWatch({
    ...{ store, clock, log: { warn: () => undefined }, alarms: own },
    providers: { ids: () => configured, get: () => ({ catalog: { refreshedAt } }) as never },
    workers: { of: () => ({ failingMs, isActive }) as never },
    diskRoom: async () => ({ free, size: 1e12 }),
  });
}

/** The open alarms after one more round. */
async function open(): Promise<string[]> {
  await watch.run();
  return (await store.read.alarms.list()).map(({ kind, subject }) => `${kind} ${subject}`).toSorted();
}

it('raises nothing while all is well', async () => {
  expect(await open()).toEqual([]);
});

it('the alarms of a provider end once it is retired, or out of the configuration', async () => {
  failingMs.set('unreachable', 9 * MINUTE_MS);
  refreshedAt = clock.now();
  expect(await open()).toEqual(['provider_calls_failing provider-a']);
  await clock.advance(5 * MINUTE_MS + 1);
  configured = [];
  expect(await open()).toEqual([]);
});

it('a provider whose catalog is not read for five minutes is silent until it is read', async () => {
  await clock.advance(5 * MINUTE_MS + 1);
  failingMs.set('unreachable', 9 * MINUTE_MS);
  expect(await open()).toEqual(['provider_silent provider-a']);
  expect(alarms.listOpen()).toMatchObject([{ platform: 'provider-a' }]);
  refreshedAt = clock.now();
  expect(await open()).toEqual(['provider_calls_failing provider-a']);
  // Another server syncs the provider: this one knows nothing of its calls.
  isActive = false;
  failingMs.clear();
  expect(await open()).toEqual(['provider_calls_failing provider-a']);
  isActive = true;
  expect(await open()).toEqual([]);
  const ended = await store.read.alarms.ended({ by: 'until', from: 0, to: clock.now(), limit: 9 });
  expect(ended.map(({ kind }) => kind).toSorted()).toEqual(['provider_calls_failing', 'provider_silent']);
});

it('a server that no longer calls a provider does not keep its alarm open', async () => {
  refreshedAt = clock.now();
  failingMs.set('unreachable', 9 * MINUTE_MS);
  expect(await open()).toEqual(['provider_calls_failing provider-a']);
  isActive = false;
  failingMs.clear();
  expect(await open()).toEqual(['provider_calls_failing provider-a']);
  await store.transact((tx) =>
    tx.alarms.end({ kind: 'provider_calls_failing', subject: 'provider-a' }, clock.now()),
  );
  await open();
  expect(await open()).toEqual([]);
});

it('a server that has just started does not end the alarm of a provider that was never read', async () => {
  await clock.advance(5 * MINUTE_MS + 1);
  expect(await open()).toEqual(['provider_silent provider-a']);
  const { warn, error } = { warn: () => undefined, error: () => undefined };
  const others = new Alarms({ store, clock, log: { warn, error }, kinds: alarmKindFacts, server: 'two' });
  await others.sync();
  await watchWith(others).run();
  expect(await store.read.alarms.ended({ by: 'until', from: 0, to: clock.now(), limit: 9 })).toEqual([]);
});

it('held losses are an alarm of their provider', async () => {
  await store.transact(async (tx) => {
    await tx.deployments.insert(deployment({ id: 'dep-1', status: 'running' }));
    await tx.losses.put({
      subjectId: 'dep-1',
      kind: 'deployment',
      providerId: 'provider-a',
      at: 1,
      isHeld: true,
    });
  });
  expect(await open()).toEqual(['losses_held provider-a']);
});

it('late mails, and mails given up, are alarms', async () => {
  await store.transact(async (tx) => {
    await tx.mail.insert(mail({ id: 'mail-1', dedupeKey: 'a', createdAt: clock.now(), dueAt: clock.now() }));
  });
  expect(await open()).toEqual([]);
  await clock.advance(31 * MINUTE_MS);
  refreshedAt = clock.now();
  expect(await open()).toEqual(['mail_overdue mail']);
  await store.transact(async (tx) => {
    const one = await tx.mail.byId('mail-1');
    if (one !== null) await tx.mail.update({ ...one, failedAt: clock.now() });
  });
  expect(await open()).toEqual(['mail_given_up mail']);
  await clock.advance(DAY_MS + 1);
  refreshedAt = clock.now();
  expect(await open()).toEqual([]);
});

it('errors in the books, and usage that is not posted, are alarms', async () => {
  const verdict = (findings: number) => ({
    findings: Array.from({ length: findings }, () => ({ id: 'dep-1', problem: 'it is wrong' })),
    counts: { findings } as never,
  });
  await keepVerdict(store, verdict(2), clock.now());
  expect(await open()).toEqual(['ledger_wrong ledger']);
  await keepVerdict(store, verdict(0), clock.now());
  expect(await open()).toEqual([]);
  await store.transact((tx) => tx.teams.scheduleCheck(teamId, clock.now()));
  await clock.advance(14 * MINUTE_MS);
  refreshedAt = clock.now();
  expect(await open()).toEqual([]);
  await clock.advance(MINUTE_MS);
  expect(await open()).toEqual(['billing_late ledger']);
});

it('a nearly full disk is an alarm', async () => {
  free = 1e9;
  expect(await open()).toEqual(['disk_low one']);
});
