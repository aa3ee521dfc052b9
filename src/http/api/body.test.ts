import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { Hono } from 'hono';
import { expect, it } from 'vitest';
import { silentLog as log } from '../../../test/support/doubles/log.ts';
import { startServer } from '../../../test/support/http/wire.ts';
import { until } from '../../../test/support/time/until.ts';
import { errors } from '../../orchestrator/http/errors.ts';
import { readBody } from './body.ts';
import { appListener } from './listener.ts';

const KB = 1024;

it('a key that sends too many bodies gets 503, and others do not; what it aborts counts no longer [bodies-of-one-key]', async () => {
  let begun = 0;
  const app = new Hono<{ Variables: { who: object } }>()
    .use((context, next) => {
      begun++;
      context.set('who', { key: context.req.header('key') });
      return next();
    })
    .use(readBody(errors.body, 256 * KB))
    .post('/', (context) => context.text('done'));
  app.onError((error, context) => errors.respond(context, error, log));
  const listener = appListener(app.fetch, { errors, log, nextId: () => 'id', trustedProxies: 0 });
  await using server = await startServer({ listener });
  const begin = (key: string, framing: string): Socket => {
    const socket = connect(server.port, '127.0.0.1');
    const type = 'Content-Type: application/json\r\n';
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nKey: ${key}\r\n${type}${framing}\r\n`);
    return socket;
  };
  const sized = `Content-Length: ${256 * KB}\r\n`;
  const chunked = `Transfer-Encoding: chunked\r\n\r\n${(200 * KB).toString(16)}\r\n${'{'.repeat(200 * KB)}`;
  const whole = async (key: string): Promise<string> => {
    const socket = begin(key, 'Content-Length: 2\r\nConnection: close\r\n');
    socket.write('{}');
    return (await text(socket)).split('\r\n')[0] ?? '';
  };
  // A key may have half of 4 MiB.
  const held = Array.from({ length: 8 }, () => begin('a', sized));
  await until('they have begun', () => begun === 8);
  for (const framing of [sized, chunked]) {
    const socket = begin('a', framing);
    const [refused] = await once(socket, 'data');
    expect(String(refused)).toMatch(/^HTTP\/1.1 503 [\s\S]*retry-after: 5\r\n[\s\S]*"unavailable"/i);
    socket.destroy();
  }
  expect(await whole('b')).toBe('HTTP/1.1 200 OK');
  for (const socket of held) socket.destroy();
  await until('its bodies have ended', async () => (await whole('a')) === 'HTTP/1.1 200 OK');
});
