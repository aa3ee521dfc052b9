import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { unreadableAnswers } from '../../../test/support/provider-faults.ts';
import { ProviderError } from '../../client/orchestrator-client.ts';
import {
  accept,
  billed,
  HOUR_MS,
  MINUTE_MS,
  openTended,
  read,
  running,
  type Tended,
  tellings,
} from './sync.fixture.ts';

let tended: Tended;
beforeEach(async () => {
  tended = await openTended();
});
afterEach(() => tended.close());

const notFound = new ProviderError('not_found', '404: not_found', { status: 404, code: 'not_found' });

/** Fails every read of an instance with this, until it is called. */
function failReads(error: ProviderError): () => void {
  tended.plain.faults.plan = (method) => (method === 'getInstance' ? { error } : 'none');
  return () => {
    tended.plain.faults.plan = () => 'none';
  };
}

describe('a deployment that was accepted', () => {
  it('is made, runs, and is billed from when that was seen [poll-to-running]', async () => {
    const since = tended.clock.now();
    const id = await accept(tended, { tempSshKeyId: 'ssh-temp' });
    tended.tending.start();
    await tended.clock.advance(2 * MINUTE_MS);
    const record = await read(tended, id);
    expect(record).toMatchObject({
      status: 'running',
      ipAddress: '192.0.2.1',
      sshPort: 22,
      loginUser: 'ubuntu',
    });
    expect(record.launch).toMatchObject({ state: 'made', request: null });
    const seenAt = ((record.startedAt ?? 0) - since) / 1_000;
    expect(seenAt).toBeGreaterThanOrEqual(45);
    expect(seenAt).toBeLessThan(65);
    expect(await billed(tended, id, since)).toEqual([`running 2000000 ${seenAt}–`]);
    expect(await tended.store.read.sshKeys.byId('ssh-temp')).not.toBeNull();
    expect((await tended.store.read.mail.list({ limit: 10 })).map(({ kind }) => kind)).toEqual([
      'deployment_ready',
    ]);
  });

  it('fails when it is not reachable in the time that its provider has, and is removed there [poll-deploy-timeout]', async () => {
    tended.plain.options.bootMs = HOUR_MS;
    const id = await accept(tended, { tempSshKeyId: 'ssh-temp' });
    tended.tending.start();
    await tended.clock.advance(15 * MINUTE_MS - 1);
    expect((await read(tended, id)).status).toBe('deploying');
    await tended.clock.advance(MINUTE_MS);
    expect(await read(tended, id)).toMatchObject({ status: 'failed', failureReason: 'provisioning_timeout' });
    expect(await billed(tended, id, 0)).toEqual([]);
    expect(tended.plain.instances).toEqual([]);
    expect(await tended.store.read.sshKeys.byId('ssh-temp')).toBeNull();
  });
});

