import { describe, expect, it } from 'vitest';
import type {
  MachineSpec,
  ObservedMachine,
  PlatformDriver,
  Step,
  VolumeDriver,
} from '../../src/orchestrator/model/platform-driver.ts';
import { silentLog } from '../../testing/log.ts';
import { anOrder } from '../../testing/orchestrator-rows.ts';
import { instanceRequest, volumeRequest } from '../../testing/requests.ts';
import { newPublicKey } from '../../testing/ssh-keys.ts';
import { until } from '../../testing/until.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { startTestOrchestrator, type TestOptions, type TestOrchestrator } from '../support/orchestrator.ts';
import { runMain } from '../support/processes/run-main.ts';

/** What the platform says instead of the truth. */
interface Lie {
  /** Nothing of it can be reached. */
  isDown?: boolean;
  /** Lists without them. */
  listsWithout?: (machine: ObservedMachine) => boolean;
  /** A look says that they are gone, as with a revoked key. */
  deniesAll?: boolean;
  /** A destroy is done and a look says gone, and the machine stays and is listed. */
  deniesLooks?: boolean;
  /** Every order is refused for its credentials. */
  refusesOrders?: boolean;
  /** Every machine has failed. */
  failsAll?: boolean;
  /** No create reaches it. */
  losesCreates?: boolean;
  /** A create comes back then, with a failure that is final. */
  failsCreatesAt?: Promise<void>;
  /** The volumes cannot be listed. */
  hidesVolumes?: boolean;
}

interface Alarm {
  fields: Record<string, unknown>;
  message: string;
}

async function startTroubled(options: TestOptions = {}, atStart: Lie = {}) {
  let lie = atStart;
  const counts = { list: 0, get: 0, create: 0, destroy: 0 };
  const alarms: Alarm[] = [];
  const orchestrator = await startTestOrchestrator({
    log: {
      ...silentLog,
      error: (fields, message) => alarms.push({ fields: { ...fields }, message }),
    },
    ...options,
    wrapDriver: (driver) => lying(driver, () => lie, counts),
  });
  return {
    orchestrator,
    counts,
    alarms: (pattern: RegExp) => alarms.filter(({ message }) => pattern.test(message)),
    say: (next: Lie) => {
      lie = next;
    },
    [Symbol.asyncDispose]: () => orchestrator[Symbol.asyncDispose](),
  };
}

type Troubled = Awaited<ReturnType<typeof startTroubled>>;

function lying(
  driver: PlatformDriver,
  lie: () => Lie,
  counts: Record<'list' | 'get' | 'create' | 'destroy', number>,
): PlatformDriver {
  const refused: Step<never> = {
    outcome: 'failed',
    code: 'auth',
    sideEffect: 'none',
    detail: 'the key is revoked',
  };
  const reached = (): Lie => {
    if (lie().isDown) throw new Error('no route to the platform');
    return lie();
  };
  const shown = (machine: ObservedMachine): ObservedMachine =>
    lie().failsAll ? { ...machine, power: 'failed', detail: 'the host burnt down' } : machine;
  const { volumes } = driver;
  return {
    manifest: driver.manifest,
    ...(volumes !== undefined && { volumes: lyingVolumes(volumes, lie) }),
    stop: (ref, cookie) => driver.stop(ref, cookie),
    start: (ref, cookie) => driver.start(ref, cookie),
    restart: (ref, id, cookie) => driver.restart(ref, id, cookie),
    close: () => driver.close(),
    list: async () => {
      counts.list++;
      const { listsWithout, deniesAll } = reached();
      const listing = await driver.list();
      if (listing.answer === 'unknown') return listing;
      const items = listing.items.filter((item) => !deniesAll && !listsWithout?.(item));
      return { answer: 'listed', items: items.map(shown) };
    },
    get: async (ref) => {
      counts.get++;
      if (reached().deniesAll || lie().deniesLooks) return { answer: 'gone' };
      const found = await driver.get(ref);
      return found.answer === 'observed' ? { answer: 'observed', value: shown(found.value) } : found;
    },
    create: async (spec, cookie) => {
      counts.create++;
      const { failsCreatesAt } = lie();
      if (failsCreatesAt !== undefined) {
        await failsCreatesAt;
        return { outcome: 'failed', code: 'boot_failed', sideEffect: 'certain', detail: 'it did not boot' };
      }
      if (lie().losesCreates) throw new Error('the create did not get there');
      return reached().refusesOrders ? refused : driver.create(spec, cookie);
    },
    destroy: async (ref, cookie) => {
      counts.destroy++;
      if (reached().deniesLooks) return { outcome: 'done', value: null };
      return lie().refusesOrders ? refused : driver.destroy(ref, cookie, anOrder);
    },
  };
}

