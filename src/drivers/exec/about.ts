import type { DriverAbout } from '../kit/driver-definition.ts';

/** What docs/drivers.md says of the driver besides its manifest. */
export const about: DriverAbout = {
  provedOn: 'programs in Python, JavaScript and sh, with and without each capability',
  provedBy: [
    'src/drivers/exec/driver.test.ts',
    'src/drivers/exec/templates.test.ts',
    'test/process/driver-test.openssh.long.test.ts',
  ],
  traps: [
    'A program that starts with a capability less than before is not used until Berth is restarted.',
    'A `create_visible_within_ms` that is too short can make a machine twice.',
    'The clock of an HTTP driver must agree with Berth’s to within a second.',
    'A restarted program may run twice for a moment: it needs a lock if two runs conflict.',
  ],
  guide: 'how-to/driver-in-any-language.md',
};