describe('a deployment that runs', () => {
  it('is asked for every 10 to 30 seconds, and nothing is written but until when it was seen', async () => {
    const { id } = await running(tended);
    const before = await read(tended, id);
    const from = tended.clock.now();
    await tended.clock.advance(HOUR_MS);
    const polls = tended.plain.faults.calls.filter(
      ({ method, at }) => method === 'getInstance' && at >= from,
    );
    const pauses = polls.slice(1).map(({ at }, index) => at - (polls[index]?.at ?? 0));
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(10_000);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(30_000);
    expect(new Set(pauses).size).toBeGreaterThan(20);
    const { observedAt, ...after } = await read(tended, id);
    expect({ ...after, observedAt: before.observedAt }).toEqual(before);
    expect(tended.clock.now() - (observedAt ?? 0)).toBeLessThanOrEqual(35_000);
  });

  it.each(Object.keys(unreadableAnswers))(
    'stays what it is while the answer is: %s (F54) [poll-unclear-answer]',
    async (kind) => {
      const { id } = await running(tended);
      const error = unreadableAnswers[kind]?.() ?? notFound;
      const before = await read(tended, id);
      const recover = failReads(error);
      await tended.clock.advance(5 * MINUTE_MS);
      const during = await read(tended, id);
      expect({ ...during, observedAt: 0 }).toEqual({ ...before, observedAt: 0 });
      expect(tended.clock.now() - (during.observedAt ?? 0)).toBeGreaterThan(4 * MINUTE_MS);
      expect(tended.told.filter(({ level }) => level === 'warn')).toHaveLength(1);
      recover();
      await tended.clock.advance(MINUTE_MS);
      expect(tended.clock.now() - ((await read(tended, id)).observedAt ?? 0)).toBeLessThanOrEqual(35_000);
    },
  );

  it('survives a 404 that the next answer takes back (F53) [not-found-taken-back]', async () => {
    const { id } = await running(tended);
    const recover = failReads(notFound);
    await tended.clock.advance(15_000);
    recover();
    await tended.clock.advance(5 * MINUTE_MS);
    expect(await read(tended, id)).toMatchObject({ status: 'running', suspicion: null });
    expect((await billed(tended, id, 0)).length).toBe(1);
  });

  it('survives 404 for as long as the list has it [not-found-but-listed]', async () => {
    const { id } = await running(tended);
    failReads(notFound);
    await tended.clock.advance(10 * MINUTE_MS);
    expect((await read(tended, id)).status).toBe('running');
  });

  it('is over when a second poll and the list confirm the 404, and costs nothing from the last sight on [not-found-confirmed]', async () => {
    const { id, instanceId } = await running(tended);
    await tended.clock.advance(20_000);
    tended.plain.vanish(instanceId);
    await tended.clock.advance(5 * MINUTE_MS);
    const { status, stoppedAt, observedAt, cleanup } = await read(tended, id);
    expect({ status, cleanup }).toEqual({ status: 'terminated-provider', cleanup: 'done' });
    expect(stoppedAt).toBe(observedAt);
    const [segment] = await tended.store.read.ledger.segmentsOf('deployment', id);
    expect(segment?.endedAt).toBe(stoppedAt);
    expect(tended.clock.now() - (stoppedAt ?? 0)).toBeGreaterThan(4 * MINUTE_MS);
  });

  it('that blinks stays alive, and pays for all of it [blink-billed]', async () => {
    const { id, instanceId } = await running(tended);
    tended.plain.blink(instanceId, 'OFFLINE', 120_000);
    await tended.clock.advance(10 * MINUTE_MS);
    expect((await read(tended, id)).status).toBe('running');
    expect(await tended.store.read.ledger.segmentsOf('deployment', id)).toHaveLength(1);
  });

  it('that its provider parks is billed at the stopped rate from when it was [provider-parks]', async () => {
    const since = tended.clock.now();
    const { id, instanceId } = await running(tended);
    const startedAt = ((await read(tended, id)).startedAt ?? 0) - since;
    tended.plain.set(instanceId, { status: 'STOPPED' });
    const parkedAt = tended.clock.now() - since;
    await tended.clock.advance(10 * MINUTE_MS);
    const record = await read(tended, id);
    expect(record).toMatchObject({
      status: 'stopped',
      pausedAt: since + parkedAt,
      stoppedRateMicroUsd: 500_000,
    });
    expect(await billed(tended, id, since)).toEqual([
      `running 2000000 ${startedAt / 1_000}–${parkedAt / 1_000}`,
      `stopped 500000 ${parkedAt / 1_000}–`,
    ]);
  });

  it('as SPOT is over as soon as its provider takes it, and follows its price [spot-reclaimed]', async () => {
    const spot = { offerId: 'gpu-spot', instanceType: 'SPOT' } as const;
    const since = tended.clock.now();
    const { id, instanceId } = await running(tended, {
      ...spot,
      originalRateMicroUsd: 1_000_000,
      rateMicroUsd: 1_000_000,
    });
    tended.plain.reprice(instanceId, 1.5);
    await tended.clock.advance(MINUTE_MS);
    expect(await read(tended, id)).toMatchObject({
      originalRateMicroUsd: 1_500_000,
      rateMicroUsd: 1_500_000,
    });
    tended.plain.reprice(instanceId, 150);
    await tended.clock.advance(MINUTE_MS);
    const reclaimedAt = tended.clock.now();
    // However late a poll sees it.
    tended.plain.options.deleteMs = 40_000;
    tended.plain.reclaim(instanceId);
    await tended.clock.advance(2 * MINUTE_MS);
    expect(await read(tended, id)).toMatchObject({ status: 'terminated-provider', cleanup: 'done' });
    const rates = (await billed(tended, id, since)).map((it) => it.split(' ')[1]);
    expect(rates).toEqual(['1000000', '1500000']);
    expect((await read(tended, id)).stoppedAt).toBeGreaterThanOrEqual(reclaimedAt);
    expect((await read(tended, id)).stoppedAt).toBeLessThanOrEqual(reclaimedAt + 5_000);
  });

  it('measures a spot price by the first one, so that none creeps up, and none that was 0 for a moment stays so', async () => {
    const { instanceId, id } = await running(tended, { offerId: 'gpu-spot', instanceType: 'SPOT' });
    const first = (await read(tended, id)).originalRateMicroUsd;
    for (const factor of [9, 81, 729, 0, 1]) {
      tended.plain.reprice(instanceId, (first * factor) / 1_000_000);
      await tended.clock.advance(MINUTE_MS);
    }
    const segments = await tended.store.read.ledger.segmentsOf('deployment', id);
    expect(segments.map(({ rateMicroUsdPerHour }) => rateMicroUsdPerHour / first)).toEqual([1, 9, 0, 1]);
  });
});

