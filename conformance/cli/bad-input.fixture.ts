import type { ServerResponse } from 'node:http';
import { expect } from 'vitest';
import { type Answer, API_KEY, type CliResult, runCli, sendJson, serveTarget } from './cli.fixture.ts';

/** The options of a run with minimal waits. */
export const quickIn = (stateFolder: string): string[] => [
  '--state-dir',
  stateFolder,
  '--poll-interval-ms',
  '10',
  '--ready-timeout-s',
  '1',
];

/** Expects readable output: no stack trace, no control characters, no secret. */
export function expectCalm({ out, err }: CliResult): void {
  expect(err + out).not.toMatch(/\n\s+at .*\.ts/);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
  expect(err + out).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f\u202e]/);
  expect(err + out).not.toContain(API_KEY);
  expect(err.length).toBeLessThan(4000);
}

/** Expects a verdict on a faulty target: the run continues within its limits to an outcome. */
export async function expectVerdict(
  quick: readonly string[],
  answer: Answer,
  more: readonly string[] = [],
): Promise<CliResult> {
  await using target = await serveTarget(answer);
  const args = [target.baseUrl, '--level', 'read-only', ...quick, ...more];
  // A generous timeout: a busy machine may need more than the half second of the other tests.
  const result = await runCli(args, { parts: { probeTimeoutMs: 60_000 } });
  expectCalm(result);
  expect([1, 2]).toContain(result.code);
  return result;
}

export const offer = {
  id: 'gpu-h100',
  name: 'H100',
  instance_type: 'DEDICATED',
  vcpus: 8,
  memory_gb: 64,
  storage_gb: 100,
  price_per_hour: 0.1,
  available: true,
  regions: ['eu-north'],
  supports_cloud_init: false,
};

export function refuse(response: ServerResponse): void {
  sendJson(response, 401, { error: { code: 'unauthorized', message: 'no' } });
}

const CHUNK = Buffer.alloc(1024 * 1024, ' ');

export function flood(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  const push = (): void => {
    while (!response.destroyed && response.write(CHUNK));
  };
  response.on('drain', push);
  push();
}
