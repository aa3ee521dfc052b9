import { describe, expect, it } from 'vitest';
import { helpers, runHelper, startJoined } from './other-languages.ts';

// Go first compiles its standard library for -race.

/** What the failing tests print, in each language. */
const FAILURES = [
  /never triggered \(.*must_trigger.*\)[\s\S]*http-500 \{.*\}, after 0 occasions/,
  /all_destroyed: inst-\w+ was made and not destroyed/,
  /The client fails the verdict:\s[\s\S]*polls-in-time: inst-\w+ was not read for 60 s[\s\S]*leaves-nothing-running: inst-/,
  /POST \/faults: fault: expected a fault, such as http-500/,
];

describe.each(Object.entries(helpers))(
  'examples/%s',
  (name, { isThere, packages, green, failing: { red } }) => {
    const why = `Debian’s ${packages} are missing here`;
    const isLeftOut = !isThere && !process.env['CI'];

    it('its tests pass, at the same time, in a sandbox that it starts', async ({ skip }) => {
      if (isLeftOut) return skip(why);
      const { code, stdout } = await runHelper(name);
      expect(stdout).toMatch(green);
      expect(code, stdout).toBe(0);
    });

    it('a fault that never triggered, a machine that is left, a broken rule and a refused request each fail their test, in a sandbox that it joins', async ({
      skip,
    }) => {
      if (isLeftOut) return skip(why);
      const { sandbox, env } = await startJoined();
      await using _sandbox = sandbox;
      const { code, stdout } = await runHelper(name, { failing: true, env });
      for (const failure of FAILURES) expect(stdout).toMatch(failure);
      expect(stdout).toMatch(red);
      expect(code).not.toBe(0);
    });
  },
);
