import type {
  Endpoint,
  MachineFault,
  ObservedMachine,
  Power,
} from '../../orchestrator/model/platform-driver.ts';
import type { DefinedDomain } from './domain-xml.ts';
import { hasProblem } from './errors.ts';
import type { Member } from './fleet.ts';
import { DOMAIN_WITHIN_MS } from './hosts/domains.ts';
import { readNeighbours } from './hosts/host-facts.ts';
import type { MachineMark } from './machine-mark.ts';
import type { Pause } from './trouble.ts';

export interface Running {
  running: boolean;
  pause?: Pause | undefined;
  fault?: MachineFault | undefined;
  isLastKnown?: boolean;
  domain: Pick<DefinedDomain, 'mac' | 'name' | 'uuid'> & { mark: MachineMark };
  host: Member;
  /** The host's neighbour table, read once for several machines. */
  neighbours?: Neighbours;
}

type Neighbours = () => Promise<ReadonlyMap<string, string>>;

/** The neighbour table of a host, read at the first use. */
export function neighboursOf({ shell, options }: Pick<Member, 'shell' | 'options'>): Neighbours {
  let reading: ReturnType<Neighbours> | undefined;
  return () => {
    reading ??= readNeighbours(shell, { stateDir: options.state_dir });
    return reading;
  };
}

export async function toObserved(machine: Running): Promise<ObservedMachine> {
  const { mark, name } = machine.domain;
  const power = powerOf(machine);
  const { pause, fault, isLastKnown = false } = machine;
  const endpoint = power === 'building' ? undefined : await endpointOf(machine);
  return {
    ref: mark.ref,
    power,
    createdAt: mark.createdAt,
    host: machine.host.name,
    note: mark.note,
    ...(name !== mark.ref && { renamedTo: name }),
    ...(power === 'paused' && pause !== undefined && { detail: pause.reason }),
    fault,
    ...(isLastKnown && { isLastKnown }),
    endpoint,
  };
}

export function powerOf({
  running,
  pause,
  domain: { mark },
}: Pick<Running, 'running' | 'pause' | 'domain'>): Power {
  if (running) return pause === undefined || pause.passes ? 'running' : 'paused';
  if (mark.memo === 'create' || mark.memo === 'boot') return 'building';
  return 'stopped';
}

async function endpointOf(machine: Running): Promise<Endpoint | undefined> {
  const { host, domain, running } = machine;
  const { nat, user, hostKeyFingerprint } = domain.mark;
  const common = { sshUsername: user, ...(hostKeyFingerprint !== undefined && { hostKeyFingerprint }) };
  if (nat === undefined) {
    const address = running ? await addressOf(machine) : undefined;
    return address === undefined ? undefined : { ...common, publicIp: address, sshPort: 22 };
  }
  const [, ...others] = nat.guestPorts;
  const portForwards = others.map((port, index) => ({
    internal_port: port,
    external_port: nat.hostPort + 1 + index,
  }));
  return {
    ...common,
    publicIp: host.options.public_ip ?? nat.address,
    privateIp: nat.address,
    sshPort: nat.hostPort,
    ...(portForwards.length > 0 && { portForwards }),
  };
}

/** The current address of a card on a bridge, according to the host. */
async function addressOf({
  host,
  domain,
  neighbours = neighboursOf(host),
}: Running): Promise<string | undefined> {
  const { virsh, options } = host;
  const { network } = options;
  const { mac } = domain;
  if (network.mode !== 'bridged') return undefined;
  if (network.address_from === 'arp') return mac === undefined ? undefined : (await neighbours()).get(mac);
  try {
    const call = ['domifaddr', '--source', network.address_from, '--', domain.uuid];
    const said = await virsh(call, { withinMs: DOMAIN_WITHIN_MS });
    const lines = said.split('\n');
    const line = lines.find((one) => mac === undefined || one.toLowerCase().includes(mac));
    return /\sipv4\s+(\d+\.\d+\.\d+\.\d+)\//.exec(line ?? '')?.[1];
  } catch (error) {
    // The guest agent does not answer before the guest has booted, or when its tenant does not let it.
    if (hasProblem(error, 'other', 'late')) return undefined;
    throw error;
  }
}
