import { afterAll, beforeAll, expect, it } from 'vitest';
import { openLibvirt } from '../../../src/drivers/libvirt/open.ts';
import { libvirtConfigSchema } from '../../../src/drivers/libvirt/options.ts';
import type { Offer } from '../../../src/orchestrator/catalog/catalog.ts';
import { type LabMachine, settingOf } from '../driver-context.ts';
import { type LabHost, openLabHost } from './lab-host.ts';
import { platformOf } from './platform.ts';

let host: LabHost;
beforeAll(async () => {
  host = await openLabHost(1);
});
afterAll(() => host?.close());

/** What libvirt reads of the package ovmf, for this host alone. */
const INSTALL_FIRMWARE = `set -e
cp -r /usr/share/qemu /run/qemu
mount --bind /run/qemu /usr/share/qemu
mkdir -p /usr/share/qemu/firmware
cat >/usr/share/qemu/firmware/50-lab.json <<'END'
${JSON.stringify({
  description: 'UEFI of the lab',
  'interface-types': ['uefi'],
  mapping: {
    device: 'flash',
    executable: { filename: '/usr/share/qemu/bios.bin', format: 'raw' },
    'nvram-template': { filename: '/usr/share/qemu/bios.bin', format: 'raw' },
  },
  targets: [{ architecture: 'x86_64', machines: ['pc-q35-*'] }],
  features: [],
  tags: [],
})}
END`;

const machine: LabMachine = { datacenter: 'lab1', image: 'tiny', vcpus: 1, memoryGb: 0.1875 };

async function units(offer: Offer['machine'], accelerator = 'tcg'): Promise<number | undefined> {
  const config = libvirtConfigSchema.parse({ ...platformOf([host]), accelerator });
  const driver = openLibvirt(config, settingOf(machine, offer));
  const inventory = await driver.inventory?.();
  await driver.close();
  return inventory?.answer === 'counted' ? inventory.free[0]?.units : undefined;
}

it('counts no machine on KVM where libvirt has none [libvirt-without-kvm]', async () => {
  expect(await units({})).toBeGreaterThan(0);
  expect(await units({}, 'kvm')).toBe(0);
});

it('counts machines with UEFI as soon as libvirt has a firmware [libvirt-without-uefi]', async () => {
  expect(await units({ uefi: true })).toBe(0);
  host.run('sh', '-c', INSTALL_FIRMWARE);
  expect(await units({ uefi: true })).toBeGreaterThan(0);
});