function lyingVolumes(volumes: VolumeDriver, lie: () => Lie): VolumeDriver {
  return {
    get: async (ref) => (lie().deniesAll ? { answer: 'gone' } : volumes.get(ref)),
    list: async () => {
      if (lie().hidesVolumes) return { answer: 'unknown', reason: 'no answer' };
      return lie().deniesAll ? { answer: 'listed', items: [] } : volumes.list();
    },
    create: (spec, cookie) => volumes.create(spec, cookie),
    attach: (ref, machine, cookie) => volumes.attach(ref, machine, cookie),
    detach: (ref, machine, cookie) => volumes.detach(ref, machine, cookie),
    resize: (ref, sizeGb, cookie) => volumes.resize(ref, sizeGb, cookie),
    destroy: async (ref, cookie) =>
      lie().deniesAll ? { outcome: 'done', value: null } : volumes.destroy(ref, cookie, anOrder),
  };
}

async function create(orchestrator: TestOrchestrator, overrides: Record<string, unknown> = {}) {
  const { status, body, text } = await orchestrator.request('POST', '/instances', {
    body: instanceRequest(overrides),
  });
  if (status !== 201) throw new Error(text);
  return String(body['id']);
}

async function online(orchestrator: TestOrchestrator, count: number): Promise<string[]> {
  const ids = await Promise.all(Array.from({ length: count }, () => create(orchestrator)));
  await Promise.all(ids.map((id) => orchestrator.waitFor(id, 'ONLINE')));
  return ids;
}

async function statuses({ request }: TestOrchestrator, ids: readonly string[]): Promise<unknown[]> {
  return Promise.all(ids.map(async (id) => (await request('GET', `/instances/${id}`)).body['status']));
}

async function refOf({ store }: TestOrchestrator, id: string): Promise<string> {
  return (await store.read.instances.byId(id))?.ownerRef ?? '';
}

/** Takes the machine away behind the orchestrator's back. */
async function take(orchestrator: TestOrchestrator, id: string): Promise<void> {
  const ref = await refOf(orchestrator, id);
  await until(
    'it is gone',
    async () => (await orchestrator.simulator.destroy(ref, null, anOrder)).outcome === 'done',
  );
}

async function offered({ request }: TestOrchestrator): Promise<number> {
  const { body } = await request<{ configurations: unknown[] }>('GET', '/availability');
  return body.configurations.length;
}

async function metric({ admin }: TestOrchestrator, name: string): Promise<string | undefined> {
  const text = await (await admin.fetch('/metrics')).text();
  return new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1];
}

/** The platform has been listed `times` more since the call. */
async function listings({ counts }: Troubled, times: number): Promise<void> {
  const before = counts.list;
  await until(`it was listed ${times} times`, () => counts.list >= before + times);
}

