import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runBerth, startServing, temporaryFolder, writeFastConfig } from '../support/processes/process.ts';

/** Exactly so many units of it are in the catalog that is served when no other is configured. */
const RACE = 'h100-sxm-1x=3';

it('berth serve is CONFORMANT at level full, and no secret is in what the run wrote', async () => {
  using folder = temporaryFolder();
  const config = writeFastConfig(folder.path);
  const at = (name: string): string => join(folder.path, name);
  await using serving = await startServing(['--config', config], { cwd: folder.path });
  const { stdout: printed } = await runBerth(['keys', 'create', '--json', '--config', config], {
    cwd: folder.path,
  });
  const { api_key: secondKey } = JSON.parse(printed) as { api_key: string };
  const secrets = { BERTH_API_KEY: serving.apiKey, BERTH_SECOND_API_KEY: secondKey };

  const ran = await runBerth(
    [
      ...['conformance', serving.baseUrl, '--level', 'full', '--poll-interval-ms', '200', '--race', RACE],
      ...['--max-cost', '40', '--yes', '--state-dir', at('state'), '--transcript', at('transcript.ndjson')],
      ...['--json', at('report.json'), '--junit', at('report.xml'), '--html', at('report.html')],
    ],
    { cwd: folder.path, env: secrets },
  );
  expect(ran.stdout, ran.stderr).toMatch(/^CONFORMANT: /);
  expect(ran.code).toBe(0);
  const report = JSON.parse(readFileSync(at('report.json'), 'utf8'));
  expect(report).toMatchObject({
    outcome: 'CONFORMANT',
    leftovers: [],
    counts: { fail: 0, warn: 0, not_tested: 0 },
  });

  const judged = await runBerth([
    'conformance',
    'judge',
    at('transcript.ndjson'),
    '--json',
    at('again.json'),
  ]);
  expect(judged.code).toBe(0);
  const again = JSON.parse(readFileSync(at('again.json'), 'utf8'));
  expect(again).toEqual({ ...report, judged_by: report.suite_version });

  const files = ['transcript.ndjson', 'report.json', 'report.xml', 'report.html', ...ledgersIn(at('state'))];
  const written = [ran.stdout, ran.stderr, ...files.map((name) => readFileSync(at(name), 'utf8'))];
  for (const text of written)
    for (const secret of Object.values(secrets))
      expect(text.includes(secret), text.slice(0, 100)).toBe(false);
});

function ledgersIn(folder: string): string[] {
  const names = readdirSync(folder).map((name) => join('state', name));
  expect(names.length).toBeGreaterThan(0);
  return names;
}
