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
