import { expect, it } from 'vitest';
import type { DriverCall } from '../../src/platform-model/call-faults.ts';
import { collectLog } from '../support/collect-log.ts';
import { startPlainOrchestrator } from '../support/fakes/plain-orchestrator.ts';
import { instanceRequest, volumeRequest } from '../support/http/requests.ts';

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
  const told = [
    'request',
    'a step failed; it will be retried',
    'a step failed with an error',
    'instance is online',
    'a step keeps failing; it will be retried for ever: check the platform',
    'the machine is proved gone',
  ];
  const ofWork = lines.filter(({ fields }) => fields['method'] === undefined || fields['method'] === 'POST');
  expect([...new Set(ofWork.map(({ message }) => message))].sort()).toEqual(told.sort());
  const shared = {
    instance: body['id'],
    account: orchestrator.account.id,
    request_id: headers.get('X-Request-Id'),
  };
  for (const { message, fields } of ofWork) expect({ message, ...fields }).toMatchObject(shared);
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
