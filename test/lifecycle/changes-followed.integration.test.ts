import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createClient } from '../../src/client/create-client.ts';
import { type FollowedChanges, followChanges } from '../../src/client/follow-changes.ts';
import type { Fetch } from '../../src/client/transport.ts';
import { ChangeWaits } from '../../src/orchestrator/changes/change-waits.ts';
import { listChanges } from '../../src/orchestrator/changes/list-changes.ts';
import type { Store } from '../../src/orchestrator/model/store.ts';
import { DAY_MS } from '../../src/ports/clock.ts';
import { openMemoryStore } from '../../src/store/sqlite/store.ts';
import { account, accountId, instance, volume } from '../support/rows/orchestrator-rows.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

const IDS = ['a', 'b'] as const;

const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('write' as const), id: fc.constantFrom(...IDS) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('attach' as const), id: fc.constantFrom(...IDS) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('destroy' as const), id: fc.constantFrom(...IDS) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('prune' as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('backup' as const) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('restore' as const) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('three days' as const) }) },
    {
      weight: 9,
      arbitrary: fc.record({
        do: fc.constant('ask' as const),
        reply: fc.constantFrom('arrives', 'arrives', 'is lost', 'is an earlier one'),
      }),
    },
  ),
  { minLength: 30, maxLength: 60 },
);
type Step = typeof steps extends fc.Arbitrary<(infer One)[]> ? One : never;

/** An orchestrator's database and its route, and a wire that loses, repeats and reorders replies. */
async function startWorld() {
  const clock = new VirtualClock();
  let store = openMemoryStore();
  let waits = new ChangeWaits({ store, clock });
  await store.transact((tx) => tx.credentials.insertAccount(account));
  let backup = store.image();
  const replies: string[] = [];
  let fault: Extract<Step, { do: 'ask' }>['reply'] = 'arrives';
  const fetch: Fetch = async (url) => {
    const since = new URL(url).searchParams.get('since') ?? undefined;
    const asked = { since, waitMs: 0, client: new AbortController().signal };
    const found = await listChanges({ store, clock, changeWaits: waits }, accountId, asked);
    const reply = JSON.stringify(found);
    const earlier = replies.at(-3) ?? reply;
    replies.push(reply);
    const met = fault;
    fault = 'arrives';
    if (met === 'is lost') throw new Error('the connection broke');
    return new Response(met === 'is an earlier one' ? earlier : reply, {
      headers: { 'content-type': 'application/json' },
    });
  };
  const reopen = async (image: Buffer | undefined): Promise<void> => {
    waits.close();
    await store.close();
    store = openMemoryStore(image);
    waits = new ChangeWaits({ store, clock });
  };
  const made = new Map<string, number>();
  const idOf = (name: string): string => `${name}-${made.get(name) ?? 0}`;
  return {
    clock,
    fetch,
    idOf,
    newId(name: string): string {
      made.set(name, (made.get(name) ?? 0) + 1);
      return idOf(name);
    },
    get store(): Store {
      return store;
    },
    /** What becomes of the next reply. */
    set fault(next: typeof fault) {
      fault = next;
    },
    restart: () => reopen(store.image()),
    backUp() {
      backup = store.image();
    },
    restore: () => reopen(backup),
    async close() {
      waits.close();
      await store.close();
    },
  };
}
type World = Awaited<ReturnType<typeof startWorld>>;

/** An id is never given out again. */
const write = ({ store, idOf, newId }: World, name: string) =>
  store.transact(async (tx) => {
    const row = await tx.instances.byId(idOf(name));
    if (row === null) await tx.instances.insert(instance(newId(name), { createOpenUntil: null }));
    else await tx.instances.update({ ...row, version: row.version + 1 });
  });

const attach = ({ store, idOf }: World, name: string) =>
  store.transact(async (tx) => {
    const id = idOf(name);
    const volumeId = `v-${id}`;
    if ((await tx.instances.byId(id)) === null) return;
    if ((await tx.volumes.byId(volumeId)) === null) await tx.volumes.insert(volume(volumeId));
    else if ((await tx.volumes.attachmentsOfVolume(volumeId)).length === 0)
      await tx.volumes.putAttachment({ volumeId, instanceId: id, state: 'attached' });
    else await tx.volumes.removeAttachment(volumeId, id);
  });

const destroy = ({ store, clock, idOf }: World, name: string) =>
  store.transact(async (tx) => {
    const row = await tx.instances.byId(idOf(name));
    if (row === null || row.status === 'DESTROYED') return;
    const ended = { status: 'DESTROYED', updatedAt: clock.now(), version: row.version + 1 } as const;
    await tx.instances.update({ ...row, ...ended });
  });

/** What housekeeping deletes: tombstones of more than two days. */
const prune = ({ store, clock }: World) =>
  store.transact((tx) =>
    tx.instances.prune({ platform: 'default', endedBefore: clock.now() - 2 * DAY_MS, limit: 9 }),
  );

/** All that exists, as `kind id version`, from the beginning of the changes. */
async function listAll({ store }: World): Promise<Map<string, number>> {
  const { changes } = await store.read.changes.page({
    accountId,
    after: { from: 0, afterId: '', open: [] },
    limit: 1_000,
  });
  return new Map(changes.map(({ kind, id, version }) => [`${kind} ${id}`, version]));
}

async function take(world: World, known: Map<string, number>, { reset, changes }: FollowedChanges) {
  if (reset) known.clear();
  const found = reset
    ? await listAll(world)
    : new Map(changes.map(({ kind, id, version }) => [`${kind} ${id}`, version]));
  for (const [key, version] of found) {
    expect(version).toBeGreaterThanOrEqual(known.get(key) ?? 0);
    known.set(key, version);
  }
}

async function run(world: World, all: readonly Step[]): Promise<void> {
  const { clock, fetch } = world;
  const client = createClient({
    ...{ baseUrl: 'http://berth.test/v1', credential: { apiKey: 'key' }, allowPrivate: true },
    ...{ timeoutMs: 1_000, clock, fetch },
  });
  const ended = new AbortController();
  const known = new Map<string, number>();
  const options = { cursor: null, clock, signal: ended.signal, waitMs: 0 };
  const followed = followChanges(client, options);
  const ask = async (): Promise<void> => {
    const { value } = await clock.advanceUntilSettled(followed.next(), 1_000);
    if (value !== undefined) await take(world, known, value);
  };
  for (const step of all) {
    if (step.do === 'write') await write(world, step.id);
    else if (step.do === 'attach') await attach(world, step.id);
    else if (step.do === 'destroy') await destroy(world, step.id);
    else if (step.do === 'prune') await prune(world);
    else if (step.do === 'restart') await world.restart();
    else if (step.do === 'backup') world.backUp();
    else if (step.do === 'restore') await world.restore();
    else if (step.do === 'three days') await clock.advance(3 * DAY_MS);
    else {
      world.fault = step.reply;
      await ask();
    }
  }
  await ask();
  await ask();
  const rows = await listAll(world);
  // What was pruned was seen to end, or a reset has cleared it.
  expect([...rows].filter(([key, version]) => known.get(key) !== version)).toEqual([]);
  ended.abort();
  await followed.return();
  await client.close();
}

it('follows to the same ids and versions as a list, whatever is lost, repeated or reordered', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      const world = await startWorld();
      try {
        await run(world, all);
      } finally {
        await world.close();
      }
    }),
    { numRuns: 200 },
  );
});
