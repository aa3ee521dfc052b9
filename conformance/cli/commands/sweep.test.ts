import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Entry, keyFingerprintOf } from '../../resources/ledger.ts';
import { readOpenLedgers } from '../../resources/ledger-file.ts';
import { thisProcess } from '../../resources/process-identity.ts';
import { API_KEY, referenceParts, runCli, sendJson, serveTarget, temporaryFolder } from '../cli.fixture.ts';

const RUN_ID = 'abcd012345';
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

const sweep = (...args: string[]) =>
  runCli(['sweep', '--state-dir', folder.path, ...args], { parts: target.parts });

const nameOf = (n: number): string => `berth-conf-${RUN_ID}-00${n}`;

/** Writes the ledger of a killed run. */
function leave(entries: Partial<Entry>[], more: object = {}, runId = RUN_ID): string {
  const run = { line: 'run', runId, baseUrl: target.baseUrl, startedAt: '2026-01-01T00:00:00Z', ...more };
  const lines = entries.map((entry, index) => ({
    line: 'entry',
    entry: {
      n: index + 1,
      type: 'instance',
      name: nameOf(index + 1),
      step: 's',
      state: 'intended',
      intendedAt: 1,
      ...entry,
    },
  }));
  const path = folder.file(`${runId}.ndjson`);
  writeFileSync(path, [run, ...lines].map((line) => `${JSON.stringify(line)}\n`).join(''));
  return path;
}

/** Creates a resource on the target as the run did. Returns its id. */
async function make(name: string, path = '/instances', body: object = {}): Promise<string> {
  const answer = await target.transport.send(
    {
      method: 'POST',
      url: `${target.baseUrl}${path}`,
      headers: { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        name,
        configuration_id: 'cpu-small',
        region: 'eu-north',
        size_gb: 1,
        ssh_keys: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJjBEmZs3v5FqBMrGFmwRbJ8gGhbMtEbUXBmmYbyQ0Xp'],
        ...body,
      }),
    },
    { timeoutMs: 60_000, maxBodyBytes: 1e6 },
  );
  const made = JSON.parse('body' in answer ? answer.body : '{}');
  if (made.id === undefined) throw new Error(JSON.stringify(made));
  return made.id;
}

