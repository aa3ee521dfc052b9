import { describe, expect, it } from 'vitest';
import { anOrder } from '../../../test/support/rows/orchestrator-rows.ts';
import { recordedOrder } from '../../orchestrator/model/destroy-order.ts';
import { IncusRefusal } from './errors.ts';
import { aMachine, anIncus, REF, running, STOPPED, spec } from './fake-incus.fixture.ts';
import { mark } from './translate.ts';

it('a machine that Incus removes while it is searched for is destroyed, without a failure', async () => {
  const { instances, machines, meanwhile, changes } = anIncus();
  instances.set(REF, aMachine({ code: STOPPED }));
  meanwhile.lists = () => instances.delete(REF);
  expect(await machines.destroy(REF, null, anOrder)).toEqual({ outcome: 'done', value: null });
  expect(changes()).toEqual([]);
});

it.each(['wait', 'delete'])(
  'a machine with an operator’s snapshot, by on_foreign_snapshot: %s [incus-foreign-snapshot]',
  async (policy) => {
    const { instances, machines, changes } = anIncus({ options: { on_foreign_snapshot: policy } });
    instances.set(REF, { ...aMachine({ code: STOPPED }), snapshots: [{ name: 'before-upgrade' }] });
    const detail = expect.stringMatching(/hold berth-a: before-upgrade\. .*on_foreign_snapshot: delete$/);
    expect(await machines.destroy(REF, null, anOrder)).toMatchObject(
      policy === 'wait' ? { outcome: 'failed', code: 'conflict', detail } : { outcome: 'pending' },
    );
    expect(changes()).toEqual(policy === 'wait' ? [] : [`DELETE ${REF}`]);
  },
);

it.each<[string, 'destroy' | 'stop', number]>([
  ['delete', 'destroy', STOPPED],
  ['off', 'destroy', 103],
  ['force', 'stop', 103],
])(
  'an operation %s that Incus accepts and then refuses is a failure, and is not sent again by itself',
  async (kind, order, code) => {
    const { instances, operations, machines, changes } = anIncus();
    instances.set(REF, aMachine({ code }));
    const refused = { ...running('Refused', REF), status_code: 400, err: 'Instance is protected' };
    operations.push(refused);
    const step = await machines[order](REF, `${kind}:${refused.id}`, anOrder as never);
    expect(step).toMatchObject({ outcome: 'failed', detail: 'Incus: Instance is protected' });
    expect(step).not.toMatchObject({ code: order === 'stop' ? 'invalid' : 'conflict' });
    expect(changes()).toEqual([]);
  },
);