describe('a platform that cannot be believed', () => {
  it('and denies every machine ends none, sells nothing, raises one alarm, and is believed when it lists them again [every-machine-denied]', async () => {
    await using troubled = await startTroubled();
    const { orchestrator, say, alarms } = troubled;
    const ids = await online(orchestrator, 3);
    say({ deniesAll: true });
    await until('nothing is offered', async () => (await offered(orchestrator)) === 0);
    await listings(troubled, 3);
    expect(await statuses(orchestrator, ids)).toEqual(['ONLINE', 'ONLINE', 'ONLINE']);
    expect(await metric(orchestrator, 'berth_platform_suspect{platform="default"}')).toBe('1');
    expect(await metric(orchestrator, 'berth_platform_up{platform="default"}')).toBe('0');
    expect(alarms(/too many machines are missing/)).toMatchObject([
      { fields: { problem: '3 of 3 expected machines are missing from its listing' } },
    ]);
    expect(await metric(orchestrator, 'berth_alarms{kind="platform_suspect"}')).toBe('1');
    const standing = () => orchestrator.store.read.alarms.list();
    await until('the alarm is stored', async () => (await standing()).length === 1);
    expect(await standing()).toMatchObject([{ kind: 'platform_suspect', subject: 'default' }]);
    const refused = await orchestrator.request('POST', '/instances', { body: instanceRequest() });
    expect(refused.body['error']).toMatchObject({ code: 'capacity_unavailable' });
    say({});
    await until('it is offered again', async () => (await offered(orchestrator)) > 0);
    await until('no alarm stands', async () => (await standing()).length === 0);
    expect(await statuses(orchestrator, ids)).toEqual(['ONLINE', 'ONLINE', 'ONLINE']);
  });

  it('proves no deletion: what was deleted stays DESTROYING until it can be believed', async () => {
    await using troubled = await startTroubled();
    const { orchestrator, say, counts } = troubled;
    const [deleted = '', ...others] = await online(orchestrator, 3);
    say({ deniesAll: true });
    await until('nothing is offered', async () => (await offered(orchestrator)) === 0);
    await orchestrator.request('DELETE', `/instances/${deleted}`);
    await listings(troubled, 3);
    expect(await statuses(orchestrator, [deleted, ...others])).toEqual(['DESTROYING', 'ONLINE', 'ONLINE']);
    expect(counts.destroy).toBe(0);
    say({});
    await orchestrator.waitFor(deleted, 'GONE');
    expect(await statuses(orchestrator, others)).toEqual(['ONLINE', 'ONLINE']);
  });

  it('and loses a page is not believed either [listing-loses-a-page]', async () => {
    await using troubled = await startTroubled();
    const { orchestrator, say } = troubled;
    const ids = await online(orchestrator, 5);
    const kept = new Set([await refOf(orchestrator, ids[0] ?? ''), await refOf(orchestrator, ids[1] ?? '')]);
    say({ listsWithout: ({ ref }) => !kept.has(ref) });
    await until('nothing is offered', async () => (await offered(orchestrator)) === 0);
    await listings(troubled, 2);
    expect(new Set(await statuses(orchestrator, ids))).toEqual(new Set(['ONLINE']));
  });

  it('concludes nothing in a step that was under way when the trouble began', async () => {
    await using troubled = await startTroubled({ platform: { destroy_ms: [300, 300] } });
    const { orchestrator, say } = troubled;
    const [deleted = '', ...others] = await online(orchestrator, 3);
    await orchestrator.request('DELETE', `/instances/${deleted}`);
    say({ deniesAll: true });
    await until('nothing is offered', async () => (await offered(orchestrator)) === 0);
    await listings(troubled, 3);
    expect(await statuses(orchestrator, [deleted, ...others])).toEqual(['DESTROYING', 'ONLINE', 'ONLINE']);
    say({});
    await orchestrator.waitFor(deleted, 'GONE');
  });

  it('ends nothing with an answer that comes meanwhile: what it says is asked for again', async () => {
    await using troubled = await startTroubled({ platform: { boot_failure_rate: 1 } });
    const { orchestrator, say, counts } = troubled;
    const { promise, resolve } = Promise.withResolvers<void>();
    say({ failsCreatesAt: promise });
    const id = await create(orchestrator);
    await until('it is being made', () => counts.create === 1);
    say({ isDown: true });
    await until('nothing is offered', async () => (await offered(orchestrator)) === 0);
    resolve();
    const work = () => orchestrator.store.read.work.of(id);
    await until('it is left', async () => /no decision is made/.test((await work())?.lastError ?? ''));
    expect(await statuses(orchestrator, [id])).toEqual(['PROVISIONING']);
    say({});
    await orchestrator.waitFor(id, 'ERROR');
    expect(counts.create).toBeGreaterThan(1);
  });

  it('because it refuses our credentials sells nothing until a listing that began later [platform-credentials-refused]', async () => {
    await using troubled = await startTroubled({ reconcile: { watch_interval_s: 1 } });
    const { orchestrator, say, alarms } = troubled;
    say({ refusesOrders: true });
    const id = await create(orchestrator);
    await create(orchestrator);
    await until('nothing is offered', async () => (await offered(orchestrator)) === 0);
    expect(alarms(/does not answer/)).toMatchObject([
      { fields: { problem: expect.stringContaining('the key is revoked') } },
    ]);
    expect(await statuses(orchestrator, [id])).toEqual(['PROVISIONING']);
    say({});
    await orchestrator.waitFor(id, 'ONLINE');
  });

  it('at the start sells nothing and does nothing until it is listed [start-without-listing]', async () => {
    await using troubled = await startTroubled({}, { isDown: true });
    const { orchestrator, say, counts } = troubled;
    expect([await offered(orchestrator), counts.list]).toEqual([0, 1]);
    say({});
    await until('it is offered', async () => (await offered(orchestrator)) > 0);
    await orchestrator.waitFor(await create(orchestrator), 'ONLINE');
  });

  it('sells from the first request on when it answers', async () => {
    await using orchestrator = await startTestOrchestrator();
    expect(await offered(orchestrator)).toBeGreaterThan(0);
  });
});

