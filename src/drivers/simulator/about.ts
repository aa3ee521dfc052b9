import type { DriverAbout } from '../kit/driver-definition.ts';

/** What docs/drivers.md says of the driver besides its manifest. */
export const about: DriverAbout = {
  provedOn: 'this version of Berth: it has no other platform behind it',
  provedBy: ['src/drivers/simulator/driver.test.ts', 'src/drivers/simulator/platform/platform.test.ts'],
  traps: [
    'Its machines are SSH servers with a small disk and some twenty-five commands: it is for trials and tests.',
    'A machine starts again only on its own host, even if only others have room.',
  ],
  guide: 'simulator.md',
};
