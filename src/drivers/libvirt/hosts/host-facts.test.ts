import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readHostFacts, readNeighbours } from './host-facts.ts';
import { openHostShell } from './host-shell.ts';

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

describe('a host reports', () => {
  it('its hardware and facts', async () => {
    const root = mkdtempSync(join(tmpdir(), 'berth-host-'));
    onTestFinished(() => rmSync(root, { recursive: true }));
    const shell = openHostWith({ virsh: '', flock: '' });
    const read = () => readHostFacts(shell, { ...place, root });
    const none = {
      iommuOn: false,
      vfioLoaded: false,
    };
    expect(await read()).toMatchObject(none);
    for (const folder of ['sys/kernel/iommu_groups/0', 'sys/bus/pci/drivers/vfio-pci', 'var/lib/berth'])
      mkdirSync(join(root, folder), { recursive: true });
    expect(await read()).toEqual({
      clockMs: expect.any(Number),
      iommuOn: true,
      vfioLoaded: true,
      canWriteState: true,
    });
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
