import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../../test/support/processes/process.ts';
import { runMain } from '../../test/support/processes/run-main.ts';
import { driverCommand } from './driver-command.ts';

it.each([
  ['--env', 'PATH'],
  ['--only', 'notes'],
])('`%s %s ./driver` does not change the program argument', async (...flag) => {
  const args = ['test', ...flag, '/nowhere/driver', '--units', '4'];
  await expect(driverCommand().parseAsync(args, { from: 'user' })).rejects.toThrow(
    'The driver /nowhere/driver cannot be run: the file does not exist.',
  );
});

it('takes flags that name several, at once or one after another', async () => {
  const args = ['test', '--env', 'PATH,HOME', '--env', 'NOT_SET_HERE', '/nowhere/driver'];
  await expect(driverCommand().parseAsync(args, { from: 'user' })).rejects.toThrow('names NOT_SET_HERE');
});

it.each([
  [['--config', 'berth.yaml', './driver'], 'Name one driver'],
  [['--platform', 'paris', './driver'], 'add --config'],
  [['--config', 'berth.yaml', '--timeout-s', '3'], '--timeout-s and --env are in berth.yaml'],
  [[], 'Name one driver'],
])('refuses %s', async (flags, message) => {
  await expect(driverCommand().parseAsync(['test', ...flags], { from: 'user' })).rejects.toThrow(message);
});

it('prints the findings as berth doctor does: what is required, what was asked, what to do', async () => {
  using folder = temporaryFolder();
  const config = join(folder.path, 'berth.yaml');
  writeFileSync(config, JSON.stringify({ database: 'sqlite:berth.db', platform: { driver: 'simulator' } }));
  const only = ['--only', 'inventory', '--units', '3'];

  const { code, stdout } = await runMain(['driver', 'test', '--config', config, ...only]);
  expect(code).toBe(1);
  expect(stdout).toMatch(/^ok {7}driver simulator: machines of the offer \S+; capabilities: stop, /m);
  expect(stdout).toMatch(
    /^BROKEN {3}inventory: .*expected 3, got 400.*\n {9}required: .*\n {9}consequence: .*\n {9}→ Run `berth doctor`/m,
  );
  expect(stdout).toContain('1 ok, 0 warnings, 1 broken.');
});
