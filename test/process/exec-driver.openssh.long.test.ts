import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import { createClient, until } from '../support/http/http-client.ts';
import { fileOf } from '../support/processes/built-programs.ts';
import { generateKeyPair, ssh } from '../support/processes/openssh.ts';
import { runBerth, type ServingProcess, startServing } from '../support/processes/process.ts';
import { full, newSite, type Site, template, UNITS } from './exec-driver.fixture.ts';

const mortalEntry = fileOf('serve-with-failpoint');
const OFFER = { configuration_id: 'sshd-1x', region: 'local' };

const serve = (site: Site, entry?: string): Promise<ServingProcess> =>
  startServing(['--config', site.config], {
    cwd: site.folder,
    ...(entry !== undefined && { entry, ipc: true }),
  });

describe.concurrent('a driver in Python behind berth serve', () => {
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
    using site = newSite({ driver: ', timeout_s: 1' });
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
});
