import { describe, expect, it } from 'vitest';
import type { PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import type { SshProbe } from '../../src/ports/ssh-probe.ts';
import { backUp } from '../support/restored.ts';
import { instanceRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';
import {
  make,
  makeVolume,
  startFirst,
  stop,
  untilReconciled,
  volumeOf,
  withListing,
} from './recovery.fixture.ts';

describe('in a database that was restored from a backup', () => {
  it('what was stopped, started, attached or detached since is what it is now', async () => {
    await using first = await startFirst();
    const [started, stopped] = [await make(first), await make(first)];
    const [attached, detached] = [await makeVolume(first), await makeVolume(first)];
    await stop(first, started);
    await first.request('POST', `/volumes/${detached}/attach`, { body: { instance_ids: [stopped] } });
    await until(
      'it is attached',
      async () => (await volumeOf(first, `/volumes/${detached}`))['status'] === 'ATTACHED',
    );
    const restore = await backUp(first);

    await first.request('POST', `/instances/${started}/start`);
    await first.waitFor(started, 'ONLINE');
    await first.request('POST', `/volumes/${detached}/detach`);
    await first.request('POST', `/volumes/${attached}/attach`, { body: { instance_ids: [stopped] } });
    await until('both are done', async () => {
      const [a, d] = [
        await volumeOf(first, `/volumes/${attached}`),
        await volumeOf(first, `/volumes/${detached}`),
      ];
      return a['status'] === 'ATTACHED' && d['status'] === 'AVAILABLE';
    });
    await stop(first, stopped);

    await using restored = await restore();
    expect(await restored.read(`/volumes/${attached}`)).toBe('ATTACHED');
    expect(await restored.read(`/volumes/${detached}`)).toBe('AVAILABLE');
    await until('the one that runs is ONLINE', async () => {
      const status = await restored.read(`/instances/${started}`);
      expect(['STOPPED', 'ONLINE']).toContain(status);
      return status === 'ONLINE';
    });
    await until(
      'the other is STOPPED',
      async () => (await restored.read(`/instances/${stopped}`)) === 'STOPPED',
    );
    expect(await restored.store.read.claims.isHeldBy(started)).toBe(true);
    const found = await first.driver.get(`berth-${started}`);
    expect(found).toMatchObject({ answer: 'observed', value: { power: 'running' } });
    await untilReconciled(restored.store);
  });

  it('a create that the backup held is not sent again: its machine is adopted, or its instance fails', async () => {
    await using first = await startFirst({ platform: { bootMs: [5_000, 5_000] } });
    const [{ body: kept }, { body: deleted }] = [
      await first.request('POST', '/instances', { body: instanceRequest() }),
      await first.request('POST', '/instances', { body: instanceRequest() }),
    ];
    const [keptId, deletedId] = [String(kept['id']), String(deleted['id'])];
    const restore = await backUp(first);
    await first.waitFor(keptId, 'ONLINE');
    await first.request('DELETE', `/instances/${deletedId}`);
    await first.waitFor(deletedId, 'GONE');
    const creates: string[] = [];
    await using restored = await restore({
      wrapDriver: (driver) => ({
        ...driver,
        create: (spec, cookie) => {
          creates.push(spec.ref);
          return driver.create(spec, cookie);
        },
      }),
      prepare: (store) =>
        store.transact(async (tx) => {
          for (const id of [keptId, deletedId]) {
            await tx.instances.byId(id);
            const work = await tx.work.of(id);
            expect(work?.kind).toBe('create');
            if (work !== null) await tx.work.put({ ...work, deadlineAt: 1 });
          }
        }),
    });
    await until('one is ONLINE', async () => (await restored.read(`/instances/${keptId}`)) === 'ONLINE');
    await until(
      'the other has failed',
      async () => (await restored.read(`/instances/${deletedId}`)) === 'ERROR',
    );
    await until('nothing is open', async () => (await restored.store.read.work.backlog()).count === 0);
    expect(creates).toEqual([]);
  });

  it('a restart that the backup held is not repeated, and a volume that has grown since is as large as it is', async () => {
    let isOpen = true;
    const ids: string[] = [];
    const watched = (driver: PlatformDriver): PlatformDriver => ({
      ...driver,
      restart: async (ref, id, cookie) => {
        ids.push(id);
        return driver.restart(ref, id, cookie);
      },
    });
    const probe: SshProbe = {
      probe: async () =>
        isOpen
          ? { ok: true, hostKeyFingerprint: 'SHA256:test' }
          : { ok: false, step: 'connect', detail: 'connection refused' },
    };
    await using first = await startFirst({ wrapDriver: watched, probe });
    const id = await make(first);
    const volume = await makeVolume(first);
    isOpen = false;
    await first.request('POST', `/x/instances/${id}/restart`);
    await until('it is carried out', () => ids.length > 0);
    const restore = await backUp(first);
    isOpen = true;
    const restarting = async () => (await first.request('GET', `/x/instances/${id}/restart`)).body;
    await until('it is over', async () => (await restarting())['restarting'] === false);
    await first.request('POST', `/x/volumes/${volume}/resize`, { body: { size_gb: 300 } });
    await until('it is larger', async () => (await volumeOf(first, `/volumes/${volume}`))['size_gb'] === 300);
    const young = await makeVolume(first);
    await first.request('POST', `/x/volumes/${young}/resize`, { body: { size_gb: 300 } });
    await until('it is larger', async () => (await volumeOf(first, `/volumes/${young}`))['size_gb'] === 300);

    ids.length = 0;
    await using restored = await restore({ wrapDriver: watched, probe });
    await until('nothing is left to do', async () => (await restored.store.read.work.of(id)) === null);
    expect([await restored.read(`/instances/${id}`), ids]).toEqual(['ONLINE', []]);
    for (const known of [volume, young]) {
      await until('it is known', async () => (await restored.read(`/volumes/${known}`)) === 'AVAILABLE');
      expect(await restored.store.read.volumes.byId(known)).toMatchObject({
        sizeGb: 300,
        priceMicroUsdPerHour: (await first.store.read.volumes.byId(known))?.priceMicroUsdPerHour,
      });
    }
  });

  it('work that the backup held waits until it is known what became of it', async () => {
    await using first = await startFirst({ platform: { bootMs: [2_000, 2_000] } });
    const started = await make(first);
    await stop(first, started);
    const { body } = await first.request('POST', '/instances', { body: instanceRequest() });
    const restore = await backUp(first);
    await first.request('DELETE', `/instances/${body['id']}`);
    await first.waitFor(String(body['id']), 'GONE');
    await first.request('POST', `/instances/${started}/start`);
    await first.waitFor(started, 'ONLINE');
    const stops: string[] = [];
    await using restored = await restore({
      wrapDriver: (driver) => ({
        ...driver,
        // The row of the one that is gone is dealt with slowly; the work of the other is long due.
        get: async (ref) => {
          await new Promise<void>((resolve) => first.clock.setTimer(1_000, resolve));
          return driver.get(ref);
        },
        stop: (ref, cookie) => {
          stops.push(ref);
          return driver.stop(ref, cookie);
        },
      }),
      prepare: (store) =>
        store.transact(async (tx) => {
          const step = { resourceKind: 'instance', kind: 'stop', notBefore: 0, deadlineAt: null } as const;
          await tx.work.put({ resourceId: started, ...step });
        }),
    });
    await until('it is ONLINE', async () => (await restored.read(`/instances/${started}`)) === 'ONLINE');
    expect(stops).toEqual([]);
  });
});

describe('a row of the backup whose machine the platform does not show', () => {
  const hiding = (hidden: () => string | undefined) => (driver: PlatformDriver) => ({
    ...withListing(driver, (items) => items.filter(({ ref }) => ref !== hidden())),
    get: async (ref: string) => (ref === hidden() ? ({ answer: 'gone' } as const) : driver.get(ref)),
  });

  it('holds back only its own work while the look at it fails', async () => {
    await using first = await startFirst();
    const id = await make(first);
    await stop(first, id);
    // With a third, the listing does not lack all that it should have.
    const [other] = [await make(first), await make(first)];
    const restore = await backUp(first);
    let isAway = true;
    const hide = hiding(() => (isAway ? `berth-${id}` : undefined));
    await using restored = await restore({
      wrapDriver: (driver) => ({
        ...hide(driver),
        get: async (ref) =>
          isAway && ref === `berth-${id}` ? { answer: 'unknown', reason: 'test' } : driver.get(ref),
      }),
    });
    await restored.send('DELETE', `/instances/${other}`);
    await until('the other is gone', async () => (await restored.read(`/instances/${other}`)) === '404');
    expect(await restored.read(`/instances/${id}`)).toBe('STOPPED');
    expect(await restored.store.read.marks.get('restored_from')).not.toBeNull();
    const waits = restored.lines.filter(({ message }) => /their work waits/.test(message));
    expect(waits).toMatchObject([{ fields: { count: 1, instances: [id], volumes: false } }]);
    isAway = false;
    await untilReconciled(restored.store);
    expect(restored.lines.some(({ message }) => /all work continues/.test(message))).toBe(true);
  });

  it('holds back no instance while the volumes cannot be listed', async () => {
    await using first = await startFirst();
    const restore = await backUp(first);
    await using restored = await restore({
      wrapDriver: (driver) => ({
        ...driver,
        ...(driver.volumes && {
          volumes: {
            ...driver.volumes,
            list: async () => ({ answer: 'unknown', reason: 'test' }) as const,
          },
        }),
      }),
    });
    const id = await restored.send('POST', '/instances', instanceRequest());
    await until('it is ONLINE', async () => (await restored.read(`/instances/${id}`)) === 'ONLINE');
    const waits = restored.lines.filter(({ message }) => /their work waits/.test(message));
    expect(waits).toMatchObject([{ fields: { count: 0, volumes: true } }]);
  });
});
