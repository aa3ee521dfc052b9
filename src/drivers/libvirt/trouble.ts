import type { MachineFault, OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import type { Host } from './client.ts';
import type { DefinedDomain, HostDomain } from './domain-xml.ts';
import { onProblem, VirshError } from './errors.ts';
import { DOMAIN_WITHIN_MS, silenceOf } from './hosts/domains.ts';
import { runHostScript } from './hosts/host-facts.ts';
import type { HostShell } from './hosts/host-shell.ts';
import { LEAST_FREE_GB } from './hosts/host-view.ts';
import type { HostOptions } from './options.ts';

/** Why a domain's processors are halted. */
export interface Pause {
  reason: string;
  /** Whether it ends by itself, because libvirt is working on the domain. */
  passes: boolean;
  /** The command that resumes the domain. */
  resumedBy: 'resume' | 'dompmwakeup';
}

/** Reasons of `virsh domstate --reason` for a pause that ends by itself. */
const PASSING: ReadonlySet<string> = new Set([
  'migrating',
  'post-copy',
  'saving',
  'dumping',
  'creating snapshot',
]);
/** Reasons that occur briefly during each start and stop. */
const ORDINARY: ReadonlySet<string> = new Set(['starting up', 'shutting down']);

/** States other than `paused` in which the processors are halted. Libvirt gives no details for them. */
const HALTED: Readonly<Record<string, Pause>> = {
  pmsuspended: { reason: 'the guest suspended itself', passes: false, resumedBy: 'dompmwakeup' },
  crashed: { reason: 'the guest crashed', passes: false, resumedBy: 'resume' },
};

/** Reads why the processors are halted. Undefined if they are not. @throws {VirshError} */
export async function readPause({ virsh }: Pick<Host, 'virsh'>, name: string): Promise<Pause | undefined> {
  const said = await virsh(['domstate', '--reason', '--', name], { withinMs: DOMAIN_WITHIN_MS });
  const [, state = '', reason = ''] = /^(\w+) \((.*)\)/.exec(said) ?? [];
  if (state !== 'paused') return HALTED[state];
  if (ORDINARY.has(reason)) return undefined;
  const resumedBy = 'resume';
  if (reason !== 'I/O error') return { reason, passes: PASSING.has(reason), resumedBy };
  // Unlike the other commands of this file, it asks QEMU.
  const errors = virsh(['domblkerror', '--', name], { withinMs: DOMAIN_WITHIN_MS });
  const disks = (await errors.catch(onProblem('late', ''))).trim().replaceAll(/\s*\n\s*/g, ', ');
  return { reason: `I/O error${disks === '' ? '' : ` (${disks})`}`, passes: false, resumedBy };
}

/** The fault of a machine that libvirt does not answer about. */
export const silenceFault = (host: string, { name }: Pick<HostDomain, 'name'>): MachineFault => ({
  finding: silenceOf(host, name),
  remedy: `On ${host}: ps -o pid,stat,wchan -p $(cat /run/libvirt/qemu/${name}.pid). In state D it waits for its storage or a device: repair that, or restart the host. In state T, kill -CONT continues it. Until then Berth shows its last known state.`,
});

/** The host's files and cards that its machines use. */
interface Surroundings {
  /** The bridge of each card. Empty if it has none. */
  bridges: ReadonlyMap<string, string>;
  missing: ReadonlySet<string>;
  readOnly: ReadonlySet<string>;
  full: ReadonlySet<string>;
  /** Names of domains whose QEMU process a signal has stopped: libvirt shows them as running. */
  halted: ReadonlySet<string>;
}

/** A disk on a file system that hangs delays the shell. */
const ANSWER_WITHIN_MS = DOMAIN_WITHIN_MS;

/** Reads the surroundings of a host's machines. Undefined if the host's shell does not answer. */
export async function readSurroundings(
  { shell, options }: { shell: HostShell; options: Pick<HostOptions, 'state_dir'> },
  domains: readonly DefinedDomain[],
): Promise<Surroundings | undefined> {
  try {
    const paths = domains.flatMap(({ disks }) => disks[0]?.path ?? []);
    const { lines } = await runHostScript(
      shell,
      { stateDir: options.state_dir },
      ['machines', ...paths],
      ANSWER_WITHIN_MS,
    );
    const of = (kind: string) => lines.filter(([first]) => first === kind);
    return {
      bridges: new Map(of('card').map(([, card = '', bridge = '']) => [card, bridge])),
      halted: new Set(of('halted').map(([, name = '']) => name)),
      missing: new Set(of('missing').map(([, path = '']) => path)),
      readOnly: new Set(of('exists').flatMap(([, path = '', mode]) => (mode === 'ro' ? path : []))),
      full: new Set(
        of('exists').flatMap(([, path = '', , bytes = '']) =>
          bytes !== '' && Number(bytes) < LEAST_FREE_GB * 2 ** 30 ? path : [],
        ),
      ),
    };
  } catch (error) {
    if (error instanceof VirshError) return undefined;
    throw error;
  }
}

interface Shown {
  ref: OwnerRef;
  running: boolean;
  pause: Pause | undefined;
  domain: Pick<DefinedDomain, 'name' | 'disks' | 'card'>;
}

/** A problem of a machine that does not stop it. */
export function faultOf(
  { ref, running, pause, domain: { name, disks, card } }: Shown,
  surroundings: Surroundings | undefined,
): MachineFault | undefined {
  if (pause?.passes === true)
    return {
      finding: `libvirt has paused it temporarily (${pause.reason})`,
      remedy: `Wait; virsh domjobinfo ${ref} shows the progress.`,
    };
  if (surroundings === undefined) return undefined;
  if (running && surroundings.halted.has(name))
    return {
      finding: 'a signal has stopped its QEMU process: the guest does not run',
      remedy: `On its host: kill -CONT $(cat /run/libvirt/qemu/${name}.pid)`,
    };
  const path = disks[0]?.path;
  if (path !== undefined && surroundings.missing.has(path))
    return {
      finding: `its disk ${path} is missing`,
      remedy: running
        ? 'Copy its data from inside the guest while it runs: a stop loses the data. Berth does not stop it.'
        : 'Restore the file, or mount its filesystem: a start without the file ends the instance in ERROR.',
    };
  if (path !== undefined && surroundings.readOnly.has(path))
    return {
      finding: `its disk ${path} is on a file system that is read-only: what the guest writes is lost`,
      remedy:
        'The kernel log of the host shows why (dmesg). Repair the file system, and mount it read-write again.',
    };
  if (path !== undefined && surroundings.full.has(path))
    return {
      finding: `the file system of its disk ${path} is full: libvirt pauses the guest at its next write that needs room`,
      remedy: 'Free space there. Nothing new is placed on the host until then.',
    };
  if (!running || card === undefined) return undefined;
  const { device, bridge } = card;
  const at = surroundings.bridges.get(device);
  // A card unknown to the shell is in another network namespace. Open vSwitch bridges are not kernel bridges.
  if (at === undefined || at === bridge || at === 'ovs-system') return undefined;
  return {
    finding: `its network interface ${device} is not on ${bridge}, as after virsh net-destroy: nothing reaches the machine`,
    remedy:
      'Start the network if it is not active (virsh net-start NETWORK), then restart libvirtd (systemctl restart libvirtd): it reattaches the interfaces of running guests.',
  };
}
