import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { serveSandbox } from '../../compose/sandbox/serve.ts';

/** Returns the bytes received over a socket, and how it ended. */
async function raw(
  origin: string,
  path: string,
  key: string,
): Promise<{ text: string; code: string | undefined }> {
  const { hostname, port } = new URL(origin);
  const socket = connect(Number(port), hostname);
  let text = '';
  let code: string | undefined;
  socket.on('data', (chunk) => {
    text += String(chunk);
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    code = error.code;
  });
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\nConnection: close\r\n\r\n`,
  );
  await new Promise((resolve) => socket.once('close', resolve));
  return { text, code };
}

it('resets a real connection, with nothing of an answer, or with half of one', async () => {
  const { origin, sandbox, stop } = await serveSandbox({}, { host: '127.0.0.1', port: 0 });
  const { apiKey, baseUrl } = sandbox.provider('a');
  const { pathname } = new URL(`${baseUrl}/configurations`);
  const whole = await raw(origin, pathname, apiKey);
  const length = Number(
    /content-length: (\d+)/i.exec(whole.text)?.[1] ?? whole.text.split('\r\n\r\n')[1]?.length,
  );
  expect(whole).toMatchObject({ text: expect.stringMatching(/^HTTP\/1.1 200/), code: undefined });

  await sandbox.faults.arm('answer-lost');
  expect(await raw(origin, pathname, apiKey)).toEqual({ text: '', code: 'ECONNRESET' });

  await sandbox.faults.arm('half-body-reset');
  const broken = await raw(origin, pathname, apiKey);
  expect(broken.code).toBe('ECONNRESET');
  expect(broken.text).toMatch(new RegExp(`content-length: ${length}`, 'i'));
  expect(broken.text.split('\r\n\r\n')[1]).toHaveLength(Math.floor(length / 2));

  await sandbox.faults.arm('slow-body');
  const before = sandbox.clock.now();
  const slow = await raw(origin, pathname, apiKey);
  expect(slow.text.split('\r\n\r\n')[1]).toHaveLength(length);
  expect(sandbox.clock.now() - before).toBe((length - 1) * 1_000);
  await stop();
});
