import { fork } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { history } from './history.fixture.ts';

/** Returns the journal of a seed from a process in that time zone. */
async function elsewhere(zone: string, seed: number): Promise<string> {
  const child = fork(new URL('history.fixture.ts', import.meta.url), {
    env: { ...process.env, TZ: zone },
    execArgv: [],
  });
  child.send(seed);
  const [text] = await once(child, 'message');
  child.disconnect();
  await once(child, 'exit');
  return text;
}

it('the same seed gives the same journal, byte for byte: again, beside others, and in parallel processes of other time zones [sandbox-same-journal]', async () => {
  const first = await history(43);
  expect(JSON.parse(first).length).toBeGreaterThan(10);
  for (const fault of [
    'slow-connection',
    'half-closed-after-answer',
    'dead-connection',
    ...['half-closed-before-answer', 'certificate-expired', 'certificate-wrong-name', 'handshake-reset'],
    'answer-patch',
  ])
    expect(first).toContain(`"fault":"${fault}"`);
  const beside = await Promise.all([history(43), history(44), history(43)]);
  expect([beside[0], beside[2]]).toEqual([first, first]);
  expect(beside[1]).not.toBe(first);
  const workers = [elsewhere('Pacific/Chatham', 43), elsewhere('America/New_York', 43)];
  expect(await Promise.all(workers)).toEqual([first, first]);
});