describe('a sweep', () => {
  it('destroys what the ledger has an id of, and what it finds by the name that was intended', async () => {
    const id = await make(nameOf(1));
    await make(`${nameOf(2)}-suffixed`);
    leave([{ id, state: 'made' }, { state: 'intended' }, { state: 'intended' }, { state: 'refused' }]);
    const { code, out } = await sweep();
    expect({ code, listed: await target.listed() }).toEqual({ code: 0, listed: [] });
    expect(out).toContain(`gone: instance ${nameOf(1)}, id ${id}`);
    expect(out).toContain(`gone: instance ${nameOf(2)}`);
    expect(out).toContain('all of it is gone');
    expect(readOpenLedgers(folder.path)).toEqual([]);
  });

  it('leaves alone what is not of the run, whatever it is called', async () => {
    await make('production');
    await make('berth-conf-ffff000000-001');
    await make(`my-${nameOf(1)}`);
    leave([{ state: 'unknown' }]);
    expect((await sweep()).code).toBe(0);
    expect((await target.listed()).length).toBe(3);
    expect(target.sent.filter((line) => line.startsWith('DELETE'))).toEqual([]);
  });

  it('destroys what the target made of a request that it had refused', async () => {
    await make(nameOf(1));
    leave([{ state: 'refused' }, { state: 'intended' }]);
    expect((await sweep()).code).toBe(0);
    expect(await target.listed()).toEqual([]);
  });

  it('destroys a volume, detaching it first', async () => {
    const instance = await make(nameOf(1));
    const volume = await make(nameOf(2), '/volumes', { instance_ids: [instance] });
    leave([
      { id: instance, state: 'made' },
      { id: volume, state: 'made', type: 'volume' },
    ]);
    const { code, out } = await sweep();
    expect(code).toBe(0);
    expect(out).toContain(`gone: volume ${nameOf(2)}`);
  });

  it('says at once that it cannot search for a volume without an id, and accepts the answer of the operator', async () => {
    leave([{ type: 'volume' }]);
    const first = await sweep();
    expect(first.code).toBe(5);
    expect(first.out).toMatch(new RegExp(`volume ${nameOf(1)}, if it exists`));
    const [, command = ''] = /berth conformance (sweep .*--absent \S+)/.exec(first.out) ?? [];
    expect(command).toContain(nameOf(1));
    expect((await sweep('--absent', nameOf(1))).code).toBe(0);
    expect((await sweep()).out).toContain('Nothing to sweep');
  });

  it('may be repeated, and two at once do no harm', async () => {
    const id = await make(nameOf(1));
    leave([{ id, state: 'made' }]);
    const both = await Promise.all([sweep(), sweep()]);
    expect(both.map(({ code }) => code)).toEqual([0, 2]);
    expect(both.map(({ out }) => out).join()).toMatch(/another sweep is in progress/);
    expect(await target.listed()).toEqual([]);
    expect((await sweep()).code).toBe(0);
  });

  it('leaves a run alone that still goes on, and takes over from one that has ended', async () => {
    const id = await make(nameOf(1));
    leave([{ id, state: 'made' }], { process: thisProcess() });
    const { code, out } = await sweep();
    expect(code).toBe(2);
    expect(out).toMatch(/left alone: the run still goes on: process \d+/);
    expect(await target.listed()).toHaveLength(1);
    leave([{ id, state: 'made' }], { process: { ...thisProcess(), startedAt: 'long ago' } });
    await sweep();
    expect(await target.listed()).toEqual([]);
  });

  it('reads a ledger whose last line was cut off, and goes on writing it', async () => {
    const id = await make(nameOf(1));
    const path = leave([{ id, state: 'made' }]);
    appendFileSync(path, '{"line":"entry","entry":{"n":2,"ty');
    expect((await sweep()).code).toBe(0);
    expect(await target.listed()).toEqual([]);
    expect(readFileSync(path, 'utf8')).toMatch(/"ty\n.*\n\{"line":"closed"\}\n$/s);
  });

  it('looks by the names of the run where a line of the ledger cannot be read', async () => {
    await make(nameOf(1));
    const path = leave([]);
    appendFileSync(path, 'x\u0000\u0000\n');
    const { code, out } = await sweep();
    expect(out).toContain(`NOTE: lines 2 of ${path} cannot be read`);
    expect({ code, listed: await target.listed() }).toEqual({ code: 0, listed: [] });
    expect((await sweep()).out).toContain('Nothing to sweep');
  });

  it('rejects a ledger with resources of another run', async () => {
    await make('production');
    leave([{ name: '', state: 'intended' }]);
    leave([{ name: 'prod', state: 'intended' }], {}, 'abcd999999');
    await sweep();
    expect(await target.listed()).toHaveLength(1);
  });

  it('of runs of several targets asks for one, since each has a key of its own', async () => {
    leave([{}]);
    leave([{ name: 'berth-conf-abcd999999-001' }], { baseUrl: 'https://other.example/v1' }, 'abcd999999');
    const { code, err } = await sweep();
    expect(code).toBe(3);
    expect(err).toMatch(/name one of https:\/\/reference.test\/v1, https:\/\/other.example\/v1/);
    expect(target.sent).toEqual([]);
    expect((await sweep(`${target.baseUrl}/`)).code).toBe(0);
  });

  it('says which targets have something left where the named one has nothing', async () => {
    leave([{ name: 'berth-conf-abcd999999-001' }], { baseUrl: 'https://other.example/v1' }, 'abcd999999');
    const { code, out } = await sweep(target.baseUrl);
    expect({ code, sent: target.sent }).toEqual({ code: 5, sent: [] });
    expect(out).toMatch(/only runs at https:\/\/other.example\/v1 left resources behind/);
  });

  it('names a ledger that it cannot read, sweeps the others, and exits 5', async () => {
    const id = await make(nameOf(1));
    leave([{ id, state: 'made' }]);
    const torn = folder.file('abcd999999.ndjson');
    writeFileSync(torn, '{"line":"ru\n{"line":"entry","entry":{}}\n');
    const { code, out } = await sweep();
    expect({ code, listed: await target.listed() }).toEqual({ code: 5, listed: [] });
    expect(out).toContain(`${torn} cannot be read`);
    expect(out).toContain('berth-conf-abcd999999-');
    const again = await sweep();
    expect(again.code).toBe(5);
    expect(again.out).not.toContain('Nothing to sweep');
  });

  it('does nothing with the key of another account, to which everything looks gone', async () => {
    const id = await make(nameOf(1));
    const keyPrint = keyFingerprintOf(RUN_ID, { apiKey: 'the key of the run' });
    leave([{ id, state: 'made' }], { keyPrint });
    const { code, out } = await sweep();
    expect({ code, listed: await target.listed() }).toMatchObject({ code: 5, listed: [expect.any(String)] });
    expect(out).toMatch(/Run abcd012345 .*\n {2}left alone: the API key is not that of the run.*--other-key/);
    expect(target.sent.filter((line) => line.startsWith('DELETE'))).toEqual([]);
    expect((await sweep('--other-key')).code).toBe(0);
    expect(await target.listed()).toEqual([]);
  });

  it('does its work with the key of the run', async () => {
    leave([{ id: await make(nameOf(1)), state: 'made' }], {
      keyPrint: keyFingerprintOf(RUN_ID, { apiKey: API_KEY }),
    });
    expect((await sweep()).code).toBe(0);
    expect(await target.listed()).toEqual([]);
  });

  it('exits 5 with the commands where the key is refused or nothing answers', async () => {
    await using refusing = await serveTarget((_request, response) =>
      sendJson(response, 401, { error: { code: 'unauthorized', message: 'no' } }),
    );
    leave([{ id: 'i-1', state: 'made', region: 'eu' }], { baseUrl: refusing.baseUrl });
    const { code, out } = await runCli(['sweep', '--state-dir', folder.path]);
    expect(code).toBe(5);
    expect(out).toMatch(/the API key was refused \(GET \/instances was answered 401\)/);
    expect(out).toMatch(/curl .*-X DELETE '?\S*\/instances\/i-1\?region=eu'? .*\$BERTH_API_KEY/);
    leave([{ id: 'i-1', state: 'made' }], { baseUrl: 'http://127.0.0.1:1/v1' });
    const dead = await runCli(['sweep', '--state-dir', folder.path, '--poll-interval-ms', '10']);
    expect(dead.code).toBe(5);
    expect(dead.out).toMatch(/connection refused/);
  });

  it('exits 5 where the target will not destroy it', async () => {
    const transport = {
      ...target.transport,
      send: async (...[request, limits]: Parameters<typeof target.transport.send>) =>
        request.method === 'DELETE'
          ? { status: 500, headers: {}, body: '', firstByteMs: 1, totalMs: 1 }
          : target.transport.send(request, limits),
    };
    const id = await make(nameOf(1));
    leave([{ id, state: 'made' }]);
    const { code, out } = await runCli(['sweep', '--state-dir', folder.path, '--ready-timeout-s', '60'], {
      parts: { ...target.parts, createTransport: () => transport },
    });
    expect(code).toBe(5);
    expect(out).toMatch(/MAY STILL BE RUNNING AND BILLING .*\n.*id .* \(DELETE was answered 500\)/);
  });

  it('writes nothing to the terminal as the target wrote it', async () => {
    const id = await make(`${nameOf(1)}-\u001b[2J`);
    leave([{ id, name: `${nameOf(1)}-\u001b[2J`, state: 'made' }]);
    const refusing = {
      ...target.transport,
      send: async (...[request, limits]: Parameters<typeof target.transport.send>) =>
        request.method === 'DELETE'
          ? { status: 500, headers: {}, body: '', firstByteMs: 1, totalMs: 1 }
          : target.transport.send(request, limits),
    };
    const left = await runCli(['sweep', '--state-dir', folder.path, '--ready-timeout-s', '60'], {
      parts: { ...target.parts, createTransport: () => refusing },
    });
    const gone = await sweep();
    expect([left.code, gone.code]).toEqual([5, 0]);
    for (const text of [left.out, left.err, gone.out, gone.err]) {
      expect(text).toContain(`${nameOf(1)}-\\x1b[2J`);
      expect(text).not.toContain('\u001b');
    }
  });

  it('that is interrupted twice does not wait for an answer that does not come', async () => {
    const closed = Promise.withResolvers<void>();
    const hanging = {
      ...target.transport,
      send: async (...[request, limits]: Parameters<typeof target.transport.send>) => {
        if (request.method !== 'DELETE') return target.transport.send(request, limits);
        target.signals.emit('SIGINT');
        target.signals.emit('SIGINT');
        await closed.promise;
        return { failure: 'interrupted', message: 'it was interrupted', totalMs: 1 } as const;
      },
      close: async () => closed.resolve(),
    };
    leave([{ id: await make(nameOf(1)), state: 'made' }]);
    const { code, out } = await runCli(['sweep', '--state-dir', folder.path], {
      parts: { ...target.parts, createTransport: () => hanging },
    });
    expect(code).toBe(5);
    expect(out).toContain('MAY STILL BE RUNNING');
  });

  it('finds a token for the key where that is refused', async () => {
    await target[Symbol.asyncDispose]();
    target = referenceParts({ token: 'api_key', staticKeys: false });
    leave([{}]);
    expect((await sweep()).code).toBe(0);
  });

  it('finds a token for a user name and a password', async () => {
    await target[Symbol.asyncDispose]();
    const login = { username: 'marketplace', password: 'correct horse battery' };
    target = referenceParts({ token: 'password', staticKeys: false, login });
    leave([{}]);
    const env = { BERTH_API_KEY: undefined, BERTH_USERNAME: login.username, BERTH_PASSWORD: login.password };
    const { code } = await runCli(['sweep', '--state-dir', folder.path], { parts: target.parts, env });
    expect(code).toBe(0);
  });
});

it('a folder that is not there is no all-clear', async () => {
  const result = await sweep('--state-dir', `${folder.path}/mistyped`);
  expect(result).toMatchObject({ code: 3, err: expect.stringContaining('there is no folder') });
});