describe('a renamed machine', () => {
  it('waits for a machine that Incus protects from deletion, and names the command that ends that [incus-protected]', async () => {
    const { machines, instances, changes } = anIncus();
    const machine = aMachine({ code: STOPPED });
    instances.set(REF, machine);
    const { config } = machine;
    config['security.protection.delete'] = 'true';
    const detail = expect.stringContaining(`incus config set ${REF} security.protection.delete=false`);
    expect(await machines.destroy(REF, null, anOrder)).toMatchObject({ code: 'conflict', detail });
    expect(changes()).toEqual([]);
    config['security.protection.delete'] = 'false';
    expect(await machines.destroy(REF, null, anOrder)).toMatchObject({ outcome: 'pending' });
  });

  it('is shown under its ref, and each order goes to its current name', async () => {
    const { instances, machines, rename, changes } = anIncus();
    instances.set(REF, aMachine());
    rename(REF, 'foo');
    expect(await machines.get(REF)).toMatchObject({
      answer: 'observed',
      value: { ref: REF, renamedTo: 'foo' },
    });
    expect(await machines.list()).toMatchObject({ items: [{ ref: REF, renamedTo: 'foo' }], copies: [] });
    await machines.stop(REF, null);
    await machines.restart(REF, 'r1', null);
    Object.assign(instances.get('foo') ?? {}, { code: STOPPED });
    await machines.start(REF, null);
    await machines.destroy(REF, null, anOrder);
    expect(changes()).toEqual(['PUT foo/state', 'PATCH foo', 'PUT foo/state', 'PUT foo/state', 'DELETE foo']);
    expect(await machines.destroy(REF, null, anOrder)).toEqual({ outcome: 'done', value: null });
  });

  it('is not gone while Incus renames it, or when it is renamed between two reads', async () => {
    const { instances, operations, machines } = anIncus();
    operations.push(running('Renaming instance', REF));
    expect(await machines.get(REF)).toMatchObject({
      answer: 'unknown',
      reason: expect.stringContaining('Renaming'),
    });
    operations.length = 0;
    expect(await machines.get(REF)).toMatchObject({
      answer: 'gone',
      hosts: { answered: ['m1', 'm2'], silent: [] },
    });
    instances.set('foo', aMachine());
    expect(await machines.get(REF)).toMatchObject({ answer: 'observed' });
  });

  it('is found even if it was between two names while the instances were read', async () => {
    const { instances, machines, meanwhile } = anIncus();
    meanwhile.reads = () => instances.set('foo', aMachine());
    expect(await machines.get(REF)).toMatchObject({ answer: 'observed', value: { renamedTo: 'foo' } });
  });

  it('is not gone while a silent member has an instance that may be it', async () => {
    const { instances, machines } = anIncus();
    const silent = { ...aMachine(), location: 'm2', code: 112, config: {} };
    const hosts = { answered: ['m1'], silent: ['m2'] };
    instances.set('berth-b', silent);
    expect(await machines.get(REF)).toEqual({ answer: 'gone', hosts });
    instances.set('foo', silent);
    const reason = `m2 does not report on foo, which may be ${REF}`;
    expect(await machines.get(REF)).toEqual({ answer: 'unknown', reason, hosts });
    expect(await machines.stop(REF, null)).toMatchObject({ code: 'transient', detail: reason });
  });

  it('is not confused with a copy that has its old name', async () => {
    const { instances, machines, changes } = anIncus();
    instances.set('foo', aMachine({ code: STOPPED }));
    instances.set(REF, aMachine({ code: STOPPED, uuid: 'u2' }));
    expect(await machines.get(REF)).toMatchObject({ value: { ref: REF, renamedTo: 'foo' } });
    expect(await machines.list()).toMatchObject({ items: [{ renamedTo: 'foo' }], copies: [{ name: REF }] });
    await machines.start(REF, null);
    expect(changes()).toEqual(['PUT foo/state']);
  });

  it('blocks a create with its old name', async () => {
    const { instances, machines, changes } = anIncus();
    instances.set('foo', { ...aMachine({ code: STOPPED }) });
    await machines.create(spec, null);
    expect(changes()).toEqual(['PUT foo/state']);
    delete instances.get('foo')?.config[mark.phase];
    expect(await machines.create(spec, null)).toMatchObject({ code: 'unfinished' });
  });
});

describe('a copy made by hand', () => {
  it('is reported, is never treated as the machine, and is not removed with it [incus-copy]', async () => {
    const { instances, machines, changes } = anIncus();
    instances.set(REF, aMachine({ code: STOPPED }));
    instances.set('backup', { ...aMachine({ code: STOPPED, uuid: 'u2' }), location: 'm2' });
    const copies = [{ ref: REF, name: 'backup', host: 'm2' }];
    expect(await machines.list()).toMatchObject({ items: [{ ref: REF, host: 'm1' }], copies });
    await machines.destroy(REF, null, anOrder);
    for (let calls = 0; calls < 3; calls++)
      expect(await machines.destroy(REF, null, anOrder)).toMatchObject({ outcome: 'done' });
    expect(await machines.get(REF)).toMatchObject({ answer: 'gone' });
    expect(await machines.list()).toMatchObject({ items: [], copies });
    expect(changes()).toEqual([`DELETE ${REF}`]);
  });

  it('from before its id was noted blocks the removal of the machine until its mark is unset', async () => {
    const { instances, machines, changes } = anIncus();
    instances.set(REF, aMachine({ code: STOPPED }));
    instances.set('backup', aMachine({ code: STOPPED, uuid: 'u2', noted: null }));
    const refused = await machines.destroy(REF, null, anOrder);
    expect(refused).toMatchObject({
      outcome: 'failed',
      code: 'conflict',
      detail: expect.stringContaining('backup'),
    });
    delete instances.get('backup')?.config[mark.ref];
    await machines.destroy(REF, null, anOrder);
    expect(changes()).toEqual([`DELETE ${REF}`]);
    expect([...instances.keys()]).toEqual(['backup']);
  });
});

