import { describe, expect, it } from 'vitest';
import { triesBetween } from '../../src/orchestrator/model/history.ts';
import { type Plan, startPlainOrchestrator } from '../support/plain-orchestrator.ts';

const short = ({ cause, fromStatus, toStatus, next, calls }: Recorded) => [
  cause,
  fromStatus === null ? '' : `${fromStatus} → ${toStatus}`,
  next,
  calls.map(({ call, outcome }) => `${call} ${outcome}`).join(', '),
];
type Berth = Awaited<ReturnType<typeof startPlainOrchestrator>>;
type Recorded = Awaited<ReturnType<Berth['orchestrator']['store']['read']['history']['of']>>[number];

const historyOf = (berth: Berth, id: string) => berth.orchestrator.store.read.history.of(id);

describe('the history of an instance', () => {
  it('has each change of its status with its cause, and what the platform answered [history-of-a-life]', async () => {
    await using berth = await startPlainOrchestrator();
    const id = await berth.create();
    const path = `/instances/${id}`;
    await berth.passUntil(path, 'ONLINE');
    await berth.post(`${path}/stop`);
    await berth.passUntil(path, 'STOPPED');
    await berth.orchestrator.request('DELETE', path);
    await berth.passUntil(path, 'GONE');
    const events = await historyOf(berth, id);
    expect(events.map(short)).toEqual([
      ['create', '', 'verify', 'create done'],
      ['verify', 'PROVISIONING → ONLINE', 'finish', expect.stringContaining('ssh proved')],
      ['request', 'ONLINE → STOPPING', null, ''],
      ['stop', 'STOPPING → STOPPED', 'finish', 'stop done'],
      ['request', 'STOPPED → DESTROYING', null, ''],
      ['destroy', 'DESTROYING → DESTROYED', 'finish', expect.stringContaining('destroy done')],
    ]);
    const { id: account } = berth.orchestrator.account;
    const by = { account, key: expect.stringMatching(/^key-/), address: expect.any(String) };
    expect(events.map((event) => event.by)).toEqual([null, null, by, null, by, null]);
    expect((await berth.orchestrator.store.read.instances.byId(id))?.spec.createdBy).toEqual(by);
    expect(events.map(({ at }) => at)).toEqual(events.map(({ at }) => at).toSorted((a, b) => a - b));
  });

  it('names who asked for a start, a restart, a volume, and the operator who ended it [history-names-who-asked]', async () => {
    await using berth = await startPlainOrchestrator();
    const { orchestrator } = berth;
    const operator = await orchestrator.addOperator('ann');
    const id = await berth.create();
    const path = `/instances/${id}`;
    await berth.passUntil(path, 'ONLINE');
    await berth.post(`${path}/stop`);
    await berth.passUntil(path, 'STOPPED');
    await berth.post(`${path}/start`);
    await berth.passUntil(path, 'ONLINE');
    await berth.post(`/x${path}/restart`);
    await berth.clock.advance(60_000);
    const volume = await berth.createVolume();
    await berth.post(`/volumes/${volume}/attach`, { instance_ids: [id] });
    await berth.passUntil(`/volumes/${volume}`, 'ATTACHED');
    await berth.post(`/volumes/${volume}/detach`);
    await berth.passUntil(`/volumes/${volume}`, 'AVAILABLE');
    const order = { method: 'POST', body: { dry_run: false } };
    expect((await orchestrator.operate(operator, `${path}/destroy`, order)).status).toBe(200);
    const requested = (await historyOf(berth, id)).filter(({ by }) => by !== null);
    const entries = requested.map(({ toStatus, detail, by }) => [
      toStatus ?? detail,
      by?.operator ?? by?.account,
      by?.key,
    ]);
    const owner = [orchestrator.account.id, expect.stringMatching(/^key-/)];
    expect(entries).toEqual([
      ['STOPPING', ...owner],
      ['start', ...owner],
      ['restart', ...owner],
      [`attach ${volume}`, ...owner],
      [`detach ${volume}`, ...owner],
      ['DESTROYING', 'ann', undefined],
    ]);
  });

  it('records the first and the last of equal failures, and another cause at the next tenth attempt [history-of-retries]', async () => {
    const refusedAs =
      (code: 'conflict' | 'quota'): Plan =>
      ({ method }) =>
        method === 'destroy' ? { kind: 'misclaim', code, sideEffect: 'none', isDone: false } : 'none';
    await using berth = await startPlainOrchestrator();
    const id = await berth.create();
    await berth.passUntil(`/instances/${id}`, 'ONLINE');
    berth.setPlan(refusedAs('conflict'));
    await berth.orchestrator.request('DELETE', `/instances/${id}`);
    await berth.clock.advance(15 * 60_000);
    expect(berth.count('destroy')).toBeGreaterThan(20);
    const failed = (await historyOf(berth, id)).filter(({ next }) => next === 'again');
    const before = berth.count('destroy');
    const refused = {
      cause: 'destroy',
      detail: expect.stringContaining('conflict'),
      calls: [{ call: 'destroy', outcome: 'conflict' }],
    };
    expect(failed).toMatchObject([
      { ...refused, attempt: 1 },
      { ...refused, attempt: before },
    ]);
    expect(triesBetween(...(failed as [Recorded, Recorded]))).toBe(before - 2);
    berth.setPlan(refusedAs('quota'));
    await berth.clock.advance(30 * 60_000);
    expect(berth.count('destroy')).toBeGreaterThan(before + 20);
    const again = (await historyOf(berth, id)).filter(({ next }) => next === 'again');
    expect(again.map(({ detail }) => detail)).toEqual([
      expect.stringContaining('conflict'),
      expect.stringContaining('conflict'),
      expect.stringContaining('quota'),
      expect.stringContaining('quota'),
    ]);
    expect((again[2]?.attempt ?? 0) % 10).toBe(0);
    expect(again[3]?.attempt).toBe(berth.count('destroy'));
  });

  it('keeps of one that fails the calls and the driver’s words, which its tenant does not read, and the end of its console [failure-dossier]', async () => {
    const detail = 'node-7 gave no memory: run `virsh capabilities` there';
    await using berth = await startPlainOrchestrator(() => 'none', {
      wrapDriver: (driver) => ({
        ...driver,
        create: async () => ({ outcome: 'failed', code: 'boot_failed', sideEffect: 'certain', detail }),
        consoleTail: async () => 'Linux\nkernel panic\n',
      }),
    });
    const id = await berth.create();
    await berth.passUntil(`/instances/${id}`, 'ERROR');
    await berth.clock.advance(60_000);
    const [create, destroy] = await historyOf(berth, id);
    expect(create).toMatchObject({
      cause: 'create',
      toStatus: 'ERROR',
      detail: `boot_failed: ${detail}`,
      calls: [{ call: 'create', outcome: 'boot_failed', detail }],
      console: null,
    });
    expect(destroy).toMatchObject({ cause: 'destroy', toStatus: null, console: 'Linux\nkernel panic' });
    expect((await berth.read(`/instances/${id}`))['error']).toBe(
      'The machine of this instance did not boot.',
    );
  });

  it('names the steps of the SSH proof that failed, one after another', async () => {
    const failures = ['connect', 'handshake', 'handshake', 'auth'] as const;
    let tries = 0;
    await using berth = await startPlainOrchestrator(() => 'none', {
      probe: {
        probe: async () => {
          const step = failures[tries++];
          return step === undefined
            ? { ok: true, hostKeyFingerprint: 'SHA256:x' }
            : { ok: false, step: step as 'connect', detail: 'planted' };
        },
      },
    });
    const id = await berth.create();
    await berth.passUntil(`/instances/${id}`, 'ONLINE');
    const proofs = (await historyOf(berth, id)).filter(({ cause }) => cause === 'verify');
    expect(proofs.map(({ attempt, detail }) => [attempt, detail])).toEqual([
      [1, 'connect: planted'],
      [2, 'handshake: planted'],
      [3, 'handshake: planted'],
      [4, 'auth: planted'],
      [5, null],
    ]);
  });
});
