import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { aCatalog } from '../catalog.fixture.ts';
import type { Host } from '../client.ts';
import { VirshError, type VirshProblem } from '../errors.ts';
import { markGpu } from '../gpus/sanitize.ts';
import { geForce, openHostWith, type SysfsTree } from '../gpus/sysfs.fixture.ts';
import { someHostOptions } from '../host-options.fixture.ts';
import type { HostShell } from '../hosts/host-shell.ts';
import { type HostOptions, libvirtConfigSchema } from '../options.ts';
import { diagnose, diagnoseHost } from './diagnose.ts';
import type { CheckedHost } from './shell-checks.ts';

const nat: HostOptions['network'] = libvirtConfigSchema.parse({
  driver: 'libvirt',
  hosts: [{ name: 'h', datacenter: 'fra', public_ip: '192.0.2.1' }],
}).hosts[0]?.network ?? { mode: 'bridged', bridge: 'none', address_from: 'arp' };

/** Virsh's output per command on a host without problems; a problem instead makes the command fail. */
const healthy: Record<string, string | VirshProblem> = {
  version: 'Using library: libvirt 9.0.0\nRunning hypervisor: QEMU 7.2.22\n',
  'pool-info': `State:          running\nAutostart:      yes\nAvailable:      ${50 * 1024 ** 3}\n`,
  'vol-info': 'Name: debian.qcow2\n',
  'nwfilter-list': ' 6d1 clean-traffic\n',
  'net-info': 'Active:         yes\nAutostart:      yes\n',
  list: '',
  hostname: 'kvm-1',
};

const capabilities = (what: string): string => `<domainCapabilities>${what}</domainCapabilities>`;

const facts = [
  'virtualization\tvmx',
  'kvm\tpresent',
  'state\twritable',
  'iommu\ton',
  'vfio\tloaded',
  'probe\t67\t',
];
const NOW = 1_700_000_000_000;

interface Problem {
  virsh?: Record<string, string | VirshProblem>;
  says?: readonly string[];
  clockMs?: number;
  options?: Partial<HostOptions>;
  shell?: HostShell;
  gpuTypes?: Record<string, string[]>;
  images?: Record<string, { volume: string; user: string }>;
  accelerator?: string;
  offer?: object;
}