describe('the identity of a machine', () => {
  it('is recorded together with the mark of a complete disk, before it can be copied', async () => {
    const { instances, operations, machines, sent } = anIncus();
    const making = aMachine({ code: STOPPED, noted: null });
    delete making.config[mark.phase];
    instances.set(REF, making);
    operations.push({ ...running('Creating instance', REF), status_code: 200 });
    await machines.create(spec, null);
    expect(sent[0]?.body).toEqual({ config: { [mark.phase]: 'built', [mark.uuid]: 'u1' } });
  });

  it('is recorded again if a move changed it under the same name and no other instance has its mark', async () => {
    const { instances, machines, changes } = anIncus();
    instances.set(REF, aMachine({ uuid: 'u2' }));
    expect(await machines.get(REF)).toMatchObject({ answer: 'observed' });
    expect(instances.get(REF)?.config[mark.uuid]).toBe('u2');
    await machines.get(REF);
    expect(changes()).toEqual([`PATCH ${REF}`]);
    instances.set(REF, aMachine({ code: STOPPED, uuid: 'u2' }));
    await machines.get(REF);
    await machines.start(REF, null);
    expect(changes().slice(1)).toEqual([`PATCH ${REF}`, `PUT ${REF}/state`]);
    instances.set(REF, aMachine({ uuid: 'u2' }));
    instances.set('backup', aMachine({ uuid: 'u3' }));
    await machines.get(REF);
    expect(changes()).toHaveLength(3);
  });
});

it.each([
  ['write /x: read-only file system', 'capacity'],
  ['Failed to run: zfs create: pool I/O is currently suspended', 'boot_failed'],
  ['write /x: no space left on device', 'capacity'],
  ['Failed loading storage pool: Storage pool not found', 'invalid'],
])(
  'a build that failed with %s is %s: the status of each failed operation is 400 [incus-failed-build]',
  async (words, code) => {
    const { operations, machines } = anIncus();
    const operation = running('Creating instance', REF);
    operations.push({ ...operation, status_code: 400, err: `Failed creating instance from image: ${words}` });
    const step = await machines.create(spec, `make:${operation.id}`);
    expect(step).toMatchObject({ outcome: 'failed', code, sideEffect: 'none' });
  },
);

