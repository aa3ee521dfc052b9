import { expect, it } from 'vitest';
import { Cluster, NETWORK, POOL, PROJECT } from '../../../simulation/engine/incus/cluster.ts';
import { RestApi } from '../../../simulation/engine/incus/rest-api.ts';
import { Refusal } from '../../../simulation/engine/surroundings.ts';
import { Chance } from '../../../simulation/kernel/chance.ts';
import { anOrder } from '../../../test/support/rows/orchestrator-rows.ts';
import type { Scheduler } from '../../../test/support/time/scheduler.ts';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type { Step } from '../../orchestrator/model/platform-driver.ts';
import { describeDriver } from '../kit/driver.suite.ts';
import { machineSpec } from '../simulator/simulator.fixture.ts';
import { openIncus } from './open.ts';
import { incusConfigSchema } from './options.ts';
import type { Transport } from './transport.ts';

/** Time that passes as soon as something waits for it. */
class InstantTime {
  now = Date.parse('2026-11-23T00:00:00Z');
  #due: { at: number; run: () => void }[] = [];

  async sleep(ms: number): Promise<void> {
    this.advance(ms);
  }

  after(ms: number, run: () => void) {
    const timer = { at: this.now + ms, run };
    this.#due.push(timer);
    return {
      cancel: () => {
        this.#due = this.#due.filter((one) => one !== timer);
      },
    };
  }

  advance(ms: number): void {
    this.now += ms;
    const due = this.#due.filter(({ at }) => at <= this.now);
    this.#due = this.#due.filter(({ at }) => at > this.now);
    for (const { run } of due) run();
  }
}

const size = { vcpus: 2, memoryGb: 4, rootDiskGb: 10, gpuCount: 0, gpuType: undefined };
const placements = [{ region: 'fra', units: 8 }];
const offer = { ...size, id: 'h100', machine: {}, storageGb: 10, placements };
const whole = { ...offer, id: 'whole', vcpus: 16, onStop: 'release' };
const offers = new Map([offer, whole].map((one) => [one.id, one]));
const catalog = { regions: new Map(), offers } as unknown as Catalog;

function setUp() {
  const time = new InstantTime();
  const cluster = new Cluster({
    members: 3,
    hasForwards: true,
    scheduler: time as unknown as Scheduler,
    chance: new Chance('driver'),
    isCalm: () => true,
    observe: () => undefined,
  });
  const api = new RestApi(cluster);
  const transport: Transport = {
    async send({ method, path, query, headers, body }) {
      const sent = { method, path, query, match: headers['If-Match'], body: JSON.parse(body ?? '{}') };
      const envelope = await api.answer({ ...sent, by: 'a person' }).then(
        ({ metadata = {}, operation, etag }) => ({
          ...{ status: 200, etag, type: operation === undefined ? 'sync' : 'async', metadata },
          operation: operation && `/1.0/operations/${operation}`,
        }),
        (error: unknown) => {
          if (!(error instanceof Refusal)) throw error;
          const { status, message } = error;
          return { status, etag: undefined, type: 'error', error: message, error_code: status };
        },
      );
      const { status, etag, ...text } = structuredClone(envelope);
      return { status, etag, date: undefined, text: JSON.stringify(text) };
    },
    close: async () => undefined,
  };
  const options = incusConfigSchema.parse({
    driver: 'incus',
    project: PROJECT,
    storage_pool: POOL,
    network: NETWORK,
    port_forwards: {
      ports: '30000-30019',
      addresses: Object.fromEntries(cluster.members.map(({ name, publicIp }) => [name, publicIp])),
    },
  });
  const connection = { addresses: ['https://m1:8443'], project: PROJECT, transport: () => transport };
  const open = () => openIncus(options, connection, { catalog, clock: { now: () => time.now } } as never);
  return { time, cluster, open };
}

describeDriver('an Incus cluster in memory', {
  setup: async () => {
    const { time, cluster, open } = setUp();
    return {
      driver: open(),
      machineSpec: (ref) => ({ ...machineSpec({ ref, image: 'ubuntu-24.04' }), ...size }),
      volumeSpec: (ref) => ({ ref, datacenter: 'fra', sizeGb: 10, type: undefined, note: 'a note' }),
      units: undefined,
      wait: async (ms) => time.advance(ms),
      now: () => time.now,
      reopen: async () => open(),
      impossible: { image_missing: { image: 'no-such-image' }, capacity: { vcpus: 10_000 } },
      removeReleased: async (ref) => {
        const disks = cluster.instances.get(ref)?.disk === undefined ? [] : [ref];
        cluster.instances.delete(ref);
        return disks;
      },
    };
  },
  teardown: ({ driver }) => driver.close(),
});

it('two servers at once leave both marks, and the settings of the project [incus-writers-at-once]', async () => {
  const { cluster, open } = setUp();
  const before = cluster.project;
  await Promise.all([open(), open()].map(({ writer }, index) => writer?.write(`w${index}`, 'mark')));
  const marks = { 'user.berth.writer.w0': 'mark', 'user.berth.writer.w1': 'mark' };
  expect(cluster.project).toEqual({ ...before, ...marks });
});

it('a stopped machine takes a unit only if its offer holds it, and starts only where there is room [incus-released]', async () => {
  const { time, cluster, open } = setUp();
  const driver = open();
  const host = cluster.members[0]?.name ?? '';
  const image = 'ubuntu-24.04';
  const spec = (ref: string) => ({
    ...machineSpec({ ref, image }),
    ...size,
    vcpus: 16,
    offerId: 'whole',
    host,
  });
  const finish = async (step: (cookie: string | null) => Promise<Step<unknown>>): Promise<Step<unknown>> => {
    let answer = await step(null);
    while (answer.outcome === 'pending') {
      time.advance(answer.pollAfterMs);
      answer = await step(answer.cookie);
    }
    return answer;
  };
  const free = async () => {
    const inventory = await driver.inventory?.();
    if (inventory?.answer !== 'counted') throw new Error('nothing is counted');
    return [inventory.free.find(({ offerId }) => offerId === 'whole')?.units, inventory.counted];
  };
  const start = () => finish((cookie) => driver.start('berth-a', cookie));
  expect(await finish((cookie) => driver.create(spec('berth-a'), cookie))).toMatchObject({ outcome: 'done' });
  expect(await free()).toEqual([2, ['berth-a']]);
  expect(await finish((cookie) => driver.stop('berth-a', cookie))).toMatchObject({ outcome: 'done' });
  expect(await free()).toEqual([3, []]);
  await finish((cookie) => driver.create(spec('berth-b'), cookie));
  const detail = `${host}: it has 0 free vCPUs, but 16 are needed`;
  expect(await start()).toMatchObject({ outcome: 'failed', code: 'capacity', detail });
  await finish((cookie) => driver.destroy('berth-b', cookie, anOrder));
  expect(await start()).toMatchObject({ outcome: 'done' });
  expect(await free()).toEqual([2, ['berth-a']]);
  await driver.close();
});
