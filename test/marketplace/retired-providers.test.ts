import { expect, it } from 'vitest';
import { verifyLedger } from '../../src/marketplace/ledger/verify-ledger.ts';
import { newIntent } from '../../src/marketplace/model/intent.ts';
import { startTestMarketplace } from '../support/marketplace.ts';
import { volume as volumeRow } from '../support/rows/marketplace-rows.ts';
import { openTestMarketStore } from '../support/rows/stores.ts';
import { type OperatedMarket, startOperatedMarket } from './operated-market.fixture.ts';

/** Leaves all that can be left at a provider, with changes that were asked for and not sent. */
async function leaveAll(operated: OperatedMarket) {
  const { market, clock } = operated;
  const running = await operated.deployRunning();
  const stopped = await operated.deployRunning();
  await market.request('POST', `/api/deployments/${stopped}/pause`);
  const volume = await operated.makeVolume();
  await market.request('POST', `/api/volumes/${volume}/attach`, { body: { deploymentId: running } });
  const spare = await operated.makeVolume();
  const changing = await operated.deployRunning();
  const ended = await operated.deployRunning();
  await market.marketplace.workers.stop();
  await market.request('DELETE', `/api/deployments/${ended}`);
  const deploying = await operated.deploy();
  const asked = { by: market.user.userId, since: clock.now(), until: null };
  await market.store.transact(async (tx) => {
    const record = await tx.deployments.byId(changing);
    if (record === null) throw new Error('there is none');
    await tx.deployments.update({ ...record, action: newIntent(record, { ...asked, kind: 'restart' }) });
    const { userId, teamId } = market.user;
    const action = newIntent({ revision: 0 }, { ...asked, kind: 'create' });
    const creating = { status: 'creating', providerVolumeId: null, startedAt: null, action } as const;
    await tx.volumes.insert(volumeRow({ providerId: 'provider-d', userId, teamId, ...creating }));
  });
  return { running, stopped, volume, spare, changing, ended, deploying };
}

async function start(operated: OperatedMarket, retired: string[]) {
  const { market, clock } = operated;
  return startTestMarketplace({ clock, store: market.store, email: 'second@example.com', retired });
}

it('a provider that is missing while something is left at it is refused at the start, with the remedy', async () => {
  await using operated = await startOperatedMarket();
  await operated.deployRunning();
  await operated.makeVolume();
  await expect(start(operated, [])).rejects.toThrow(
    /^The provider provider-d is not in the configuration, and 1 deployment and 1 volume there have not ended\. .*`- { id: provider-d, retired: true }`/,
  );
  await expect(start(operated, ['provider-x'])).rejects.toThrow('provider-d is not in the configuration');
});

it('what is left at a retired provider ends, without a call, and is not billed on', async () => {
  const store = await openTestMarketStore();
  const operated = await startOperatedMarket({ store, options: { minimumRuntimeMinutes: 0 } });
  const { market, clock, plain } = operated;
  const left = await leaveAll(operated);
  const machines = plain.instances.length;
  const { observedAt } = (await market.store.read.deployments.byId(left.running)) ?? {};
  await operated[Symbol.asyncDispose]();
  await using second = await start(operated, ['provider-d']);
  await clock.advance(60_000);
  const { read } = second.store;
  for (const [id, status] of [
    [left.running, 'terminated-provider'],
    [left.stopped, 'terminated-provider'],
    [left.changing, 'terminated-provider'],
    [left.deploying, 'failed'],
    [left.ended, 'terminated'],
  ] as const)
    expect([id, await read.deployments.byId(id)]).toEqual([
      id,
      expect.objectContaining({ status, cleanup: 'none', action: null }),
    ]);
  expect(await read.deployments.byId(left.running)).toMatchObject({ stoppedAt: observedAt });
  for (const id of [left.volume, left.spare])
    expect(await read.volumes.byVolumeId(id)).toMatchObject({ status: 'deleted', cleanup: 'done' });
  expect(await read.volumes.attachmentsOf({ deploymentId: left.running })).toEqual([]);
  expect(await read.volumes.countByProvider()).toEqual([]);
  expect(await read.deployments.countToSync()).toEqual([]);
  expect(plain.instances).toHaveLength(machines);
  expect(await read.ledger.openSegmentsOfTeam(market.user.teamId)).toEqual([]);
  expect((await verifyLedger(second.store, clock.now())).findings).toEqual([]);
  expect((await second.request('GET', '/api/providers', { key: null })).body).toEqual([]);
});

it('an operator is told that what is left there cannot be deleted from here', async () => {
  const store = await openTestMarketStore();
  const operated = await startOperatedMarket({ store });
  const { clock } = operated;
  const id = await operated.deployRunning();
  const instance = operated.plain.instances[0]?.id;
  await operated[Symbol.asyncDispose]();
  await using second = await startOperatedMarket({
    ...{ clock, store, providers: {}, retired: ['provider-d'], email: 'second@example.com' },
    operator: 'ivo',
  });
  await clock.advance(60_000);
  const reply = await second.ask(`/deployments/${id}/clean-up`, {});
  expect([reply.status, reply.text]).toEqual([
    400,
    expect.stringContaining(`delete the instance ${instance} there yourself`),
  ]);
  expect(await store.read.deployments.byId(id)).toMatchObject({ cleanup: 'none' });
});
