import { afterEach, beforeEach, expect, it } from 'vitest';
import { ProviderError } from '../../client/orchestrator-client.ts';
import type { Changes } from '../../contract/extensions.ts';
import { HOUR_MS, MINUTE_MS, openProviderWorkers, read, running, type SyncSetup } from './sync.fixture.ts';

/** The changes of an account, as an orchestrator lists them. */
class ListedChanges {
  readonly #clock: SyncSetup['clock'];
  readonly #provider: SyncSetup['provider'];
  readonly #listed: string[] = [];
  readonly #waiting = new Set<() => void>();
  error: ProviderError | undefined;
  isReset = false;
  /** How often the list was requested. */
  asked = 0;

  constructor({ clock, plain, provider }: SyncSetup) {
    this.#clock = clock;
    this.#provider = provider;
    plain.client.listChanges = (since, options) => this.#list(since, options);
    this.announce(true);
  }

  announce(changes: boolean): void {
    const offers = [...this.#provider.catalog.offers].map(
      ([id, offer]) => [id, { ...offer, extras: { berth: { changes } } }] as const,
    );
    this.#provider.catalog = { ...this.#provider.catalog, offers: new Map(offers) };
  }

  list(...instanceIds: string[]): void {
    this.#listed.push(...instanceIds);
    for (const wake of this.#waiting) wake();
  }

  async #list(since: string | null, { waitMs = 0, signal }: Parameters<OrchestratorOf>[1] = {}) {
    this.asked += 1;
    if (this.error !== undefined) throw this.error;
    if (since !== null && Number(since) === this.#listed.length) await this.#wait(waitMs, signal);
    const isReset = since === null || this.isReset;
    this.isReset = false;
    const ids = isReset ? [] : this.#listed.slice(Number(since));
    const changes = ids.map((id) => ({ kind: 'instance', id, version: 2 }) as const);
    return { cursor: String(this.#listed.length), reset: isReset, changes, more: false };
  }

  #wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = this.#clock.setTimer(ms, resolve);
    this.#waiting.add(resolve);
    signal?.addEventListener('abort', () => reject(signal.reason));
    return promise.finally(() => {
      timer.cancel();
      this.#waiting.delete(resolve);
    });
  }
}
type OrchestratorOf = (
  since: string | null,
  options?: { waitMs?: number; signal?: AbortSignal },
) => Promise<Changes>;

let setup: SyncSetup;
let listed: ListedChanges;
let id: string;
let instanceId: string;
beforeEach(async () => {
  setup = await openProviderWorkers();
  listed = new ListedChanges(setup);
  ({ id, instanceId } = await running(setup));
  await setup.clock.advance(2 * MINUTE_MS);
});
afterEach(() => setup.close());

async function pollsIn(ms: number): Promise<number> {
  const before = setup.plain.faults.countOf('getInstance');
  await setup.clock.advance(ms);
  return setup.plain.faults.countOf('getInstance') - before;
}

it('an instance that is not listed is polled every few minutes, and is confirmed all the time', async () => {
  const polls = await pollsIn(HOUR_MS);
  expect(polls).toBeGreaterThanOrEqual(6);
  expect(polls).toBeLessThanOrEqual(24);
  expect(setup.clock.now() - ((await read(setup, id)).observedAt ?? 0)).toBeLessThanOrEqual(80_000);
});

it('an instance that is listed is polled at once, and again once every server of its provider must know', async () => {
  setup.plain.set(instanceId, { public_ip: '192.0.2.99' });
  listed.list(instanceId);
  await setup.clock.advance(1_500);
  expect((await read(setup, id)).ipAddress).toBe('192.0.2.99');
  expect(await pollsIn(MINUTE_MS)).toBeGreaterThanOrEqual(1);
  expect(await pollsIn(4 * MINUTE_MS)).toBeLessThanOrEqual(1);
});

it('a stale answer from another server of the provider is replaced by a later poll', async () => {
  const { client } = setup.plain;
  const { pollInstance } = client;
  client.pollInstance = async () => {
    client.pollInstance = pollInstance;
    return 'unchanged';
  };
  setup.plain.set(instanceId, { public_ip: '192.0.2.99' });
  listed.list(instanceId);
  await setup.clock.advance(1_500);
  expect(client.pollInstance).toBe(pollInstance);
  await setup.clock.advance(31_000);
  expect((await read(setup, id)).ipAddress).toBe('192.0.2.99');
});

it('a change that is not listed is found by the next full poll', async () => {
  setup.plain.set(instanceId, { public_ip: '192.0.2.99' });
  await setup.clock.advance(11 * MINUTE_MS);
  expect((await read(setup, id)).ipAddress).toBe('192.0.2.99');
});

it('instances are polled as without a list while it cannot be read, and no longer once it can', async () => {
  listed.error = new ProviderError('failed', '500', { status: 500 });
  await setup.clock.advance(MINUTE_MS);
  expect(await pollsIn(10 * MINUTE_MS)).toBeGreaterThanOrEqual(20);
  expect(setup.clock.now() - ((await read(setup, id)).observedAt ?? 0)).toBeLessThanOrEqual(60_000);
  listed.error = undefined;
  await setup.clock.advance(2 * MINUTE_MS);
  expect(await pollsIn(10 * MINUTE_MS)).toBeLessThanOrEqual(4);
});

it('a list that cannot be read is logged once, and does not count as a failure of other calls', async () => {
  const lines = () =>
    setup.logged.map(({ message }) => message).filter((message) => message.includes('change feed'));
  listed.error = new ProviderError('limited', '429', { status: 429 });
  await setup.clock.advance(10 * MINUTE_MS);
  expect(lines()).toEqual(['the change feed of the provider cannot be read: its instances are polled']);
  expect(setup.workers.failingMs('provider-x').size).toBe(0);
  listed.error = undefined;
  await setup.clock.advance(2 * MINUTE_MS);
  expect(lines().slice(1)).toEqual(['the change feed of the provider is read again']);
});

it('a list that its provider no longer announces is no longer trusted', async () => {
  listed.announce(false);
  await setup.clock.advance(MINUTE_MS);
  const { asked } = listed;
  expect(await pollsIn(10 * MINUTE_MS)).toBeGreaterThanOrEqual(20);
  expect(listed.asked).toBe(asked);
  listed.announce(true);
  await setup.clock.advance(MINUTE_MS);
  expect(await pollsIn(10 * MINUTE_MS)).toBeLessThanOrEqual(4);
});

it('a list with more ids than are kept has each instance polled', async () => {
  const ids = (round: number) => Array.from({ length: 60_000 }, (_, index) => `foreign-${round}-${index}`);
  for (const round of [1, 2]) {
    listed.list(...ids(round));
    await setup.clock.advance(2_000);
  }
  setup.plain.set(instanceId, { public_ip: '192.0.2.99' });
  listed.list('one-more');
  await setup.clock.advance(32_000);
  expect((await read(setup, id)).ipAddress).toBe('192.0.2.99');
});

it('each instance is polled after a reset', async () => {
  setup.plain.set(instanceId, { public_ip: '192.0.2.99' });
  listed.isReset = true;
  await setup.clock.advance(MINUTE_MS);
  expect((await read(setup, id)).ipAddress).toBe('192.0.2.99');
});

it('instances are polled as without a list where it does not exist, and this is logged once', async () => {
  listed.error = new ProviderError('not_found', '404', { status: 404 });
  await setup.clock.advance(MINUTE_MS);
  expect(await pollsIn(5 * MINUTE_MS)).toBeGreaterThanOrEqual(10);
  const said = setup.logged.filter(({ message }) => message.includes('announces changes'));
  expect(said).toHaveLength(1);
});

it('a process without ranges stops reading the list, and resumes once it has some', async () => {
  const { transact } = setup.store;
  setup.store.transact = () => Promise.reject(new Error('the database does not answer'));
  await setup.clock.advance(MINUTE_MS);
  const { asked } = listed;
  await setup.clock.advance(5 * MINUTE_MS);
  expect(listed.asked).toBe(asked);
  setup.store.transact = transact;
  await setup.clock.advance(MINUTE_MS);
  expect(listed.asked).toBeGreaterThan(asked);
  expect(await pollsIn(10 * MINUTE_MS)).toBeLessThanOrEqual(4);
});
