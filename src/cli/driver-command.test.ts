import { expect, it } from 'vitest';
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
