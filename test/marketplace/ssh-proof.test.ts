import { type AddressInfo, createServer } from 'node:net';
import ssh2 from 'ssh2';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isForbiddenAddress } from '../../src/client/addresses.ts';
import { publicKey } from '../../src/marketplace/deployments/market.fixture.ts';
import { proveSsh } from '../../src/marketplace/sync/prove-ssh.ts';
import {
  accept,
  openProviderWorkers,
  read,
  type SyncSetup,
  stopped,
} from '../../src/marketplace/sync/sync.fixture.ts';
import { syncDeployment } from '../../src/marketplace/sync/sync-deployment.ts';
import { contextOf } from '../../src/marketplace/sync/worker.fixture.ts';
import type { SshProbe } from '../../src/ports/ssh-probe.ts';
import { createSshProbe } from '../../src/ssh/probe.ts';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';

const MINUTE_MS = 60_000;
const GREETING = 'SECRET-OF-AN-INNER-SERVICE';

let setup: SyncSetup;
const cleanups: (() => Promise<unknown>)[] = [];
beforeEach(async () => {
  setup = await openProviderWorkers({ bootMs: 1_000 });
});
afterEach(async () => {
  await setup.close();
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

/** An SSH server that lets in the owner of `line`; its port on loopback. */
async function sshServer(line: string): Promise<number> {
  const hostKeys = [ssh2.utils.generateKeyPairSync('ecdsa', { bits: 256 }).private];
  const server = new ssh2.Server({ hostKeys }, (client) => {
    client.on('error', () => {});
    client.on('authentication', (context) => {
      const isIt =
        context.method === 'publickey' && context.key.data.toString('base64') === line.split(' ')[1];
      if (isIt) context.accept();
      else context.reject(['publickey']);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => new Promise((resolve) => server.close(resolve)));
  return (server.address() as AddressInfo).port;
}

/** Something that is no SSH server and speaks first; how often it was connected to. */
async function innerService(): Promise<{ port: number; connections: () => number }> {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket
      .on('error', () => {})
      .resume()
      .end(`${GREETING}\r\n`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => new Promise((resolve) => server.close(resolve)));
  return { port: (server.address() as AddressInfo).port, connections: () => connections };
}

/** A deployment whose machine is ONLINE at this address, polled and proved `rounds` times, a minute apart. */
async function lived(probe: SshProbe, host: string, port: number, rounds: number): Promise<string> {
  setup.provider.sshProbe = probe;
  const id = await accept(setup);
  setup.workers.start();
  // No proof is begun before the address is that of the test.
  setup.plain.faults.plan = (method) => (method === 'getInstance' ? 'refuse' : 'none');
  while (setup.plain.instances[0]?.status !== 'ONLINE') await setup.clock.advance(1_000);
  await stopped(setup.clock, setup.workers);
  setup.plain.set('i-1', { public_ip: host, ssh_port: port });
  setup.plain.faults.plan = () => 'none';
  const context = contextOf(setup.deps, setup.provider);
  for (let round = 0; round < rounds && (await read(setup, id)).status === 'deploying'; round++) {
    await syncDeployment(context, id);
    await proveSsh(context, id);
    await syncDeployment(context, id);
    await setup.clock.advance(MINUTE_MS);
  }
  return id;
}

const anywhere = createSshProbe();
const closed = async () => {
  const { port } = await innerService();
  for (const cleanup of cleanups.splice(0)) await cleanup();
  return port;
};

describe('a real machine', () => {
  it('that lets its user in runs', async () => {
    const id = await lived(anywhere, '127.0.0.1', await sshServer(publicKey), 1);
    expect(await read(setup, id)).toMatchObject({ status: 'running', ipAddress: '127.0.0.1' });
  });

  it.each([
    ['whose SSH port is closed', closed, 'the connection to its SSH port failed'],
    [
      'that refuses the key of its user',
      () => sshServer(newPublicKey()),
      'its SSH server did not accept the key',
    ],
    [
      'at whose SSH port something else speaks',
      async () => (await innerService()).port,
      'no SSH server answered on its SSH port',
    ],
  ])(
    '%s fails after ten minutes, and nothing of what it says is told [real-ssh-proof-fails]',
    async (_name, portOf, words) => {
      const id = await lived(anywhere, '127.0.0.1', await portOf(), 13);
      const record = await read(setup, id);
      expect(record).toMatchObject({ status: 'failed', failureReason: 'ssh_unreachable', startedAt: null });
      expect(record.failureDetails).toContain(words);
      expect(JSON.stringify([record, setup.logged])).not.toContain(GREETING);
    },
  );

  it.each(['127.0.0.1', 'localhost'])(
    'at a private address is never connected to, where those are not allowed: %s',
    async (host) => {
      const { port, connections } = await innerService();
      const id = await lived(createSshProbe({ isForbidden: isForbiddenAddress }), host, port, 2);
      expect((await read(setup, id)).status).toBe('deploying');
      expect(connections()).toBe(0);
      const logged = setup.logged.find(({ fields }) => fields['step'] === 'connect');
      expect(logged?.fields['detail']).toBe(`${host} is a private or reserved address, which is not allowed`);
    },
  );
});
