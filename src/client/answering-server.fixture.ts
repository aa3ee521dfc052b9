import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  body: string;
}

/** Starts a provider that answers as the test says. `await using` stops it. */
export async function startAnsweringServer(
  answer: (request: Received, response: ServerResponse, count: number) => void,
) {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    const { method = '', url = '', headers } = request;
    const whole = { method, url, headers, body };
    received.push(whole);
    answer(whole, response, received.length);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    received,
    baseUrl: `http://127.0.0.1:${port}/v1`,
    async [Symbol.asyncDispose](): Promise<void> {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

export function answerJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value));
}

export const instanceAnswer = {
  id: 'i-1',
  configuration_id: 'h100-1x',
  region: 'eu-frankfurt',
  status: 'ONLINE',
  public_ip: '192.0.2.7',
  price_per_hour: 2.39,
  created_at: '2026-11-21T04:38:00Z',
  updated_at: '2026-11-21T04:39:00Z',
} as const;

export const configurationAnswer = {
  id: 'h100-1x',
  name: '1x H100',
  instance_type: 'DEDICATED',
  vcpus: 24,
  memory_gb: 200,
  storage_gb: 750,
  gpu_count: 1,
  gpu_type: 'NVIDIA H100 SXM',
  gpu_memory_gb: 80,
  price_per_hour: 2.39,
  available: true,
  regions: ['eu-frankfurt'],
  supports_cloud_init: true,
} as const;
