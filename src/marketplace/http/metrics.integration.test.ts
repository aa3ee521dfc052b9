import type { SMTPServerOptions } from 'smtp-server';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { mail } from '../../../test/support/rows/marketplace-rows.ts';
import { ProviderError } from '../../client/orchestrator-client.ts';
import { DAY_MS } from '../../ports/clock.ts';
import { MailDispatcher } from '../mail/dispatch.ts';
import { startSmtpServer } from '../mail/smtp.fixture.ts';
import { keepVerdict } from '../operate/views/books.ts';
import { accept, MINUTE_MS, openProviderWorkers, read, type SyncSetup } from '../sync/sync.fixture.ts';
import { Metrics } from './metrics.ts';

let setup: SyncSetup;
let metrics: Metrics;
beforeEach(async () => {
  setup = await openProviderWorkers({ hasOther: true, bootMs: 1_000 });
  const { store, clock, deps } = setup;
  metrics = new Metrics({
    version: '0.0.0',
    store,
    clock,
    providers: deps.providers,
    workers: setup.workers,
    writes: { areWritesTaken: true },
    certificates: { list: () => [] },
    alarms: { listOpen: () => [] },
  });
});
afterEach(() => setup.close());

/** The values by provider. */
async function samplesOf(name: string): Promise<Record<string, number>> {
  const { text } = await metrics.render();
  const lines = text.matchAll(new RegExp(`^${name}\\{provider="([^"]+)"\\} (\\S+)$`, 'gm'));
  return Object.fromEntries([...lines].map(([, provider, value]) => [provider, Number(value)]));
}

it('machines without an SSH login yet are reported by provider, counted at most once in five seconds', async () => {
  const name = 'berth_marketplace_deployments_waiting_for_ssh';
  const { clock, ssh, store } = setup;
  let counts = 0;
  const { countUnproved } = store.read.deployments;
  store.read.deployments.countUnproved = () => {
    counts++;
    return countUnproved();
  };
  ssh.fault = (instanceId) => (instanceId === 'i-1' ? 'none' : 'closed');
  for (const number of [1, 2, 3]) await accept(setup, { number });
  expect(await samplesOf(name)).toEqual({ 'provider-x': 0, 'provider-y': 0 });
  setup.workers.start();
  await clock.advance(2 * MINUTE_MS);
  expect(await samplesOf(name)).toEqual({ 'provider-x': 2, 'provider-y': 0 });
  for (let scrape = 0; scrape < 20; scrape++) await samplesOf(name);
  expect(counts).toBe(2);
  ssh.fault = () => 'none';
  await clock.advance(2 * MINUTE_MS);
  expect(await samplesOf(name)).toEqual({ 'provider-x': 0, 'provider-y': 0 });
});

it('a provider whose catalog was never read counts as silent since the start of the server', async () => {
  await setup.clock.advance(7 * MINUTE_MS);
  expect(await samplesOf('berth_marketplace_provider_heard_seconds')).toEqual({
    'provider-x': 420,
    'provider-y': 420,
  });
});

async function mailMetrics(): Promise<{ overdue: number; waiting: number; givenUp: number }> {
  const { text } = await metrics.render();
  const figure = (name: string) =>
    Number(new RegExp(`^berth_marketplace_${name} (\\S+)$`, 'm').exec(text)?.[1]);
  return {
    overdue: figure('mail_overdue_seconds'),
    waiting: figure('mails_waiting'),
    givenUp: figure('mails_given_up'),
  };
}

const refuse = (address: string, code: number): Pick<SMTPServerOptions, 'onRcptTo'> => ({
  onRcptTo: (to, _session, done) =>
    done(to.address === address ? Object.assign(new Error('not here'), { responseCode: code }) : null),
});

it.each([
  ['one recipient', refuse('ada@example.com', 550), 1],
  ['every mail', { answer: () => ({ code: 554, text: 'relaying denied' }) }, 2],
  [
    'every connection',
    { onConnect: (_session, done) => done(Object.assign(new Error('closed'), { responseCode: 421 })) },
    2,
  ],
] satisfies [string, Parameters<typeof startSmtpServer>[0], number][])(
  'mails are overdue from the time they were written where the server refuses %s, until they are given up',
  async (_what, options, refused) => {
    const { store, clock, deps } = setup;
    const server = await startSmtpServer(options);
    const dispatcher = new MailDispatcher({ ...deps, mailer: server.mailer() });
    const [createdAt, dueAt] = [clock.now(), clock.now()];
    await store.transact(async (tx) => {
      await tx.mail.insert(mail({ id: 'mail-1', to: 'ada@example.com', createdAt, dueAt }));
      await tx.mail.insert(mail({ id: 'mail-2', to: 'bob@example.com', createdAt, dueAt }));
    });
    for (let minute = 0; minute < 60; minute += 10) {
      await dispatcher.run();
      await clock.advance(10 * MINUTE_MS);
    }
    expect(await mailMetrics()).toEqual({ overdue: 3600, waiting: refused, givenUp: 0 });
    await clock.advance(3 * DAY_MS);
    await dispatcher.run();
    expect(await mailMetrics()).toEqual({ overdue: 0, waiting: 0, givenUp: refused });
    await clock.advance(DAY_MS + MINUTE_MS);
    expect(await mailMetrics()).toEqual({ overdue: 0, waiting: 0, givenUp: 0 });
    await dispatcher.stop();
  },
);

