import { expect, it } from 'vitest';
import { helpers, run, runHelper, startJoined } from './other-languages.ts';

// `npm run proofs -- clients` repeats this on a busy machine.

it('suites of clients in TypeScript and Python pass side by side, their tests at the same time [sandbox-clients]', async ({
  skip,
}) => {
  if (!helpers['pytest']?.isThere && !process.env['CI'])
    return skip('Debian’s python3-pytest is missing here');
  const { sandbox, env } = await startJoined();
  await using _sandbox = sandbox;
  const vitest = [process.execPath, 'node_modules/vitest/vitest.mjs', 'run', '--project', 'clients'];
  const typescript = run(vitest);
  // Three processes share a sandbox; one starts its own.
  const python = [env, env, env, {}].map((joined) => runHelper('pytest', { env: joined }));
  for (const { code, stdout } of await Promise.all([typescript, ...python])) expect(code, stdout).toBe(0);
});
