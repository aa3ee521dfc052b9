import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { it } from 'vitest';
import { connectSimulator } from '../../src/drivers/simulator/remote/driver.ts';
import { systemClock } from '../../src/runtime/system.ts';
import { generateKeyPair, ssh } from '../support/processes/openssh.ts';
import { BerthProcess, temporaryFolder, writeFastConfig } from '../support/processes/process.ts';
import { quickReconcile, writeTimes } from '../support/processes/quick-times.ts';
import { ServerLives } from '../support/processes/server-lives.ts';
import { instanceRequest } from '../support/rows/requests.ts';
import { PATIENCE_MS } from '../support/time/until.ts';
import { liveThroughKills } from './over-any-driver.suite.ts';

const at = (path: string) => fileURLToPath(new URL(`../../examples/drivers/${path}`, import.meta.url));

const PACE = { everyMs: 50, withinMs: PATIENCE_MS };

const catalog = {
  regions: { local: { name: 'Here', datacenter: 'local-1' } },
  offers: [
    {
      ...{ id: 'sshd', name: 'An OpenSSH server', instance_type: 'DEDICATED', vcpus: 1, memory_gb: 1 },
      ...{ storage_gb: 10, price_per_hour: 0.01, os_options: ['debian-12'], supports_cloud_init: false },
      capacity: { local: 3 },
    },
  ],
};

it.each([{ name: 'JavaScript', program: [process.execPath, at('node/driver.mjs')], restart: 0 }])(
  'a machine of the driver in $name lives through kill -9 of Berth at each moment [exec-lifecycle]',
  async ({ program, restart }) => {
    await using server = new ServerLives((folder) => {
      const config = {
        platform: { driver: 'exec', command: [...program, join(folder, 'machines'), '3'] },
        catalog: 'catalog.yaml',
        database: 'sqlite:berth.db',
        rate_limits: false,
      };
      writeFileSync(join(folder, 'catalog.yaml'), JSON.stringify(catalog));
      writeFileSync(join(folder, 'berth.yaml'), JSON.stringify(config));
      writeTimes(join(folder, 'berth.yaml'), { reconcile: quickReconcile });
      return join(folder, 'berth.yaml');
    }, PACE);
    await server.start();
    const folder = join(server.folder, 'machines');
    const key = await generateKeyPair(server.folder, 'ed25519');
    await liveThroughKills({
      server,
      request: { configuration_id: 'sshd', region: 'local', ssh_keys: [key.publicKey] },
      machines: () => (existsSync(folder) ? readdirSync(folder).filter((name) => !name.startsWith('.')) : []),
      letsIn: async (machine) => (await ssh(machine, key, 'echo in')).stdout === 'in\n',
      calls: { create: 1, restart },
    });
  },
);

it('a machine of the simulator lives through kill -9 of Berth at each moment [simulator-lifecycle]', async () => {
  const env = { BERTH_SIMULATOR_TOKEN: 'a-token-for-these-tests' };
  using folder = temporaryFolder();
  const state = join(folder.path, 'platform.db');
  const flags = ['--json', '--port', '0', '--config', writeFastConfig(folder.path), '--state', state];
  await using simulator = new BerthProcess(['simulator', ...flags], { env });
  const ready = await simulator.waitForOutput((stdout) => /^\{.*\}$/m.exec(stdout)?.[0]);
  const { base_url: address } = JSON.parse(ready);
  await using server = new ServerLives((at) => writeFastConfig(at, { address }), PACE, env);
  await server.start();
  const key = await generateKeyPair(server.folder, 'ed25519');
  await liveThroughKills({
    server,
    request: instanceRequest({ ssh_keys: [key.publicKey] }),
    machines: async () => {
      const platform = connectSimulator({ address, token: env.BERTH_SIMULATOR_TOKEN }, systemClock);
      const listing = await platform.list();
      await platform.close();
      return listing.answer === 'listed' ? listing.items.map(({ ref }) => ref) : [];
    },
    letsIn: async (machine) => (await ssh(machine, key, 'echo in')).stdout === 'in\n',
    calls: { create: 1, restart: 1 },
  });
});
