import { expect, it } from 'vitest';
import { aCluster } from './cluster.fixture.ts';
import { mark } from './translate.ts';

const [VOLUME, MACHINE] = ['berth-vol-a', 'berth-inst-1'];
const marks = { [mark.createdBy]: 'berth', [mark.ref]: VOLUME, [mark.note]: 'n' };
const callOf = (fence: number) => ({
  deadline: Number.POSITIVE_INFINITY,
  fence,
  signal: new AbortController().signal,
});

/**
 * A server is paused while its change of the machine is in transit. Another server makes the same change and reverts
 * it.
 */
it.each(['attach', 'detach'] as const)(
  'a late %s is refused after later claims have applied and reverted it',
  async (late) => {
    const cluster = await aCluster();
    cluster.machines.set(MACHINE, { location: 'm1', devices: {} });
    cluster.volumes.push({ name: VOLUME, location: 'm1', config: marks, data: null, usedBy: [] });
    const [paused, other] = [cluster.open(), cluster.open()];
    const undo = late === 'attach' ? 'detach' : 'attach';
    if (late === 'detach') await other.volumes.attach(VOLUME, MACHINE, null, callOf(1));
    const before = cluster.machines.get(MACHINE)?.devices;

    const { promise: woken, resolve: wake } = Promise.withResolvers<void>();
    const { promise: held, resolve: hold } = Promise.withResolvers<void>();
    const answer = cluster.answer.bind(cluster);
    let isFirst = true;
    cluster.answer = async (sent) => {
      if (sent.method === 'GET' || !isFirst) return answer(sent);
      isFirst = false;
      hold();
      await woken;
      return answer(sent);
    };
    const call = paused.volumes[late](VOLUME, MACHINE, null, callOf(2));
    await held;
    await other.volumes[late](VOLUME, MACHINE, null, callOf(3));
    await other.volumes[undo](VOLUME, MACHINE, null, callOf(4));
    expect(cluster.machines.get(MACHINE)?.devices).toEqual(before);
    wake();
    expect(await call).toMatchObject({ outcome: 'pending' });
    expect(cluster.machines.get(MACHINE)?.devices).toEqual(before);
  },
);
