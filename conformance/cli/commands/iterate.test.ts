import { readFileSync, writeFileSync } from 'node:fs';
import { afterEach, expect, it } from 'vitest';
import { refusal } from '../../mutants/deviate.ts';
import type { Report } from '../../report/report.ts';
import { EXIT } from '../../verdict/outcome.ts';
import { referenceParts, runCli, temporaryFolder } from '../cli.fixture.ts';

type Setup = Parameters<typeof referenceParts>[0];
let target: ReturnType<typeof referenceParts>;
const begin = (setup: Setup = {}): void => {
  target = referenceParts(setup);
};
afterEach(() => target[Symbol.asyncDispose]());

const reportIn = (path: string): Report => JSON.parse(readFileSync(path, 'utf8'));

/** A target whose errors have no envelope. It answers 400 for an unknown instance. */
const broken: Setup = {
  behave: (rules) => ({
    ...rules,
    answer(request, answer) {
      const usual = rules.answer(request, answer);
      return usual.status < 400 ? usual : { ...usual, json: { message: 'no' } };
    },
  }),
};

it('lists failures by cause: ten lines first, each cause once', async () => {
  begin(broken);
  using folder = temporaryFolder();
  const json = folder.file('report.json');
  const run = ['--level', 'read-only', '--state-dir', folder.path, '--json', json];
  const { out } = await runCli([target.baseUrl, ...run], { parts: target.parts });
  const { findings } = reportIn(json);
  expect(findings[0]).toMatchObject({
    title: 'errors are not {"error": {"code": "…", "message": "…"}}',
    places: expect.any(Number),
  });
  expect(findings[0]?.checks.length).toBeGreaterThan(1);
  expect(findings[0]?.places).toBeGreaterThan(20);
  if (findings.length > 1) expect(out.indexOf('WHAT TO MEND')).toBeLessThan(out.indexOf('FAILED'));
  expect(out).toContain(`the same cause as ${findings[0]?.checks[0]}`);
});

it('--rerun-failed runs what failed, and says where nothing did', async () => {
  begin(broken);
  using folder = temporaryFolder();
  const json = folder.file('report.json');
  const usual = ['--level', 'read-only', '--state-dir', folder.path];
  await runCli([target.baseUrl, ...usual, '--json', json], { parts: target.parts });
  const failed = reportIn(json).checks.flatMap(({ id, verdict }) => (verdict === 'fail' ? [id] : []));
  const again = folder.file('again.json');
  await runCli([target.baseUrl, ...usual, '--rerun-failed', json, '--json', again], { parts: target.parts });
  const { checks, only } = reportIn(again);
  expect(only?.length).toBeGreaterThan(0);
  expect(checks.flatMap(({ id, verdict }) => (verdict === 'fail' ? [id] : []))).toEqual(failed);
  expect(checks.some(({ verdict }) => verdict === 'pass')).toBe(false);
  const good = { ...reportIn(again), checks: [] };
  writeFileSync(again, JSON.stringify(good));
  const none = await runCli([target.baseUrl, '--rerun-failed', again], { parts: target.parts });
  expect(none).toMatchObject({ code: EXIT.configuration, err: expect.stringContaining('nothing failed') });
});

it('--keep-on-failure stops there, destroys nothing, and says what that costs', async () => {
  begin({
    behave: (rules) => ({
      ...rules,
      answer: (request, answer) =>
        request.route === 'POST /instances/{instanceId}/start' && answer.status === 409
          ? refusal(400, 'no')
          : rules.answer(request, answer),
    }),
  });
  using folder = temporaryFolder();
  const kept = await runCli([target.baseUrl, '--state-dir', folder.path, '--keep-on-failure'], {
    parts: target.parts,
  });
  expect(kept.code).toBe(EXIT.mayBeRunning);
  expect(kept.err).toMatch(/KEPT {4}1 resource, for \$[\d.]+ an hour until `berth conformance sweep /);
  expect(await target.listed()).toEqual([expect.stringMatching(/ONLINE|PROVISIONING/)]);
});

/** Watches the target. At the first wait `change` is called, at the second one the watch is interrupted. */
async function watch(change: () => void, ...more: string[]) {
  using folder = temporaryFolder();
  let waits = 0;
  const args = ['watch', target.baseUrl, '--level', 'read-only', '--only', 'INS-404-003', ...more];
  const watched = await runCli([...args, '--state-dir', folder.path], {
    parts: target.parts,
    onErr: (text) => {
      const seen = text.split('Waiting for a change').length - 1;
      if (seen === waits) return;
      waits = seen;
      if (seen === 1) change();
      else setImmediate(() => target.signals.emit('SIGINT'));
    },
  });
  expect(watched.err.split('Waiting for a change')).toHaveLength(3);
  return watched;
}

it('watch runs again when a file changes, until it is interrupted', async () => {
  begin();
  using folder = temporaryFolder();
  const program = folder.file('server.py');
  writeFileSync(program, 'one');
  await watch(() => writeFileSync(program, 'two'), '--file', program);
});

it('watch runs again when the target is another build', async () => {
  let build = '1';
  begin({
    behave: (rules) => ({
      ...rules,
      answer(request, answer) {
        const usual = rules.answer(request, answer);
        return { ...usual, headers: { ...usual.headers, 'x-build-id': build } };
      },
    }),
  });
  await watch(() => {
    build = '2';
  });
});

it('watch waits for a target that is down, and runs once it is up', async () => {
  let isUp = false;
  begin({ behave: (rules) => ({ ...rules, acceptsConnections: () => isUp }) });
  const { err, out } = await watch(() => {
    isUp = true;
  });
  expect(err).toContain('the run did not start');
  expect(out).toContain('INCOMPLETE');
});
