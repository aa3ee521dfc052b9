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
    'The program says what it can do each time that it starts: a capability that it no longer has stops its use until Berth is restarted.',
    'A `create_visible_within_ms` that is too short can make a machine twice.',
    'An HTTP driver needs a clock that agrees with Berth’s to within a second: requests have a deadline.',
    'A program that is restarted while a call is open may run twice for a moment: it needs a lock if two runs conflict.',
  ],
  guide: 'how-to/driver-in-any-language.md',
};
