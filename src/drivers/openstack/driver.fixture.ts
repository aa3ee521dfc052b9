import type { CloudParts } from '../../../simulation/engine/openstack/cloud.ts';
import { cloudsEntry } from '../../../simulation/engine/openstack/identity.ts';
import {
  ADMIN,
  clientOf,
  type MemoryCloud,
  memoryCloud,
  URLS,
} from '../../../simulation/engine/openstack/memory-cloud.fixture.ts';
import type { Catalog } from '../../orchestrator/catalog/catalog.ts';
import type {
  MachineSpec,
  OwnerRef,
  PlatformDriver,
  Step,
} from '../../orchestrator/model/platform-driver.ts';
import type { Transport } from '../kit/http-transport.ts';
import { machineSpec } from '../simulator/simulator.fixture.ts';
import type { Cloud } from './clouds.ts';
import { openOpenStack } from './open.ts';
import { openstackConfigSchema } from './options.ts';

const size = { vcpus: 2, memoryGb: 2, rootDiskGb: 20, gpuCount: 0, gpuType: undefined };

export interface Given {
  bootsFromVolume?: boolean;
  onStop?: 'release' | 'hold';
  floating?: boolean;
  cloud?: Partial<CloudParts>;
  as?: { id: string; secret: string };
  options?: object;
  transport?: (own: Transport) => Transport;
}

/** The driver over a cloud in memory, whose clock stands still until a test moves it. */
export function openstackInMemory(given: Given = {}) {
  const { bootsFromVolume = false, onStop = 'hold', floating = false, as = ADMIN } = given;
  const memory = memoryCloud(given.cloud);
  const machine = { flavor: 'm1.small', ...(bootsFromVolume && { boot_volume: {} }) };
  const placements = [{ region: 'fra', units: 8 }];
  const offer = {
    ...size,
    id: 'h100',
    machine,
    storageGb: 20,
    placements,
    osOptions: ['ubuntu-24.04'],
    onStop,
  };
  const catalog = { regions: new Map(), offers: new Map([['h100', offer]]) } as unknown as Catalog;
  const options = openstackConfigSchema.parse({
    ...{ driver: 'openstack', cloud: 'memory', network: 'tenants' },
    ...(floating && { floating_network: 'public' }),
    ...given.options,
  });
  const { project } = (given.options ?? {}) as { project?: string };
  const cloud: Cloud = { ...cloudsEntry(as), project };
  const transport = given.transport?.(memory.transport) ?? memory.transport;
  const clock = { now: () => memory.time.now };
  const open = (): PlatformDriver =>
    openOpenStack(options, { cloud, transport }, { catalog, clock } as never);
  return { ...memory, options, catalog, connection: { cloud, transport, ...clock }, open };
}

export function specOf(ref: OwnerRef, more: Partial<MachineSpec> = {}): MachineSpec {
  return { ...machineSpec({ ref, image: 'ubuntu-24.04' }), ...size, ...more };
}

/** Repeats a step until it ends, as the core does. */
export async function ended<T>(
  { wait }: Pick<MemoryCloud, 'wait'>,
  step: (cookie: string | null) => Promise<Step<T>>,
): Promise<Exclude<Step<T>, { outcome: 'pending' }>> {
  let cookie: string | null = null;
  for (let calls = 0; calls < 500; calls += 1) {
    const outcome = await step(cookie);
    if (outcome.outcome !== 'pending') return outcome;
    cookie = outcome.cookie;
    await wait(outcome.pollAfterMs);
  }
  throw new Error(`still pending: ${cookie}`);
}

/** The driver with a machine, and an operator of the cloud who changes it. */
export async function withMachine(given: Given = {}, ref = 'berth-inst-1') {
  const setting = openstackInMemory(given);
  const driver = setting.open();
  const made = await ended(setting, (cookie) => driver.create(specOf(ref), cookie));
  if (made.outcome !== 'done') throw new Error(JSON.stringify(made));
  const { ask } = await clientOf(setting);
  const id = [...setting.cloud.servers.values()].find(({ name }) => name === ref)?.id ?? '';
  const act = async (name: string, args: object | null = null) => {
    const { status, text } = await ask('POST', `${URLS.nova}/servers/${id}/action`, { [name]: args });
    if (status >= 300) throw new Error(text);
  };
  const power = async (): Promise<string> => {
    const found = await driver.get(ref);
    return found.answer === 'observed' ? found.value.power : found.answer;
  };
  return { ...setting, driver, ref, id, ask, act, power, machine: made.value };
}