function aHost({
  virsh = {},
  says = facts,
  clockMs = NOW,
  options = {},
  gpuTypes = {},
  ...rest
}: Problem): CheckedHost {
  const answer = async (command: string): Promise<string> => {
    const text = { ...healthy, ...virsh }[command.split(' ')[0] ?? ''] ?? 'other';
    if (!/^[a-z_]+$/.test(text)) return text;
    throw new VirshError(text as VirshProblem, `virsh ${command} on kvm-1: ${text}`);
  };
  const host: Host = {
    name: 'kvm-1',
    options: someHostOptions({ network: nat, ...options }),
    virsh: ([command = '']) => answer(command),
    virshBytes: async () => Buffer.alloc(0),
  };
  const shell: HostShell = {
    name: 'kvm-1',
    run: async () => ({ status: 0, stdout: [`clock\t${clockMs}`, ...says].join('\n'), stderr: '' }),
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

async function findingsOf(problem: Problem): Promise<string[][]> {
  const found = [];
  for await (const { verdict, subject, finding, remedy } of diagnoseHost(aHost(problem))) {
    expect(remedy === undefined).toBe(verdict === 'ok');
    found.push([verdict, subject, finding, remedy ?? '']);
  }
  return found;
}

const notOk = async (problem: Problem): Promise<string[][]> =>
  (await findingsOf(problem)).filter(([verdict]) => verdict !== 'ok');

describe('a healthy host', () => {
  it('has a line for each prerequisite', async () => {
    expect(
      (await findingsOf({})).map(([verdict, subject, finding]) => `${verdict}: ${subject}: ${finding}`),
    ).toEqual([
      'ok: libvirt on host kvm-1: qemu:///system answers',
      'ok: libvirt on host kvm-1: libvirt 9.0.0',
      'ok: libvirt on host kvm-1: QEMU 7.2.22',
      'ok: shell on host kvm-1: it runs the commands of Berth',
      'ok: state folder on host kvm-1: /var/lib/berth can be written',
      'ok: clock of host kvm-1: it differs from the clock of Berth by 0.0 s',
      'ok: hook on host kvm-1: it is installed',
      'ok: pool berth on host kvm-1: it runs, 50.0 GB are free',
      'ok: image debian-12 on host kvm-1: it is the volume debian.qcow2',
      'ok: network filter on host kvm-1: clean-traffic is there',
      'ok: network berth on host kvm-1: it is active',
      'ok: accelerator of host kvm-1: kvm: a test guest ran on KVM',
    ]);
  });
});

describe('each problem has a finding and a remedy', () => {
  it.each<[string, Problem, string, string]>([
    ['libvirt refuses us', { virsh: { version: 'refused' } }, 'broken: refused', 'usermod -aG libvirt'],
    [
      'libvirt does not answer',
      { virsh: { version: 'unreachable' } },
      'broken: unreachable',
      'systemctl status',
    ],
    [
      'libvirt is old',
      { virsh: { version: 'Using library: libvirt 8.5.0\nRunning hypervisor: QEMU 7.2.0' } },
      'warning: libvirt 8.5.0 is older',
      'libvirt 9',
    ],
    [
      'there is no QEMU',
      { virsh: { version: 'Using library: libvirt 9.0.0\nRunning hypervisor: TEST 0.0.2' } },
      'broken: a QEMU version',
      'Install QEMU',
    ],
    [
      'there is no firmware for an offer',
      { offer: { uefi: true }, virsh: { domcapabilities: capabilities('<domain>kvm</domain>') } },
      'broken: libvirt has no UEFI firmware',
      'ovmf',
    ],
    [
      'there is no KVM, and nothing else is allowed',
      { accelerator: 'kvm', virsh: { domcapabilities: capabilities('<domain>qemu</domain>') } },
      'broken: libvirt has no KVM',
      'kvm_intel',
    ],
    [
      'there is no pool',
      { virsh: { 'pool-info': 'no_pool' } },
      'broken: it does not exist',
      'pool-define-as berth dir',
    ],
    [
      'the pool is off',
      { virsh: { 'pool-info': 'State: inactive' } },
      'broken: it is inactive',
      'pool-start berth',
    ],
    [
      'the pool is full',
      { virsh: { 'pool-info': 'State: running\nAutostart: yes\nAvailable: 1073741824' } },
      'broken: 1.0 GB are free, less than reserve.disk_gb',
      'Free some disk space',
    ],
    [
      'the pool does not start by itself',
      { virsh: { 'pool-info': `State: running\nAutostart: no\nAvailable: ${50 * 1024 ** 3}` } },
      'warning: does not start with the host',
      'pool-autostart berth',
    ],
    [
      'the image is missing',
      { virsh: { 'vol-info': 'no_volume' } },
      'broken: no volume debian.qcow2',
      'berth image import',
    ],
    ['the image has no name here', { images: {} }, 'broken: has no image of that name', 'platform.images'],
    [
      'there is no filter',
      { virsh: { 'nwfilter-list': ' 7 my-clean-traffic-2\n' } },
      'broken: no clean-traffic',
      'nwfilter',
    ],
    [
      'there is no network',
      { virsh: { 'net-info': 'no_network' } },
      'broken: it does not exist',
      'net-define',
    ],
    [
      'the network is off',
      { virsh: { 'net-info': 'Active: no' } },
      'broken: it is not active',
      'virsh net-start berth && virsh net-autostart berth && systemctl restart libvirtd',
    ],
    [
      'the network does not start by itself',
      { virsh: { 'net-info': 'Active: yes\nAutostart: no' } },
      'warning: does not start with the host',
      'net-autostart berth',
    ],
    [
      'there is no bridge',
      {
        options: { network: { mode: 'bridged', bridge: 'br7', address_from: 'arp' } },
        shell: answering(facts),
      },
      'broken: it does not exist',
      'Create it',
    ],
    [
      'its clock is late',
      { clockMs: NOW - 5_000 },
      'warning: differs from the clock of Berth by -5.0 s',
      'chrony',
    ],
    [
      'its clock is off',
      { clockMs: NOW + 90_000 },
      'broken: differs from the clock of Berth by 90.0 s',
      'chrony',
    ],
    [
      'its state cannot be written',
      { says: facts.filter((one) => !one.startsWith('state')) },
      'broken: cannot be written',
      'install -d',
    ],
    [
      'it cannot reject late calls',
      { says: [...facts, 'missing\tflock'] },
      'broken: flock is not installed',
      'util-linux has flock',
    ],
    [
      'it is cordoned by a file',
      { says: [...facts, 'cordon\ta fan'] },
      'warning: it is cordoned: a fan',
      'rm /var/lib/berth/cordon',
    ],
    [
      'it is cordoned by the configuration',
      { options: { cordoned: true } },
      'warning: by the configuration',
      'cordoned to false',
    ],
    [
      'KVM hangs',
      { says: [...facts.slice(0, -1), 'probe\t137\t'] },
      'warning: did not finish',
      'platform.accelerator',
    ],
  ])('%s', async (_name, problem, expected, remedy) => {
    const [verdict, finding = ''] = expected.split(': ');
    const found = await notOk(problem);
    expect(found).toHaveLength(1);
    expect([found[0]?.[0], found[0]?.[2], found[0]?.[3]]).toEqual([
      verdict,
      expect.stringContaining(finding),
      expect.stringContaining(remedy),
    ]);
  });

  it('reports only libvirt and the shell of a host that is down, and no consequences', async () => {
    const shell: HostShell = {
      name: 'kvm-1',
      run: async () => Promise.reject(new VirshError('unreachable', 'ssh to kvm-1: No route to host')),
    };
    const found = await findingsOf({ virsh: { version: 'unreachable' }, shell });
    expect(found.map(([verdict, subject]) => `${verdict}: ${subject}`)).toEqual([
      'broken: libvirt on host kvm-1',
      'broken: shell on host kvm-1',
    ]);
  });

  it('reports libvirt that goes away during the checks', async () => {
    expect(await notOk({ virsh: { 'nwfilter-list': 'unreachable' } })).toEqual([
      ['broken', 'host kvm-1', expect.stringContaining('unreachable'), expect.any(String)],
    ]);
  });
});

describe('the prerequisites of NAT', () => {
  const hook = 'etc/libvirt/hooks/qemu.d/berth';
  const whole: Record<string, string> = {
    [hook]: '#!/bin/sh\n',
    'proc/sys/net/ipv4/ip_forward': '1\n',
    'proc/net/fib_trie':
      'Main:\n  +-- 192.0.2.0/30 2 0 2\n     |-- 192.0.2.1\n        /32 host LOCAL\n     |-- 192.0.2.3\n        /32 link BROADCAST\n',
  };

  /** A shell that runs the host script on a file system with these files; `facts` is answered from constants. */
  function withFiles(files: Record<string, string>): HostShell {
    const { shell, place } = openHostWith({});
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(place.root, path)), { recursive: true });
      writeFileSync(join(place.root, path), text);
    }
    const told = answering(facts);
    const run: HostShell['run'] = (script, [command = '', , ...rest], timeoutMs) =>
      (['exists', 'network'].includes(command) ? shell : told).run(
        script,
        [command, place.root, ...rest],
        timeoutMs,
      );
    return { name: 'kvm-1', run };
  }

  const { [hook]: _, ...withoutHook } = whole;
  it.each<[string, Record<string, string>, string[]]>([
    [
      'no hook',
      withoutHook,
      ['hook on host kvm-1', `there is no /${hook}`, 'install -D -m 755 examples/libvirt/berth-hook'],
    ],
    [
      'a host that does not forward packets',
      { ...whole, 'proc/sys/net/ipv4/ip_forward': '0\n' },
      ['forwarding on host kvm-1', 'net.ipv4.ip_forward is 0', 'sysctl --system'],
    ],
    [
      'a public_ip that no interface has',
      { ...whole, 'proc/net/fib_trie': whole['proc/net/fib_trie']?.replace('2.1\n', '2.2\n') ?? '' },
      ['address 192.0.2.1 of host kvm-1', 'no interface of the host has it', 'public_ip_elsewhere: true'],
    ],
  ])('%s is broken [libvirt-doctor-forwarding]', async (_name, files, [subject = '', finding, remedy]) => {
    expect(await notOk({ shell: withFiles(files) })).toEqual([
      ['broken', subject, expect.stringContaining(finding ?? ''), expect.stringContaining(remedy ?? '')],
    ]);
  });

  it('reports nothing on a host that has them all, or whose address is declared to be on a router', async () => {
    expect(await notOk({ shell: withFiles(whole) })).toEqual([]);
    const options = { public_ip: '198.51.100.7', public_ip_elsewhere: true };
    expect(await notOk({ options, shell: withFiles(whole) })).toEqual([]);
  });
});

