import { describe, expect, it } from 'vitest';
import type { PlatformDriver, VolumeDriver } from '../../src/orchestrator/model/platform-driver.ts';
import { silentLog } from '../support/doubles/log.ts';
import { LISTED_MS, type Plan, startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { first, online } from './lost-answers.fixture.ts';

describe('a volume', () => {
  it('whose create was lost is looked for before it is sent again, to the host that has it now', async () => {
    const hosts: unknown[] = [];
    const wrapDriver = (driver: PlatformDriver): PlatformDriver => {
      const { volumes } = driver;
      if (volumes === undefined) throw new Error('it has no volumes');
      const place = async () =>
        ({ answer: 'placed', hosts: [{ host: 'h1', units: 1, counted: [] }] }) as const;
      const create: VolumeDriver['create'] = (spec, ...rest) => {
        hosts.push(spec.host);
        return volumes.create(spec, ...rest);
      };
      const get: VolumeDriver['get'] = async (ref) => {
        const found = await volumes.get(ref);
        return found.answer === 'observed' ? { ...found, value: { ...found.value, host: 'h2' } } : found;
      };
      return { ...driver, volumes: { ...volumes, place, create, get } };
    };
    const plan: Plan = (call, nth) => {
      if (call.method === 'volumes.create' && nth === 1) return 'fail-after';
      return call.method === 'volumes.get' && nth <= 3 ? 'unknown' : 'none';
    };
    await using berth = await startPlainOrchestrator(plan, { wrapDriver });
    const id = await berth.createVolume();
    await berth.passUntil(`/volumes/${id}`, 'AVAILABLE');
    expect([berth.count('volumes.get'), hosts, berth.platform.volumes.size]).toEqual([4, ['h1', 'h2'], 1]);
  });

  it('that turns up after its deletion was proved is deleted again, and one without a row is only reported', async () => {
    const alarms: string[] = [];
    const error = (fields: object, message: string) =>
      void alarms.push(`${'ref' in fields && fields.ref}: ${message}`);
    await using berth = await startPlainOrchestrator(() => 'none', {
      reconcile: { orphanGraceMs: 1_000 },
      log: { ...silentLog, error },
    });
    const { platform, clock } = berth;
    const path = `/volumes/${await berth.createVolume()}`;
    await berth.passUntil(path, 'AVAILABLE');
    await clock.advance(LISTED_MS);
    const [volume] = [...platform.volumes.values()];
    if (volume === undefined) throw new Error('there is no volume');
    await berth.orchestrator.request('DELETE', path);
    await berth.passUntil(path, 'GONE');
    await clock.advance(LISTED_MS);
    const spec = { ref: volume.ref, datacenter: 'fra', sizeGb: 10, type: undefined, note: volume.note ?? '' };
    await platform.driver.volumes.create(spec, null);
    const stray = { ...spec, ref: 'berth-vol-stray', note: 'made by hand' };
    await platform.driver.volumes.create(stray, null);
    await clock.advance(10_000);
    expect([...platform.volumes.keys()]).toEqual(['berth-vol-stray']);
    expect(berth.count('volumes.destroy')).toBe(2);
    expect((await berth.read(path))['status']).toBe('GONE');
    expect(alarms).toHaveLength(2);
    expect(alarms).toContainEqual(expect.stringMatching(/^berth-vol-stray: .*has no row/));
    expect(alarms).toContainEqual(expect.stringMatching(`^${volume.ref}: .*deleted again`));
  });

  it('that turns up after its create was refused is deleted [late-volume-of-a-refused-create]', async () => {
    const alarms: string[] = [];
    const refused = { kind: 'misclaim', code: 'quota', sideEffect: 'none', isDone: false } as const;
    await using berth = await startPlainOrchestrator(first('volumes.create', refused), {
      log: { ...silentLog, error: (_, message) => void alarms.push(message) },
    });
    const { platform, clock } = berth;
    const path = `/volumes/${await berth.createVolume()}`;
    await berth.passUntil(path, 'ERROR');
    await clock.advance(2 * LISTED_MS);
    const ref = `berth-${path.slice('/volumes/'.length)}`;
    await platform.driver.volumes.create(
      { ref, datacenter: 'fra', sizeGb: 10, type: undefined, note: '' },
      null,
    );
    await clock.advance(2 * LISTED_MS);
    expect([...platform.volumes.keys()]).toEqual([]);
    expect((await berth.read(path))['status']).toBe('ERROR');
    expect(alarms).toEqual([expect.stringContaining('deleted again')]);
  });

  it('that the platform made, and says it has not, is adopted', async () => {
    const fault = { kind: 'misclaim', code: 'quota', sideEffect: 'possible', isDone: true } as const;
    await using berth = await startPlainOrchestrator(first('volumes.create', fault));
    const id = await berth.createVolume();
    await berth.passUntil(`/volumes/${id}`, 'AVAILABLE');
  });

  it('reads as attached until a look shows that the record is gone, whatever the driver says', async () => {
    let lies = true;
    await using berth = await startPlainOrchestrator(() => 'none', {
      wrapDriver: (driver) => {
        const { volumes } = driver;
        if (volumes === undefined) throw new Error('the platform has volumes');
        const detach: typeof volumes.detach = async (...asked) =>
          lies ? { outcome: 'done', value: null } : volumes.detach(...asked);
        return { ...driver, volumes: { ...volumes, detach } };
      },
    });
    const machine = await online(berth);
    const id = await berth.createVolume({ instance_ids: [machine] });
    await berth.passUntil(`/volumes/${id}`, 'ATTACHED');
    await berth.post(`/volumes/${id}/detach`);
    await berth.clock.advance(60_000);
    expect(await berth.read(`/volumes/${id}`)).toMatchObject({
      status: 'DETACHING',
      attached_instance_ids: [machine],
    });
    lies = false;
    await berth.passUntil(`/volumes/${id}`, 'AVAILABLE');
  });
});

it('a volume that is attached long after its detach is detached again [attach-carried-out-late]', async () => {
  await using berth = await startPlainOrchestrator(first('volumes.attach', { kind: 'late', ms: 120_000 }));
  const { clock, count, platform } = berth;
  const machine = await online(berth);
  const path = `/volumes/${await berth.createVolume({ instance_ids: [machine] })}`;
  await berth.passUntil(path, 'ATTACHING');
  await berth.post(`${path}/detach`);
  await berth.passUntil(path, 'AVAILABLE');
  expect(count('volumes.detach')).toBe(1);
  await clock.advance(130_000);
  expect(await berth.read(path)).toMatchObject({ status: 'AVAILABLE', attached_instance_ids: [] });
  expect(count('volumes.detach')).toBe(2);
  expect([...platform.volumes.values()].map(({ attachedTo }) => attachedTo)).toEqual([[]]);
});