describe('a proof of absence', () => {
  const rarelyWatched = { reconcile: { watch_interval_s: 600 } };

  it('costs a deletion one listing, and no watch interval', async () => {
    await using troubled = await startTroubled(rarelyWatched);
    const { orchestrator, counts } = troubled;
    const [id = ''] = await online(orchestrator, 1);
    const before = counts.list;
    await orchestrator.request('DELETE', `/instances/${id}`);
    await orchestrator.waitFor(id, 'GONE');
    expect(counts.list - before).toBe(1);
  });

  it('is shared by deletions at the same time', async () => {
    await using troubled = await startTroubled({ ...rarelyWatched, platform: { destroy_ms: [50, 50] } });
    const { orchestrator, counts } = troubled;
    const ids = await online(orchestrator, 8);
    const before = counts.list;
    await Promise.all(ids.map((id) => orchestrator.request('DELETE', `/instances/${id}`)));
    await Promise.all(ids.map((id) => orchestrator.waitFor(id, 'GONE')));
    expect(counts.list - before).toBeLessThanOrEqual(3);
  });

  it('is none while a listing still shows the machine [absence-not-proved-while-listed]', async () => {
    await using troubled = await startTroubled();
    const { orchestrator, say } = troubled;
    const [id = ''] = await online(orchestrator, 1);
    say({ deniesLooks: true });
    await orchestrator.request('DELETE', `/instances/${id}`);
    await listings(troubled, 4);
    expect(await statuses(orchestrator, [id])).toEqual(['DESTROYING']);
    expect((await orchestrator.store.read.work.of(id))?.lastError).toMatch(/still lists it/);
    say({});
    await orchestrator.waitFor(id, 'GONE');
  });

  it('of a volume takes a listing of the volumes', async () => {
    await using troubled = await startTroubled();
    const { orchestrator, say } = troubled;
    const { body } = await orchestrator.request('POST', '/volumes', { body: volumeRequest() });
    const path = `/volumes/${body['id']}`;
    const status = async () => (await orchestrator.request('GET', path)).body?.['status'];
    await until('it is there', async () => (await status()) === 'AVAILABLE');
    say({ hidesVolumes: true });
    await orchestrator.request('DELETE', path);
    const work = () => orchestrator.store.read.work.of(String(body['id']));
    await until('it was not proved', async () => /not proved gone/.test((await work())?.lastError ?? ''));
    expect(await status()).toBe('DELETING');
    say({});
    await until('it is gone', async () => (await orchestrator.request('GET', path)).status === 404);
  });

  it('of the only volume takes a listing of the machines that can be believed [absence-of-only-volume]', async () => {
    await using troubled = await startTroubled({ reconcile: { watch_interval_s: 10 } });
    const { orchestrator, say } = troubled;
    await online(orchestrator, 2);
    const { body } = await orchestrator.request('POST', '/volumes', { body: volumeRequest() });
    const path = `/volumes/${body['id']}`;
    const status = async () => (await orchestrator.request('GET', path)).body?.['status'];
    await until('it is there', async () => (await status()) === 'AVAILABLE');
    say({ deniesAll: true });
    await orchestrator.request('DELETE', path);
    const work = () => orchestrator.store.read.work.of(String(body['id']));
    await until('it was not proved', async () => /not proved gone/.test((await work())?.lastError ?? ''));
    expect(await status()).toBe('DELETING');
    say({});
    await until('it is gone', async () => (await orchestrator.request('GET', path)).status === 404);
    expect(await orchestrator.simulator.volumes?.list()).toEqual({ answer: 'listed', items: [] });
  });
});

