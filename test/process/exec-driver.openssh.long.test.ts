import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { hasOpenSshServer } from '../../src/ssh/openssh-server.fixture.ts';
import { newPublicKey } from '../../testing/ssh-keys.ts';
import { createClient, until } from '../support/http/http-client.ts';
import { generateKeyPair, ssh } from '../support/processes/openssh.ts';
import {
  runBerth,
  type ServingProcess,
  startServing,
  temporaryFolder,
} from '../support/processes/process.ts';

const at = (path: string) => fileURLToPath(new URL(`../../examples/drivers/${path}`, import.meta.url));
const template = at('python/driver.py');
const full = at('python/full_driver.py');
const mortalEntry = fileURLToPath(new URL('../support/processes/serve-with-failpoint.ts', import.meta.url));
const UNITS = 3;
const OFFER = { configuration_id: 'sshd-1x', region: 'local' };
const CATALOG = `
regions:
  local:
    name: This machine
    datacenter: local-1
    volume_types: [{ name: folder, price_per_gb_hour: 0.0001, min_size_gb: 1, max_size_gb: 10 }]
offers:
  - id: sshd-1x
    name: An OpenSSH server
    instance_type: DEDICATED
    vcpus: 1
    memory_gb: 1
    storage_gb: 10
    price_per_hour: 0.01
    os_options: [debian-12]
    supports_cloud_init: false
    capacity: { local: ${UNITS} }
    machine: { flavour: tiny }
`;

/** Stands between the pipe and the template, and does what the file `mode` says with the next request. */
const CHAOS = `import os, runpy, sys, time
sys.path.insert(0, os.path.dirname(sys.argv[2]))
place, sys.argv, real = sys.argv[1], sys.argv[2:], sys.stdin
class Lines:
    def __iter__(self):
        for line in iter(real.readline, ''):
            mode = open(place).read()
            if mode == 'die': os._exit(9)
            if mode == 'hang': time.sleep(600)
            if mode == 'garbage': print('Traceback (most recent call last):', flush=True)
            yield line
sys.stdin = Lines()
runpy.run_path(sys.argv[0], run_name='__main__')
`;

interface Site extends Disposable {
  folder: string;
  machines: string;
  config: string;
  mode(mode: 'well' | 'die' | 'hang' | 'garbage'): void;
  /** The folders and the servers of the machines. */
  found(): { machines: string[]; servers: number };
}

function newSite(given: { driver?: string; file?: string; program?: string[] } = {}): Site {
  const { driver = '', file = template, program = ['python3', '@chaos', '@mode', file] } = given;
  const root = temporaryFolder();
  const at = (name: string): string => join(root.path, name);
  const machines = at('machines');
  const places: Record<string, string> = { '@chaos': at('chaos.py'), '@mode': at('mode') };
  const command = [...program.map((part) => places[part] ?? part), machines, String(UNITS)];
  writeFileSync(at('chaos.py'), CHAOS);
  writeFileSync(at('mode'), 'well');
  writeFileSync(at('catalog.yaml'), CATALOG);
  writeFileSync(
    at('berth.yaml'),
    `platform: { driver: exec, command: ${JSON.stringify(command)}${driver} }
catalog: catalog.yaml
reconcile: { watch_interval_s: 0.3, ssh_probe_interval_s: 0.2 }
rate_limits: { enabled: false }
database: sqlite:berth.db
`,
  );
  return {
    folder: root.path,
    machines,
    config: at('berth.yaml'),
    mode: (mode) => writeFileSync(at('mode'), mode),
    found: () => ({
      machines: readdirSync(machines).filter((name) => !name.startsWith('.')),
      servers: serversOf(machines).length,
    }),
    [Symbol.dispose]() {
      for (const pid of serversOf(machines)) process.kill(pid, 'SIGKILL');
      root[Symbol.dispose]();
    },
  };
}

/** Process ids of the OpenSSH servers below a folder, without what they have just forked for a connection. */
function serversOf(folder: string): number[] {
  const lines = execFileSync('ps', ['-eo', 'pid=,ppid=,args='], { encoding: 'utf8' }).split('\n');
  const found = lines
    .filter((line) => line.includes(`-f ${folder}/`))
    .map((line) => line.trim().split(/\s+/).slice(0, 2).map(Number) as [pid: number, parent: number]);
  const pids = found.map(([pid]) => pid);
  return found.filter(([, parent]) => !pids.includes(parent)).map(([pid]) => pid);
}

const serve = (site: Site, entry?: string): Promise<ServingProcess> =>
  startServing(['--config', site.config], {
    cwd: site.folder,
    ...(entry !== undefined && { entry, ipc: true }),
  });

