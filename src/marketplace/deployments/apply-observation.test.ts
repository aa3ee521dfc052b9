import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Instance } from '../../contract/instance.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { applyObservation } from './apply-observation.ts';
import { deploy, type Market, openMarket, read } from './market.fixture.ts';

let market: Market;
let seen: DeploymentRecord;
let instance: Instance;
beforeEach(async () => {
  market = await openMarket();
  seen = await deploy(market);
  await market.clock.advance(60_000);
  instance = market.plain.get(seen.providerInstanceId ?? '');
  const endpoint = { ipAddress: instance.public_ip ?? null, loginUser: 'ubuntu', sshPort: 22 };
  await market.store.transact((tx) => tx.deployments.update({ ...seen, ...endpoint }));
  seen = await read(market, seen.id);
});
afterEach(() => market.store.close());

const look = (changes: Partial<Instance> = {}) =>
  applyObservation(market.deps, seen, { instance: { ...instance, ...changes } }, market.clock.now());

it('writes nothing when nothing changed', async () => {
  expect(await look()).toEqual({ outcome: 'confirmed' });
  expect(await read(market, seen.id)).toEqual(seen);
});

it('writes nothing from an unusable answer', async () => {
  const applied = await applyObservation(market.deps, seen, { problem: 'invalid' }, market.clock.now());
  expect(applied.outcome).toBe('held');
  expect(await read(market, seen.id)).toEqual(seen);
});

it('writes the details that the instance reports, and when it was seen', async () => {
  const applied = await look({ public_ip: '198.51.100.7', ssh_port: 2_222 });
  expect(applied).toMatchObject({
    outcome: 'written',
    record: { ipAddress: '198.51.100.7', sshPort: 2_222 },
  });
  expect(await read(market, seen.id)).toMatchObject({
    ipAddress: '198.51.100.7',
    observedAt: market.clock.now(),
    revision: seen.revision + 1,
  });
});

it('writes a suspicion, which the next observation can confirm or end', async () => {
  await look({ status: 'OFFLINE' });
  const ignored = await read(market, seen.id);
  expect(ignored).toMatchObject({ status: 'running', suspicion: { status: 'OFFLINE', polls: 1 } });
  expect(ignored.observedAt).toBe(seen.observedAt);
  seen = ignored;
  await look();
  expect(await read(market, seen.id)).toMatchObject({ suspicion: null, observedAt: market.clock.now() });
});

it('writes a change with all that follows from it [apply-observation-writes-all]', async () => {
  const applied = await look({ status: 'ERROR', error: 'the GPU fell off' });
  expect(applied).toMatchObject({
    record: { status: 'failed', failureReason: 'runtime_failure', failureDetails: 'the GPU fell off' },
  });
  expect(await read(market, seen.id)).toMatchObject({ status: 'failed', cleanup: 'wanted' });
});

it('drops an observation of an older record', async () => {
  await market.store.transact((tx) => tx.deployments.update({ ...seen, name: 'changed meanwhile' }));
  expect(await look({ status: 'ERROR' })).toEqual({ outcome: 'dropped' });
  expect(await read(market, seen.id)).toMatchObject({ status: 'running', name: 'changed meanwhile' });
});
