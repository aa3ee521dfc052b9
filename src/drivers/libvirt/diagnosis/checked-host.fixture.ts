import { expect } from 'vitest';
import { aCatalog } from '../catalog.fixture.ts';
import type { Host } from '../client.ts';
import { VirshError, type VirshProblem } from '../errors.ts';
import { someHostOptions } from '../host-options.fixture.ts';
import type { HostShell } from '../hosts/host-shell.ts';
import { type HostOptions, libvirtConfigSchema } from '../options.ts';
import { diagnoseHost } from './diagnose.ts';
import type { CheckedHost } from './shell-checks.ts';

const nat: HostOptions['network'] = libvirtConfigSchema.parse({
  driver: 'libvirt',
  hosts: [{ name: 'h', datacenter: 'fra', public_ip: '192.0.2.1' }],
}).hosts[0]?.network ?? { mode: 'bridged', bridge: 'none', address_from: 'arp' };

/** Virsh's output per command on a host without problems; a problem instead makes the command fail. */
export const capabilities = (what: string): string => `<domainCapabilities>${what}</domainCapabilities>`;

export const POOL = `State: running\nAutostart: yes\nCapacity: ${500 * 1024 ** 3}\nAvailable: ${50 * 1024 ** 3}\n`;

const healthy: Record<string, string | VirshProblem> = {
  version: 'Using library: libvirt 9.0.0\nRunning hypervisor: QEMU 7.2.22\n',
  'pool-info': POOL,
  nodeinfo: 'CPU(s):  16\nMemory size:  67108864 KiB\n',
  'pool-refresh': '',
  'pool-dumpxml': '<pool><target><path>/images</path></target></pool>',
  'vol-list': ' debian.qcow2   /images/debian.qcow2   file   2.00 GiB   1.00 GiB\n',
  'vol-dumpxml': '<volume><target><format type="qcow2"/></target></volume>',
  'nwfilter-list': ' 6d1 clean-traffic\n',
  'net-info': 'Active:         yes\nAutostart:      yes\n',
  list: '',
  hostname: 'kvm-1',
  domcapabilities: capabilities('<domain>kvm</domain>'),
};

const GIB = 1024 ** 3;
export const aFilesystem = (mode: string, freeGb: number): string =>
  `filesystem\t${mode}\t/images\t${GIB}\t500\t${freeGb}`;

export const facts = [aFilesystem('rw', 50), 'state\twritable', 'iommu\ton', 'vfio\tloaded'];
export const NOW = 1_700_000_000_000;

export interface Problem {
  virsh?: Record<string, string | VirshProblem>;
  says?: readonly string[];
  clockMs?: number;
  options?: Partial<HostOptions>;
  shell?: HostShell;
  gpuTypes?: Record<string, string[]>;
  images?: Record<string, { volume: string; user: string }>;
  accelerator?: string;
  /** How QEMU's test guest on KVM ended; 67: well. */
  kvmStatus?: number;
  offer?: object;
}

export function aHost({
  virsh = {},
  says = facts,
  clockMs = NOW,
  options = {},
  gpuTypes = {},
  kvmStatus = 67,
  ...rest
}: Problem): CheckedHost {
  /** Of several commands, one that fails for its own reason says nothing. */
  const answer = async (given: string): Promise<string> => {
    const commands = given.split(/; ?/);
    const texts = commands.map((command) => {
      const text = { ...healthy, ...virsh }[command.split(' ')[0] ?? ''] ?? 'other';
      if (!/^[a-z_]+$/.test(text)) return text;
      if (commands.length > 1 && text.startsWith('no_')) return '';
      throw new VirshError(text as VirshProblem, `virsh ${command} on kvm-1: ${text}`);
    });
    return texts.join('\n');
  };
  const host: Host = {
    name: 'kvm-1',
    options: someHostOptions({ network: nat, ...options }),
    lastKnown: new Map(),
    virsh: ([command = '']) => answer(command),
    virshBytes: async () => Buffer.alloc(0),
  };
  const shell: HostShell = {
    name: 'kvm-1',
    run: async (_script, [command]) => ({
      status: command === 'test-kvm' ? kvmStatus : 0,
      stdout: [`clock\t${clockMs}`, ...says].join('\n'),
      stderr: '',
    }),
  };
  const { accelerator, offer, images = { 'debian-12': { volume: 'debian.qcow2', user: 'debian' } } } = rest;
  const config = libvirtConfigSchema.parse({
    driver: 'libvirt',
    hosts: [{ name: 'kvm-1', datacenter: 'fra', public_ip: '192.0.2.1' }],
    images,
    gpu_types: gpuTypes,
    accelerator,
  });
  const clock = { now: () => NOW, setTimer: () => ({ cancel: () => {} }) };
  return { host, shell: rest.shell ?? shell, config, catalog: aCatalog(offer), clock };
}

export async function findingsOf(problem: Problem): Promise<string[][]> {
  const found = [];
  for await (const { verdict, subject, finding, remedy } of diagnoseHost(aHost(problem))) {
    expect(remedy === undefined).toBe(verdict === 'ok');
    found.push([verdict, subject, finding, remedy ?? '']);
  }
  return found;
}

export const notOk = async (problem: Problem): Promise<string[][]> =>
  (await findingsOf(problem)).filter(([verdict]) => verdict !== 'ok');

export function answering(lines: readonly string[]): HostShell {
  return {
    name: 'kvm-1',
    run: async (_script, [command]) => ({
      status: command === 'test-kvm' ? 67 : 0,
      stdout: command === 'exists' ? '' : [`clock\t${NOW}`, ...lines].join('\n'),
      stderr: '',
    }),
  };
}
