import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { certificateOf } from '../../../conformance/http/certificates.fixture.ts';
import type { Call } from '../../orchestrator/model/platform-driver.ts';
import { NotReached } from '../../ports/errors.ts';
import { IncusClient } from './client.ts';
import { IncusRefusal } from './errors.ts';

/** The daemon's is self-signed and names no address. The client's has its name as subject. */
const [daemon, client] = [certificateOf('nameless'), certificateOf('localhost')];
const stranger = certificateOf('self-signed');

/** The requests of a test. */
const asked: string[] = [];
/** Called for a request that gets no answer. */
let hanging = (): void => undefined;
const pinned = {
  certificate: client.cert,
  key: client.key,
  serverCertificate: daemon.cert,
};

/** Answers as Incus does; the path selects the answer. */
const server = createServer(
  { ...daemon, requestCert: true, rejectUnauthorized: false },
  ({ method, url = '', socket, headers }, reply) => {
    const { pathname, searchParams } = new URL(url, 'https://x');
    asked.push(`${method} ${pathname}`);
    if (pathname === '/hangs') return hanging();
    if (pathname === '/lost') return void socket.destroy();
    if (pathname === '/proxy') return void reply.writeHead(404).end('{"message":"no such route"}');
    const type = pathname === '/async' ? 'async' : pathname === '/no' ? 'error' : 'sync';
    const subject = (socket as TLSSocket).getPeerCertificate().subject?.CN;
    const metadata = { subject, project: searchParams.get('project'), match: headers['if-match'] };
    reply.writeHead(type === 'error' ? 400 : 200, { 'Content-Type': 'application/json', Etag: '"7"' });
    const operation = '/1.0/operations/5c3d55ca-a7c6-443f-a021-359f3a35c6c2?project=p';
    reply.end(
      pathname === '/garbage'
        ? '<html>'
        : JSON.stringify({
            type,
            metadata,
            operation,
            error: 'because',
            error_code: type === 'error' ? 409 : 0,
          }),
    );
  },
);
let address: string;
const opened: IncusClient[] = [];

function open(addresses: readonly string[], serverCertificate = daemon.cert): IncusClient {
  const made = new IncusClient({ addresses, tls: { ...pinned, serverCertificate }, project: 'p' });
  opened.push(made);
  return made;
}

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  address = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
beforeEach(() => void asked.splice(0));
afterAll(async () => {
  await Promise.all(opened.map((one) => one.close()));
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

describe('the client of Incus', () => {
  it('sends its certificate, the project, and the ETag of what it replaces', async () => {
    const reply = await open([address]).send('PUT', '/1.0/x', { body: {}, etag: '"6"' });
    expect(reply).toEqual({
      metadata: { subject: 'localhost', project: 'p', match: '"6"' },
      etag: '"7"',
      operation: undefined,
    });
  });

  it('sends a name with the marks of a URL whole, so that it means no other resource', async () => {
    await open([address]).send('PUT', '/1.0/volumes/vol#1?x', { query: { target: 'a b' } });
    expect(asked).toEqual(['PUT /1.0/volumes/vol%231%3Fx']);
  });

  it('sends no project when it lists all projects, because Incus would reject it', async () => {
    const { metadata } = await open([address]).get('/1.0/x', { 'all-projects': 'true' });
    expect(metadata).toMatchObject({ project: null });
  });

  it('sends nothing to a daemon without the pinned certificate', async () => {
    const problem = await open([address], stranger.cert)
      .send('POST', '/1.0/x')
      .catch((error) => error);
    expect(problem).toBeInstanceOf(NotReached);
  });

  it('returns the code of a refusal, and the id of an operation', async () => {
    await expect(open([address]).get('/no')).rejects.toThrow(new IncusRefusal(409, 'because', 'GET'));
    expect(await open([address]).send('POST', '/async')).toMatchObject({
      operation: '5c3d55ca-a7c6-443f-a021-359f3a35c6c2',
    });
  });

  it('tries the next member when one cannot be reached, and then stays with the one that answered', async () => {
    const cluster = open(['unix:/nowhere/unix.socket', address]);
    expect(await cluster.send('POST', '/1.0/x')).toMatchObject({ metadata: { subject: 'localhost' } });
    expect(await cluster.get('/1.0/x')).toMatchObject({ metadata: { subject: 'localhost' } });
    await expect(open(['unix:/nowhere/unix.socket']).get('/1.0')).rejects.toThrow(NotReached);
  });

  it('leaves the outcome of a lost answer open, and does not send the request again', async () => {
    const problem = await open([address, address])
      .send('POST', '/lost')
      .catch((error) => error);
    expect(problem).not.toBeInstanceOf(NotReached);
    expect(problem.message).toContain('was lost');
  });

  it('sends no change for a call that is past its deadline or cancelled', async () => {
    const one = open([address]);
    const call: Call = { deadline: 1_000, fence: 1, signal: new AbortController().signal };
    const late = new IncusClient({ addresses: [address], project: 'p', now: () => 1_000, tls: pinned });
    opened.push(late);
    await expect(late.send('POST', '/1.0/x', { call })).rejects.toThrow(NotReached);
    const given = { ...call, deadline: Number.POSITIVE_INFINITY, signal: AbortSignal.abort() };
    await expect(one.send('POST', '/1.0/x', { call: given })).rejects.toThrow(NotReached);
    expect(asked).toEqual([]);
    expect(await one.send('POST', '/1.0/x', { call: { ...given, signal: call.signal } })).toBeDefined();
    expect(asked).toEqual(['POST /1.0/x']);
  });

  it('stops waiting for a change when its call is cancelled, and reports its outcome as unknown', async () => {
    const given = new AbortController();
    const call: Call = { deadline: Number.POSITIVE_INFINITY, fence: 1, signal: given.signal };
    hanging = () => given.abort();
    const problem = await open([address, address])
      .send('POST', '/hangs', { call })
      .catch((error) => error);
    expect(problem).not.toBeInstanceOf(NotReached);
    expect(problem.message).toContain('was lost');
    expect(asked).toEqual(['POST /hangs']);
  });

  it('reports an answer that is not from Incus', async () => {
    await expect(open([address]).get('/garbage')).rejects.toThrow('not JSON: <html>');
    const problem = await open([address])
      .get('/proxy')
      .catch((error) => error);
    expect(problem).not.toBeInstanceOf(IncusRefusal);
    expect(problem.message).toContain('404 with an unexpected body');
  });
});
