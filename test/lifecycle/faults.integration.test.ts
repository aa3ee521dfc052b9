import { describe, expect, it } from 'vitest';
import type { ObservedMachine } from '../../src/orchestrator/model/platform-driver.ts';
import { startTestOrchestrator } from '../support/orchestrator.ts';
import { instanceRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';
import { create, listed, startWithFaults } from './step-races.fixture.ts';

describe('a create', () => {
  it('whose answer is lost is adopted, not repeated [create-answer-lost]', async () => {
    const { orchestrator, count } = await startWithFaults(({ method }, nth) =>
      method === 'create' && nth === 1 ? 'fail-after' : 'none',
    );
    await using _ = orchestrator;
    const id = await create(orchestrator);
    await orchestrator.waitFor(id, 'ONLINE');
    expect(count('create')).toBe(1);
    expect(await listed(orchestrator.simulator)).toHaveLength(1);
  });

  it('that hangs delays no other instance, and a delete meanwhile wins [create-hangs]', async () => {
    let hung = '';
    const { orchestrator, release } = await startWithFaults(({ method, ref }) => {
      if (method !== 'create' || (hung !== '' && hung !== ref)) return 'none';
      hung = ref ?? '';
      return 'hang';
    });
    await using _ = orchestrator;
    const stuck = await create(orchestrator);
    const other = await create(orchestrator);
    await orchestrator.waitFor(other, 'ONLINE');
    expect((await orchestrator.request('GET', `/instances/${stuck}`)).body['status']).toBe('PROVISIONING');
    await orchestrator.request('DELETE', `/instances/${stuck}`);
    release();
    await orchestrator.waitFor(stuck, 'GONE');
    expect(await listed(orchestrator.simulator)).toHaveLength(1);
  });

  it('whose SSH never answers is ERROR when its window ends, and leaves no machine [ssh-never-answers]', async () => {
    await using orchestrator = await startTestOrchestrator({
      platform: { sshNeverUpRate: 1 },
      onlineWithinMs: 300,
    });
    const id = await create(orchestrator);
    const failed = await orchestrator.waitFor(id, 'ERROR', 'ONLINE');
    expect(failed).toMatchObject({
      status: 'ERROR',
      error: expect.stringMatching(/^SSH with the injected keys was not ready in time/),
    });
    await until('the machine is gone', async () => (await listed(orchestrator.simulator)).length === 0);
  });
});

describe('a machine that answers with another host key', () => {
  const hostKeyFingerprint = `SHA256:${'x'.repeat(43)}`;

  /** As the platform shows it when something else answers at its address. */
  const replaced = (machine: ObservedMachine): ObservedMachine =>
    machine.endpoint === undefined
      ? machine
      : { ...machine, endpoint: { ...machine.endpoint, hostKeyFingerprint } };

  it('is never ONLINE, and its history names host_key [host-key-changed]', async () => {
    await using orchestrator = await startTestOrchestrator({
      onlineWithinMs: 1_000,
      wrapDriver: (driver) => ({
        ...driver,
        create: async (spec, cookie) => {
          const step = await driver.create(spec, cookie);
          return step.outcome === 'done' ? { ...step, value: replaced(step.value) } : step;
        },
        get: async (ref) => {
          const found = await driver.get(ref);
          return found.answer === 'observed' ? { ...found, value: replaced(found.value) } : found;
        },
      }),
    });
    const seen = new Set<unknown>();
    orchestrator.store.subscribe({
      instancesChanged: (records) => {
        for (const { status } of records) seen.add(status);
      },
    });
    const id = await create(orchestrator);
    const failed = await orchestrator.waitFor(id, 'ERROR', 'ONLINE');
    expect(failed['status']).toBe('ERROR');
    const [end] = (await orchestrator.store.read.history.of(id)).filter(
      ({ toStatus }) => toStatus === 'ERROR',
    );
    expect(end?.detail).toMatch(/failed at "host_key"/);
    expect(seen).toEqual(new Set(['PROVISIONING', 'ERROR']));
    await until('the machine is gone', async () => (await listed(orchestrator.simulator)).length === 0);
  });
});

describe('a destroy', () => {
  it.each(['fail-before', 'fail-after', 'lie-done'] as const)(
    'that meets %s stays DESTROYING until the machine is proved gone [destroy-not-believed]',
    async (fault) => {
      const { orchestrator, release, count } = await startWithFaults(({ method }) =>
        method === 'destroy' ? fault : 'none',
      );
      await using _ = orchestrator;
      const id = await create(orchestrator);
      await orchestrator.waitFor(id, 'ONLINE');
      await orchestrator.request('DELETE', `/instances/${id}`);
      await until('it was tried twice', () => count('destroy') >= 2);
      if (fault !== 'fail-after') {
        expect((await orchestrator.request('GET', `/instances/${id}`)).body['status']).toBe('DESTROYING');
        expect(await orchestrator.store.read.claims.isHeldBy(id)).toBe(true);
      }
      release();
      await orchestrator.waitFor(id, 'GONE');
      expect(await listed(orchestrator.simulator)).toHaveLength(0);
    },
  );
});

describe('a stop and a start', () => {
  it('a start that does not get to SSH in time is taken back: STOPPED, capacity free, startable again', async () => {
    const { orchestrator, setPlan, release } = await startWithFaults(() => 'none', { onlineWithinMs: 400 });
    await using _ = orchestrator;
    const id = await create(orchestrator);
    await orchestrator.waitFor(id, 'ONLINE');
    await orchestrator.request('POST', `/instances/${id}/stop`);
    await orchestrator.waitFor(id, 'STOPPED');
    setPlan(({ method }) => (method === 'start' ? 'fail-before' : 'none'));
    await orchestrator.request('POST', `/instances/${id}/start`);
    await until('the start is taken back', async () => (await orchestrator.store.read.work.of(id)) === null);
    expect((await orchestrator.request('GET', `/instances/${id}`)).body['status']).toBe('STOPPED');
    expect(await orchestrator.store.read.claims.isHeldBy(id)).toBe(false);
    release();
    expect((await orchestrator.request('POST', `/instances/${id}/start`)).status).toBe(200);
    await orchestrator.waitFor(id, 'ONLINE');
  });
});

describe('a platform in trouble', () => {
  it.each(['unknown', 'fail-before'] as const)(
    '(list: %s) takes every offer out of availability and refuses creates; reads go on; then all is as before [listing-refused]',
    async (fault) => {
      const { orchestrator, setPlan, release } = await startWithFaults(() => 'none');
      await using _ = orchestrator;
      const id = await create(orchestrator);
      await orchestrator.waitFor(id, 'ONLINE');
      const offered = async () =>
        (await orchestrator.request<{ configurations: unknown[] }>('GET', '/availability')).body
          .configurations.length;
      const before = await offered();
      setPlan(({ method }) => (method === 'list' ? fault : 'none'));
      await until('nothing is offered', async () => (await offered()) === 0);
      const refused = await orchestrator.request('POST', '/instances', { body: instanceRequest() });
      expect([refused.status, (refused.body['error'] as { code: string }).code]).toEqual([
        409,
        'capacity_unavailable',
      ]);
      const all = await orchestrator.request<{ configurations: { available: boolean }[] }>(
        'GET',
        '/configurations',
      );
      expect(all.body.configurations.length).toBe(orchestrator.catalog.offers.size);
      expect(all.body.configurations.some(({ available }) => available)).toBe(false);
      expect((await orchestrator.request('GET', `/instances/${id}`)).body['status']).toBe('ONLINE');
      release();
      await until('all is offered again', async () => (await offered()) === before);
    },
  );

  it('that lists nothing ends nothing: each instance is looked at by itself first [listing-empty]', async () => {
    const { orchestrator, setPlan, count } = await startWithFaults(() => 'none', {
      reconcile: { emptyForMs: 2_000 },
    });
    await using _ = orchestrator;
    const id = await create(orchestrator);
    await orchestrator.waitFor(id, 'ONLINE');
    setPlan(({ method }) => (method === 'list' ? 'lie-empty' : 'none'));
    const before = count('get');
    await until('the instance was looked at', () => count('get') > before + 1);
    expect((await orchestrator.request('GET', `/instances/${id}`)).body['status']).toBe('ONLINE');
  });
});
