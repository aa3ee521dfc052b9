import type {
  CopyOfResource,
  Endpoint,
  HostAnswers,
  Leftover,
  ObservedMachine,
  OwnerRef,
} from '../../orchestrator/model/platform-driver.ts';
import type { Port, Server } from './api.ts';
import { type Attempt, partsOf, phaseOf, readAttempt, readEverything, shortNoteOf } from './objects.ts';
import type { MachineMethod, Platform } from './platform.ts';
import { toHost } from './session.ts';
import { endpointOf, fromPlatform, noteOf, toCopy } from './translate.ts';

export const getMachine: MachineMethod<'get'> = async (platform, ref) => {
  const value = await observe(platform, ref, await readAttempt(platform, ref));
  return value === undefined
    ? { answer: 'gone', hosts: await answered(platform, []) }
    : { answer: 'observed', value };
};

/** All machines of the project. What a server left behind and no order removes is a leftover. */
export const listMachines: MachineMethod<'list'> = async (platform) => {
  const { attempts, zones } = await readEverything(platform);
  const items: ObservedMachine[] = [];
  const leftovers: Leftover[] = [];
  const copies: CopyOfResource[] = [];
  for (const [ref, attempt] of attempts) {
    const value = await observe(platform, ref, attempt);
    if (value !== undefined) items.push(value);
    const parts = value === undefined ? partsOf(attempt) : attempt.duplicates.map(({ id }) => `server ${id}`);
    const note = shortNoteOf(attempt);
    if (parts.length > 0) leftovers.push({ ref, detail: parts.join(', '), note });
    copies.push(...attempt.copies.map((one) => toCopy(ref, one)));
  }
  return { answer: 'listed', items, leftovers, copies, hosts: await answered(platform, zones) };
};

/**
 * The machine of an attempt. Without a server, the port's phase decides. Undefined if the machine is gone, even if parts
 * remain.
 */
async function observe(
  platform: Platform,
  ref: OwnerRef,
  attempt: Attempt,
): Promise<ObservedMachine | undefined> {
  const { server } = attempt;
  const phase = phaseOf(attempt);
  if (server !== undefined) {
    const machine = await showMachine(platform, ref, server, attempt);
    return phase === 'destroying' ? { ...machine, power: 'destroying' } : machine;
  }
  if (phase !== 'making' && phase !== 'destroying') return undefined;
  const note = noteOf(attempt.bootVolumes[0]?.metadata ?? {}) ?? shortNoteOf(attempt);
  const power = phase === 'making' ? 'building' : 'destroying';
  return {
    ref,
    power,
    createdAt: Date.parse(attempt.ports[0]?.created_at ?? '') || 0,
    note,
  };
}

export async function showMachine(
  platform: Platform,
  ref: OwnerRef,
  server: Server,
  attempt: Pick<Attempt, 'ports' | 'floatingIps'>,
): Promise<ObservedMachine> {
  const zone = server['OS-EXT-AZ:availability_zone'];
  const host = zone ? toHost(zone, await platform.api.client.session()) : undefined;
  return fromPlatform(server, ref, endpointIn(platform, server, attempt), host);
}

export function portOf({ id }: Server, ports: readonly Port[]): Port | undefined {
  return ports.find((one) => one.device_id === id) ?? ports.find((one) => one.device_id === '');
}

export function endpointIn(
  { options }: Platform,
  server: Server,
  { ports, floatingIps }: Pick<Attempt, 'ports' | 'floatingIps'>,
): Endpoint | undefined {
  const port = portOf(server, ports);
  const floating = port && floatingIps.find((one) => one.port_id === port.id);
  return endpointOf(server, port, floating, options.floating_network !== undefined);
}

/** The zones behind an answer: the API answers for all of them. */
async function answered({ api }: Platform, shown: readonly string[]): Promise<HostAnswers> {
  const [zones, session] = await Promise.all([api.zones(), api.client.session()]);
  const hosts = new Set([...zones.map(({ host }) => host), ...shown.map((zone) => toHost(zone, session))]);
  return { answered: [...hosts], silent: [] };
}

export async function readConsole(platform: Platform, ref: OwnerRef, lines: number): Promise<string> {
  const { api } = platform;
  const { server } = await readAttempt(platform, ref);
  if (server?.status !== 'ACTIVE') return '';
  const action = { 'os-getConsoleOutput': { length: lines } };
  return String((await api.act('compute', `/servers/${server.id}`, action))['output'] ?? '');
}
