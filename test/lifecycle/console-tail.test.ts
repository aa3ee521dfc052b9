import { describe, expect, it } from 'vitest';
import type { Plan } from '../support/plain-orchestrator.ts';
import { startPlainOrchestrator } from '../support/plain-orchestrator.ts';

const neverBoots: Plan = ({ method }) =>
  method === 'create'
    ? { kind: 'misclaim', code: 'boot_failed', sideEffect: 'certain', isDone: true }
    : 'none';

/** The lines of the log about the console of a machine that failed, on a platform that tells `tail`. */
async function failWith(consoleTail: () => Promise<string | undefined>) {
  const logged: object[] = [];
  const asked: string[] = [];
  const log = (fields: object, message: string) => {
    if (message.includes('console')) logged.push(fields);
  };
  await using berth = await startPlainOrchestrator(neverBoots, {
    log: { debug: log, info: log, warn: log, error: log },
    wrapDriver: (driver) => ({
      ...driver,
      consoleTail: (ref) => {
        asked.push(ref);
        return consoleTail();
      },
    }),
  });
  const id = await berth.create();
  await berth.passUntil(`/instances/${id}`, 'ERROR');
  await berth.clock.advance(60_000);
  expect(berth.platform.machines.size).toBe(0);
  return { id, logged, asked };
}

describe('the console of a machine that failed', () => {
  it('is logged once before the machine is removed, clean and without secrets [console-tail]', async () => {
    const tail = [
      '[    1.0] Linux\u001b[0m\r',
      '-----BEGIN OPENSSH PRIVATE KEY-----',
      'b3BlbnNzaC1rZXktdjEAAAAABG5vbmU',
      '-----END OPENSSH PRIVATE KEY-----',
      'DB_PASSWORD=hunter2 and more',
      'Authorization: Bearer abc',
      `kernel panic ${'x'.repeat(600)}`,
      '',
    ].join('\n');
    const { id, logged, asked } = await failWith(async () => tail);
    expect(asked).toEqual([`berth-${id}`]);
    expect(logged).toEqual([
      expect.objectContaining({
        instance: id,
        console: [
          '[    1.0] Linux [0m',
          '[OPENSSH PRIVATE KEY]',
          'DB_PASSWORD=[…]',
          'Authorization: […]',
          expect.stringMatching(/^kernel panic x+…$/),
        ],
      }),
    ]);
  });

  it('has no key where it begins in the middle of one, and no more than its end', async () => {
    const filler = 'filler\n'.repeat(4_000);
    const { logged } = await failWith(async () => `${filler}c2VjcmV0\n-----END RSA PRIVATE KEY-----\nlast\n`);
    expect(JSON.stringify(logged)).not.toContain('c2VjcmV0');
    expect(logged).toEqual([expect.objectContaining({ console: ['[RSA PRIVATE KEY]', 'last'] })]);
  });

  it.each<[string, () => Promise<string | undefined>, object[]]>([
    ['there is none', async () => undefined, []],
    [
      'it cannot be read',
      () => Promise.reject(new Error('no console')),
      [expect.objectContaining({ reason: 'no console' })],
    ],
    [
      'the platform never answers',
      () => new Promise(() => undefined),
      [expect.objectContaining({ reason: expect.stringContaining('no answer') })],
    ],
  ])('keeps no machine from being removed where %s', async (_what, consoleTail, lines) => {
    expect((await failWith(consoleTail)).logged).toEqual(lines);
  });
});
