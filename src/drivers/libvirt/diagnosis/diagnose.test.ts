import { describe, expect, it } from 'vitest';
import { VirshError } from '../errors.ts';
import type { HostShell } from '../hosts/host-shell.ts';
import {
  aFilesystem,
  aHost,
  answering,
  capabilities,
  facts,
  findingsOf,
  NOW,
  notOk,
  POOL,
  type Problem,
} from './checked-host.fixture.ts';
import { diagnose } from './diagnose.ts';

describe('a healthy host', () => {
  it('has a line for each prerequisite', async () => {
    expect(
      (await findingsOf({})).map(([verdict, subject, finding]) => `${verdict}: ${subject}: ${finding}`),
    ).toEqual([
      'ok: libvirt on host kvm-1: qemu:///system answers',
      'ok: libvirt on host kvm-1: libvirt 9.0.0',
      'ok: libvirt on host kvm-1: QEMU 7.2.22',
      'ok: shell on host kvm-1: it runs the commands of Berth',
      'ok: clock of host kvm-1: It agrees with the clock of Berth.',
      'ok: hook on host kvm-1: it is installed',
      'ok: host kvm-1: its pool, its network and its filters are ready',
      'ok: image debian-12 on host kvm-1: it is the volume debian.qcow2',
      'ok: KVM on host kvm-1: a test guest ran on it',
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
      'there is no KVM, and emulation is allowed',
      { virsh: { domcapabilities: capabilities('<domain>qemu</domain>') } },
      'warning: guests are emulated',
      'kvm_intel',
    ],
    ['KVM hangs', { kvmStatus: 137 }, 'warning: did not finish within 4 s; guests are emulated', 'to tcg'],
    [
      'there is no pool',
      { virsh: { 'pool-info': 'no_pool' } },
      'broken: its pool berth is not active',
      'pool-define-as berth dir',
    ],
    [
      'the pool is off',
      { virsh: { 'pool-info': 'State: inactive' } },
      'broken: its pool berth is not active',
      'pool-start berth',
    ],
    [
      'the file system of the pool is full, although libvirt counted 50 GB at its last refresh',
      { says: [aFilesystem('rw', 1), ...facts.slice(1)] },
      'broken: has 1.0 GB free, less than reserve.disk_gb',
      'Free some disk space',
    ],
    [
      'the file system of the pool is read-only',
      { says: [aFilesystem('ro', 50), ...facts.slice(1)] },
      'broken: /images, is read-only',
      'mount -o remount,rw /images',
    ],
    [
      'the pool does not start by itself',
      { virsh: { 'pool-info': POOL.replace('yes', 'no') } },
      'warning: does not start with the host',
      'pool-autostart berth',
    ],
    [
      'the image is missing',
      { virsh: { 'vol-list': '' } },
      'broken: no volume debian.qcow2',
      'docs/how-to/libvirt.md',
    ],
    [
      'the image has a backing file',
      {
        virsh: {
          'vol-dumpxml':
            '<volume><target><format type="qcow2"/></target><backingStore><path>/images/tenant.qcow2</path></backingStore></volume>',
        },
      },
      'broken: it has the backing file /images/tenant.qcow2',
      'qemu-img convert',
    ],
    [
      'the image is a raw disk',
      { virsh: { 'vol-dumpxml': '<volume><target><format type="raw"/></target></volume>' } },
      'broken: its format is raw',
      'qemu-img convert',
    ],
    ['the image has no name here', { images: {} }, 'broken: has no image of that name', 'platform.images'],
    [
      'there is no filter',
      { virsh: { 'nwfilter-list': ' 7 my-clean-traffic-2\n' } },
      'broken: it has no network filter clean-traffic',
      'nwfilter',
    ],
    [
      'there is no network',
      { virsh: { 'net-info': 'no_network' } },
      'broken: its network is not active',
      'net-define',
    ],
    [
      'the network is off',
      { virsh: { 'net-info': 'Active: no' } },
      'broken: its network is not active',
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
      'broken: it has no bridge br7',
      'Create it',
    ],
    ['its clock is off', { clockMs: NOW + 90_000 }, 'broken: differs from the clock of Berth by 90 s', 'NTP'],
    [
      'its state cannot be written',
      { says: facts.filter((one) => !one.startsWith('state')) },
      'broken: cannot be written',
      'install -d',
    ],
    [
      'it cannot reject late calls',
      { says: [...facts, 'missing\tflock'] },
      'broken: it has no flock',
      'util-linux has flock',
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
