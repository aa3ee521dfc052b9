import { chmodSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SCENARIOS } from '../../scenarios/index.ts';
import { API_KEY, referenceParts, runCli, sendJson, serveTarget, temporaryFolder } from '../cli.fixture.ts';

const folder = temporaryFolder();
afterAll(() => folder[Symbol.dispose]());
const state = ['--state-dir', folder.path];

const offers = { configurations: [] };

describe('a doctor', () => {
  it('finds nothing wrong with a good set-up, and creates nothing', async () => {
    await using target = referenceParts();
    const { code, out, err } = await runCli(['doctor', target.baseUrl, ...state], { parts: target.parts });
    expect({ code, err }).toEqual({ code: 0, err: '' });
    for (const subject of ['base_url', 'Ledger', 'DNS', 'TCP', 'TLS', 'HTTP', 'API key', 'Availability'])
      expect(out).toMatch(new RegExp(`^OK {6}${subject} `, 'm'));
    expect(out).toContain('The set-up is ready for a run.');
    expect(target.sent.every((line) => line.startsWith('GET '))).toBe(true);
  });

  it('reports several faults at once', async () => {
    const env = { BERTH_API_KEY: 'Bearer abcdefgh' };
    const { code, out } = await runCli(['doctor', 'orchestrator.example'], { env });
    expect(code).toBe(3);
    expect(out).toMatch(/CONFIG {2}base_url/);
    expect(out).toMatch(/CONFIG {2}API key/);
    expect(out).toMatch(/2 problems prevent a run\. This says nothing about the target\./);
  });

  it('tries the address before it asks for the key', async () => {
    await using target = referenceParts();
    const env = { BERTH_API_KEY: undefined };
    const { code, out } = await runCli(['doctor', target.baseUrl, ...state], { parts: target.parts, env });
    expect(code).toBe(3);
    expect(out).toMatch(
      /^OK {6}HTTP .*without a key it answers 401\.\nCONFIG {2}API key .*there is no API key/m,
    );
    const away = await runCli(['doctor', 'http://127.0.0.1:1/v1', ...state], { env });
    expect(away.out).toMatch(/CONFIG {2}TCP .*\nCONFIG {2}API key/);
  });

  it('gives the same as JSON', async () => {
    const { code, out } = await runCli(['doctor', 'http://127.0.0.1:1/v1', '--json', ...state]);
    expect(code).toBe(3);
    expect(JSON.parse(out).diagnoses).toContainEqual(
      expect.objectContaining({ subject: 'TCP', state: 'config' }),
    );
  });

  it('finds a key that has to be exchanged for a token', async () => {
    await using target = referenceParts({ token: 'api_key', staticKeys: false });
    const { code, out } = await runCli(['doctor', target.baseUrl, ...state], { parts: target.parts });
    expect(code).toBe(0);
    expect(out).toMatch(/OK {6}API key .*accepted by POST \/auth\/token/);
  });

  it('finds a login that has to be exchanged for a token', async () => {
    const login = { username: 'marketplace', password: 'correct horse battery' };
    await using target = referenceParts({ token: 'password', staticKeys: false, login });
    const names = { BERTH_USERNAME: login.username, BERTH_PASSWORD: login.password };
    const env = { BERTH_API_KEY: undefined, ...names };
    const doctor = ['doctor', target.baseUrl, ...state];
    const good = await runCli(doctor, { parts: target.parts, env });
    expect(good.out).toMatch(/OK {6}Login .*accepted by POST \/auth\/token/);
    expect(good.code).toBe(0);
    const bad = await runCli(doctor, { parts: target.parts, env: { ...env, BERTH_PASSWORD: 'another' } });
    expect(bad.out).toMatch(/CONFIG {2}Login .*no access token for this user name and password/);
    const half = await runCli(doctor, { parts: target.parts, env: { ...env, BERTH_PASSWORD: undefined } });
    expect(half.out).toMatch(/CONFIG {2}Login .*BERTH_USERNAME is set, and BERTH_PASSWORD is not/);
    for (const { out, err, code } of [bad, half]) {
      expect(code).toBe(3);
      expect(out + err).not.toContain('battery');
    }
  });

  it('compares the clocks', async () => {
    const late = new Date(Date.now() - 3_600_000).toUTCString();
    await using target = await serveTarget((_request, response) => {
      response.setHeader('date', late);
      sendJson(response, 200, offers);
    });
    const { code, out } = await runCli(['doctor', target.baseUrl, ...state]);
    expect(code).toBe(0);
    expect(out).toMatch(
      /NOTE {4}Clock .*the target's clock is 3\d\d\d s behind the one of this machine: synchronise/,
    );
  });

  it('says that nothing is available, and what that makes of the outcome', async () => {
    await using target = await serveTarget((_request, response) => sendJson(response, 200, offers));
    const { out } = await runCli(['doctor', target.baseUrl, ...state]);
    expect(out).toMatch(/OK {6}Clock/);
    expect(out).toMatch(/NOTE {4}Availability +nothing is available, .*INCOMPLETE: free some capacity/);
  });

  it('sees that others can read the key, and never shows it', async () => {
    const file = folder.file('key');
    writeFileSync(file, `${API_KEY}\n`, { mode: 0o644 });
    chmodSync(file, 0o644);
    await using target = await serveTarget(({ headers }, response) =>
      sendJson(response, 500, { error: { code: 'x', message: headers.authorization } }),
    );
    const { out } = await runCli(['doctor', target.baseUrl, '--api-key-file', file, ...state], {
      parts: { env: {} },
    });
    expect(out).toMatch(/NOTE {4}API key .*others on this machine can read .*: chmod 600/);
    expect(out).not.toContain(API_KEY);
  });

  it('tries SSH if an address is given', async () => {
    const server = createServer((socket) => socket.end());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await using target = await serveTarget((_request, response) => sendJson(response, 200, offers));
    const args = ['doctor', target.baseUrl, ...state, '--ssh-host'];
    expect((await runCli([...args, `127.0.0.1:${port}`])).out).toMatch(
      /OK {6}SSH +127.0.0.1:\d+ takes connections/,
    );
    await new Promise((resolve) => server.close(resolve));
    const refused = await runCli([...args, `127.0.0.1:${port}`]);
    expect(refused.code).toBe(3);
    expect(refused.out).toMatch(/CONFIG {2}SSH .*takes no connection .*ECONNREFUSED.*firewall/);
    const without = await runCli(args.slice(0, -1));
    expect(without.out).toMatch(/NOTE {4}SSH .*cannot be known before there is one/);
  });
});

