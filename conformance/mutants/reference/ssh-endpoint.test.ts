import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import ssh2 from 'ssh2';
import { describe, expect, it, onTestFinished } from 'vitest';
import { keys } from './reference.fixture.ts';
import { newHostKey, SshEndpoint } from './ssh-endpoint.ts';

async function openEndpoint(): Promise<SshEndpoint> {
  const disk = { hostKey: newHostKey(), files: new Map<string, string>(), owners: new Map<string, string>() };
  const endpoint = new SshEndpoint({
    greeting: () => '',
    disk: () => disk,
    mayLogin: ({ key }) => key === keys.own.public.split(' ')[1],
  });
  onTestFinished(() => endpoint.close());
  await endpoint.open(0);
  return endpoint;
}

const dial = (port: number): Socket => connect({ host: '127.0.0.1', port, noDelay: true });

describe('an SSH endpoint', () => {
  it('cuts its connections off when it closes, and opens at the same port again', async () => {
    const endpoint = await openEndpoint();
    const { port } = endpoint;
    const socket = dial(port).on('error', () => {});
    await once(socket, 'data');
    const closed = once(socket, 'close');
    await endpoint.close();
    await closed;
    await expect(once(dial(port), 'connect')).rejects.toThrow('ECONNREFUSED');
    await endpoint.open(port);
    expect(endpoint.port).toBe(port);
  });

  it('takes another port where its own is taken', async () => {
    const { port } = await openEndpoint();
    const other = await openEndpoint();
    await other.close();
    await other.open(port);
    expect(other.port).not.toBe(port);
  });

  it('refuses a signature by another key', async () => {
    const { port } = await openEndpoint();
    const parse = (pem: string): ssh2.ParsedKey => {
      const key = ssh2.utils.parseKey(pem);
      if (key instanceof Error) throw key;
      return key;
    };
    const loginWith = (signer: string) => {
      const key = parse(keys.own.private);
      key.sign = (data, algorithm) => parse(signer).sign(data, algorithm);
      return new Promise<string>((resolve) => {
        const client = new ssh2.Client().on('ready', () => resolve('in')).on('error', () => resolve('out'));
        onTestFinished(() => void client.destroy());
        const attempts = [{ type: 'publickey', username: 'ubuntu', key } as const];
        client.connect({
          sock: dial(port),
          username: 'ubuntu',
          // The types omit `false`, which ends the attempts.
          authHandler: (_left, _partial, next) => next((attempts.shift() ?? false) as never),
        });
      });
    };
    expect(await loginWith(keys.own.private)).toBe('in');
    expect(await loginWith(keys.other.private)).toBe('out');
  });
});
