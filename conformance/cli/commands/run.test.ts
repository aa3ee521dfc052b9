import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readOpenLedgers } from '../../resources/ledger-file.ts';
import { referenceParts, runCli, temporaryFolder } from '../cli.fixture.ts';

let folder: ReturnType<typeof temporaryFolder>;
let target: ReturnType<typeof referenceParts>;
beforeEach(() => {
  folder = temporaryFolder();
  target = referenceParts();
});
afterEach(async () => {
  await target[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

type Options = NonNullable<Parameters<typeof runCli>[1]>;

function conformance(args: readonly string[], options: Options = {}) {
  const all = [target.baseUrl, '--state-dir', folder.path, ...args];
  return runCli(all, { ...options, parts: { ...target.parts, ...options.parts } });
}

const purchases = (): string[] => target.sent.filter((line) => /^POST \/v1\/(instances|volumes)$/.test(line));

describe('a run', () => {
  it('reaches an outcome, prints it, writes it to every file and leaves no resources', async () => {
    const [json, junit, html, transcript] = ['r.json', 'r.xml', 'r.html', 't.ndjson'].map(folder.file);
    const files = ['--json', json, '--junit', junit, '--html', html, '--transcript', transcript];
    const { code, out, err } = await conformance(files.map(String));
    const report = JSON.parse(readFileSync(String(json), 'utf8'));
    expect(report).toMatchObject({ exit_code: code, level: 'lifecycle', leftovers: [] });
    expect(out).toMatch(new RegExp(`^${report.outcome}`));
    expect(readFileSync(String(junit), 'utf8')).toContain('<testsuite');
    expect(readFileSync(String(html), 'utf8')).toContain('<!doctype html>');
    expect(err).toContain('[1/');
    expect(await target.listed()).toEqual([]);
    expect(readOpenLedgers(folder.path)).toEqual([]);
    for (const path of files) expect(existsSync(`${path}.partial`)).toBe(false);

    const again = await runCli(['judge', String(transcript)], { parts: { env: {} } });
    expect(again).toEqual({ code, out, err: '' });
  });

  it('opens its files before anything is bought', async () => {
    const { code, err } = await conformance(['--html', '/nowhere/at/all.html']);
    expect(code).toBe(3);
    expect(err).toContain('/nowhere/at/all.html');
    expect(target.sent).toEqual([]);
  });

  it('keeps what stood in a file when nothing comes of it', async () => {
    const file = folder.file('r.json');
    writeFileSync(file, 'the last one');
    expect((await conformance(['--json', file, '--max-cost', '0'])).code).toBe(3);
    expect(readFileSync(file, 'utf8')).toBe('the last one');
    expect(existsSync(`${file}.partial`)).toBe(false);
  });

  it('cleans up and prints the outcome even if the disk for its files is full', async () => {
    const { code, out, err } = await conformance(['--transcript', '/dev/full']);
    expect(code).toBe(3);
    expect(err).toMatch(/--transcript \/dev\/full could not be written \(the disk is full\)/);
    expect(out).toMatch(/^(CONFORMANT|INCOMPLETE)/);
    expect(await target.listed()).toEqual([]);
  });

  it('is NON-CONFORMANT whether its files can be written or not', async () => {
    const { transport } = target;
    const unnamed = {
      ...transport,
      send: async (...[request, limits]: Parameters<typeof transport.send>) => {
        const answer = await transport.send(request, limits);
        return 'body' in answer
          ? { ...answer, body: answer.body.replaceAll('"id":"cpu', '"id":7,"was":"cpu') }
          : answer;
      },
    };
    const only = ['--only', 'CFG', '--level', 'read-only', '--json', '/dev/full'];
    const { code, out, err } = await conformance(only, { parts: { createTransport: () => unnamed } });
    expect(err).toContain('--json /dev/full could not be written');
    expect(out).toMatch(/^NON-CONFORMANT/);
    expect(code).toBe(1);
    // The first failure is shown while the run goes on, once.
    expect(
      err.match(/^first FAIL, with at most about \d+ minutes? left: CFG-[A-Z]+-\d+: .+$/gm),
    ).toHaveLength(1);
  });

  it.each([
    [[], 1000],
    [['--poll-interval-ms', '50'], 50],
  ])('with --fast and %s polls every %i ms', async (flags, intervalMs) => {
    const json = folder.file('fast.json');
    await conformance(['--fast', '--level', 'read-only', '--json', json, ...flags]);
    expect(JSON.parse(readFileSync(json, 'utf8')).settings.poll_interval_ms).toBe(intervalMs);
  });

  it('of some checks is never CONFORMANT', async () => {
    const { code, out } = await conformance(['--only', 'CFG', '--level', 'read-only']);
    expect(code).toBe(2);
    expect(out).toMatch(/^INCOMPLETE/);
    expect(purchases()).toEqual([]);
  });

  it('does not buy past --max-cost, and says what to pass', async () => {
    const { code, err } = await conformance(['--max-cost', '0.01']);
    expect(code).toBe(3);
    expect(err).toMatch(
      /may cost up to \$0\.\d+, which is more than --max-cost 0.01: pass --max-cost 0\.\d\d or --max-minutes \d+\./,
    );
    expect(purchases()).toEqual([]);
    const [, cost = ''] = /pass --max-cost (\S+)/.exec(err) ?? [];
    expect((await conformance(['--max-cost', cost, '--only', 'CFG'])).code).toBe(2);
    const [, minutes = ''] = /--max-minutes (\d+)/.exec(err) ?? [];
    expect((await conformance(['--max-cost', '0.01', '--max-minutes', minutes, '--only', 'CFG'])).code).toBe(
      2,
    );
  });

  it('buys no offer without a price, unless that is accepted, and tests what is free', async () => {
    const { transport } = target;
    const unpriced = {
      ...transport,
      send: async (...[request, limits]: Parameters<typeof transport.send>) => {
        const answer = await transport.send(request, limits);
        return 'body' in answer
          ? { ...answer, body: answer.body.replace(/"(spot_)?price_per_hour":[\d.]+/g, '"was":1') }
          : answer;
      },
    };
    const parts = { createTransport: () => unpriced };
    const tested = await conformance([], { parts });
    expect([tested.code, tested.out]).toEqual([1, expect.stringMatching(/^NON-CONFORMANT/)]);
    expect(tested.err).toMatch(/NOTE {4}.*has no usable price.*--accept-unknown-cost/);
    expect(await target.listed()).toEqual([]);
    expect((await conformance(['--accept-unknown-cost', '--only', 'INS-CREATE'], { parts })).code).not.toBe(
      3,
    );
  });

  it('says that earlier runs left something, and goes on', async () => {
    const run = {
      line: 'run',
      runId: 'abcd012345',
      baseUrl: target.baseUrl,
      startedAt: '2026-01-01T00:00:00Z',
    };
    const entry = {
      n: 1,
      type: 'instance',
      name: 'berth-conf-abcd012345-001',
      step: 's',
      state: 'made',
      id: 'i-1',
      intendedAt: 1,
    };
    writeFileSync(
      folder.file('abcd012345.ndjson'),
      `${JSON.stringify(run)}\n${JSON.stringify({ line: 'entry', entry })}\n`,
    );
    const { code, err } = await conformance(['--only', 'CFG', '--level', 'read-only']);
    expect(code).toBe(2);
    expect(err).toContain(`\`berth conformance sweep ${target.baseUrl}\``);
  });
});

describe('a person at the terminal', () => {
  it.each(['y\n', 'YES'])('is asked before money is spent, and agrees: %j', async (typed) => {
    const { code, err } = await conformance(['--only', 'INS-CREATE'], { typed });
    expect(err).toMatch(/This run creates 1 instance at .*may cost up to \$0\.\d+\. Continue\? \[y\/N\]/);
    expect(code).not.toBe(3);
    expect(purchases()).not.toEqual([]);
  });

  it.each(['', 'n', 'no', 'what?'])(
    'is asked before money is spent, and does not agree: %j',
    async (typed) => {
      const { code, out, err } = await conformance([], { typed });
      expect({ code, out }).toEqual({ code: 2, out: '' });
      expect(err).toContain('nothing was bought');
      expect(purchases()).toEqual([]);
    },
  );

  it.each([['--yes'], ['--level', 'read-only']])('is not asked with %s', async (...args) => {
    const { err } = await conformance([...args, '--only', 'CFG'], { typed: 'n' });
    expect(err).not.toContain('Continue?');
  });
});

describe('an interruption', () => {
  /** Sends a signal when a resource was created, `times` times. */
  const interrupting = (event: string, times = 1, cause?: unknown): Options => {
    let sent = 0;
    return {
      onErr: (text) => {
        if (!/made instance/.test(text)) return;
        while (sent < times) {
          sent++;
          setImmediate(() => target.signals.emit(event, cause));
        }
      },
    };
  };

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'])('by %s ends the run and cleans up', async (signal) => {
    const { code, out, err } = await conformance(['--transcript', folder.file('t')], interrupting(signal));
    expect(code).toBe(2);
    expect(out).toMatch(/^INCOMPLETE/);
    expect(err).toMatch(/Interrupted: the resources of the run are being destroyed/);
    expect(await target.listed()).toEqual([]);
    expect((await runCli(['judge', folder.file('t')])).code).toBe(2);
  });

  it('that is repeated gives the clean-up up, names what is left, and how it is destroyed', async () => {
    const { code, out } = await conformance([], interrupting('SIGINT', 2));
    expect(code).toBe(5);
    const [left = ''] = await target.listed();
    const [name = ''] = left.split(' ');
    expect(name).toMatch(/^berth-conf-/);
    expect(out).toContain(name);
    expect(out).toMatch(/curl .*-X DELETE .*\$BERTH_API_KEY/);
    expect(out).toContain('berth conformance sweep');
    expect(readOpenLedgers(folder.path)).toMatchObject([
      { keyPrint: expect.stringMatching(/^[0-9a-f]{16}$/) },
    ]);
  });

  it.each(['uncaughtException', 'unhandledRejection'])(
    'by a fault of the suite (%s) cleans up and exits 4',
    async (event) => {
      const fault = new Error('it broke');
      const { code, err } = await conformance(
        ['--json', folder.file('r.json')],
        interrupting(event, 1, fault),
      );
      expect(code).toBe(4);
      expect(err).toMatch(/a fault of the suite, not of the target: it broke/);
      expect(err).not.toMatch(/\n\s+at /);
      expect(await target.listed()).toEqual([]);
      expect(JSON.parse(readFileSync(folder.file('r.json'), 'utf8'))).toMatchObject({ exit_code: 4 });
    },
  );

  it('before anything was bought ends at once', async () => {
    const { transport } = target;
    const parts = {
      createTransport: () => ({
        ...transport,
        send: (...args: Parameters<typeof transport.send>) => {
          target.signals.emit('SIGINT');
          return transport.send(...args);
        },
      }),
    };
    const { code, out, err } = await conformance([], { parts });
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain('Nothing was bought.');
    expect(purchases()).toEqual([]);
  });

  it('while a request is under way that changes something lets it be seen through, and is no failure', async () => {
    const { transport } = target;
    const parts = {
      createTransport: () => ({
        ...transport,
        send: (...[request, limits]: Parameters<typeof transport.send>) => {
          if (request.url.includes('/stop')) target.signals.emit('SIGINT');
          return transport.send(request, limits);
        },
      }),
    };
    const { code, out } = await conformance([], { parts });
    expect(target.sent.some((line) => line.endsWith('/stop'))).toBe(true);
    expect(out).toMatch(/^INCOMPLETE/);
    expect({ code, listed: await target.listed() }).toEqual({ code: 2, listed: [] });
  });

  it('that is repeated does not wait for an answer that does not come', async () => {
    const { transport } = target;
    const closed = Promise.withResolvers<void>();
    const interrupted = { failure: 'interrupted', message: 'the run was interrupted', totalMs: 1 } as const;
    const parts = {
      createTransport: () => ({
        ...transport,
        send: async (...[request, limits]: Parameters<typeof transport.send>) => {
          if (!request.headers['user-agent']?.endsWith('create/post')) return transport.send(request, limits);
          await transport.send(request, limits);
          target.signals.emit('SIGINT');
          target.signals.emit('SIGINT');
          await closed.promise;
          return interrupted;
        },
        close: async () => closed.resolve(),
      }),
    };
    const { code, out } = await conformance([], { parts });
    expect(code).toBe(5);
    expect(out).toMatch(/berth conformance sweep/);
    expect(await target.listed()).toHaveLength(1);
  });

  it('removes its listeners at the end', async () => {
    await conformance(['--only', 'CFG', '--level', 'read-only']);
    expect(target.signals.eventNames()).toEqual([]);
  });
});