describe.skipIf(!hasOpenSshServer)('a driver in Python behind berth serve', () => {
  it.each([
    { name: 'driver.py', file: template, tiers: ['compute'] },
    { name: 'full_driver.py', file: full, tiers: ['compute', 'storage'] },
  ])(
    'sells machines that people log in to, and passes every check of level full that the manifest of $name allows [exec-conformant]',
    async ({ file, tiers }) => {
      using site = newSite({ file });
      await using berth = await serve(site);
      const client = createClient(berth.baseUrl, berth.apiKey);
      const keys = await Promise.all([
        generateKeyPair(site.folder, 'ed25519'),
        generateKeyPair(site.folder, 'ecdsa'),
      ]);
      const created = await client.request('POST', '/instances', {
        body: { ...OFFER, ssh_keys: keys.map(({ publicKey }) => publicKey) },
      });
      expect(created.status).toBe(201);
      const path = `/instances/${created.body['id']}`;
      const online = await client.waitFor(path, 'ONLINE');
      for (const key of keys)
        expect(await ssh(online, key, 'echo in')).toMatchObject({ code: 0, stdout: 'in\n' });
      await ssh(online, keys[0], 'echo kept > note');
      await client.request('POST', `${path}/stop`);
      await client.waitFor(path, 'STOPPED');
      expect(site.found().servers).toBe(0);
      await client.request('POST', `${path}/start`);
      const again = await client.waitFor(path, 'ONLINE');
      expect(await ssh(again, keys[1], 'cat note')).toMatchObject({ code: 0, stdout: 'kept\n' });
      await client.request('DELETE', path);
      await until(
        async () => (await client.request('GET', path)).status === 404,
        () => 'it is not gone',
      );
      expect(site.found()).toEqual({ machines: [], servers: 0 });

      const { stdout: printed } = await runBerth(['keys', 'create', '--json', '--config', site.config], {
        cwd: site.folder,
      });
      const { api_key: secondKey } = JSON.parse(printed) as { api_key: string };
      const ran = await runBerth(
        [
          ...['conformance', berth.baseUrl, '--level', 'full', '--poll-interval-ms', '200'],
          ...[
            '--race',
            `sshd-1x=${UNITS}`,
            '--max-cost',
            '5',
            '--yes',
            '--state-dir',
            join(site.folder, 'state'),
          ],
        ],
        { cwd: site.folder, env: { BERTH_API_KEY: berth.apiKey, BERTH_SECOND_API_KEY: secondKey } },
      );
      expect(ran.stdout, ran.stderr).toMatch(/^CONFORMANT: /);
      for (const tier of tiers) expect(ran.stdout).toMatch(new RegExp(`^ {2}${tier} +conformant, `, 'm'));
      expect(site.found()).toEqual({ machines: [], servers: 0 });
      const { code } = await berth.end();
      expect(code).toBe(0);
    },
  );

  it.each(['create:before-call', 'create:after-call', 'the machine is being made'])(
    'has its machine adopted, and none made twice, after kill -9 of Berth at %s [exec-killed]',
    async (moment) => {
      using site = newSite();
      await using first = await serve(site, mortalEntry);
      const client = createClient(first.baseUrl, first.apiKey);
      if (moment.startsWith('create:')) {
        const armed = new Promise((resolve) => first.child.once('message', resolve));
        first.child.send({ name: moment, hit: 1 });
        await armed;
      }
      const body = { ...OFFER, ssh_keys: [newPublicKey()] };
      const { body: instance, status } = await client.request('POST', '/instances', { body });
      expect(status).toBe(201);
      if (!moment.startsWith('create:')) {
        await until(
          async () => readdirSync(site.machines).some((name) => name.includes('berth-')),
          () => 'nothing was begun',
        );
        first.child.kill('SIGKILL');
      }
      expect(await first.ended).toMatchObject({ signal: 'SIGKILL' });

      await using second = await serve(site);
      const after = createClient(second.baseUrl, first.apiKey);
      await after.waitFor(`/instances/${instance['id']}`, 'ONLINE');
      expect(site.found()).toEqual({ machines: [expect.stringContaining('berth-')], servers: 1 });
      await after.request('DELETE', `/instances/${instance['id']}`);
      await until(
        async () => (await after.request('GET', `/instances/${instance['id']}`)).status === 404,
        () => 'it is not gone',
      );
      expect(site.found()).toEqual({ machines: [], servers: 0 });
    },
  );

  it('may die, babble and hang: what is sold stays as it is, and each is a sentence in the log [exec-chaos]', async () => {
    using site = newSite({ driver: ', timeout_s: 1, stop_timeout_s: 1' });
    await using berth = await serve(site);
    const client = createClient(berth.baseUrl, berth.apiKey);
    const create = async (): Promise<string> => {
      const body = { ...OFFER, ssh_keys: [newPublicKey()] };
      return `/instances/${(await client.request('POST', '/instances', { body })).body['id']}`;
    };
    const path = await create();
    const logged = (sentence: RegExp): Promise<void> =>
      until(
        async () => sentence.test(berth.stderr),
        () => `no ${sentence} in ${berth.stderr}`,
      );
    const before = await client.waitFor(path, 'ONLINE');
    const expectUnchanged = async (): Promise<void> => {
      const { status, body } = await client.request('GET', path);
      expect({ status, body }).toMatchObject({
        status: 200,
        body: { status: 'ONLINE', ssh_port: before['ssh_port'] },
      });
    };

    site.mode('die');
    const made = await create();
    await logged(
      /the driver ended with exit code 9: Berth starts no work and changes no state until it answers again/,
    );
    await expectUnchanged();
    site.mode('garbage');
    await client.waitFor(made, 'ONLINE');
    await logged(/the driver wrote an invalid line \(not JSON: .*\): \\"Traceback/);
    await expectUnchanged();
    site.mode('hang');
    await client.request('DELETE', made);
    await logged(/the driver answered nothing for \d+ s: Berth starts no work and changes no state/);
    expect((await client.request('GET', made)).status).toBe(200);
    await expectUnchanged();
    site.mode('well');
    await until(
      async () => (await client.request('GET', made)).status === 404,
      () => 'it is not gone',
    );
    await expectUnchanged();
    expect(site.found()).toEqual({ machines: [expect.stringContaining('berth-')], servers: 1 });

    expect(await berth.end()).toMatchObject({ code: 0 });
    expect(site.found().servers).toBe(1);
    const drivers = execFileSync('ps', ['-eo', 'args='], { encoding: 'utf8' });
    expect(drivers.split('\n').filter((line) => line.includes(join(site.folder, 'chaos.py')))).toEqual([]);
  });

  it('is refused where it is too new, before anything is served', async () => {
    const answer = JSON.stringify({ id: '1', result: { protocol: 9, name: 'n', capabilities: {} } });
    using site = newSite({ program: ['sh', '-c', `read -r line; echo '${answer}'; cat > /dev/null`] });
    const { code, stdout, stderr } = await runBerth(
      ['serve', '--config', site.config, '--port', '0', '--json'],
      {
        cwd: site.folder,
      },
    );
    expect(stderr).toContain(
      'The driver sh cannot be used: the driver speaks version 9 of the driver protocol, which is too new (this version of Berth supports 2 and 1): upgrade Berth',
    );
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  });
});

describe.skipIf(!hasOpenSshServer)('berth driver test', () => {
  const test = (site: Site, ...driver: string[]) =>
    runBerth(['driver', 'test', '--json', '--units', String(UNITS), ...driver], {
      env: { BERTH_DRIVER_TOKEN: 'a-token-of-the-driver-0123456789' },
    }).then(({ code, stdout, stderr }) => {
      const lines = stdout.trim().split('\n');
      const results = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
      expect(
        results.filter(({ outcome }) => outcome === 'failed'),
        stderr,
      ).toEqual([]);
      expect({ code, ...results.at(-1) }).toMatchObject({ code: 0, ok: true, failed: 0, leftovers: [] });
      expect(site.found()).toEqual({ machines: [], servers: 0 });
      return results.at(-1)?.['passed'];
    });

  it.each([
    { file: template, program: 'python3', passed: 31 },
    { file: full, program: 'python3', passed: 41 },
    { file: at('node/driver.mjs'), program: process.execPath, passed: 31 },
  ])(
    'passes the template $file, and leaves nothing behind [exec-template]',
    async ({ program, file, passed }) => {
      using site = newSite();
      expect(await test(site, program, file, site.machines, String(UNITS))).toBe(passed);
    },
  );

  it('passes the full template in JavaScript over HTTP [exec-template-node]', async () => {
    using site = newSite();
    const server = spawn(
      process.execPath,
      [at('node/full-driver.mjs'), site.machines, String(UNITS), '--listen', '0'],
      {
        env: { ...process.env, BERTH_DRIVER_TOKEN: 'a-token-of-the-driver-0123456789' },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const url = String((await once(server.stdout, 'data'))[0]).trim();
    expect(await test(site, '--url', url)).toBe(36);
    const refused = await runBerth(['driver', 'test', '--url', url]);
    server.kill();
    await once(server, 'close');
    expect(refused.stderr).toContain('cannot be used: the driver answers 401: no token was sent');
    expect(refused.code).toBe(1);
  });

  it('explains to whoever wrote a driver what is wrong with it [exec-explained]', async () => {
    using site = newSite();
    const broken = join(site.folder, 'broken.py');
    const text = readFileSync(template, 'utf8');
    const mistakes = [
      ['"note": spec["note"]', '"note": "mine"'],
      ['subprocess.run(["/usr/sbin/sshd", ', 'subprocess.Popen(["/usr/sbin/sshd", "-D", '],
      ['log], check=True)', 'log])'],
      ['print(json.dumps(reply)', 'print("asked", request["method"])\n        print(json.dumps(reply)'],
    ] as const;
    for (const [right] of mistakes) expect(text).toContain(right);
    writeFileSync(
      broken,
      mistakes.reduce((file, [right, wrong]) => file.replace(right, wrong), text),
    );
    chmodSync(broken, 0o755);
    const { code, stdout } = await runBerth([
      ...['driver', 'test', '--only', 'never-made,notes,machines-survive,output'],
      ...[broken, site.machines],
    ]);
    expect(stdout).toMatch(/^ok {9}never-made: /m);
    expect(stdout).toMatch(
      /^FAILED {5}notes: .*\n {2}found: .*\n {2}asked: .*"create".*\n {2}answered: .*\n {2}asked: .*"get".*\n {2}answered: .*"mine".*\n/m,
    );
    expect(stdout).toContain('  change:      Keep the note with the machine, byte for byte');
    expect(stdout).toMatch(/^FAILED {5}machines-survive: /m);
    expect(stdout).toMatch(
      /^FAILED {5}output: .*\n {2}found: .*standard error\): "asked info"; and \d+ more lines/m,
    );
    expect(stdout).toContain('1 passed, 3 failed, 0 not tried.');
    expect(code).toBe(1);
    expect(site.found()).toEqual({ machines: [], servers: 0 });
  });

  it('finds a machine that answers when its destroy is done [exec-explained-leak]', async () => {
    using site = newSite();
    const leaky = join(site.folder, 'leaky.py');
    const text = readFileSync(template, 'utf8');
    const right = '            machine.kill()\n            shutil';
    expect(text).toContain(right);
    writeFileSync(leaky, text.replace(right, '            shutil'));
    chmodSync(leaky, 0o755);
    const { code, stdout } = await runBerth([
      ...['driver', 'test', '--only', 'destroy-silences', leaky, site.machines],
    ]);
    expect(stdout).toMatch(
      /^FAILED {5}destroy-silences: .*\n {2}found: .* 127\.0\.0\.1:\d+ still answers: /m,
    );
    expect(code).toBe(1);
  });

  it('says of a driver that makes no machine what came instead, once, and what to change [exec-explained-create]', async () => {
    using site = newSite();
    const driven = async (...mistake: [right: string, wrong: string]): Promise<string> => {
      const broken = join(site.folder, 'broken.py');
      const text = readFileSync(template, 'utf8');
      expect(text).toContain(mistake[0]);
      writeFileSync(broken, text.replace(...mistake));
      chmodSync(broken, 0o755);
      const only = ['--only', 'create,notes,keys', '--timeout-s', '1'];
      const { code, stdout } = await runBerth(['driver', 'test', ...only, broken, site.machines]);
      expect(code).toBe(1);
      expect(stdout).toContain('0 passed, 1 failed, 2 not tried.');
      expect(stdout).toContain('not tried  keys: correct `create` first');
      return stdout;
    };
    expect(await driven('"created_at": int(time.time() * 1000), ', '')).toMatch(
      /found: .*value\.created_at: it is missing, expected number\n(.*\n)* {2}change: {6}Correct the field that is named/,
    );
    expect(await driven('machine.make(request["spec"])', 'raise Exception("no region")')).toMatch(
      /found: .*the driver reported an error for create: Exception\('no region'\)\n(.*\n)* {2}change: {6}Correct the cause in the error/,
    );
    expect(await driven('machine.make(request["spec"])', 'time.sleep(600)')).toMatch(
      /found: .*the driver did not answer create within 1 s\n(.*\n)* {2}change: {6}Answer each request within/,
    );
    expect(await driven('machine.make(request["spec"])', 'os._exit(3)')).toMatch(
      /found: .*the driver ended with exit code 3 .*\n(.*\n)* {2}change: {6}Catch each failure of a request/,
    );
  });
});
