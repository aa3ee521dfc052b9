import type { DriverAbout } from '../kit/driver-definition.ts';

/** What docs/drivers.md says of the driver besides its manifest. */
export const about: DriverAbout = {
  provedOn: 'Incus 6.0.4, on a daemon and on a cluster of three, with containers',
  provedBy: [
    'test/lab/incus/driver.lab.test.ts',
    'test/lab/incus/single.lab.test.ts',
    'test/lab/incus/serve.lab.test.ts',
    'test/lab/incus/interrupted.lab.test.ts',
  ],
  traps: [
    'Virtual machines, OVN networks and GPUs were not tried on a real host.',
    'Containers have the clock, the kernel and the devices of their host.',
    'Volumes of other projects, and machines that another Berth process places at the same moment, are not counted as capacity.',
    'Two servers that change the forwards of one address within milliseconds can lose one change until the next listing.',
  ],
  guide: 'how-to/incus.md',
};
