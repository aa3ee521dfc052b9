import { expect, it } from 'vitest';
import { Evidence } from '../evidence/evidence.ts';
import { createAutoClock } from '../mutants/reference/auto-clock.ts';
import { createReference } from '../mutants/reference/create-reference.ts';
import type { LedgerLine } from '../resources/ledger.ts';
import { scenariosFor } from '../scenarios/index.ts';
import { ssh2Client } from '../ssh/ssh2-client.ts';
import { Draws } from '../transcript/draws.ts';
import type { Level } from '../transcript/records.ts';
import { EXIT, exitCodeOf, leftovers } from '../verdict/outcome.ts';
import type { RunEvent } from './options.ts';
import { run } from './run.ts';

/** Runs against a target that accepts connections while `isUp`. */
async function runWhile(
  isUp: (nowMs: number) => boolean,
  level: Level,
  scenarios = scenariosFor(level, undefined),
) {
  const clock = createAutoClock();
  const reference = createReference({
    clock,
    behave: (rules) => ({ ...rules, acceptsConnections: () => isUp(clock.now()) }),
  });
  const ssh = ssh2Client();
  const events: RunEvent[] = [];
  const ledger: LedgerLine[] = [];
  const records = await run(
    {
      baseUrl: reference.options.baseUrl,
      apiKey: 'reference-key-one',
      level,
      settings: {
        pollIntervalMs: 200,
        readyTimeoutMs: 600_000,
        maxCostUsd: 100,
        maxMinutes: 600,
        allowPrivate: true,
      },
    },
    {
      runId: 'lost',
      draws: new Draws('lost'),
      transport: reference.transport,
      ssh: { newKeyPair: ssh.newKeyPair, login: (login) => clock.during(ssh.login(login)) },
      clock,
      ledgerFile: { append: (line) => ledger.push(structuredClone(line)) },
      onEvent: (event) => events.push(event),
    },
    scenarios,
  );
  await reference.close();
  const { end, resources } = new Evidence(records);
  const notices = events.flatMap((event) => (event.event === 'notice' ? [event.text] : []));
  const exitCode = exitCodeOf('INCOMPLETE', end, leftovers(resources));
  return { end, exitCode, notices, tookMs: clock.now(), ledger, events };
}

it('a target that dies before anything was made is given up after a minute, with exit code 3', async () => {
  const { end, exitCode, notices, tookMs } = await runWhile((now) => now < 300, 'read-only');
  expect(end).toMatchObject({ reason: 'target lost', detail: expect.stringContaining('connection refused') });
  expect(exitCode).toBe(EXIT.configuration);
  expect(notices).toEqual([expect.stringContaining('the run pauses and asks again')]);
  expect(tookMs).toBeLessThan(70_000);
});

it('a target that dies while a machine runs is given up after a minute, with exit code 5', async () => {
  const { end, exitCode, tookMs, ledger } = await runWhile((now) => now < 30_000, 'lifecycle');
  expect(end?.reason).toBe('target lost');
  expect(exitCode).toBe(EXIT.mayBeRunning);
  expect(tookMs).toBeLessThan(110_000);
  const last = ledger.findLast((line) => line.line === 'entry' && line.entry.state === 'made');
  expect(last).toMatchObject({ entry: { note: 'the target accepts no connections' } });
});

it('waits for a target that restarts, and reports it once', async () => {
  const { end, notices } = await runWhile((now) => now < 30_000 || now > 60_000, 'lifecycle');
  expect(end?.reason).toBe('completed');
  expect(notices).toHaveLength(1);
});

it('reports a wait for a volume, with the price from its create', async () => {
  const { events, ledger } = await runWhile(
    () => true,
    'full',
    scenariosFor('full', [{ scenarios: ['volumes'] }]),
  );
  const waits = events.flatMap((event) => (event.event === 'waiting' ? [event.text] : []));
  for (const wanted of ['AVAILABLE', 'attached', 'detached', 'gone'])
    expect(waits).toContainEqual(expect.stringMatching(`^the volume .* to be ${wanted}$`));
  const volume = ledger.find(
    (line) => line.line === 'entry' && line.entry.type === 'volume' && line.entry.state === 'made',
  );
  expect(volume).toMatchObject({ entry: { pricePerHour: expect.any(Number) } });
});
