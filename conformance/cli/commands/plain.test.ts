import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { plainNames } from '../../http/plain-identity.ts';
import type { HttpRequest, Transport } from '../../http/transport.ts';
import type { Entry } from '../../resources/ledger.ts';
import { readOpenLedgers } from '../../resources/ledger-file.ts';
import type { SshClient } from '../../ssh/ssh-client.ts';
import { API_KEY, referenceParts, runCli, temporaryFolder } from '../cli.fixture.ts';
import type { CliParts } from '../parts.ts';

const RUN_ID = 'abcd012345';
const PLAIN = { seed: 'a seed', installation: '00c0ffee' };
const names = plainNames(PLAIN);
/** Requests of a marketplace. */
const ORDINARY =
  /^GET \/(configurations|availability|instances)$|^POST \/instances$|^(GET|DELETE) \/instances\/i-\d+$|^POST \/instances\/i-\d+\/(stop|start)$/;
let folder: ReturnType<typeof temporaryFolder>;
let target: ReturnType<typeof referenceParts>;
let requests: HttpRequest[];
beforeEach(() => {
  folder = temporaryFolder();
  target = referenceParts();
  requests = [];
});
afterEach(async () => {
  await target[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

function conformance(...args: string[]) {
  return conformanceWith({}, ...args);
}

function conformanceWith(parts: Partial<CliParts>, ...args: string[]) {
  const transport: Transport = {
    ...target.transport,
    send: (request, limits) => {
      requests.push(request);
      return target.transport.send(request, limits);
    },
  };
  return runCli([...args, '--state-dir', folder.path], {
    parts: { ...target.parts, createTransport: () => transport, ...parts },
  });
}

describe('a run with --plain', () => {
  it('is INCOMPLETE where nothing failed, says why, and sends nothing that names the suite', async () => {
    const json = folder.file('r.json');
    const { code, out } = await conformance(
      target.baseUrl,
      '--plain',
      '--installation',
      '00c0ffee',
      '--json',
      json,
    );
    const report = JSON.parse(readFileSync(json, 'utf8'));
    expect({ code, outcome: report.outcome, failed: report.counts.fail }).toEqual({
      code: 2,
      outcome: 'INCOMPLETE',
      failed: 0,
    });
    expect(report.settings.plain).toBe(true);
    expect(out).toContain('a plain run leaves out what no ordinary client sends');
    const sent = requests.map((request) => JSON.stringify(request)).join('\n');
    expect(sent).not.toMatch(/berth|conformance|user-agent|x-request-id/i);
    expect(sent).toContain('bm-00c0ffee-');
    const paths = requests.map(
      ({ method, url }) => `${method} ${url.slice(target.baseUrl.length).split('?')[0]}`,
    );
    expect(paths.filter((path) => !ORDINARY.test(path))).toEqual([]);
    expect(await target.listed()).toEqual([]);
    expect(readOpenLedgers(folder.path)).toEqual([]);
  });

  it('asks the target nothing before it begins', async () => {
    await conformance(target.baseUrl, '--plain', '--level', 'read-only');
    const paths = requests.map(({ url }) => url.slice(target.baseUrl.length));
    expect(paths.slice(0, 2)).toEqual(['/configurations', '/availability']);
    expect(paths.filter((path) => path === '/configurations').length).toBeGreaterThanOrEqual(4);
    expect(new Set(paths)).toEqual(new Set(['/configurations', '/availability', '/instances']));
  });

  it.each([
    [['--installation', '00c0ffee'], 'add --plain'],
    [['--plain', '--installation', 'mine'], 'eight hex digits'],
    [['--plain', '--level', 'full'], '--plain has the levels read-only and lifecycle'],
    [['--plain', '--only', 'INS'], "'--plain' cannot be used with option '--only"],
    [['--plain', '--race', 'a=1', '--level', 'full'], "'--plain' cannot be used with option '--race"],
    [['--plain', '--restart-command', 'x'], "'--plain' cannot be used with option '--restart-command"],
  ])('refuses %s', async (args, text) => {
    const { code, err } = await conformance(target.baseUrl, ...args);
    expect(code).toBe(3);
    expect(err).toContain(text);
    expect(requests).toEqual([]);
  });
});

describe('a run with --plain ends early', () => {
  it.each([
    ['the first login', 1],
    ['the login to the stopped machine', 4],
  ])('at Ctrl-C in %s, and cleans up', async (_what, last) => {
    const { ssh } = target.parts;
    if (ssh === undefined) throw new Error('no SSH client');
    let logins = 0;
    const login: SshClient['login'] = async (asked) => {
      if (++logins < last) return ssh.login(asked);
      setImmediate(() => target.signals.emit('SIGINT'));
      await once(asked.signal ?? new EventTarget(), 'abort');
      return { rung: 'connect', message: 'interrupted', totalMs: 1 };
    };
    const { code, out } = await conformanceWith({ ssh: { ...ssh, login } }, target.baseUrl, '--plain');
    expect(code).toBe(2);
    expect(out).toContain('INCOMPLETE: the run was interrupted');
    expect(await target.listed()).toEqual([]);
  });

  it('at Ctrl-C before its first order, and creates nothing', async () => {
    const { transport } = target;
    const interrupting: Transport = {
      ...transport,
      async send(request, limits) {
        const answer = await transport.send(request, limits);
        if (request.url.endsWith('/instances')) setImmediate(() => target.signals.emit('SIGINT'));
        return answer;
      },
    };
    const parts = { createTransport: () => interrupting };
    const { code, out } = await conformanceWith(parts, target.baseUrl, '--plain');
    expect(code).toBe(2);
    expect(out).toContain('INCOMPLETE: the run was interrupted');
    expect(requests.filter(({ method }) => method === 'POST')).toEqual([]);
  });
});

describe('a sweep after a plain run that was killed', () => {
  /** Writes the ledger of the run. */
  function leave(entries: readonly Partial<Entry>[]): void {
    const run = {
      line: 'run',
      runId: RUN_ID,
      baseUrl: target.baseUrl,
      startedAt: '2026-01-01T00:00:00Z',
      plain: PLAIN,
    };
    const lines = entries.map((entry, index) => ({
      line: 'entry',
      entry: {
        n: index + 1,
        type: 'instance',
        name: names.nameOf(index + 1),
        step: 's',
        state: 'intended',
        intendedAt: 1,
        ...entry,
      },
    }));
    writeFileSync(
      folder.file(`${RUN_ID}.ndjson`),
      [run, ...lines].map((line) => `${JSON.stringify(line)}\n`).join(''),
    );
  }

  async function make(name: string): Promise<void> {
    const key = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJjBEmZs3v5FqBMrGFmwRbJ8gGhbMtEbUXBmmYbyQ0Xp';
    const body = { name, configuration_id: 'cpu-small', region: 'eu-north', ssh_keys: [key] };
    await target.transport.send(
      {
        method: 'POST',
        url: `${target.baseUrl}/instances`,
        headers: { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      },
      { timeoutMs: 60_000, maxBodyBytes: 1e6 },
    );
  }

  it('destroys what has a name of the run, and nothing else of the same marketplace', async () => {
    const others = [`bm-00c0ffee-${'a'.repeat(32)}`, plainNames({ ...PLAIN, seed: 'another' }).nameOf(1)];
    for (const name of [names.nameOf(1), `${names.nameOf(2)}-2`, names.nameOf(7), ...others])
      await make(name);
    leave([{}, {}, {}]);
    const { code } = await conformance('sweep');
    expect(code).toBe(0);
    expect((await target.listed()).map((line) => line.split(' ')[0])).toEqual(others);
    expect(readOpenLedgers(folder.path)).toEqual([]);
    expect(requests.map((request) => JSON.stringify(request)).join('\n')).not.toMatch(/berth|conformance/i);
  });

  it('does not believe a ledger that names an instance of another run', async () => {
    const other = plainNames({ ...PLAIN, seed: 'another' }).nameOf(1);
    await make(other);
    leave([{ name: other }, {}]);
    await conformance('sweep');
    expect((await target.listed()).map((line) => line.split(' ')[0])).toEqual([other]);
  });
});
