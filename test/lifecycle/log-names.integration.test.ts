import { expect, it } from 'vitest';
import { createKey, revokeKey, setPassword } from '../../src/orchestrator/accounts/accounts.ts';
import type { DriverCall } from '../../src/platform-model/call-faults.ts';
import { systemRandom } from '../../src/runtime/system.ts';
import { collectLog } from '../support/doubles/log.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';

type Berth = Awaited<ReturnType<typeof startPlainOrchestrator>>;

async function pass({ clock }: Berth, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) await clock.advance(1_000);
}

/** Refuses the first so many calls of each method. */
function refuseFirst(times: Partial<Record<DriverCall['method'], number>>) {
  return ({ method }: DriverCall, nth: number) =>
    nth <= (times[method] ?? 0)
      ? ({ kind: 'misclaim', code: 'conflict', sideEffect: 'none', isDone: false } as const)
      : 'none';
}

it('all lines of an instance share its id, its account and the request that made it, whatever goes wrong', async () => {
  const { log, lines } = collectLog();
  let isBroken = true;
  await using berth = await startPlainOrchestrator(refuseFirst({ create: 2, destroy: 12 }), {
    log,
    failpoint: (name) => {
      if (!isBroken || name !== 'create:settled') return;
      isBroken = false;
      throw new Error('a fault of ours');
    },
  });
  lines.length = 0;
  const { orchestrator } = berth;
  const { body, headers } = await orchestrator.request('POST', '/instances', { body: instanceRequest() });
  await berth.passUntil(`/instances/${body['id']}`, 'ONLINE');
  await orchestrator.request('DELETE', `/instances/${body['id']}`);
  await pass(berth, 300);
  const expected = [
    'request',
    'a step failed; it will be retried',
    'a step failed with an error',
    'instance is online',
    'a step keeps failing and is tried again: check the platform',
    'the machine of the instance no longer runs: its unit is free',
  ];
  const ofWork = lines.filter(({ fields }) => fields['method'] === undefined || fields['method'] === 'POST');
  expect([...new Set(ofWork.map(({ message }) => message))].sort()).toEqual(expected.sort());
  const shared = {
    instance: body['id'],
    account: orchestrator.account.id,
    request_id: headers.get('X-Request-Id'),
  };
  for (const { message, fields } of ofWork) expect({ message, ...fields }).toMatchObject(shared);
});

it('the line of each write and of each refusal names account, key and address, never a key [log-names-who]', async () => {
  const { log, lines } = collectLog();
  await using berth = await startPlainOrchestrator(() => 'none', { log });
  const { orchestrator } = berth;
  const { clock } = berth;
  const parts = { store: orchestrator.store, clock, random: systemRandom };
  const { key, record } = await createKey(parts, orchestrator.account.name);
  await setPassword(parts, orchestrator.account.name, 'a long password');
  lines.length = 0;
  const send = (method: string, path: string, body?: object, given?: string) =>
    orchestrator.request(method, path, {
      body,
      key: given,
    });
  const made = await send('POST', '/instances', instanceRequest(), key);
  await send('POST', `/instances/${made.body['id']}/stop`, undefined, key);
  await send('GET', '/instances/none', undefined, key);
  const username = orchestrator.account.name;
  const token = await send('POST', '/auth/token', { username, password: 'a long password' });
  await send('POST', '/auth/token', { username, password: 'a wrong password' });
  await send('POST', '/auth/token', { api_key: key });
  await send('DELETE', '/instances/none', undefined, String(token.body['access_token']));
  await revokeKey(parts, record.id);
  await clock.advance(3_000);
  await send('GET', '/instances', undefined, key);
  await send('POST', '/auth/token', { api_key: key });
  await send('GET', '/instances', undefined, 'no key at all');
  const account = orchestrator.account.id;
  const requests = lines.filter(({ message }) => message === 'request').map(({ fields }) => fields);
  expect(requests.map((line) => [line['status'], line['account'], line['key']])).toEqual([
    [201, account, record.id],
    [200, account, record.id],
    [404, account, record.id],
    [200, account, 'password'],
    [401, account, 'password'],
    [200, account, record.id],
    [404, account, 'password'],
    [401, account, record.id],
    [401, account, record.id],
    [401, undefined, undefined],
  ]);
  for (const line of requests) expect(line).toMatchObject({ address: expect.any(String) });
  for (const secret of [key, 'a long password', String(token.body['access_token'])])
    expect(JSON.stringify(lines)).not.toContain(secret);
});

