import { connect } from 'node:net';
import { newPublicKey } from '../doubles/ssh-keys.ts';
import { until } from './http-client.ts';

/** A create whose body has half arrived. `finish` sends the rest and returns the whole reply. */
export async function beginCreate(baseUrl: string, key: string) {
  const { hostname, port } = new URL(baseUrl);
  const body = JSON.stringify({
    configuration_id: 'cpu-4x16',
    region: 'eu-frankfurt',
    ssh_keys: [newPublicKey()],
  });
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
  });
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()));
  socket.write(
    [
      'POST /v1/instances HTTP/1.1',
      `Host: ${hostname}`,
      `Authorization: Bearer ${key}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
      'Connection: keep-alive',
      'Expect: 100-continue',
      '',
      '',
    ].join('\r\n'),
  );
  await until(
    async () => text.includes('100 Continue'),
    () => `no 100 Continue: ${text}`,
  );
  socket.write(body.slice(0, 20));
  return {
    async finish(): Promise<string> {
      socket.write(body.slice(20));
      await closed;
      return text;
    },
    closed,
  };
}

/** Whether the address refuses connections. */
export async function isRefusingConnections(baseUrl: string): Promise<boolean> {
  const { hostname, port } = new URL(baseUrl);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    socket.once('connect', () => resolve(false)).once('error', () => resolve(true));
    socket.once('connect', () => socket.destroy());
  });
}
