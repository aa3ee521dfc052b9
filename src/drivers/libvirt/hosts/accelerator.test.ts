import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { chooseAccelerator } from './accelerator.ts';
import { type HostFacts, readHostFacts, readNeighbours } from './host-facts.ts';
import { openHostShell } from './host-shell.ts';

const facts: HostFacts = {
  filesystem: undefined,
  clockMs: 0,
  virtualization: 'vmx',
  hasKvmDevice: true,
  iommuOn: false,
  vfioLoaded: false,
  canWriteState: true,
  missing: undefined,
  cordon: undefined,
};
const place = { stateDir: '/var/lib/berth' };

/** A host with fake programs, each of which runs its script. */
function openHostWith(programs: Readonly<Record<string, string>>) {
  const bin = mkdtempSync(join(tmpdir(), 'berth-host-bin-'));
  onTestFinished(() => rmSync(bin, { recursive: true }));
  for (const [name, does] of Object.entries(programs))
    writeFileSync(join(bin, name), `#!/bin/sh\n${does}\n`, { mode: 0o755 });
  const shell = openHostShell({ name: 'kvm-1', uri: 'qemu:///system' });
  const run: typeof shell.run = (script, args, timeoutMs) =>
    shell.run(`PATH=${bin}:$PATH\n${script}`, args, timeoutMs);
  return { name: shell.name, run };
}

const openHostWhereQemu = (does: string) => openHostWith({ 'qemu-system-x86_64': does });

describe('the accelerator', () => {
  it('is KVM where a guest on it finished', async () => {
    const host = openHostWhereQemu('exit 67');
    expect(await chooseAccelerator(host, place, facts, 'auto')).toEqual({
      accelerator: 'kvm',
      doubtful: false,
      finding: 'a test guest ran on KVM',
    });
  });

  it.each<[string, string, Partial<HostFacts>, string]>([
    ['the guest hangs', 'kill -9 $$', {}, 'the test guest did not finish within'],
    ['QEMU fails', 'echo no MSR; exit 134', {}, 'QEMU on KVM ended with status 134: no MSR'],
    ['the guest powers off without output', 'exit 0', {}, 'ended with status 0'],
    ['QEMU is not installed', 'exit 127', {}, 'qemu-system-x86_64, needed to test KVM, is not installed'],
    ['there is no device', 'exit 67', { hasKvmDevice: false }, 'there is no /dev/kvm'],
    ['the processor runs no guests', 'exit 67', { virtualization: undefined }, 'neither vmx nor svm'],
  ])(
    'is TCG, with a warning for the operator, if %s [kvm-probed]',
    async (_name, does, otherwise, finding) => {
      const verdict = await chooseAccelerator(
        openHostWhereQemu(does),
        place,
        { ...facts, ...otherwise },
        'auto',
      );
      expect(verdict).toEqual({
        accelerator: 'tcg',
        doubtful: true,
        finding: expect.stringContaining(finding),
      });
    },
  );

  it('is the configured one, without a test', async () => {
    const host = openHostWhereQemu('exit 1');
    for (const wanted of ['kvm', 'tcg'] as const)
      expect(await chooseAccelerator(host, place, facts, wanted)).toMatchObject({
        accelerator: wanted,
        doubtful: false,
      });
  });
});

describe('a host reports', () => {
  it('its hardware and facts', async () => {
    const root = mkdtempSync(join(tmpdir(), 'berth-host-'));
    onTestFinished(() => rmSync(root, { recursive: true }));
    const shell = openHostWith({ virsh: '', flock: '' });
    const read = () => readHostFacts(shell, { ...place, root });
    const none = {
      virtualization: undefined,
      hasKvmDevice: false,
      iommuOn: false,
      vfioLoaded: false,
      cordon: undefined,
    };
    expect(await read()).toMatchObject(none);
    for (const folder of [
      'dev/kvm',
      'proc',
      'sys/kernel/iommu_groups/0',
      'sys/bus/pci/drivers/vfio-pci',
      'var/lib/berth',
    ])
      mkdirSync(join(root, folder), { recursive: true });
    writeFileSync(join(root, 'proc/cpuinfo'), 'flags\t\t: fpu svm vme\n');
    writeFileSync(join(root, 'var/lib/berth/cordon'), 'a disk is replaced\n');
    expect(await read()).toEqual({
      clockMs: expect.any(Number),
      virtualization: 'svm',
      hasKvmDevice: true,
      iommuOn: true,
      vfioLoaded: true,
      canWriteState: true,
      cordon: 'a disk is replaced',
    });
    writeFileSync(join(root, 'var/lib/berth/cordon'), '');
    expect((await read()).cordon).toBe('the file gives no reason');
  });

  it('the addresses that answered it, and no others', async () => {
    const root = mkdtempSync(join(tmpdir(), 'berth-host-'));
    onTestFinished(() => rmSync(root, { recursive: true }));
    mkdirSync(join(root, 'proc/net'), { recursive: true });
    const table = [
      'IP address       HW type     Flags       HW address            Mask     Device',
      '192.168.150.120  0x1         0x2         52:54:00:28:3d:36     *        virbr-berth',
      '192.168.150.2    0x1         0x0         00:00:00:00:00:00     *        virbr-berth',
      '10.77.2.1        0x1         0x6         CA:A0:61:1E:2F:95     *        eth0',
    ];
    writeFileSync(join(root, 'proc/net/arp'), `${table.join('\n')}\n`);
    const shell = openHostShell({ name: 'kvm-1', uri: 'qemu:///system' });
    expect([...(await readNeighbours(shell, { ...place, root }))]).toEqual([
      ['52:54:00:28:3d:36', '192.168.150.120'],
      ['ca:a0:61:1e:2f:95', '10.77.2.1'],
    ]);
  });

  it('nothing if its shell does not work', async () => {
    const shell = { name: 'kvm-1', run: async () => ({ status: 127, stdout: '', stderr: 'sh: not found' }) };
    await expect(readHostFacts(shell, place)).rejects.toThrow(
      'kvm-1: its shell failed to run the script of Berth',
    );
  });
});
