import { expect, it } from 'vitest';
import { recordedOrder } from '../../orchestrator/model/destroy-order.ts';
import type { Call, Step } from '../../orchestrator/model/platform-driver.ts';
import { aCluster, type Cluster } from './cluster.fixture.ts';
import { mark } from './translate.ts';

const REF = 'berth-vol-a';
const COPY = 'berth-vol-a-g1';
const MACHINE = 'berth-inst-a';
const DATA = 'the only data';
const moved = recordedOrder({ reason: 'moved', by: 'server', at: 0 });
const spec = { ref: REF, datacenter: 'd', sizeGb: 1, type: undefined, note: 'n' };
const copySpec = { ...spec, ref: COPY, host: 'm2' };

async function withMachine(): Promise<Cluster> {
  const cluster = await aCluster();
  cluster.machines.set(MACHINE, { location: 'm2', devices: {} });
  return cluster;
}

/** A volume on m1, and a machine on m2 that it is to be attached to. */
async function withVolume(): Promise<Cluster> {
  const cluster = await withMachine();
  const config = { [mark.createdBy]: 'berth', [mark.ref]: REF, [mark.note]: 'n', size: '1024MiB' };
  cluster.volumes.push({ name: REF, location: 'm1', config, data: DATA, usedBy: [] });
  return cluster;
}

/** Limits of a call that the core aborts when `until` resolves. */
function limits(until: Promise<unknown>): Call {
  const given = new AbortController();
  void until.then(() => given.abort());
  return { deadline: Number.POSITIVE_INFINITY, fence: 1, signal: given.signal };
}

/**
 * Repeats the core's behaviour: a call that rejects has an unknown outcome, and the step is retried without a cookie.
 */
async function call<T>(
  step: Promise<Step<T>>,
): Promise<{ outcome: string; cookie: string | null; code?: string }> {
  try {
    const answer = await step;
    return {
      outcome: answer.outcome,
      cookie: answer.outcome === 'pending' ? answer.cookie : null,
      ...(answer.outcome === 'failed' && { code: answer.code }),
    };
  } catch {
    return { outcome: 'unknown', cookie: null };
  }
}

const dataOf = ({ volumes, log }: Cluster) => ({ data: volumes.map(({ data }) => data), log });
const kept = { data: expect.arrayContaining([DATA]) };

it('R1: a moved volume keeps its data if the deletion of its original takes longer than a request may', async () => {
  const cluster = await withVolume();
  const [deleted, isDeleting] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  cluster.deleteTakes = (member) => {
    isDeleting.resolve();
    return member === 'm1' ? deleted.promise : Promise.resolve();
  };
  const { volumes } = cluster.open();
  expect(await call(volumes.attach(REF, MACHINE, null))).toMatchObject({
    outcome: 'failed',
    code: 'elsewhere',
  });
  const begun = await call(volumes.copy?.(REF, copySpec, null) as Promise<Step<unknown>>);
  cluster.finishCopies();
  expect(cluster.at('m2', COPY)?.data).toBe(DATA);
  expect(await volumes.copy?.(REF, copySpec, begun.cookie)).toMatchObject({ outcome: 'done' });
  expect(await volumes.attach(COPY, MACHINE, null)).toMatchObject({ outcome: 'done' });
  // Incus takes longer to remove the original than the call may take (rm -rf, zfs destroy, a busy disk).
  const lost = await call(volumes.destroy(REF, null, moved, limits(isDeleting.promise)));
  expect(lost.outcome).toBe('unknown');
  cluster.forgetOperations();
  // The core retries without a cookie, on a server without any state: the move starts again.
  await call(volumes.attach(REF, MACHINE, null));
  await call(volumes.copy?.(REF, copySpec, null) as Promise<Step<unknown>>);
  const again = call(volumes.destroy(REF, lost.cookie, moved));
  deleted.resolve();
  await again;
  await cluster.settled();
  cluster.finishCopies();
  expect(dataOf(cluster)).toMatchObject(kept);
  expect(cluster.at('m2', COPY)).toMatchObject({ data: DATA, usedBy: [MACHINE] });
});

