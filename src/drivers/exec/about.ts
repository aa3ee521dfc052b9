import type { DriverAbout } from '../kit/driver-definition.ts';

/** What docs/drivers.md says of the driver besides its manifest. */
export const about: DriverAbout = {
  provedOn: 'programs in Python, JavaScript and sh, with and without each capability',
  provedBy: [
    'src/drivers/exec/driver.test.ts',
    'src/drivers/exec/templates.test.ts',
    'test/process/driver-test.openssh.long.test.ts',
  ],
  traps: ['A program that starts with fewer capabilities than before is not used until Berth is restarted.'],
  guide: 'how-to/driver-in-any-language.md',
};
