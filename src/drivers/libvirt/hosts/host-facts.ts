import { VirshError } from '../errors.ts';
import type { Limits } from './guard.ts';
import { HOST_SCRIPT } from './host-script.ts';
import type { HostShell } from './host-shell.ts';

/** The result of a `HOST_SCRIPT` command, with the fields of each output line. */
export interface ScriptAnswer {
  status: number | null;
  lines: readonly (readonly string[])[];
  stderr: string;
}

/** The script's state folder, and for tests a root other than `/`. */
export interface ScriptPlace {
  stateDir: string;
  root?: string;
}

/** @throws {VirshError} */
export async function runHostScript(
  host: HostShell,
  { stateDir, root = '' }: ScriptPlace,
  [command = '', ...args]: readonly string[],
  timeoutMs?: number,
  limits?: Limits,
): Promise<ScriptAnswer> {
  const argv = [command, root, stateDir, ...args];
  const { status, stdout, stderr } = await host.run(HOST_SCRIPT, argv, timeoutMs, limits);
  const lines = stdout.split('\n').filter((line) => line !== '');
  return { status, lines: lines.map((line) => line.split('\t')), stderr };
}

/** The file system of a folder. */
export interface Filesystem {
  mount: string;
  isReadOnly: boolean;
  sizeGb: number;
  /** What others than root can still write. */
  freeGb: number;
}

export interface HostFacts {
  /** The file system of the pool. Undefined if the shell does not see the folder. */
  filesystem: Filesystem | undefined;
  /** Its clock, in milliseconds since the Unix epoch. */
  clockMs: number;
  iommuOn: boolean;
  vfioLoaded: boolean;
  canWriteState: boolean;
  /** A missing program that changing commands need. */
  missing: string | undefined;
}

/** @throws {VirshError} */
export async function readHostFacts(
  host: HostShell,
  place: ScriptPlace,
  folder?: string,
): Promise<HostFacts> {
  const { status, lines, stderr } = await runHostScript(host, place, ['facts', ...(folder ? [folder] : [])]);
  const facts = new Map(lines.map(([name = '', value = '']) => [name, value]));
  const clockMs = Number(facts.get('clock') ?? Number.NaN);
  if (status !== 0 || Number.isNaN(clockMs))
    throw new VirshError(
      'unreachable',
      `${host.name}: its shell failed to run the script of Berth: ${stderr.trim().slice(0, 300)}`,
    );
  return {
    filesystem: toFilesystem(lines.find(([name]) => name === 'filesystem')),
    clockMs,
    iommuOn: facts.has('iommu'),
    vfioLoaded: facts.has('vfio'),
    canWriteState: facts.has('state'),
    missing: facts.get('missing'),
  };
}

function toFilesystem([, mode = '', mount = '', ...figures]: readonly string[] = []): Filesystem | undefined {
  const [blockBytes = 0, blocks = 0, free = 0] = figures.join(' ').split(' ').map(Number);
  const gb = (count: number): number => (count * blockBytes) / 1024 ** 3;
  if (!(gb(blocks) > 0)) return undefined;
  return { mount, isReadOnly: mode === 'ro', sizeGb: gb(blocks), freeGb: gb(free) };
}

/**
 * IPv4 addresses by MAC from the host's neighbour table. Libvirt's own answer (`domifaddr --source arp`) is empty on
 * newer kernels.
 *
 * @throws {VirshError}
 */
export async function readNeighbours(
  host: HostShell,
  place: ScriptPlace,
): Promise<ReadonlyMap<string, string>> {
  const { lines } = await runHostScript(host, place, ['neighbours']);
  return new Map(lines.map(([, mac = '', address = '']) => [mac.toLowerCase(), address]));
}

export interface Capabilities {
  uefi: boolean;
  kvm: boolean;
}

export const DOMCAPABILITIES = 'domcapabilities --arch x86_64 --machine q35';

/** Parses virsh's output. A libvirt without that information, such as its test driver, counts as having all. */
export function readCapabilities(text: string): Capabilities {
  const isKnown = text.includes('<domainCapabilities>');
  return {
    uefi: !isKnown || text.includes('<value>efi</value>'),
    kvm: !isKnown || text.includes('<domain>kvm</domain>'),
  };
}