describe('a machine that Incus moves, such as to evacuate its member,', () => {
  it('is recognized under its temporary name, and not changed until it has its own name again [incus-evacuated]', async () => {
    const { instances, operations, machines, changes, rename } = anIncus();
    instances.set('move-of-17', { ...aMachine({ code: STOPPED }), location: 'm2' });
    operations.push({ ...running('Evacuating cluster member', ''), resources: null });
    const found = await machines.get(REF);
    expect(found).toMatchObject({ answer: 'observed', value: { ref: REF, host: 'm2' } });
    expect(found).not.toHaveProperty('value.renamedTo');
    const listing = await machines.list();
    expect(listing).toMatchObject({ items: [{ ref: REF, host: 'm2' }], copies: [] });
    expect(listing).not.toHaveProperty('items.0.renamedTo');
    expect(await machines.start(REF, null)).toMatchObject({ outcome: 'failed', code: 'transient' });
    expect(await machines.destroy(REF, null, anOrder)).toMatchObject({ outcome: 'pending' });
    expect(changes()).toEqual([]);
    rename('move-of-17', REF);
    operations.length = 0;
    await machines.start(REF, null);
    expect(changes()).toEqual([`PUT ${REF}/state`]);
  });

  it('is not stopped while the move has stopped it', async () => {
    const { instances, operations, machines } = anIncus();
    instances.set(REF, aMachine({ code: STOPPED }));
    operations.push(running('Migrating instance', REF));
    expect(await machines.get(REF)).toMatchObject({ value: { power: 'stopping' } });
    operations.splice(0, 1, running('Creating instance backup', REF));
    expect(await machines.get(REF)).toMatchObject({ value: { power: 'stopped' } });
  });

  it('is recognized after an interrupted move, and reported under its temporary name', async () => {
    const { instances, machines, changes } = anIncus();
    instances.set('move-of-17', aMachine({ code: STOPPED }));
    expect(await machines.list()).toMatchObject({ items: [{ ref: REF, renamedTo: 'move-of-17' }] });
    await machines.destroy(REF, null, anOrder);
    expect(changes()).toEqual(['DELETE move-of-17']);
  });

  it('is not reported as its own copy while both exist', async () => {
    const { instances, operations, machines } = anIncus();
    instances.set(REF, aMachine());
    instances.set('move-of-17', aMachine({ code: STOPPED }));
    operations.push(running('Migrating instance', REF));
    expect(await machines.list()).toMatchObject({ items: [{ ref: REF }], copies: [] });
    operations.length = 0;
    expect(await machines.list()).toMatchObject({ copies: [{ ref: REF, name: 'move-of-17' }] });
  });
});

describe('a late change', () => {
  it('conflicts with what its successor has changed [incus-stale-etag]', async () => {
    const { instances, machines, meanwhile, sent } = anIncus();
    instances.set(REF, aMachine());
    const successor = JSON.stringify({ id: 'r2', since: 'then', isDone: true });
    meanwhile.run = () => Object.assign(instances.get(REF)?.config ?? {}, { [mark.restart]: successor });
    expect(await machines.restart(REF, 'r1', null)).toMatchObject({ outcome: 'pending' });
    expect(instances.get(REF)?.config[mark.restart]).toBe(successor);
    expect(sent.map(({ method }) => method)).toEqual(['PATCH']);
  });

  it('to stop only requests a shutdown of a newer run, and does not force it off', async () => {
    const { instances, machines, sent } = anIncus();
    instances.set(REF, aMachine());
    const first = await machines.stop(REF, null);
    const cookie = first.outcome === 'pending' ? first.cookie.replace(/^stop/, 'force') : null;
    await machines.stop(REF, cookie);
    Object.assign(instances.get(REF) ?? {}, { startedAt: '2026-11-23T03:00:00Z' });
    await machines.stop(REF, cookie);
    expect(sent.map(({ body }) => body['force'] ?? false)).toEqual([false, true, false]);
  });
});

