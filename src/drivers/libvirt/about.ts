import type { DriverAbout } from '../kit/driver-definition.ts';

/** What docs/drivers.md says of the driver besides its manifest. */
export const about: DriverAbout = {
  provedOn: 'libvirt 9.0.0 and QEMU 7.2 of Debian 12, with emulated guests',
  provedBy: [
    'test/lab/libvirt/driver.lab.test.ts',
    'test/lab/libvirt/fleet.lab.test.ts',
    'test/lab/libvirt/behind.lab.test.ts',
    'test/lab/libvirt/interrupted.lab.test.ts',
  ],
  traps: [
    'KVM, bridges to an existing network and GPUs were not tried on a real host.',
    'A stopped machine starts only on the host that has its disk, if there is room.',
    'A volume is a file of one host: machines of others cannot attach it.',
    'A restart cuts the power: unwritten data is lost.',
    'A delete waits for external snapshots that Berth did not make, and raises an alarm.',
  ],
  guide: 'how-to/libvirt.md',
};