describe('losses', () => {
  const cap = (least: number) => ({
    reconcile: {
      suspect_share: 1,
      max_losses: { share: 0, least, window_s: 600, per_host: { share: 1, least: 1000 } },
    },
  });
  const held = /has reached the cap on lost instances/;

  it('beyond the cap are held, with one alarm, until they are accepted', async () => {
    await using troubled = await startTroubled(cap(2));
    const { orchestrator, alarms } = troubled;
    const ids = await online(orchestrator, 6);
    for (const id of ids.slice(0, 4)) await take(orchestrator, id);
    const count = async (status: string) =>
      (await statuses(orchestrator, ids)).filter((each) => each === status).length;
    await until('two are lost', async () => (await count('ERROR')) === 2);
    await until('a loss is held', () => alarms(held).length > 0);
    await listings(troubled, 3);
    expect([await count('ERROR'), await count('ONLINE')]).toEqual([2, 4]);
    expect(alarms(held)).toMatchObject([{ fields: { losses: 2, cap: 2 } }]);
    await until(
      'both held losses are reported',
      async () => (await metric(orchestrator, 'berth_losses_held{platform="default"}')) === '2',
    );
    expect(await metric(orchestrator, 'berth_platform_suspect{platform="default"}')).toBe('0');

    const database = ['--database', `sqlite:${orchestrator.databasePath}`];
    const listed = await runMain(['losses', ...database]);
    expect(listed.stdout).toMatch(/^2 instances lost within 10 minutes; the cap is 5\./);
    expect(listed.stdout.match(/^inst-\w+ +ONLINE/gm)).toHaveLength(2);
    const accepted = await runMain(['losses', 'accept', '--for', '5m', ...database]);
    expect([accepted.code, accepted.stdout]).toEqual([0, expect.stringMatching(/accepted until/)]);
    await until('all four are lost', async () => (await count('ERROR')) === 4);
    expect((await runMain(['losses', ...database])).stdout).toMatch(/No instance is held\./);
  });

  it('that are accepted let a platform be believed that lacks everything', async () => {
    await using troubled = await startTroubled();
    const { orchestrator } = troubled;
    const ids = await online(orchestrator, 2);
    for (const id of ids) await take(orchestrator, id);
    await until('nothing is offered', async () => (await offered(orchestrator)) === 0);
    await listings(troubled, 2);
    expect(await statuses(orchestrator, ids)).toEqual(['ONLINE', 'ONLINE']);
    await runMain(['losses', 'accept', '--database', `sqlite:${orchestrator.databasePath}`]);
    for (const id of ids) await orchestrator.waitFor(id, 'ERROR');
    expect(await offered(orchestrator)).toBeGreaterThan(0);
  });

  it('are machines that failed, too', async () => {
    await using troubled = await startTroubled(cap(1));
    const { orchestrator, say, alarms } = troubled;
    const ids = await online(orchestrator, 3);
    say({ failsAll: true });
    await until('a loss is held', () => alarms(held).length > 0);
    await listings(troubled, 2);
    expect((await statuses(orchestrator, ids)).sort()).toEqual(['ERROR', 'ONLINE', 'ONLINE']);
  });

  it.each(['0m', '25h', 'ever'])('are not accepted for %s', async (time) => {
    const { code, stderr } = await runMain(['losses', 'accept', '--for', time]);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/give minutes or hours/)]);
  });
});

