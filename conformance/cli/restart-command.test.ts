import { expect, it } from 'vitest';
import { restartBy } from './restart-command.ts';

const never = new AbortController().signal;

it('returns the exit code and the last lines of both outputs', async () => {
  await expect(restartBy('echo one; echo two >&2; exit 3')(never)).resolves.toEqual({
    exitCode: 3,
    output: 'one\ntwo',
  });
});

it('keeps the last 20 lines', async () => {
  const { output } = await restartBy('seq 100')(never);
  expect(output.split('\n')).toEqual(Array.from({ length: 20 }, (_, index) => String(index + 81)));
});

it('ends a command that takes too long, with all that it started', async () => {
  const outcome = await restartBy('echo begun; sleep 60 & wait', 300)(never);
  expect(outcome).toEqual({ message: 'was ended, since it took longer than 0.3 s', output: 'begun' });
});

it('does not wait for a server that the command leaves running', async () => {
  const { exitCode, output } = await restartBy('sleep 60 & echo $!')(never);
  process.kill(Number(output));
  expect(exitCode).toBe(0);
});

it('ends the command and rejects when the run is interrupted', async () => {
  const interruption = new AbortController();
  const restarted = restartBy('sleep 60')(interruption.signal);
  interruption.abort(new Error('Ctrl-C'));
  await expect(restarted).rejects.toThrow('Ctrl-C');
});
