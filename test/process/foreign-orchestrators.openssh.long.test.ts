import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { runBerth, temporaryFolder } from '../support/processes/process.ts';

// Orchestrators of strangers: other languages, no code of Berth, machines that are OpenSSH servers.

const API_KEY = 'the-key-of-a-stranger';
const examples = fileURLToPath(new URL('../../examples/foreign/', import.meta.url));

const ORCHESTRATORS = [
  {
    name: 'python',
    program: ['python3', join(examples, 'python/orchestrator.py')],
    flags: ['', '--never-stops'],
    faults: { 'disk-lost': 'INS-DISK-001', 'second-stop-accepted': 'STOP-409-002' },
  },
  {
    name: 'node',
    program: [process.execPath, join(examples, 'node/orchestrator.mjs')],
    flags: [''],
    faults: { 'keeps-running': 'SSH-STOP-001', 'key-by-prefix': 'AUTH-401-004' },
  },
  {
    name: 'shell',
    program: [join(examples, 'shell/orchestrator.sh')],
    flags: [''],
    faults: { 'time-without-zone': 'WIRE-TIME-001', 'unknown-id-is-400': 'INS-404-003' },
  },
] as const;

/** Starts it; `await using` ends it with SIGTERM, and with it its machines. */
async function startForeign([command, ...args]: readonly string[], fault?: string) {
  const flags = fault === undefined ? [] : ['--fault', fault];
  const child = spawn(command ?? '', [...args, ...flags], {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], PROVIDER_API_KEY: API_KEY },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const baseUrl = await new Promise<string>((resolve, reject) => {
    child.once('error', reject).once('exit', (code) => reject(new Error(`it ended with ${code}`)));
    child.stdout.setEncoding('utf8').once('data', (line) => resolve(JSON.parse(line).base_url));
  });
  return {
    baseUrl,
    async [Symbol.asyncDispose]() {
      child.kill();
      expect(await ended).toBe(0);
    },
  };
}

/** The outcome of level lifecycle, and the checks that went red. */
async function judged(program: readonly string[], fault?: string) {
  using folder = temporaryFolder();
  await using foreign = await startForeign(program, fault);
  const json = join(folder.path, 'report.json');
  const usual = ['--poll-interval-ms', '500', '--yes', '--state-dir', folder.path, '--json', json];
  if (fault !== undefined) usual.push('--observe-s', '0');
  const ran = await runBerth(['conformance', foreign.baseUrl, ...usual], { env: { BERTH_API_KEY: API_KEY } });
  expect([0, 1], ran.stderr + ran.stdout).toContain(ran.code);
  const { outcome, checks, leftovers } = JSON.parse(readFileSync(json, 'utf8'));
  const red = checks.flatMap(({ id, verdict }: { id: string; verdict: string }) =>
    ['fail', 'warn'].includes(verdict) ? [id] : [],
  );
  return { outcome, red, leftovers };
}

const lawful = ORCHESTRATORS.flatMap(({ name, program, flags }) =>
  flags.map((flag) => ({
    name: `${name} ${flag}`.trim(),
    program: flag === '' ? program : [...program, flag],
  })),
);
const faulty = ORCHESTRATORS.flatMap(({ name, program, faults }) =>
  Object.entries(faults).map(([fault, check]) => ({ name, program, fault, check })),
);

/** Beside other tests, the shell answers more slowly than its machines boot: no stop would reach one that is PROVISIONING. */
const inTurn = (name: string) => (name.startsWith('shell') ? it.sequential : it.concurrent);

describe('a foreign orchestrator', () => {
  for (const { name, program } of lawful)
    inTurn(name)(`'${name}' is conformant`, async () => {
      expect(await judged(program)).toEqual({ outcome: 'CONFORMANT', red: [], leftovers: [] });
    });

  for (const { name, program, fault, check } of faulty)
    inTurn(name)(`'${name}' with the fault '${fault}': exactly '${check}' is red`, async () => {
      const expected = { outcome: 'NON-CONFORMANT', red: [check], leftovers: [] };
      expect(await judged(program, fault)).toEqual(expected);
    });
});
