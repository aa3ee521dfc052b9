import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerBench } from '../support/measured-process.ts';

/** The replies of the reference server: Berth's, recorded once. */
export interface RecordedReplies {
  /** SHA-256 of the key in base64, and its account. */
  credential: { digest: string; accountId: string };
  replies: { id: string; accountId: string; headers: string[]; body: string }[];
}

// node:http with the least code for the same work: authenticate, check the owner, and write the same bytes.
const { credential, replies }: RecordedReplies = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'));
const accounts = new Map([[credential.digest, credential.accountId]]);
const instances = new Map(
  replies.map(({ id, accountId, headers, body }) => [id, { accountId, headers, bytes: Buffer.from(body) }]),
);
const PREFIX = '/v1/instances/';
const BEARER = 'Bearer ';

const server = createServer((request, response) => {
  const accountId = accounts.get(
    hash('sha256', (request.headers.authorization ?? '').slice(BEARER.length), 'base64'),
  );
  const instance = instances.get((request.url ?? '').slice(PREFIX.length));
  if (request.method !== 'GET' || accountId === undefined || instance?.accountId !== accountId) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, instance.headers);
  response.end(instance.bytes);
});
server.keepAliveTimeout = 75_000;
server.listen(0, '127.0.0.1', () => answerBench({ port: (server.address() as AddressInfo).port }));
