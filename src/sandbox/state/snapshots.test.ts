import { expect, it } from 'vitest';
import { createSandbox } from '../../compose/sandbox/sandbox.ts';
import type { Sandbox } from '../sandbox.ts';

type Row = { id: string; status: string };

async function ask(sandbox: Sandbox, method: string, path: string) {
  const { baseUrl, apiKey } = sandbox.provider('a');
  const response = await sandbox.fetch(`${baseUrl}${path}`, {
    method,
    headers: { Authorization: `Bearer ${apiKey}` },
  });
  return { status: response.status, body: (await response.json()) as Row & { instances: Row[] } };
}

const play = ({ control }: Sandbox, ...steps: object[]) => control.play({ name: 'test', steps } as never);
const stateOf = (sandbox: Sandbox) => {
  const { machines, volumes } = sandbox.provider('a').platform;
  return [machines.all(), volumes.all(), volumes.attachments()];
};
const statuses = async (sandbox: Sandbox) =>
  (await ask(sandbox, 'GET', '/instances')).body.instances.map(({ status }) => status);

it('a reset restores the start: no resources, the start time, and valid keys [sandbox-reset]', async () => {
  await using sandbox = await createSandbox();
  const history = async () => {
    const made = await play(sandbox, { do: 'create_instance', as: 'one' });
    await ask(sandbox, 'DELETE', `/instances/${made['one']?.id}`);
    await sandbox.control.clock.advance('2m');
    return {
      made,
      entries: await sandbox.control.journal.entries(),
      dump: structuredClone(stateOf(sandbox)),
    };
  };
  const first = await history();
  await sandbox.control.reset();
  expect(await sandbox.control.clock.now()).toMatchObject({ now: '2026-01-01T00:00:00.000Z' });
  expect(await sandbox.control.journal.entries()).toEqual([]);
  expect(await statuses(sandbox)).toEqual([]);
  await sandbox.control.reset();
  expect(await history()).toEqual(first);
});

it('a reset ends work in progress and leaves no timer', async () => {
  await using sandbox = await createSandbox();
  await play(sandbox, { do: 'create_instance', as: 'one', until: 'PROVISIONING' });
  await sandbox.control.reset();
  expect((await sandbox.control.clock.now()).timers).toBe(0);
  await sandbox.control.clock.advance('2m');
  expect(await statuses(sandbox)).toEqual([]);
});

it('an account is gone after a reset, and there again after a restore', async () => {
  await using sandbox = await createSandbox();
  const mine = await sandbox.account('mine');
  const at = mine.providers['provider-a'];
  const list = () =>
    sandbox.fetch(`${at?.baseUrl}/instances`, { headers: { Authorization: `Bearer ${at?.apiKey}` } });
  await sandbox.control.snapshots.take('with-account');
  await sandbox.control.reset();
  expect((await list()).status).toBe(401);
  await sandbox.control.snapshots.restore('with-account');
  expect((await list()).status).toBe(200);
});

it('a restore brings back each instance as it was, and the same happens after it [sandbox-snapshot]', async () => {
  await using sandbox = await createSandbox({ seed: 5 });
  await play(
    sandbox,
    { do: 'create_instance', as: 'running' },
    { do: 'create_instance', as: 'starting', until: 'PROVISIONING' },
    { do: 'create_volume', as: 'data', attach_to: ['running'] },
  );
  const before = { statuses: await statuses(sandbox), dump: structuredClone(stateOf(sandbox)) };
  expect(before.statuses).toEqual(['ONLINE', 'PROVISIONING']);
  const taken = await sandbox.control.snapshots.take();
  const future = async () => {
    await sandbox.control.clock.advance('30s');
    const made = await play(sandbox, { do: 'create_instance', as: 'next' });
    return {
      made,
      dump: structuredClone(stateOf(sandbox)),
      entries: await sandbox.control.journal.entries(),
    };
  };
  const first = await future();
  expect(first.dump).not.toEqual(before.dump);
  for (const _time of ['once', 'twice']) {
    await sandbox.control.snapshots.restore(taken.name);
    expect(stateOf(sandbox)).toEqual(before.dump);
    expect((await future()).made).toEqual(first.made);
    expect(await statuses(sandbox)).toEqual(['ONLINE', 'ONLINE', 'ONLINE']);
  }
});

it('names snapshots, lists them and forgets them', async () => {
  await using sandbox = await createSandbox();
  const { snapshots, clock } = sandbox.control;
  await snapshots.take('a');
  await clock.advance('1m');
  await snapshots.take();
  expect(await snapshots.list()).toEqual([
    { name: 'a', at: '2026-01-01T00:00:00.000Z' },
    { name: 'snapshot-1', at: '2026-01-01T00:01:00.000Z' },
  ]);
  await snapshots.remove('a');
  await expect(snapshots.remove('a')).rejects.toMatchObject({ status: 404 });
  expect(await snapshots.list()).toHaveLength(1);
});
