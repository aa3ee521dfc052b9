import { EventEmitter } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { conformance } from '../cli.ts';
import { systemClock } from '../http/clock.ts';
import { httpTransport } from '../http/http-transport.ts';
import type { Transport } from '../http/transport.ts';
import { createAutoClock } from '../mutants/reference/auto-clock.ts';
import { createReference, type ReferenceSetup } from '../mutants/reference/create-reference.ts';
import { ssh2Client } from '../ssh/ssh2-client.ts';
import { createRedactor } from '../text/redact.ts';
import type { CliParts } from './parts.ts';
import type { Terminal } from './terminal.ts';

export const API_KEY = 'canary-5up3r-s3cret-key';

export interface CliResult {
  code: number;
  out: string;
  err: string;
}

export interface CliOptions {
  env?: Readonly<Record<string, string | undefined>>;
  /** The user's input. Without it the terminal is not interactive. */
  typed?: string;
  parts?: Partial<CliParts>;
  /** Called with everything written to standard error. */
  onErr?: (text: string) => void;
}

/** Runs `berth conformance …` in this process. */
export async function runCli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const written = { out: '', err: '' };
  const secrets = createRedactor();
  const terminal: Terminal = {
    secrets,
    out: (text) => {
      written.out += secrets.text(text);
    },
    err: (text) => {
      written.err += secrets.text(text);
      options.onErr?.(written.err);
    },
    outIsTty: false,
    errIsTty: false,
    width: 100,
    color: false,
    isInteractive: options.typed !== undefined,
    ask: async (question) => {
      terminal.err(question);
      return options.typed ?? '';
    },
  };
  const code = await conformance(args, {
    terminal,
    env: { BERTH_API_KEY: API_KEY, ...options.env },
    clock: systemClock,
    ssh: ssh2Client(),
    signals: new EventEmitter(),
    createTransport: httpTransport,
    probeTimeoutMs: 500,
    ...options.parts,
  });
  return { code, ...written };
}

/** Creates a folder that is removed at the end. */
export function temporaryFolder(): { path: string; file: (name: string) => string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), 'berth-conformance-cli-'));
  return {
    path,
    file: (name) => join(path, name),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** A correct orchestrator in memory and in virtual time, with the parts that the command needs to reach it. */
export function referenceParts(setup: Partial<ReferenceSetup> = {}) {
  const clock = createAutoClock();
  const reference = createReference({ clock, apiKeys: [API_KEY, 'the-second-key-of-it'], ...setup });
  const sent: string[] = [];
  const transport: Transport = {
    ...reference.transport,
    send: (request, limits) => {
      sent.push(`${request.method} ${new URL(request.url).pathname}`);
      return reference.transport.send(request, limits);
    },
  };
  const real = ssh2Client();
  const signals = new EventEmitter();
  const parts: Partial<CliParts> = {
    clock,
    signals,
    createTransport: () => transport,
    ssh: {
      newKeyPair: real.newKeyPair,
      login: (login) => clock.during(real.login({ ...login, allowPrivate: true })),
    },
  };
  return {
    parts,
    signals,
    sent,
    transport,
    baseUrl: reference.options.baseUrl,
    /** The names and statuses of the instances that the target lists. */
    async listed(): Promise<string[]> {
      const answer = await reference.transport.send(
        {
          method: 'GET',
          url: `${reference.options.baseUrl}/instances`,
          headers: { authorization: `Bearer ${API_KEY}` },
        },
        { timeoutMs: 60_000, maxBodyBytes: 1e6 },
      );
      const { instances } = JSON.parse('body' in answer ? answer.body : '{}');
      return instances.map(({ name, status }: { name: string; status: string }) => `${name} ${status}`);
    },
    [Symbol.asyncDispose]: () => reference.close(),
  };
}

export interface Target extends AsyncDisposable {
  /** With `/v1`. */
  baseUrl: string;
  origin: string;
  requests: string[];
}

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** Starts a real HTTP server that answers with `answer`. */
export async function serveTarget(answer: Answer, tls?: ServerOptions): Promise<Target> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const listener: Answer = (request, response) => {
    requests.push(`${request.method} ${request.url}`);
    answer(request, response);
  };
  const server: Server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  // An idle connection stays open: a busy machine pauses for longer than Node's five seconds.
  server.keepAliveTimeout = 0;
  server.on('connection', (socket: Socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const origin = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`;
  return {
    origin,
    baseUrl: `${origin}/v1`,
    requests,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Answers with JSON. */
export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
