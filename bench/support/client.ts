import { Agent, request } from 'node:http';

export interface Reply {
  status: number;
  text: string;
  /** From the moment of sending. */
  tookMs: number;
}

/** Sends requests with one key over kept-alive connections, and returns every reply, including errors. */
export class BenchClient {
  readonly #port: number;
  readonly #apiKey: string;
  readonly #agent: Agent;

  constructor({ port, apiKey, connections }: { port: number; apiKey: string; connections: number }) {
    this.#port = port;
    this.#apiKey = apiKey;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  send(method: string, path: string, body?: string): Promise<Reply> {
    const { promise, resolve, reject } = Promise.withResolvers<Reply>();
    const headers = {
      Authorization: `Bearer ${this.#apiKey}`,
      ...(body !== undefined && {
        'Content-Type': 'application/json',
        'Content-Length': Buffer.byteLength(body),
      }),
    };
    const sentAt = performance.now();
    const to = { host: '127.0.0.1', port: this.#port, agent: this.#agent, method, path, headers };
    const sent = request(to, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const tookMs = performance.now() - sentAt;
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString(), tookMs });
      });
    });
    sent.on('error', reject);
    sent.end(body);
    return promise;
  }

  /** The text of a reply that is 200. @throws {Error} for any other. */
  async read(path: string): Promise<string> {
    const { status, text } = await this.send('GET', path);
    if (status !== 200) throw new Error(`${path} is ${status}: ${text.slice(0, 300)}`);
    return text;
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** A create of a machine that costs little. */
export const CREATE_BODY = JSON.stringify({
  configuration_id: 'cpu-4x16',
  region: 'eu-frankfurt',
  name: 'bench',
  ssh_keys: [
    'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKjItPiOeL00NyJ28Ghk86GWpCoScix4tTl/A/EOqSmM you@example.com',
  ],
});