describe('a create', () => {
  it('removes nothing: leftovers of an interrupted create stay unfinished in every call', async () => {
    const { instances, machines, sent } = anIncus();
    const left = aMachine({ code: STOPPED, noted: null });
    delete left.config[mark.phase];
    instances.set(REF, left);
    for (let calls = 0; calls < 2; calls++)
      expect(await machines.create(spec, null)).toMatchObject({ code: 'unfinished', sideEffect: 'certain' });
    expect(sent).toEqual([]);
    // The core orders its removal and makes the next attempt under another name.
    await machines.destroy(REF, null, recordedOrder({ reason: 'failed_create', by: 'server', at: 0 }));
    expect(await machines.create({ ...spec, ref: `${REF}-g1` }, null)).toMatchObject({ outcome: 'pending' });
    expect(sent.at(-1)).toMatchObject({ method: 'POST', body: { name: `${REF}-g1` } });
    expect(JSON.stringify(sent.at(-1)?.body['config'])).toContain('trainer-one');
  });

  it('that has failed since its record was read is refused with the words of its operation', async () => {
    const { instances, operations, machines } = anIncus();
    const making = aMachine({ code: STOPPED, noted: null });
    delete making.config[mark.phase];
    instances.set(REF, making);
    const err = 'Failed creating instance: failed to load the AppArmor profile';
    operations.push({ ...running('Creating instance', REF), status_code: 400, err });
    const step = await machines.create(spec, null);
    if (step.outcome !== 'pending') throw new Error(JSON.stringify(step));
    instances.delete(REF);
    expect(await machines.create(spec, step.cookie)).toMatchObject({
      code: 'boot_failed',
      detail: expect.stringContaining('AppArmor'),
    });
  });

  it('goes to the chosen member or fails', async () => {
    const { machines, sent } = anIncus();
    await machines.create({ ...spec, host: 'm1' }, null);
    expect(sent).toMatchObject([{ method: 'POST', query: { target: 'm1' } }]);
    const refused = await machines.create({ ...spec, host: 'm1', vcpus: 6 }, null);
    expect(refused).toMatchObject({ outcome: 'failed', code: 'capacity', sideEffect: 'none' });
    expect(sent).toHaveLength(1);
  });

  it('continues with what an earlier request made', async () => {
    const { machines, meanwhile } = anIncus();
    meanwhile.run = () => {
      throw new IncusRefusal(400, 'Instance "berth-a" already exists', 'POST');
    };
    expect(await machines.create(spec, null)).toMatchObject({ outcome: 'pending' });
  });

  it('goes to the first place if a person runs it', async () => {
    const { machines, sent } = anIncus();
    await machines.create(spec, null);
    expect(sent).toMatchObject([{ query: { target: 'm2' } }]);
  });
});

describe('a machine can be placed', () => {
  it('on each member with room, the one with the most room first, with the resources it has counted', async () => {
    const { instances, machines } = anIncus();
    instances.set('foo', { ...aMachine(), config: { ...aMachine().config, 'limits.cpu': '2' } });
    const placing = await machines.place({ ...spec, ref: 'berth-b' }, []);
    expect(placing).toMatchObject({
      answer: 'placed',
      hosts: [
        { host: 'm2', units: 4 },
        { host: 'm1', units: 1 },
      ],
    });
    if (placing.answer === 'placed') expect(placing.hosts[0]?.counted).toEqual(['foo', REF]);
  });

  it.each([
    ['not on a cordoned one', {}, ['m2'], { answer: 'placed', hosts: [{ host: 'm1' }] }],
    ['only on the one that binds it', { host: 'm1' }, [], { answer: 'placed', hosts: [{ host: 'm1' }] }],
    [
      'nowhere, if that member has no room',
      { host: 'm1', vcpus: 6 },
      [],
      { answer: 'refused', code: 'capacity' },
    ],
    ['nowhere, if none has room', { vcpus: 9 }, [], { answer: 'refused', code: 'capacity' }],
    ['nowhere, if its image is missing', { image: 'none' }, [], { answer: 'refused', code: 'image_missing' }],
    ['nowhere that is known, if the one that binds it is offline', { host: 'm3' }, [], { answer: 'unknown' }],
  ])('%s', async (_title, more, avoidHosts, expected) => {
    expect(await anIncus().machines.place({ ...spec, ...more }, avoidHosts)).toMatchObject(expected);
  });

  it('on the single host of a standalone daemon, which its machines show as their host', async () => {
    const { instances, machines, sent } = anIncus({ isClustered: false });
    expect(await machines.place(spec, [])).toMatchObject({ answer: 'placed', hosts: [{ host: 'none' }] });
    await machines.create({ ...spec, host: 'none' }, null);
    expect(sent).toMatchObject([{ method: 'POST', query: {} }]);
    instances.set(REF, { ...aMachine(), location: 'none' });
    const hosts = { answered: ['none'], silent: [] };
    expect(await machines.list()).toMatchObject({ items: [{ ref: REF, host: 'none' }], hosts });
    expect(await machines.get('berth-b')).toEqual({ answer: 'gone', hosts });
  });
});
