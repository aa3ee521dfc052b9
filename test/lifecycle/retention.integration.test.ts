import { expect, it } from 'vitest';
import type {
  MachineSpec,
  PlatformDriver,
  VolumeSpec,
} from '../../src/orchestrator/model/platform-driver.ts';
import type { Store } from '../../src/orchestrator/model/store.ts';
import { pruneTombstones } from '../../src/orchestrator/queue/housekeeping.ts';
import { withOverrides } from '../../src/ports/with-overrides.ts';
import { startTestOrchestrator, type TestOptions, type TestOrchestrator } from '../support/orchestrator.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { backUp } from '../support/restored.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';

/** What was sent to the platform, so that it can be sent once more. */
interface Sent {
  machine?: MachineSpec;
  volume?: VolumeSpec;
}

function recorded(driver: PlatformDriver, sent: Sent): PlatformDriver {
  const { volumes } = driver;
  return withOverrides(driver, {
    create: (spec, cookie) => {
      sent.machine = spec;
      return driver.create(spec, cookie);
    },
    ...(volumes && {
      volumes: withOverrides(volumes, {
        create: (spec, cookie) => {
          sent.volume = spec;
          return volumes.create(spec, cookie);
        },
      }),
    }),
  });
}

/** One instance and one volume that were made and have ended; what was sent for them. */
async function startWithEnded(options: TestOptions = {}) {
  const sent: Sent = {};
  const first = await startTestOrchestrator({ ...options, wrapDriver: (driver) => recorded(driver, sent) });
  const instance = (await first.request('POST', '/instances', { body: instanceRequest() })).body['id'];
  const volume = (await first.request('POST', '/volumes', { body: volumeRequest() })).body['id'];
  const paths = [`/instances/${instance}`, `/volumes/${volume}`];
  await first.waitFor(String(instance), 'ONLINE');
  await until('the volume is there', async () => (await bodyOf(first, paths[1])).status === 'AVAILABLE');
  for (const path of paths) await first.request('DELETE', path);
  for (const path of paths)
    await until('it is gone', async () => (await first.request('GET', path)).status === 404);
  return { first, paths, sent };
}

const bodyOf = async (first: TestOrchestrator, path = '') =>
  (await first.request('GET', path)).body as { status?: string };

const prune = (store: Store): Promise<void> => pruneTombstones(store, 'default', Number.MAX_SAFE_INTEGER);

/** The platform carries the creates out once more, long after their instance and volume have ended. */
async function createLate({ driver }: TestOrchestrator, { machine, volume }: Sent): Promise<void> {
  if (machine === undefined || volume === undefined || driver.volumes === undefined)
    throw new Error('nothing was sent');
  let cookie: string | null = null;
  await until('the machine is made', async () => {
    const step = await driver.create(machine, cookie);
    if (step.outcome === 'pending') cookie = step.cookie;
    return step.outcome === 'done';
  });
  await until(
    'the volume is made',
    async () => (await driver.volumes?.create(volume, null))?.outcome === 'done',
  );
}

async function isEmpty({ driver }: TestOrchestrator): Promise<boolean> {
  const [machines, volumes] = [await driver.list(), await driver.volumes?.list()];
  return (
    machines.answer === 'listed' &&
    volumes?.answer === 'listed' &&
    machines.items.length + volumes.items.length === 0
  );
}

it('a machine and a volume that appear after their tombstones were pruned stay, read 503, and are alarms [pruned-late-create]', async () => {
  const { first, paths, sent } = await startWithEnded();
  await using _first = first;
  await prune(first.store);
  for (const path of paths) expect((await first.request('GET', path)).status).toBe(404);
  await createLate(first, sent);
  for (const path of paths)
    await until('it is doubted', async () => (await first.request('GET', path)).status === 503);
  await until('both are alarms', async () => {
    const alarms = await first.store.read.alarms.list();
    return alarms.filter(({ kind }) => kind === 'row_lost').length === 2;
  });
  expect(await isEmpty(first)).toBe(false);
});

it('a start gives neither its row again, nor removes them: nobody can tell whether they had ended [pruned-not-adopted]', async () => {
  const { first, paths, sent } = await startWithEnded({ reconcile: { watchIntervalMs: 3_600_000 } });
  await using _first = first;
  await prune(first.store);
  const restore = await backUp(first);
  await createLate(first, sent);
  await using restored = await restore();
  await until('both are alarms', async () => {
    const alarms = await restored.store.read.alarms.list();
    return alarms.filter(({ kind }) => kind === 'row_lost').length === 2;
  });
  for (const path of paths) expect(await restored.read(path)).toBe('503');
  expect(await isEmpty(first)).toBe(false);
});

it('what was created after the backup is no such thing, however old the backup: it has its row again', async () => {
  const { first } = await startWithEnded({ reconcile: { watchIntervalMs: 3_600_000 } });
  await using _first = first;
  await prune(first.store);
  const restore = await backUp(first);
  const young = String((await first.request('POST', '/instances', { body: instanceRequest() })).body['id']);
  await first.waitFor(young, 'ONLINE');
  await using restored = await restore();
  await until('it is there', async () => (await restored.read(`/instances/${young}`)) === 'ONLINE');
});

it.each(['with', 'without'])(
  'housekeeping prunes tombstones on a platform %s volumes [prunes-without-volumes]',
  async (kind) => {
    await using berth = await startPlainOrchestrator(() => 'none', {
      retention: { tombstones_days: 1 / 24, history_days: 30, audit_days: 365 },
      reconcile: { watchIntervalMs: 60_000 },
      ...(kind === 'without' && { wrapDriver: ({ volumes: _, ...driver }) => driver }),
    });
    const { clock, orchestrator } = berth;
    const id = await berth.create();
    await berth.passUntil(`/instances/${id}`, 'ONLINE');
    await orchestrator.request('DELETE', `/instances/${id}`);
    await berth.passUntil(`/instances/${id}`, 'GONE');
    await clock.advance(50 * 60_000);
    expect(await orchestrator.store.read.instances.byId(id)).toMatchObject({ status: 'DESTROYED' });
    await clock.advance(20 * 60_000);
    expect(await orchestrator.store.read.instances.byId(id)).toBeNull();
    expect((await berth.read(`/instances/${id}`))['status']).toBe('GONE');
  },
);