describe('an outage', () => {
  it('of twenty minutes fails no create: the deadlines of what could not be done are moved', async () => {
    const clock = new VirtualClock();
    await using troubled = await startTroubled({ clock, reconcile: { watch_interval_s: 5 } });
    const { orchestrator, say, counts } = troubled;
    say({ losesCreates: true });
    const id = await create(orchestrator);
    await until('it was tried', () => counts.create > 0);
    say({ isDown: true });
    await clock.advance(20 * 60_000);
    expect(await statuses(orchestrator, [id])).toEqual(['PROVISIONING']);
    expect(await orchestrator.store.read.marks.get('platform_down_since')).not.toBeNull();
    say({});
    await until('it is online', async () => {
      await clock.advance(250);
      return (await statuses(orchestrator, [id]))[0] !== 'PROVISIONING';
    });
    expect(await statuses(orchestrator, [id])).toEqual(['ONLINE']);
    expect(await orchestrator.store.read.marks.get('platform_down_since')).toBeNull();
  });
});

describe('a machine that is on the platform', () => {
  const spec = (orchestrator: TestOrchestrator, ref: string, note: string): MachineSpec => ({
    ref,
    offerId: 'cpu-4x16',
    hostname: 'late',
    image: 'ubuntu-24.04',
    note,
    vcpus: 4,
    memoryGb: 16,
    rootDiskGb: 80,
    gpuCount: 0,
    gpuType: undefined,
    sshKeys: [newPublicKey()],
    cloudInit: undefined,
    datacenter: orchestrator.catalog.regions.get('eu-frankfurt')?.datacenter ?? '',
  });
  const place = async (orchestrator: TestOrchestrator, ref: string, note: string): Promise<void> => {
    const wanted = spec(orchestrator, ref, note);
    await until(
      'it runs',
      async () => (await orchestrator.simulator.create(wanted, null)).outcome === 'done',
    );
  };
  const isThere = async (orchestrator: TestOrchestrator, ref: string): Promise<boolean> =>
    (await orchestrator.simulator.get(ref)).answer === 'observed';

  it('though its instance is destroyed is destroyed again, whatever is done with orphans [destroyed-machine-returns]', async () => {
    await using troubled = await startTroubled({ reconcile: { orphans: 'log' } });
    const { orchestrator, alarms } = troubled;
    const [id = ''] = await online(orchestrator, 1);
    const ref = await refOf(orchestrator, id);
    await orchestrator.request('DELETE', `/instances/${id}`);
    await orchestrator.waitFor(id, 'GONE');
    await place(orchestrator, ref, '');
    await until('it is gone', async () => !(await isThere(orchestrator, ref)));
    expect(alarms(/of a deleted instance is still there/)).toMatchObject([
      { fields: { instance: id, status: 'DESTROYED' } },
    ]);
    expect((await orchestrator.request('GET', `/instances/${id}`)).status).toBe(404);
  });

  it('and belongs to another installation, or to none that is known, is never touched', async () => {
    await using troubled = await startTroubled({ reconcile: { orphans: 'reap', orphan_grace_s: 0.1 } });
    const { orchestrator, alarms } = troubled;
    const { store } = orchestrator;
    const ours = (await store.read.installation.get())?.id;
    const note = (installation: string | undefined, id: string) => JSON.stringify({ installation, id });
    await place(orchestrator, 'berth-inst-theirs', note('another', 'inst-theirs'));
    await place(orchestrator, 'berth-inst-unknown', 'made by hand');
    await place(orchestrator, 'berth-inst-ours', note(ours, 'inst-ours'));
    await until('ours is gone', async () => !(await isThere(orchestrator, 'berth-inst-ours')));
    await listings(troubled, 3);
    expect(await isThere(orchestrator, 'berth-inst-theirs')).toBe(true);
    expect(await isThere(orchestrator, 'berth-inst-unknown')).toBe(true);
    const alarmed = alarms(/has no instance/).map(({ fields }) => fields['ref']);
    expect(alarmed.sort()).toEqual(['berth-inst-ours', 'berth-inst-unknown']);
  });
});
