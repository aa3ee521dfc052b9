import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { Agent, fetch } from 'undici';
import { describe, expect, it, vi } from 'vitest';
import type { FaultName } from '../../sandbox/faults/catalog/catalog.ts';
import { otherSideClosed, reset } from '../../sandbox/faults/proofs.fixture.ts';
import { createSandbox } from './sandbox.ts';

/** A sandbox served over TLS, and a client that trusts its CA. */
async function serve() {
  const sandbox = await createSandbox();
  const listener = await sandbox.listen({ tls: true });
  const { ca = '' } = listener;
  const agents: Agent[] = [];
  const { baseUrl, apiKey } = sandbox.provider('a');
  const { port } = new URL(listener.origin);
  return {
    ...{ sandbox, listener, ca, port: Number(port) },
    /** Makes a client that keeps its connections alive. It asks for an empty list. */
    open(trusted: string | undefined = ca) {
      const agent = new Agent({ connections: 1, connect: { ca: trusted ?? [] } });
      agents.push(agent);
      return async (origin = listener.origin): Promise<string> => {
        const url = `${origin}${new URL(baseUrl).pathname}/instances`;
        const reply = await fetch(url, {
          headers: { authorization: `Bearer ${apiKey}` },
          dispatcher: agent,
        });
        return `${reply.status} ${await reply.text()}`;
      };
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(agents.map((agent) => agent.destroy()));
      await sandbox.close();
    },
  };
}

/** Opens a connection by TLS. Resolves after the handshake, or with the code of its error. */
async function handshake(options: ConnectionOptions): Promise<TLSSocket | string> {
  const socket = connect({ host: '127.0.0.1', ...options });
  return new Promise((resolve) => {
    socket.once('secureConnect', () => resolve(socket));
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}

const EMPTY = '200 {"instances":[]}';

it('serves HTTPS by its address and by localhost, to clients that trust its CA [sandbox-tls]', async () => {
  await using serving = await serve();
  const { sandbox, listener, ca, port, open } = serving;
  expect(listener.origin).toBe(`https://127.0.0.1:${port}`);
  expect(sandbox.provider('a').baseUrl).toMatch(/^https:/);
  const ask = open();
  expect(await ask()).toBe(EMPTY);
  expect(await ask(`https://localhost:${port}`)).toBe(EMPTY);
  await expect(open('')()).rejects.toMatchObject({ cause: { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' } });
  expect((await sandbox.control.info()).ca).toBe(ca);
  await listener.close();
  expect((await sandbox.control.info()).ca).toBeUndefined();
  const plain = await sandbox.listen();
  expect([plain.ca, plain.controlOrigin]).toEqual([undefined, plain.origin]);
});

describe('a fault of TLS affects the handshakes of new connections, as often as it may [sandbox-tls-faults]', () => {
  it.each<[FaultName, string]>([
    ['certificate-expired', 'CERT_HAS_EXPIRED'],
    ['certificate-wrong-name', 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['handshake-reset', 'ECONNRESET'],
  ])('%s', async (name, code) => {
    await using serving = await serve();
    const { sandbox, open } = serving;
    const early = open();
    expect(await early()).toBe(EMPTY);
    const armed = await sandbox.faults.arm(name, { times: 2, must_trigger: true });
    expect(await early()).toBe(EMPTY);
    const late = open();
    for (let round = 0; round < 2; round++)
      await expect(late()).rejects.toMatchObject({ message: 'fetch failed', cause: { code } });
    expect(await late()).toBe(EMPTY);
    expect(armed).toMatchObject({ hits: 2, isOver: true, isUntriggered: false });
    const { length: answered } = await sandbox.control.journal.entries();
    expect(answered).toBe(3);
  });

  it('also if the client resumes an earlier session', async () => {
    await using serving = await serve();
    const { sandbox, ca, port } = serving;
    const first = (await handshake({ port, ca })) as TLSSocket;
    const [session] = (await once(first, 'session')) as [Buffer];
    first.destroy();
    await sandbox.faults.arm('certificate-expired');
    expect(await handshake({ port, ca, session })).toBe('CERT_HAS_EXPIRED');
  });

  it('not over HTTP, where the control API stays within reach', async () => {
    await using serving = await serve();
    const { sandbox, listener, open } = serving;
    await sandbox.faults.arm('handshake-reset', { times: 'sticky' });
    const headers = { authorization: `Bearer ${sandbox.controlKey}` };
    const cleared = await fetch(`${listener.controlOrigin}/control/faults`, { method: 'DELETE', headers });
    expect(cleared.status).toBe(200);
    expect(await open()()).toBe(EMPTY);
  });
});

it('resets and half-closes a connection by TLS as one without', async () => {
  await using serving = await serve();
  const { sandbox, open } = serving;
  const ask = open();
  await sandbox.faults.arm('answer-lost');
  await expect(ask()).rejects.toMatchObject(reset);
  await sandbox.faults.arm('half-closed-before-answer');
  await expect(ask()).rejects.toMatchObject(otherSideClosed);
  await sandbox.faults.arm('half-closed-after-answer');
  expect(await ask()).toBe(EMPTY);
  await sandbox.faults.arm('half-body-reset');
  await expect(ask()).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } });
  expect(await ask()).toBe(EMPTY);
});

it('closes although a handshake never began', async () => {
  await using serving = await serve();
  const { sandbox, listener, port } = serving;
  await sandbox.faults.arm('handshake-reset');
  const { length: before } = sandbox.faults.events;
  const socket = connectTcp(port, '127.0.0.1');
  await vi.waitUntil(() => sandbox.faults.events.length > before);
  await listener.close();
  await once(socket, 'close');
});

it('goes on when a connection breaks before its handshake', async () => {
  await using serving = await serve();
  const { sandbox, port, open } = serving;
  const armed = await sandbox.faults.arm('handshake-reset');
  const { length: before } = sandbox.faults.events;
  const socket = connectTcp(port, '127.0.0.1');
  await vi.waitUntil(() => sandbox.faults.events.length > before);
  socket.resetAndDestroy();
  await once(socket, 'close');
  armed.disarm();
  expect(await open()()).toBe(EMPTY);
});

it('serves over HTTP nothing but the control API, on this machine alone', async () => {
  await using serving = await serve();
  const { sandbox, listener } = serving;
  expect(new URL(listener.controlOrigin).hostname).toBe('127.0.0.1');
  const headers = { authorization: `Bearer ${sandbox.controlKey}` };
  expect((await fetch(`${listener.controlOrigin}/control/info`, { headers })).status).toBe(200);
  const { pathname } = new URL(sandbox.provider('a').baseUrl);
  const refused = await fetch(`${listener.controlOrigin}${pathname}/configurations`, { headers });
  expect([refused.status, await refused.json()]).toMatchObject([404, { error: { code: 'not_found' } }]);
});