describe('what a doctor says of a run', () => {
  let target: ReturnType<typeof referenceParts>;
  beforeEach(() => {
    target = referenceParts();
  });
  afterEach(() => target[Symbol.asyncDispose]());

  const plan = (...args: string[]) =>
    runCli(['doctor', target.baseUrl, ...state, ...args], { parts: target.parts });

  it.each(['read-only', 'lifecycle', 'full'])('of level %s sends nothing but GETs', async (level) => {
    expect((await plan('--level', level, '--max-cost', '100')).code).toBe(0);
    expect(target.sent.length).toBeGreaterThan(0);
    expect(target.sent.filter((line) => !line.startsWith('GET '))).toEqual([]);
  });

  it('names every scenario, purchase, offer and price, and the worst case', async () => {
    const { out } = await plan('--level', 'full', '--max-cost', '100', '--json');
    const { plan: shown } = JSON.parse(out);
    expect(shown.scenarios.map(({ id }: { id: string }) => id)).toEqual(SCENARIOS.map(({ id }) => id));
    const instances = shown.purchases.filter(({ type }: { type: string }) => type === 'instance');
    expect(instances.length).toBeGreaterThan(3);
    let total = 0;
    for (const { offer, region, price_per_hour, longest_life_minutes, worst_case_usd } of instances) {
      expect(offer).toBeTypeOf('string');
      expect(region).toBeTypeOf('string');
      expect(longest_life_minutes).toBe(100);
      expect(worst_case_usd).toBeCloseTo((price_per_hour * 100) / 60, 6);
      total += worst_case_usd;
    }
    expect(shown.if_accepted.map(({ scenario }: { scenario: string }) => scenario)).toEqual([
      'refusals',
      'sold-out',
      'volumes',
    ]);
    for (const { worst_case_usd = 0 } of shown.if_accepted) total += worst_case_usd;
    expect(shown.worst_case_usd).toBeCloseTo(total, 6);
    const { out: text } = await plan('--level', 'full', '--max-cost', '100');
    for (const { id } of SCENARIOS) expect(text).toContain(`  ${id} `);
    expect(text).toMatch(/It may cost up to \$\d/);
  });

  it('counts a race as one unit more than there are, at the price of its offer', async () => {
    const { out } = await plan('--level', 'full', '--race', 'gpu-l4=2', '--max-cost', '100', '--json');
    const racing = JSON.parse(out).plan.purchases.filter(
      ({ offer }: { offer?: string }) => offer === 'gpu-l4',
    );
    expect(racing).toHaveLength(3);
    expect(racing[0].price_per_hour).toBe(0.8);
  });

  it('over the cap is shown all the same, and exits 3 with the number to pass', async () => {
    const { code, out } = await plan('--max-cost', '0.01');
    expect(code).toBe(3);
    expect(out).toContain('What it creates');
    expect(out).toMatch(/CONFIG {2}Cost .*pass --max-cost \d/);
  });

  it('of level read-only costs nothing', async () => {
    expect((await plan('--level', 'read-only')).out).toMatch(/It creates nothing\.\n\nIt costs nothing\./);
  });
});
