import type {
  ObservedMachine,
  PlatformDriver,
  Step,
  VolumeDriver,
} from '../../src/orchestrator/model/platform-driver.ts';
import { silentLog } from '../support/doubles/log.ts';
import { startTestOrchestrator, type TestOptions, type TestOrchestrator } from '../support/orchestrator.ts';
import { anOrder } from '../support/rows/orchestrator-rows.ts';
import { instanceRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';

/** What the platform says instead of the truth. */
interface Lie {
  /** Nothing of it can be reached. */
  isDown?: boolean;
  /** Lists without them. */
  listsWithout?: (machine: ObservedMachine) => boolean;
  /** A look says that they are gone, as with a revoked key. */
  deniesAll?: boolean;
  /** A destroy is done and a look says gone, and the machine stays and is listed. */
  deniesLooks?: boolean;
  /** Every order is refused for its credentials. */
  refusesOrders?: boolean;
  /** Every machine has failed. */
  failsAll?: boolean;
}

interface Alarm {
  fields: Record<string, unknown>;
  message: string;
}

export async function startTroubled(options: TestOptions = {}, atStart: Lie = {}) {
  let lie = atStart;
  const counts = { list: 0, get: 0, create: 0, destroy: 0 };
  const alarms: Alarm[] = [];
  const orchestrator = await startTestOrchestrator({
    log: {
      ...silentLog,
      error: (fields, message) => alarms.push({ fields: { ...fields }, message }),
    },
    ...options,
    wrapDriver: (driver) => lying(driver, () => lie, counts),
  });
  return {
    orchestrator,
    counts,
    alarms: (pattern: RegExp) => alarms.filter(({ message }) => pattern.test(message)),
    say: (next: Lie) => {
      lie = next;
    },
    [Symbol.asyncDispose]: () => orchestrator[Symbol.asyncDispose](),
  };
}

type Troubled = Awaited<ReturnType<typeof startTroubled>>;

function lying(
  driver: PlatformDriver,
  lie: () => Lie,
  counts: Record<'list' | 'get' | 'create' | 'destroy', number>,
): PlatformDriver {
  const refused: Step<never> = {
    outcome: 'failed',
    code: 'auth',
    sideEffect: 'none',
    detail: 'the key is revoked',
  };
  const reached = (): Lie => {
    if (lie().isDown) throw new Error('no route to the platform');
    return lie();
  };
  const shown = (machine: ObservedMachine): ObservedMachine =>
    lie().failsAll ? { ...machine, power: 'failed', detail: 'the host burnt down' } : machine;
  const { volumes } = driver;
  return {
    manifest: driver.manifest,
    ...(volumes !== undefined && { volumes: lyingVolumes(volumes, lie) }),
    stop: (ref, cookie) => driver.stop(ref, cookie),
    start: (ref, cookie) => driver.start(ref, cookie),
    restart: (ref, id, cookie) => driver.restart(ref, id, cookie),
    close: () => driver.close(),
    list: async () => {
      counts.list++;
      const { listsWithout, deniesAll } = reached();
      const listing = await driver.list();
      if (listing.answer === 'unknown') return listing;
      const items = listing.items.filter((item) => !deniesAll && !listsWithout?.(item));
      return { answer: 'listed', items: items.map(shown) };
    },
    get: async (ref) => {
      counts.get++;
      if (reached().deniesAll || lie().deniesLooks) return { answer: 'gone' };
      const found = await driver.get(ref);
      return found.answer === 'observed' ? { answer: 'observed', value: shown(found.value) } : found;
    },
    create: async (spec, cookie) => {
      counts.create++;
      return reached().refusesOrders ? refused : driver.create(spec, cookie);
    },
    destroy: async (ref, cookie) => {
      counts.destroy++;
      if (reached().deniesLooks) return { outcome: 'done', value: null };
      return lie().refusesOrders ? refused : driver.destroy(ref, cookie, anOrder);
    },
  };
}

function lyingVolumes(volumes: VolumeDriver, lie: () => Lie): VolumeDriver {
  return {
    get: async (ref) => (lie().deniesAll ? { answer: 'gone' } : volumes.get(ref)),
    list: async () => {
      return lie().deniesAll ? { answer: 'listed', items: [] } : volumes.list();
    },
    create: (spec, cookie) => volumes.create(spec, cookie),
    attach: (ref, machine, cookie) => volumes.attach(ref, machine, cookie),
    detach: (ref, machine, cookie) => volumes.detach(ref, machine, cookie),
    resize: (ref, sizeGb, cookie) => volumes.resize(ref, sizeGb, cookie),
    destroy: async (ref, cookie) =>
      lie().deniesAll ? { outcome: 'done', value: null } : volumes.destroy(ref, cookie, anOrder),
  };
}

export async function create(orchestrator: TestOrchestrator, overrides: Record<string, unknown> = {}) {
  const { status, body, text } = await orchestrator.request('POST', '/instances', {
    body: instanceRequest(overrides),
  });
  if (status !== 201) throw new Error(text);
  return String(body['id']);
}

export async function online(orchestrator: TestOrchestrator, count: number): Promise<string[]> {
  const ids = await Promise.all(Array.from({ length: count }, () => create(orchestrator)));
  await Promise.all(ids.map((id) => orchestrator.waitFor(id, 'ONLINE')));
  return ids;
}

export async function statuses({ request }: TestOrchestrator, ids: readonly string[]): Promise<unknown[]> {
  return Promise.all(ids.map(async (id) => (await request('GET', `/instances/${id}`)).body['status']));
}

export async function refOf({ store }: TestOrchestrator, id: string): Promise<string> {
  return (await store.read.instances.byId(id))?.ownerRef ?? '';
}

/** Takes the machine away behind the orchestrator's back. */
export async function take(orchestrator: TestOrchestrator, id: string): Promise<void> {
  const ref = await refOf(orchestrator, id);
  await until(
    'it is gone',
    async () => (await orchestrator.simulator.destroy(ref, null, anOrder)).outcome === 'done',
  );
}

export async function offered({ request }: TestOrchestrator): Promise<number> {
  const { body } = await request<{ configurations: unknown[] }>('GET', '/availability');
  return body.configurations.length;
}

export async function metric({ admin }: TestOrchestrator, name: string): Promise<string | undefined> {
  const text = await (await admin.fetch('/metrics')).text();
  return new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1];
}

/** The platform has been listed `times` more since the call. */
export async function listings({ counts }: Troubled, times: number): Promise<void> {
  const before = counts.list;
  await until(`it was listed ${times} times`, () => counts.list >= before + times);
}