describe('a change of ours that is under way', () => {
  const begin = async (id: string, kind: 'pause' | 'restart' | 'volume') => {
    const record = await read(tended, id);
    const action = { kind, since: tended.clock.now(), isSent: true };
    await tended.store.transact((tx) => tx.deployments.update({ ...record, action }));
  };

  it('a stop without an answer is billed as one from when it was done (F56) [stop-without-answer]', async () => {
    tended.plain.options.stopMs = 40_000;
    const since = tended.clock.now();
    const { id, instanceId } = await running(tended);
    await begin(id, 'pause');
    tended.plain.stop(instanceId);
    const doneAt = tended.clock.now() + 40_000;
    await tended.clock.advance(2 * MINUTE_MS);
    expect(await read(tended, id)).toMatchObject({ status: 'stopped', action: null, pausedAt: doneAt });
    expect((await billed(tended, id, since)).at(-1)).toBe(`stopped 500000 ${(doneAt - since) / 1_000}–`);
  });

  it('a restart ends when the provider says so', async () => {
    const { id, instanceId } = await running(tended);
    await begin(id, 'restart');
    tended.plain.restart(instanceId);
    await tended.clock.advance(45_000);
    expect((await read(tended, id)).action?.kind).toBe('restart');
    await tended.clock.advance(45_000);
    expect(await read(tended, id)).toMatchObject({ status: 'running', action: null });
  });

  it('a restart that was taken just now is not over because it does not show yet', async () => {
    const { id } = await running(tended);
    for (let seconds = 0; seconds < 40; seconds++) {
      await begin(id, 'restart');
      await tended.clock.advance(1_000);
    }
    expect(tended.plain.faults.countOf('restartStatus')).toBe(0);
    await tended.clock.advance(30_000);
    expect((await read(tended, id)).action).toBeNull();
  });

  it('one that never shows is not waited for for ever', async () => {
    const { id } = await running(tended);
    await begin(id, 'volume');
    await tended.clock.advance(15 * MINUTE_MS - 1);
    expect((await read(tended, id)).action?.kind).toBe('volume');
    await tended.clock.advance(MINUTE_MS);
    expect(await read(tended, id)).toMatchObject({ status: 'running', action: null });
    expect(tellings(tended.told, 'warn', 'never showed')).toBe(1);
  });

  it('a stop of which the provider shows nothing for a minute was not taken: others may be asked for', async () => {
    const { id } = await running(tended);
    await begin(id, 'pause');
    await tended.clock.advance(MINUTE_MS - 1);
    expect((await read(tended, id)).action?.kind).toBe('pause');
    await tended.clock.advance(MINUTE_MS);
    expect(await read(tended, id)).toMatchObject({ status: 'running', action: null });
  });

  it('a look that was begun before it says nothing of it', async () => {
    const { id } = await running(tended);
    const { client } = tended.plain;
    const { getInstance } = client;
    client.getInstance = async (...args) => {
      client.getInstance = getInstance;
      const old = await getInstance(...args);
      const record = await read(tended, id);
      await tended.store.transact((tx) => tx.deployments.update({ ...record, name: 'another name' }));
      return { ...old, status: 'ERROR' };
    };
    await tended.clock.advance(MINUTE_MS);
    expect(client.getInstance).toBe(getInstance);
    expect(await read(tended, id)).toMatchObject({ status: 'running', name: 'another name' });
  });
});
