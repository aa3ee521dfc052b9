import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../conformance/http/clock.ts';
import { marketplaceTransport } from '../../conformance/http/marketplace-transport.ts';
import { plainIdentity } from '../../conformance/http/plain-identity.ts';
import { TargetClient } from '../../conformance/http/target-client.ts';
import type { Transport } from '../../conformance/http/transport.ts';
import { Transcript } from '../../conformance/transcript/transcript.ts';
import { createClient } from '../../src/client/create-client.ts';
import type { OrchestratorClient } from '../../src/client/orchestrator-client.ts';
import { toProviderName } from '../../src/marketplace/model/names.ts';
import { systemClock as marketplaceClock } from '../../src/runtime/system.ts';

const SOURCE = { seed: 'wire', installation: '00c0ffee' };
const name = plainIdentity(SOURCE).nameOf(1);
const deployment = `dep-${name.slice(-32)}`;
const create = { configuration_id: 'gpu-1', region: 'eu-one', ssh_keys: ['ssh-ed25519 AAAA a@b'], name };
const open: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

/** A server that keeps the bytes of each connection, and answers every request with an empty object. */
async function listen(): Promise<{ baseUrl: string; connections: string[] }> {
  const connections: string[] = [];
  const server: Server = createServer((socket) => {
    const index = connections.push('') - 1;
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      connections[index] += bytes.toString('latin1');
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(() => new Promise((resolve) => server.close(resolve)));
  const { port } = server.address() as { port: number };
  return { baseUrl: `http://127.0.0.1:${port}/v1`, connections };
}

type Step = [
  asMarketplace: (client: OrchestratorClient) => Promise<unknown>,
  asSuite: (client: TargetClient) => Promise<unknown>,
];

const steps: Readonly<Record<string, Step>> = {
  'reading the offers': [
    (client) => client.listConfigurations(),
    (client) => client.send('s', { method: 'GET', path: '/configurations' }),
  ],
  'reading the availability of a region': [
    (client) => client.listAvailability('eu one/ü'),
    (client) =>
      client.send('s', { method: 'GET', path: `/availability?region=${encodeURIComponent('eu one/ü')}` }),
  ],
  'listing the instances': [
    (client) => client.listInstances(),
    (client) => client.send('s', { method: 'GET', path: '/instances' }),
  ],
  'a create': [
    (client) => client.createInstance(create, deployment),
    (client) => client.send('s', { method: 'POST', path: '/instances', body: create }),
  ],
  'a poll': [
    (client) => client.pollInstance('i-1', 'eu-one', null),
    (client) => client.send('s', { method: 'GET', path: '/instances/i-1?region=eu-one' }),
  ],
  'a stop': [
    (client) => client.stopInstance('i-1', 'eu-one'),
    (client) => client.send('s', { method: 'POST', path: '/instances/i-1/stop?region=eu-one' }),
  ],
  'a start': [
    (client) => client.startInstance('i-1', 'eu-one'),
    (client) => client.send('s', { method: 'POST', path: '/instances/i-1/start?region=eu-one' }),
  ],
  'a DELETE': [
    (client) => client.deleteInstance('i-1', 'eu-one'),
    (client) => client.send('s', { method: 'DELETE', path: '/instances/i-1?region=eu-one' }),
  ],
};

function marketplace(baseUrl: string): OrchestratorClient {
  const client = createClient({
    baseUrl,
    credential: { apiKey: 'k' },
    allowPrivate: true,
    timeoutMs: 30_000,
    clock: marketplaceClock,
  });
  open.push(() => client.close());
  return client;
}

function suite(baseUrl: string): TargetClient {
  const transport: Transport = marketplaceTransport();
  open.push(() => transport.close());
  return new TargetClient({
    transport,
    clock: systemClock,
    transcript: new Transcript({ redact: (record) => record }),
    baseUrl,
    identity: plainIdentity(SOURCE),
    apiKey: 'k',
    paceMs: 0,
    onSecret: () => {},
  });
}

const withoutPort = (texts: readonly string[]): string[] =>
  texts.map((text) => text.replaceAll(/127\.0\.0\.1:\d+/g, 'HOST'));

describe('a plain run on the wire', () => {
  it('gives names as a marketplace does', () => {
    expect(name).toBe(toProviderName(SOURCE.installation, deployment));
  });

  it.each(Object.entries(steps))(
    'sends %s byte for byte as a marketplace does',
    async (_what, [asMarketplace, asSuite]) => {
      const [theirs, ours] = [await listen(), await listen()];
      await asMarketplace(marketplace(theirs.baseUrl)).catch(() => {});
      await asSuite(suite(ours.baseUrl));
      expect(theirs.connections.join('')).toMatch(/^(GET|POST|DELETE) \/v1\//);
      expect(withoutPort(ours.connections)).toEqual(withoutPort(theirs.connections));
    },
  );

  it('uses its connections as a marketplace does', async () => {
    const [theirs, ours] = [await listen(), await listen()];
    const [client, run] = [marketplace(theirs.baseUrl), suite(ours.baseUrl)];
    for (const [asMarketplace, asSuite] of Object.values(steps)) {
      await asMarketplace(client).catch(() => {});
      await asSuite(run);
    }
    await Promise.allSettled([client.listConfigurations(), client.listAvailability()]);
    const read = (path: string) => ({ step: 's', call: { method: 'GET', path } as const });
    await run.sendTogether([read('/configurations'), read('/availability')]);
    expect(withoutPort(ours.connections)).toEqual(withoutPort(theirs.connections));
  });

  it('names no suite', async () => {
    const { baseUrl, connections } = await listen();
    await suite(baseUrl).send('s', { method: 'POST', path: '/instances', body: create });
    expect(connections.join('')).not.toMatch(/user-agent|x-request-id|berth|conformance/i);
  });
});
