import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { collectLog } from '../../../test/support/doubles/log.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { loadConfig } from '../../config/load.ts';
import { askPlatforms } from './ask-platforms.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-ask-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('gives up a driver that waits for a lock after 5 s, and names the console', async () => {
  const file = join(folder, 'berth.yaml');
  writeFileSync(
    file,
    `database: sqlite:${join(folder, 'berth.db')}\nplatform: { driver: exec, command: [/bin/sh, -c, "read -r info; read -r nothing"] }\n`,
  );
  const { config } = loadConfig({ file, flags: {}, env: {} });
  const clock = new VirtualClock();
  const begunAt = clock.now();
  const read = { cordons: { list: async () => [] } } as unknown as Parameters<typeof askPlatforms>[1];
  const asking = askPlatforms(config, read, { env: process.env, clock, log: collectLog().log });
  const asked = await clock.advanceUntilSettled(asking, 250);
  expect(clock.now() - begunAt).toBeLessThanOrEqual(6_000);
  expect(asked.get('default')).toMatchObject({
    // The driver's own limit is 5 s. Ending its process may take more than a second of this clock.
    problem: expect.stringMatching(/did not answer info within 5 s|no answer within 6 s/),
    advice: expect.stringContaining('the page Platforms of its console'),
  });
});
