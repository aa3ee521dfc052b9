import { afterEach, beforeEach, expect, it } from 'vitest';
import type { MachineSpec, VolumeSpec } from '../../src/orchestrator/model/platform-driver.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The note of another instance, of an account that the database lost too: its row cannot be restored. */
const lostNote = (note: string, id: string, lost: string): string =>
  note.replaceAll(id, lost).replace(/"accountId":"[^"]*"/, '"accountId":"acct-lost"');

let berth: Awaited<ReturnType<typeof startPlainOrchestrator>>;
/** What the platform's listings leave out, as they may (F5, F7). */
let omitted: string | undefined;
let specs: MachineSpec[];
let volumeSpecs: VolumeSpec[];

beforeEach(async () => {
  omitted = undefined;
  specs = [];
  volumeSpecs = [];
  berth = await startPlainOrchestrator(() => 'none', {
    retention: { tombstones_days: 1 / 24, history_days: 30, audit_days: 365 },
    reconcile: { watchIntervalMs: 60_000 },
  });
  const { driver } = berth.platform;
  const { volumes } = driver;
  if (volumes === undefined) throw new Error('it has no volumes');
  const [create, list, make, listVolumes] = [driver.create, driver.list, volumes.create, volumes.list];
  driver.create = (spec, ...rest) => {
    specs.push(spec);
    return create.call(driver, spec, ...rest);
  };
  volumes.create = (spec, ...rest) => {
    volumeSpecs.push(spec);
    return make.call(volumes, spec, ...rest);
  };
  const without = async <L extends { answer: string }>(listing: Promise<L>): Promise<L> => {
    const listed = (await listing) as L & { items?: { ref: string }[] };
    if (listed.items === undefined) return listed;
    return { ...listed, items: listed.items.filter(({ ref }) => ref !== omitted) };
  };
  driver.list = () => without(list.call(driver));
  volumes.list = () => without(listVolumes.call(volumes));
});
afterEach(() => berth[Symbol.asyncDispose]());

async function finish(call: (cookie: string | null) => Promise<{ outcome: string; cookie?: string }>) {
  for (let step = await call(null); step.outcome === 'pending'; step = await call(step.cookie ?? null))
    await berth.clock.advance(1_000);
}

const LOST = `inst-${'0123456789abcdef'.repeat(2)}`;

/** A machine on the platform with the note of an instance that has no row. Returns its ref. */
async function makeWithoutRow(toNote: typeof lostNote): Promise<string> {
  const first = await berth.create();
  await berth.passUntil(`/instances/${first}`, 'ONLINE');
  const [like] = specs;
  if (like === undefined) throw new Error('nothing was made');
  const spec = { ...like, ref: `berth-${LOST}`, note: toNote(like.note, first, LOST) };
  await finish((cookie) => berth.platform.driver.create(spec, cookie) as never);
  return spec.ref;
}

const alarmed = async () => (await berth.orchestrator.store.read.alarms.list()).map(({ subject }) => subject);

it('P2: a machine whose row was lost is not destroyed because one listing left it out', async () => {
  const { clock, orchestrator, platform } = berth;
  const ref = await makeWithoutRow(lostNote);
  const later = await berth.create();
  await berth.passUntil(`/instances/${later}`, 'ONLINE');
  await orchestrator.request('DELETE', `/instances/${later}`);
  await berth.passUntil(`/instances/${later}`, 'GONE');
  await clock.advance(3 * HOUR_MS);
  expect(await alarmed()).toContain(ref);
  expect(platform.machines.has(ref)).toBe(true);
  omitted = ref;
  await clock.advance(3 * MINUTE_MS);
  omitted = undefined;
  await clock.advance(5 * MINUTE_MS);
  expect(platform.machines.has(ref)).toBe(true);
});

it('P3: nor is a volume, with its data', async () => {
  const { clock, orchestrator, platform } = berth;
  const first = await berth.createVolume();
  await berth.passUntil(`/volumes/${first}`, 'AVAILABLE');
  const lost = `vol-${'0123456789abcdef'.repeat(2)}`;
  const ref = `berth-${lost}` as never;
  const [like] = volumeSpecs;
  if (like === undefined) throw new Error('nothing was made');
  await finish(
    (cookie) =>
      platform.driver.volumes?.create(
        { ...like, ref, note: lostNote(like.note, first, lost) },
        cookie,
      ) as never,
  );
  const later = await berth.createVolume();
  await berth.passUntil(`/volumes/${later}`, 'AVAILABLE');
  await orchestrator.request('DELETE', `/volumes/${later}`);
  await berth.passUntil(`/volumes/${later}`, 'GONE');
  await clock.advance(3 * HOUR_MS);
  expect(await alarmed()).toContain(ref);
  expect(platform.volumes.has(ref)).toBe(true);
  omitted = ref;
  await clock.advance(3 * MINUTE_MS);
  omitted = undefined;
  await clock.advance(5 * MINUTE_MS);
  // README and decision 22: "a volume without a row is never touched".
  expect(platform.volumes.has(ref)).toBe(true);
});

it('P4: nor does its id read 404 while the platform shows it with its whole note', async () => {
  const { clock, orchestrator } = berth;
  const ref = await makeWithoutRow(lostNote);
  await clock.advance(40 * MINUTE_MS);
  expect(await alarmed()).toContain(ref);
  // O: a client takes a 404 for DESTROYED, and pays no more. Decision 12: 503 until its row is there again.
  expect((await orchestrator.request('GET', `/instances/${LOST}`)).status).toBe(503);
});

it('P4: and one whose account is there gets its row again, and never reads 404', async () => {
  const { clock, orchestrator } = berth;
  await makeWithoutRow((note, id, lost) => note.replaceAll(id, lost));
  await clock.advance(MINUTE_MS);
  expect((await orchestrator.request('GET', `/instances/${LOST}`)).body['status']).toBe('ONLINE');
});