function answering(lines: readonly string[]): HostShell {
  return {
    name: 'kvm-1',
    run: async (_script, [command]) => ({
      status: 0,
      stdout: command === 'exists' ? '' : [`clock\t${NOW}`, ...lines].join('\n'),
      stderr: '',
    }),
  };
}

describe('GPUs', () => {
  const gpuTypes = { RTX_4090: ['10de:2684'] };

  /** A host with a tree of PCI devices; `facts` is answered from constants. */
  function withTree(tree: SysfsTree, says = facts) {
    const { shell, place } = openHostWith(tree);
    const told = answering(says);
    const run: HostShell['run'] = (script, [command = '', , ...rest], timeoutMs) =>
      command === 'gpus'
        ? shell.run(script, [command, place.root, ...rest], timeoutMs)
        : told.run(script, [command, '', ...rest], timeoutMs);
    return { shell: { name: 'kvm-1', run }, real: shell, place };
  }

  const ofGpus = async (problem: Problem): Promise<string[]> =>
    (await findingsOf(problem))
      .filter(([, subject]) => /GPU|IOMMU|vfio/.test(subject ?? ''))
      .map(([verdict, subject, finding]) => `${verdict}: ${subject}: ${finding}`);

  it('are not checked when no offer has any', async () => {
    expect(await ofGpus({ shell: withTree(geForce).shell })).toEqual([]);
  });

  it('have one line each, after the IOMMU and the driver', async () => {
    expect(await ofGpus({ gpuTypes, shell: withTree(geForce).shell })).toEqual([
      'ok: IOMMU of host kvm-1: it is on',
      'ok: vfio-pci on host kvm-1: it is loaded',
      'ok: GPU 0000:65:00.0 (RTX_4090) on host kvm-1: it is free',
    ]);
    const none = facts.filter((one) => !/^(iommu|vfio)/.test(one));
    expect(await ofGpus({ gpuTypes, shell: withTree(geForce, none).shell })).toEqual([
      'broken: IOMMU of host kvm-1: it is off: machines cannot get GPUs',
      'broken: vfio-pci on host kvm-1: it is not loaded',
      expect.stringContaining('ok: GPU'),
    ]);
    expect(await ofGpus({ gpuTypes, shell: withTree({}).shell })).toEqual([
      'ok: GPUs of host kvm-1: it has none of the types in gpu_types',
    ]);
  });

  it('are reported with a remedy when they wait for a reset or are out of use', async () => {
    const { shell, real, place } = withTree(geForce);
    await markGpu(real, place, '0000:65:00.0', 'berth-a', '1');
    expect((await ofGpus({ gpuTypes, shell })).at(-1)).toContain('warning: GPU');
    writeFileSync(`${place.root}/var/lib/berth/gpus/0000:65:00.0`, 'quarantined its fan\n');
    const last = (await findingsOf({ gpuTypes, shell })).at(-1);
    expect(last).toEqual([
      'broken',
      'GPU 0000:65:00.0 (RTX_4090) on host kvm-1',
      'it is out of use: its fan',
      "Repair it, then run echo 'dirty operator 1' > /var/lib/berth/gpus/0000:65:00.0: Berth tries to reset it again.",
    ]);
  });
});

it('reports an offer that fits no host', async () => {
  const { config, catalog, clock } = aHost({});
  const found = [];
  for await (const one of diagnose({ ...config, hosts: [] }, { catalog, clock }))
    found.push(`${one.subject}: ${one.finding}`);
  expect(found).toEqual([
    'offer small: it is sold in eu1, but no host of the group default is in fra',
    'offer small: it is sold in eu2, but no host of the group default is in ams',
    'offer gpu: gpu_types has no entry for H100',
    'offer gpu: it is sold in eu1, but no host of the group default is in fra',
  ]);
});
