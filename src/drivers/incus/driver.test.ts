import { Cluster, NETWORK, POOL, PROJECT, Refusal } from '../../../simulation/engine/incus/cluster.ts';
import { RestApi } from '../../../simulation/engine/incus/rest-api.ts';
import { Chance } from '../../../simulation/kernel/chance.ts';
import type { Scheduler } from '../../../test/support/time/scheduler.ts';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
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
const catalog = { regions: new Map(), offers: new Map([['h100', offer]]) } as unknown as Catalog;

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