it('a step that ends in a fault of ours again and again raises an alarm, until it succeeds [fault-raises-alarm]', async () => {
  let isBroken = true;
  await using berth = await startPlainOrchestrator(() => 'none', {
    failpoint: (name) => {
      if (isBroken && name === 'destroy:before-call') throw new Error('a fault of ours');
    },
  });
  const { orchestrator } = berth;
  const id = await berth.create();
  await berth.passUntil(`/instances/${id}`, 'ONLINE');
  await orchestrator.request('DELETE', `/instances/${id}`);
  const alarms = async () =>
    (await orchestrator.store.read.alarms.list()).map(({ kind, subject }) => [kind, subject]);
  await pass(berth, 60);
  expect(await alarms()).toEqual([]);
  await pass(berth, 900);
  expect(await alarms()).toEqual([['step_failing', id]]);
  isBroken = false;
  await berth.passUntil(`/instances/${id}`, 'GONE');
  await pass(berth, 60);
  expect(await alarms()).toEqual([]);
});

it('all lines of a volume share its id, its account and the request that made it, whatever goes wrong', async () => {
  const { log, lines } = collectLog();
  await using berth = await startPlainOrchestrator(
    refuseFirst({ 'volumes.create': 2, 'volumes.attach': 2, 'volumes.detach': 2, 'volumes.destroy': 12 }),
    { log },
  );
  const instance = await berth.create();
  await berth.passUntil(`/instances/${instance}`, 'ONLINE');
  lines.length = 0;
  const { orchestrator } = berth;
  const { body, headers } = await orchestrator.request('POST', '/volumes', { body: volumeRequest() });
  const path = `/volumes/${body['id']}`;
  await berth.passUntil(path, 'AVAILABLE');
  await berth.post(`${path}/attach`, { instance_ids: [instance] });
  await berth.passUntil(path, 'ATTACHED');
  await berth.post(`${path}/detach`);
  await berth.passUntil(path, 'AVAILABLE');
  await orchestrator.request('DELETE', path);
  await pass(berth, 300);
  expect(await berth.read(path)).toEqual({ status: 'GONE' });
  const isOfWork = ({ fields }: (typeof lines)[number]) =>
    fields['method'] === undefined || fields['path'] === '/v1/volumes';
  const ofWork = lines.filter(isOfWork);
  const steps = new Set(ofWork.map(({ fields }) => fields['step']));
  expect(steps).toEqual(new Set([undefined, 'create', 'attach', 'destroy']));
  expect(ofWork.some(({ level }) => level === 'error')).toBe(true);
  const shared = {
    volume: body['id'],
    account: orchestrator.account.id,
    request_id: headers.get('X-Request-Id'),
  };
  for (const { message, fields } of ofWork) expect({ message, ...fields }).toMatchObject(shared);
});

it('an almost full disk of the database is an alarm within seconds, until there is room again [disk-low-raised]', async () => {
  const room = { free: 1e9, size: 1e12 };
  await using berth = await startPlainOrchestrator(() => 'none', { diskRoom: async () => ({ ...room }) });
  const kinds = async () => {
    await berth.clock.advance(30_000);
    return (await berth.orchestrator.store.read.alarms.list()).map(({ kind }) => kind);
  };
  expect(await kinds()).toEqual(['disk_low']);
  room.free = 1e11;
  expect(await kinds()).toEqual([]);
});
