import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { BerthProcess, startServing, temporaryFolder } from '../support/processes/process.ts';

/** A polled read in a transcript; times are milliseconds since the run's start. */
interface Poll {
  step?: string;
  sentAt: number;
}

it('berth serve is CONFORMANT at the pace of the contract, both as they are by default', async () => {
  using folder = temporaryFolder();
  const at = (name: string): string => join(folder.path, name);
  await using serving = await startServing([], { cwd: folder.path });
  await using run = new BerthProcess(
    ['conformance', serving.baseUrl, '--state-dir', at('state'), '--transcript', at('run.ndjson')],
    { cwd: folder.path, env: { BERTH_API_KEY: serving.apiKey } },
  );
  const { code, stdout, stderr } = await run.ended;
  expect(stdout, stderr).toMatch(/^CONFORMANT: /);
  expect(code).toBe(0);

  const records = readFileSync(at('run.ndjson'), 'utf8').trimEnd().split('\n');
  const polls = records.map((line): Poll => JSON.parse(line)).filter(({ step }) => step === 'observe/poll');
  const [first, last] = [polls[0]?.sentAt ?? 0, polls.at(-1)?.sentAt ?? 0];
  expect(polls.length).toBeGreaterThanOrEqual(6);
  // A single one may be late on a busy machine, and the next one is on time.
  expect((last - first) / (polls.length - 1) / 1000).toBeCloseTo(10, 0);
});
