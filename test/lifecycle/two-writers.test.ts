import { copyFileSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import type { PlatformDriver, WriterMarks } from '../../src/orchestrator/model/platform-driver.ts';
import { type DriverCall, isStep } from '../../src/platform-model/call-faults.ts';
import { NoRoomForMark } from '../../src/ports/errors.ts';
import { openSqliteStore } from '../../src/store/sqlite/store.ts';
import { everyProbeWorks } from '../support/doubles/plain-platform.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { startOn } from '../support/restored.ts';
import { instanceRequest } from '../support/rows/requests.ts';

/** Listings are rare: each costs. */
const reconcile = { watchIntervalMs: 10_000 };
const LISTED_TWICE_MS = 22_000;

/** A server on a platform that keeps marks, and how to start more of them there. */
async function startFirst() {
  const marks = new Map<string, string>();
  const writer: WriterMarks = {
    read: async (key) => [marks.get(key) ?? ''],
    write: async (key, text) => void marks.set(key, text),
  };
  const calls: DriverCall[] = [];
  const berth = await startPlainOrchestrator(
    (call) => {
      if (isStep(call)) calls.push(call);
      return 'none';
    },
    { wrapDriver: (driver) => ({ ...driver, writer }), reconcile },
  );
  const { orchestrator, clock, platform } = berth;
  const wrapDriver = (): PlatformDriver => ({ ...platform.driver, writer });
  let copies = 0;
  return {
    ...berth,
    /** Its calls that change something. */
    calls,
    /** A copy of the files of the database, as they are now. */
    copy() {
      const path = `${orchestrator.databasePath}.${++copies}`;
      for (const suffix of ['', '-wal']) copyFileSync(`${orchestrator.databasePath}${suffix}`, path + suffix);
      const store = openSqliteStore(path);
      onTestFinished(() => store.close());
      return store;
    },
    /** Another server, which has listed the platform twice, and how to end it. */
    async start(of = orchestrator.store) {
      const store = { ...of, close: async () => undefined };
      const starting = startOn(orchestrator, store, { wrapDriver, clock, probe: everyProbeWorks, reconcile });
      const started = await clock.advanceUntilSettled(starting, 100);
      await clock.advance(LISTED_TWICE_MS);
      return { ...started, end: () => clock.advanceUntilSettled(started[Symbol.asyncDispose](), 100) };
    },
  };
}

const takenIn = async ({ read }: Pick<ReturnType<typeof openSqliteStore>, 'read'>): Promise<string[]> =>
  (await read.alarms.list()).filter(({ kind }) => kind === 'platform_taken').map(({ text }) => text);

it('of two servers on copies of one database the older stops, until a restore is recorded [second-writer]', async () => {
  await using first = await startFirst();
  const { orchestrator, clock, calls } = first;
  const id = await first.create();
  await first.passUntil(`/instances/${id}`, 'ONLINE');
  calls.length = 0;
  const second = await first.start(first.copy());
  expect([await takenIn(orchestrator.store), await takenIn(second.store)]).toEqual([
    [expect.stringMatching(/restore --in-place.*process \d+ of .+, since 20/)],
    [],
  ]);
  // What it is asked for waits, as on a platform that does not answer, and the other's ids may exist.
  const newer = await second.send('POST', '/instances', instanceRequest());
  expect((await first.post('/instances', instanceRequest())).status).toBe(409);
  expect((await orchestrator.request('GET', `/instances/${newer}`)).status).toBe(503);
  await orchestrator.request('DELETE', `/instances/${id}`);
  await second.send('POST', `/instances/${id}/stop`);
  await clock.advance(30_000);
  expect([await second.read(`/instances/${id}`), (await first.read(`/instances/${id}`))['status']]).toEqual([
    'STOPPED',
    'DESTROYING',
  ]);
  await second.end();

  // A start of the older one alone takes nothing over: its database is behind the platform.
  const again = await first.start(first.copy());
  expect([await takenIn(again.store), calls, first.platform.machines.size]).toEqual([
    [expect.anything()],
    [],
    2,
  ]);
  await again.end();
  await again.store.transact((tx) => tx.marks.put('restored_from', clock.now()));
  const restored = await first.start(again.store);
  await clock.advance(10_000);
  expect([await restored.read(`/instances/${id}`), await restored.read(`/instances/${newer}`)]).toEqual([
    '404',
    'ONLINE',
  ]);
  await restored.end();
});

it('a platform without room for a mark is worked on, with an alarm until there is room [writer-no-room]', async () => {
  const marks = new Map<string, string>();
  let hasRoom = false;
  const writer: WriterMarks = {
    read: async (key) => [marks.get(key) ?? ''],
    async write(key, text) {
      if (!hasRoom) throw new NoRoomForMark('Quota exceeded');
      marks.set(key, text);
    },
  };
  await using berth = await startPlainOrchestrator(() => 'none', {
    wrapDriver: (driver) => ({ ...driver, writer }),
    reconcile,
  });
  const { orchestrator, clock } = berth;
  const unmarked = async () =>
    (await orchestrator.store.read.alarms.list()).filter(({ kind }) => kind === 'platform_unmarked');
  const id = await berth.create();
  await berth.passUntil(`/instances/${id}`, 'ONLINE');
  expect(await unmarked()).toMatchObject([{ text: expect.stringContaining('(Quota exceeded)') }]);
  hasRoom = true;
  await clock.advance(LISTED_TWICE_MS);
  expect([await unmarked(), marks.size]).toEqual([[], 1]);
});

it('servers of one database take turns without an alarm, also through restarts', async () => {
  await using first = await startFirst();
  const peers = [await first.start(), await first.start()];
  const id = await first.create();
  await first.passUntil(`/instances/${id}`, 'ONLINE');
  await first.clock.advance(LISTED_TWICE_MS);
  expect(await takenIn(first.orchestrator.store)).toEqual([]);
  for (const peer of peers) await peer.end();
});