it('R2: a volume keeps its data if a process slept past its lease before it deleted the original', async () => {
  const cluster = await withVolume();
  const [{ volumes: sleeping }, { volumes: other }] = [cluster.open(), cluster.open()];
  const begun = await call(sleeping.copy?.(REF, copySpec, null) as Promise<Step<unknown>>);
  cluster.finishCopies();
  expect(await sleeping.copy?.(REF, copySpec, begun.cookie)).toMatchObject({ outcome: 'done' });
  // The first process is paused. Its DELETE on m1 waits in a socket buffer or a proxy, and arrives when the process
  // resumes.
  const [awake, isSent] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let isFirst = true;
  cluster.deleteTakes = async (member) => {
    if (member !== 'm1' || !isFirst) return;
    isFirst = false;
    isSent.resolve();
    await awake.promise;
  };
  const late = call(sleeping.destroy(REF, null, moved));
  await isSent.promise;
  cluster.forgetOperations();
  // Another process now holds the lease and starts the move again.
  await call(other.attach(REF, MACHINE, null));
  const again = await call(other.copy?.(REF, copySpec, begun.cookie) as Promise<Step<unknown>>);
  expect(again.outcome).toBe('done');
  awake.resolve();
  await late;
  cluster.finishCopies();
  await call(other.attach(COPY, MACHINE, null));
  await call(other.destroy(REF, null, moved));
  expect(dataOf(cluster)).toMatchObject(kept);
  expect(cluster.at('m2', COPY)).toMatchObject({ data: DATA, usedBy: [MACHINE] });
});

it('R3: a late create makes no second volume on another member, for which the data would be deleted', async () => {
  const cluster = await withMachine();
  const [hung, isSent] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  // m1 hangs. It makes the volume when it resumes.
  cluster.createTakes = (member) => {
    isSent.resolve();
    return member === 'm1' ? hung.promise : Promise.resolve();
  };
  const { volumes: before } = cluster.open();
  await expect(before.create(spec, null, limits(isSent.promise))).rejects.toThrow();
  expect(await before.get(REF)).toMatchObject({ answer: 'gone' });
  // After the visibility time another process sends the create again without a host. m1 is now offline, or m2 has
  // more room.
  cluster.preferred = 'm2';
  const { volumes } = cluster.open();
  expect(await volumes.create(spec, null)).toMatchObject({ outcome: 'done' });
  // The tenant attaches it to a machine on m2, writes, and detaches it.
  expect(await volumes.attach(REF, MACHINE, null)).toMatchObject({ outcome: 'done' });
  const used = cluster.at('m2', REF);
  if (used === undefined) throw new Error('it is not on m2');
  used.data = DATA;
  used.usedBy = [];
  cluster.machines.set(MACHINE, { location: 'm2', devices: {} });
  // m1 resumes.
  hung.resolve();
  await cluster.settled();
  expect(cluster.volumes).toHaveLength(2);
  cluster.order = (all) => all.toSorted((a, b) => a.location.localeCompare(b.location));
  // The volume is attached to the same machine again.
  await call(volumes.attach(REF, MACHINE, null));
  expect({ data: cluster.at('m2', REF)?.data, log: cluster.log }).toMatchObject({ data: DATA });
  expect(cluster.log.filter((one) => one.startsWith('DELETE'))).toEqual([]);
});

it('R3: a create for a member is sent only to that member, even if another has more room', async () => {
  const cluster = await withMachine();
  cluster.preferred = 'm1';
  const { volumes } = cluster.open();
  expect(await volumes.create({ ...spec, host: 'm2' }, null)).toMatchObject({ value: { host: 'm2' } });
  expect(cluster.log).toEqual(['POST m2 custom']);
});
