import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../test/support/time/virtual-clock.ts';
import { answerJson, instanceAnswer, startAnsweringServer } from './answering-server.fixture.ts';
import { clientOf, problemOf, read, write } from './client.fixture.ts';

describe('hostile providers', () => {
  it('that send a redirect get no second request, and the key goes to no other server [provider-redirect-refused]', async () => {
    await using elsewhere = await startAnsweringServer((_, response) =>
      answerJson(response, 200, instanceAnswer),
    );
    await using server = await startAnsweringServer((_, response) =>
      response.writeHead(307, { Location: `http://localhost:${elsewhere.port}/v1/instances` }).end(),
    );
    const client = clientOf(server.baseUrl);
    expect(await problemOf(read(client))).toMatchObject({ problem: 'invalid', status: 307 });
    expect(await problemOf(write(client))).toMatchObject({ problem: 'invalid', mayHaveHappened: true });
    expect(elsewhere.received).toEqual([]);
    expect(server.received).toHaveLength(2);
  });

  it('that never answer cause a timeout', async () => {
    const clock = new VirtualClock();
    await using server = await startAnsweringServer(() => void clock.advance(50));
    const client = clientOf(server.baseUrl, { timeoutMs: 50, clock });
    expect(await problemOf(read(client))).toMatchObject({ problem: 'timeout', mayHaveHappened: false });
    expect(await problemOf(write(client))).toMatchObject({ problem: 'timeout', mayHaveHappened: true });
  });

  it('that trickle their bytes cause a timeout too', async () => {
    const clock = new VirtualClock();
    await using server = await startAnsweringServer((_, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      const drip = setInterval(() => response.write(' ', () => void clock.advance(5)), 5);
      response.on('close', () => clearInterval(drip));
    });
    const problem = await problemOf(read(clientOf(server.baseUrl, { timeoutMs: 100, clock })));
    expect(problem).toMatchObject({ problem: 'timeout', message: expect.stringContaining('within 100 ms') });
  });

  it('that hang delay a call no longer than its own timeout', async () => {
    const clock = new VirtualClock();
    await using server = await startAnsweringServer(() => void clock.advance(30));
    const call = clientOf(server.baseUrl, { clock }).getInstance('i-1', 'eu', { timeoutMs: 30 });
    expect((await problemOf(call)).message).toContain('within 30 ms');
  });

  it('that send without end are cut off', async () => {
    let isOver = false;
    await using server = await startAnsweringServer((_, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      const fill = (): void => {
        while (!isOver && response.write('x'.repeat(65_536)));
      };
      response.on('drain', fill).on('close', () => {
        isOver = true;
      });
      fill();
    });
    const problem = await problemOf(read(clientOf(server.baseUrl, { maxBodyBytes: 1_000_000 })));
    expect(problem).toMatchObject({ problem: 'invalid' });
    await expect.poll(() => isOver).toBe(true);
  });

  it('that break the connection may have carried out the request', async () => {
    await using server = await startAnsweringServer((_, response) => response.socket?.destroy());
    const client = clientOf(server.baseUrl);
    expect(await problemOf(write(client))).toMatchObject({ problem: 'timeout', mayHaveHappened: true });
    expect(server.received).toHaveLength(1);
  });

  it('that break off in the middle of a body may have, too', async () => {
    await using server = await startAnsweringServer((_, response) => {
      response.writeHead(201, { 'Content-Type': 'application/json', 'Content-Length': '1000' });
      response.write('{"id":', () => response.socket?.destroy());
    });
    expect(await problemOf(write(clientOf(server.baseUrl)))).toMatchObject({
      problem: 'timeout',
      mayHaveHappened: true,
    });
  });
});

describe('providers that cannot be reached', () => {
  it('because no server listens', async () => {
    const server = await startAnsweringServer(() => undefined);
    await server[Symbol.asyncDispose]();
    expect(await problemOf(write(clientOf(server.baseUrl)))).toMatchObject({
      problem: 'unreachable',
      mayHaveHappened: false,
      status: null,
    });
  });

  it('because TLS fails', async () => {
    await using server = await startAnsweringServer((_, response) =>
      answerJson(response, 201, instanceAnswer),
    );
    const client = clientOf(`https://127.0.0.1:${server.port}/v1`);
    expect(await problemOf(write(client))).toMatchObject({ problem: 'unreachable', mayHaveHappened: false });
  });

  it('because a public name resolves to a private address, even if it did not a moment ago [dns-rebinding]', async () => {
    await using server = await startAnsweringServer((_, response) =>
      answerJson(response, 201, instanceAnswer),
    );
    const asked: string[] = [];
    const client = clientOf(`https://gpu.example:${server.port}/v1`, {
      allowPrivate: false,
      resolve: (hostname, _, callback) => {
        asked.push(hostname);
        callback(null, [
          { address: '127.0.0.1', family: 4 },
          { address: '::ffff:127.0.0.1', family: 6 },
        ]);
      },
    });
    const problem = await problemOf(write(client));
    expect(problem).toMatchObject({ problem: 'unreachable', mayHaveHappened: false });
    expect(problem.message).toContain('gpu.example resolves to a private or reserved address');
    await problemOf(write(client));
    expect(asked).toEqual(['gpu.example', 'gpu.example']);
    expect(server.received).toEqual([]);
  });

  it('because the host is localhost', async () => {
    const client = clientOf('https://localhost:1/v1', { allowPrivate: false });
    expect((await problemOf(read(client))).message).toContain('localhost resolves to a private');
  });
});
