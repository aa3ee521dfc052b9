import { MessageChannel } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { ThreadCalls } from './thread-calls.ts';

it('fails open and later calls once the other end is gone', async () => {
  const { port1, port2 } = new MessageChannel();
  const calls = new ThreadCalls(port1, {});
  const open = calls.call('run');
  calls.fail(new Error('the other end is gone'));
  await expect(open).rejects.toThrow('the other end is gone');
  await expect(calls.call('run')).rejects.toThrow('the other end is gone');
  port2.close();
});
