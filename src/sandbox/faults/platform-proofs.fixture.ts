import { expect } from 'vitest';
import { benchOf } from './bench.fixture.ts';
import type { FaultName } from './catalog/catalog.ts';
import {
  delaysOnline,
  endsInError,
  endsNothing,
  holdsAt,
  isMadeOnce,
  type Proof,
  stopped,
  volumeOf,
} from './proofs.fixture.ts';

/** The effect of each fault of the platform, its machines and their SSH, as seen through the HTTP API only. */
export const platformProofs = {
  'platform-call-lost': isMadeOnce,
  'platform-answer-lost': isMadeOnce,
  'create-fails-after-creating': isMadeOnce,
  'platform-slow':
    (name) =>
    async ({ arm, order, read, until, pass }) => {
      await arm(name);
      const { body } = await order('one');
      await pass(8);
      expect((await read(body.id)).body.status).toBe('PROVISIONING');
      await until(body.id, 'ONLINE');
    },
  'platform-hangs': isMadeOnce,
  'platform-outage':
    (name) =>
    async ({ make, arm, pass, read, order }) => {
      const id = await make();
      const armed = await arm(name, { for_ms: 120_000 } as object);
      await pass(60);
      expect((await read(id)).body.status).toBe('ONLINE');
      expect(await order('x')).toMatchObject({
        status: 409,
        body: { error: { code: 'capacity_unavailable' } },
      });
      await pass(90);
      expect(armed.isOver).toBe(true);
      expect((await order('x')).status).toBe(201);
    },
  'platform-unknown': endsNothing,
  'platform-empty-list': endsNothing,
  'platform-partial-list': endsNothing,
  'platform-list-lags': endsNothing,
  'platform-forgets':
    (name) =>
    async ({ make, arm, pass, read }) => {
      const ids = [await make(), await make(), await make()];
      await arm('platform-partial-list', { items: 2 });
      const armed = await arm(name);
      await pass(10);
      expect(armed.hits).toBe(1);
      const replies = await Promise.all(ids.map(read));
      expect(replies.map(({ body }) => body.status).sort()).toEqual(['ERROR', 'ONLINE', 'ONLINE']);
    },
  'platform-flapping': endsNothing,
  'credential-revoked':
    (name) =>
    async ({ make, arm, pass, read, order }) => {
      const ids = await Promise.all(['one', 'two', 'three', 'four'].map(make));
      const armed = await arm(name);
      await pass(60);
      expect(armed.hits).toBeGreaterThan(0);
      const replies = await Promise.all(ids.map(read));
      expect(replies.map(({ body }) => body.status)).toEqual(ids.map(() => 'ONLINE'));
      expect((await order('five')).status).toBe(409);
    },
  'platform-unauthorized': isMadeOnce,
  'platform-locked': isMadeOnce,
  'no-capacity': (name) => endsInError(name, /capacity/i),
  'quota-reached': (name) => endsInError(name, /quota/i),
  'image-missing': (name) => endsInError(name, /image/i),
  'volume-refused': (name) => async (bench) => {
    await bench.arm(name);
    const { body } = await bench.ask('POST', '/volumes', { name: 'data', size_gb: 20, region: 'us-phoenix' });
    await bench.pass(10);
    expect(await volumeOf(bench, body.id)).toMatchObject({ status: 'ERROR' });
    expect((await bench.ask('DELETE', `/volumes/${body.id}`)).status).toBeLessThan(300);
    await bench.pass(10);
    expect((await bench.ask('GET', `/volumes/${body.id}`)).status).toBe(404);
    expect(await volumeOf(bench, await bench.makeVolume())).toMatchObject({ status: 'AVAILABLE' });
  },
  'create-stuck': (name) => endsInError(name, /./),
  'stop-stuck': holdsAt('STOPPING', 'STOPPED', ({ ask }, id) => ask('POST', `/instances/${id}/stop`)),
  'start-stuck': (name) => async (bench) => {
    const id = await stopped(bench);
    const armed = await bench.arm(name);
    await bench.ask('POST', `/instances/${id}/start`);
    await bench.pass(20);
    expect((await bench.read(id)).body.status).toBe('STOPPED');
    armed.disarm();
    await bench.until(id, 'ONLINE');
  },
  'destroy-stuck': holdsAt('DESTROYING', 'GONE', ({ ask }, id) => ask('DELETE', `/instances/${id}`)),
  'destroy-lies':
    (name) =>
    async ({ make, arm, ask, until, sandbox: { providers } }) => {
      const id = await make();
      const armed = await arm(name);
      await ask('DELETE', `/instances/${id}`);
      await until(id, 'GONE');
      expect(armed.hits).toBe(1);
      const machines = providers.get('provider-d')?.platform.machines.all() ?? [];
      expect(machines.filter(({ spec }) => spec.note.includes(id))).toEqual([]);
    },
  'attach-stuck': (name) => async (bench) => {
    const [id, volume] = [await bench.make(), await bench.makeVolume()];
    const armed = await bench.arm(name);
    await bench.ask('POST', `/volumes/${volume}/attach`, { instance_ids: [id] });
    await bench.pass(20);
    expect(await volumeOf(bench, volume)).toMatchObject({ status: 'ATTACHING' });
    armed.disarm();
    await bench.pass(20);
    expect(await volumeOf(bench, volume)).toMatchObject({ status: 'ATTACHED', attached_instance_ids: [id] });
  },
  'attach-lies': (name) => async (bench) => {
    const [id, volume] = [await bench.make(), await bench.makeVolume()];
    const armed = await bench.arm(name);
    await bench.ask('POST', `/volumes/${volume}/attach`, { instance_ids: [id] });
    await bench.pass(30);
    expect(armed.hits).toBe(1);
    expect(await volumeOf(bench, volume)).toMatchObject({ status: 'ATTACHED', attached_instance_ids: [id] });
    const { platform } = bench.sandbox.provider('d');
    expect(platform.volumes.attachments()).toEqual([]);
  },
  'detach-lingers': (name) => async (bench) => {
    const [id, volume] = [await bench.make(), await bench.makeVolume()];
    await bench.ask('POST', `/volumes/${volume}/attach`, { instance_ids: [id] });
    await bench.pass(10);
    const armed = await bench.arm(name);
    await bench.ask('POST', `/volumes/${volume}/detach`, {});
    await bench.pass(20);
    expect(await volumeOf(bench, volume)).toMatchObject({ status: 'DETACHING', attached_instance_ids: [id] });
    armed.disarm();
    await bench.pass(20);
    expect(await volumeOf(bench, volume)).toMatchObject({ status: 'AVAILABLE', attached_instance_ids: [] });
  },
  'resize-stuck':
    (name) =>
    async ({ sandbox }) => {
      const bench = await benchOf(sandbox, 'e');
      const volume = await bench.makeVolume();
      const armed = await bench.arm(name);
      await bench.ask('POST', `/x/volumes/${volume}/resize`, { size_gb: 40 });
      await bench.pass(20);
      expect(await volumeOf(bench, volume)).toMatchObject({ size_gb: 20 });
      armed.disarm();
      await bench.pass(60);
      expect(await volumeOf(bench, volume)).toMatchObject({ size_gb: 40 });
    },
  'spot-reclaim':
    (name) =>
    async ({ sandbox }) => {
      const { make, arm, until, read } = await benchOf(sandbox, 'b');
      const id = await make();
      await arm(name, { instance: id, gone_after_ms: 10_000 } as object);
      await until(id, 'DESTROYING');
      await until(id, 'GONE');
      const noticed = await make('two');
      const at = sandbox.clock.now();
      const armed = await arm(name, {
        instance: noticed,
        times: 'sticky',
        notice_ms: 120_000,
        gone_after_ms: 30_000,
      } as object);
      expect(armed.hits).toBe(1);
      await sandbox.clock.advance(115_000);
      expect((await read(noticed)).body.status).toBe('ONLINE');
      await until(noticed, 'DESTROYING', 20);
      expect(sandbox.clock.now() - at).toBeGreaterThanOrEqual(120_000);
      await until(noticed, 'GONE', 60);
      expect(sandbox.clock.now() - at).toBeGreaterThanOrEqual(150_000);
      const events = sandbox.faults.events.filter(({ resource }) => resource === noticed);
      expect(events).toMatchObject([{ at, fault: name }]);
    },
  'stopped-reaped': (name) => async (bench) => {
    const id = await stopped(bench);
    const armed = await bench.arm(name, { instance: id });
    expect(armed.hits).toBe(1);
    await bench.until(id, 'OFFLINE');
  },
  'guest-power-off':
    (name) =>
    async ({ make, arm, until }) => {
      const id = await make();
      await arm(name, { instance: id });
      await until(id, 'STOPPED');
    },
  'machine-paused':
    (name) =>
    async ({ make, arm, until, ask }) => {
      const id = await make();
      await arm(name, { instance: id });
      await until(id, 'STOPPED');
      await ask('POST', `/instances/${id}/start`);
      await until(id, 'ONLINE');
    },
  'machine-breaks':
    (name) =>
    async ({ make, arm, until }) => {
      const id = await make();
      await arm(name, { instance: id });
      const { body } = await until(id, 'ERROR');
      expect(body.error).toBeTruthy();
    },
  'machine-lost':
    (name) =>
    async ({ make, arm, until }) => {
      const id = await make();
      await arm(name, { instance: id });
      await until(id, 'ERROR');
    },
  'boot-fails': (name) => endsInError(name, /boot/i),
  'boot-never-finishes': (name) => endsInError(name, /./),
  'ssh-refused': delaysOnline,
  'ssh-silent': delaysOnline,
  'ssh-no-handshake': delaysOnline,
  'ssh-wrong-host-key': delaysOnline,
  'ssh-key-refused': delaysOnline,
  'ssh-last-key-refused': delaysOnline,
} satisfies Partial<Record<FaultName, (name: FaultName) => Proof>>;