it('the findings and the age of the last check of the books are reported', async () => {
  const { store, clock } = setup;
  const figure = async (name: string): Promise<number> => {
    const { text } = await metrics.render();
    return Number(new RegExp(`^berth_marketplace_ledger_${name} (\\S+)$`, 'm').exec(text)?.[1]);
  };
  expect([await figure('findings'), await figure('verified_seconds')]).toEqual([Number.NaN, Number.NaN]);
  const findings = [{ id: 'dep-1', problem: 'its sum is wrong' }];
  const counts = { teams: 1, subjects: 1, segments: 1, slices: 1 };
  await keepVerdict(store, { findings, counts }, clock.now());
  await clock.advance(MINUTE_MS);
  expect([await figure('findings'), await figure('verified_seconds')]).toEqual([1, 60]);
  await keepVerdict(store, { findings: [], counts }, clock.now());
  await clock.advance(MINUTE_MS);
  expect(await figure('findings')).toBe(0);
});

it('held losses are reported by provider, until the provider knows them again', async () => {
  const name = 'berth_marketplace_losses_held';
  const { clock, plain, workers } = setup;
  const ids: string[] = [];
  for (let number = 1; number <= 8; number++) ids.push(await accept(setup, { number }));
  workers.start();
  await clock.advance(2 * MINUTE_MS);
  expect(await samplesOf(name)).toEqual({ 'provider-x': 0, 'provider-y': 0 });
  plain.faults.plan = (method) => {
    if (method === 'listInstances') return { instead: [] };
    return method === 'getInstance' ? { error: new ProviderError('not_found', '404') } : 'none';
  };
  await clock.advance(10 * MINUTE_MS);
  const records = await Promise.all(ids.map((id) => read(setup, id)));
  const held = records.filter(({ status }) => status === 'running').length;
  expect(held).toBeGreaterThan(0);
  expect(await samplesOf(name)).toEqual({ 'provider-x': held, 'provider-y': 0 });
  plain.faults.plan = () => 'none';
  await clock.advance(10 * MINUTE_MS);
  expect(await samplesOf(name)).toEqual({ 'provider-x': 0, 'provider-y': 0 });
});

it('a server shows which providers it syncs', async () => {
  const name = 'berth_marketplace_provider_synced';
  expect(await samplesOf(name)).toEqual({ 'provider-x': 0, 'provider-y': 0 });
  setup.workers.start();
  await setup.clock.advance(1);
  expect(await samplesOf(name)).toEqual({ 'provider-x': 1, 'provider-y': 1 });
});

describe('calls about instances that fail while the catalog is read', () => {
  /** The values other than 0. */
  async function failing(): Promise<Record<string, number>> {
    const { text } = await metrics.render();
    const name = 'berth_marketplace_provider_calls_failing_seconds';
    const lines = [
      ...text.matchAll(new RegExp(`^${name}\\{provider="([^"]+)",problem="([^"]+)"\\} (\\S+)$`, 'gm')),
    ];
    expect(lines).toHaveLength(2 * 5);
    const figures = lines.map(([, provider, problem, value]) => [`${provider} ${problem}`, Number(value)]);
    return Object.fromEntries(figures.filter(([, value]) => value !== 0));
  }
  const isAboutInstances = (method: string) => method === 'getInstance' || method === 'listInstances';

  it.each(['unauthorized', 'failed', 'timeout'] as const)(
    '%s: the failing time is reported by provider and problem, until a call succeeds [provider-calls-fail]',
    async (problem) => {
      const { clock, plain, workers } = setup;
      await accept(setup);
      workers.start();
      await clock.advance(2 * MINUTE_MS);
      expect(await failing()).toEqual({});
      plain.faults.plan = (method) =>
        isAboutInstances(method) ? { error: new ProviderError(problem, 'broken') } : 'none';
      await clock.advance(7 * MINUTE_MS);
      const { [`provider-x ${problem}`]: seconds = 0, ...others } = await failing();
      expect(others).toEqual({});
      expect(seconds).toBeGreaterThan(360);
      expect(seconds).toBeLessThanOrEqual(420);
      plain.faults.plan = () => 'none';
      await clock.advance(3 * MINUTE_MS);
      expect(await failing()).toEqual({});
    },
  );

  it('do not count as an outage where one call in three fails', async () => {
    const { clock, plain, workers } = setup;
    for (const number of [1, 2, 3]) await accept(setup, { number });
    workers.start();
    await clock.advance(2 * MINUTE_MS);
    let calls = 0;
    plain.faults.plan = (method) =>
      method === 'getInstance' && ++calls % 3 === 0 ? { error: new ProviderError('failed', '500') } : 'none';
    for (let minute = 0; minute < 20; minute++) {
      await clock.advance(MINUTE_MS);
      for (const seconds of Object.values(await failing())) expect(seconds).toBeLessThan(180);
    }
    expect(calls).toBeGreaterThan(100);
  });
});
