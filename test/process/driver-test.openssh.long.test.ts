import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runBerth, temporaryFolder } from '../support/processes/process.ts';
import { driverFile, full, newSite, type Site, template, UNITS } from './exec-driver.fixture.ts';

describe('berth driver test', () => {
  const test = (site: Site, ...driver: string[]) =>
    runBerth(['driver', 'test', '--json', '--units', String(UNITS), ...driver], {
      env: { BERTH_DRIVER_TOKEN: 'a-token-of-the-driver-0123456789' },
    }).then(({ code, stdout, stderr }) => {
      const lines = stdout.trim().split('\n');
      const results = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
      const having = (wanted: string) => results.filter(({ verdict }) => verdict === wanted);
      expect(having('broken'), stderr).toEqual([]);
      expect(code).toBe(0);
      expect(site.found()).toEqual({ machines: [], servers: 0 });
      return having('ok').length;
    });

  it.each([
    { file: template, program: 'python3', passed: 33 },
    { file: full, program: 'python3', passed: 44 },
    { file: driverFile('node/driver.mjs'), program: process.execPath, passed: 33 },
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
      [driverFile('node/full-driver.mjs'), site.machines, String(UNITS), '--listen', '0'],
      {
        env: { ...process.env, BERTH_DRIVER_TOKEN: 'a-token-of-the-driver-0123456789' },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const url = String((await once(server.stdout, 'data'))[0]).trim();
    expect(await test(site, '--url', url)).toBe(39);
    const refused = await runBerth(['driver', 'test', '--url', url]);
    server.kill();
    await once(server, 'close');
    expect(refused.stderr).toContain('cannot be used: the driver answers 401: no token was sent');
    expect(refused.code).toBe(1);
  });

  it('tests the platform of berth.yaml, with the offers of its catalog [driver-test-config]', async () => {
    using folder = temporaryFolder();
    const config = join(folder.path, 'berth.yaml');
    const driver = ['driver', 'test', '--config', config];
    const only = ['--only', 'create,stop-start,keys,volume-attach,destroy,inventory'];
    const lastLine = ({ stdout }: { stdout: string }) => stdout.trim().split('\n').at(-1);

    writeFileSync(config, JSON.stringify({ database: 'sqlite:berth.db', platform: { driver: 'simulator' } }));
    const tested = await runBerth([...driver, ...only, '--units', '400']);
    expect([tested.code, lastLine(tested)]).toEqual([0, '7 ok, 0 warnings, 0 broken.']);
    const counted = await runBerth([...driver, '--only', 'inventory', '--units', '3']);
    expect(counted.stdout).toContain('expected 3, got 400');
    expect(counted.stdout).toContain('Run `berth doctor`');
    expect(counted.code).toBe(1);

    const elsewhere = await runBerth([...driver, '--platform', 'elsewhere']);
    expect(elsewhere.stderr).toContain('There is no platform elsewhere; there is default.');
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
    expect(stdout).toMatch(/^ok {7}never-made: /m);
    expect(stdout).toMatch(
      /^BROKEN {3}notes: .*\n {9}required: .*\n {9}asked: .*"create".*\n {9}answered: .*\n {9}asked: .*"get".*\n {9}answered: .*"mine".*\n/m,
    );
    expect(stdout).toContain('         → Keep the note with the machine, byte for byte');
    expect(stdout).toMatch(/^BROKEN {3}machines-survive: /m);
    expect(stdout).toMatch(/^BROKEN {3}output: .*standard error\): "asked info"; and \d+ more lines/m);
    expect(stdout).toContain('2 ok, 0 warnings, 3 broken.');
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
    expect(stdout).toMatch(/^BROKEN {3}destroy-silences: .* 127\.0\.0\.1:\d+ still answers: /m);
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
      expect(stdout).toContain('1 ok, 2 skipped, 0 warnings, 1 broken.');
      expect(stdout).toContain('skipped  keys: correct `create` first');
      return stdout;
    };
    expect(await driven('"created_at": int(time.time() * 1000), ', '')).toMatch(
      /BROKEN {3}create: .*value\.created_at: it is missing, expected number\n(.*\n)* {9}→ Correct the field that is named/,
    );
    expect(await driven('machine.make(request["spec"])', 'raise Exception("no region")')).toMatch(
      /BROKEN {3}create: .*the driver reported an error for create: Exception\('no region'\)\n(.*\n)* {9}→ Correct the cause in the error/,
    );
    expect(await driven('machine.make(request["spec"])', 'time.sleep(600)')).toMatch(
      /BROKEN {3}create: .*the driver did not answer create within 1 s\n(.*\n)* {9}→ Answer each request within/,
    );
    expect(await driven('machine.make(request["spec"])', 'os._exit(3)')).toMatch(
      /BROKEN {3}create: .*the driver ended with exit code 3 .*\n(.*\n)* {9}→ Catch each failure of a request/,
    );
  });
});
