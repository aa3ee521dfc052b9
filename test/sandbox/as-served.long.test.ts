import { request } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../src/config/package-root.ts';
import { WireClient, type WireReply } from '../support/http/wire.ts';
import {
  BerthProcess,
  type ServingProcess,
  startServing,
  temporaryFolder,
  writeFastConfig,
} from '../support/processes/process.ts';
import { until } from '../support/time/until.ts';
import {
  harmlessQuestions,
  JSON_TYPE,
  order,
  type Question,
  REGION,
  volumeOrder,
} from './as-served.fixture.ts';

interface Side {
  baseUrl: string;
  apiKey: string;
  ids: { INSTANCE: string; VOLUME: string };
}

const CATALOG = join(packageRoot(), 'fixtures', 'catalogs', 'provider-d.yaml');
const folder = temporaryFolder();
let served: ServingProcess;
let sandbox: BerthProcess;
let sides: [served: Side, sandbox: Side];

beforeAll(async () => {
  const config = writeFastConfig(folder.path, { more: `catalog: ${CATALOG}\n` });
  const timing = ['boot', 'stop', 'start', 'restart', 'destroy', 'volume']
    .map((name) => `${name}=20ms`)
    .join();
  const options = { cwd: folder.path };
  sandbox = new BerthProcess(
    ['sandbox', '--port', '0', '--json', '--catalog', CATALOG, '--rate-limits', 'off', '--timing', timing],
    options,
  );
  served = await startServing(['--config', config], options);
  const line = await sandbox.waitForOutput((stdout) => /^\{.*\}$/m.exec(stdout)?.[0]);
  const { custom } = JSON.parse(line).providers;
  const ids = { INSTANCE: 'inst-none', VOLUME: 'vol-none' };
  sides = [
    { baseUrl: served.baseUrl, apiKey: served.apiKey, ids },
    { baseUrl: custom.base_url, apiKey: custom.api_key, ids: { ...ids } },
  ];
});
afterAll(async () => {
  await Promise.all([served.end(), sandbox.end()]);
  folder[Symbol.dispose]();
});

interface Answer {
  status: number | undefined;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

function send(
  side: Side,
  { method, path, headers = {}, authorization = 'Bearer KEY', body }: Question,
): Promise<Answer> {
  const withIds = (text: string): string =>
    text.replaceAll('INSTANCE', side.ids.INSTANCE).replaceAll('VOLUME', side.ids.VOLUME);
  const bearer = `Bearer ${side.apiKey}`;
  const credentials: Record<string, string[] | undefined> = { none: undefined, twice: [bearer, bearer] };
  const sentAs =
    authorization in credentials ? credentials[authorization] : authorization.replace('KEY', side.apiKey);
  const { hostname, port, pathname } = new URL(side.baseUrl);
  return new Promise((resolve, reject) => {
    const sent = request(
      { hostname, port, method, path: `${pathname}${withIds(path)}`, agent: false, headers },
      async (reply) => {
        let text = '';
        for await (const chunk of reply.setEncoding('utf8')) text += chunk;
        resolve({ status: reply.statusCode, headers: reply.headers, body: text });
      },
    );
    if (sentAs !== undefined) sent.setHeader('authorization', sentAs);
    sent.on('error', reject).end(body === undefined ? undefined : withIds(body));
  });
}

/** What may differ, in a form that is the same on both sides. */
function shown(side: Side, { status, headers, body }: Answer): unknown {
  const known = new Map<string, string>();
  const named = (id: string): string => {
    if (!known.has(id)) known.set(id, `id ${known.size}`);
    return known.get(id) ?? '';
  };
  const { pathname, origin } = new URL(side.baseUrl);
  const text = body
    .replaceAll(origin, 'ORIGIN')
    .replaceAll(pathname, '/v1')
    .replace(/\b(?:inst|vol|att|req|token|berth)[-_][\w-]{8,}/g, named)
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/"(public_ip|private_ip)":"[^"]*"/g, '"$1":"IP"')
    .replace(/"(ssh_port|external_port)":\d+/g, '"$1":0')
    .replace(/"request_id":"[^"]*"/g, '"request_id":"ID"');
  const { date: _date, 'x-request-id': id, 'content-length': length, etag, ...others } = headers;
  return {
    status,
    headers: {
      ...others,
      hasId: id !== undefined,
      hasLength: length !== undefined,
      hasEtag: etag !== undefined,
    },
    text,
  };
}

async function expectEqual(question: Question): Promise<[Answer, Answer]> {
  const [a, b] = sides;
  const answers = await Promise.all([send(a, question), send(b, question)]);
  expect(shown(b, answers[1]), `${question.name}: ${question.method} ${question.path}`).toEqual(
    shown(a, answers[0]),
  );
  return answers;
}

const post = (name: string, path: string, body: object): Question => ({
  ...{ name, method: 'POST', path, headers: JSON_TYPE, body: JSON.stringify(body) },
});
const get = (path: string): Question => ({ name: 'read', method: 'GET', path });

/** Sends the same until both sides show the status. */
async function untilBoth(path: string, status: string): Promise<void> {
  for (const side of sides)
    await until(
      `${path} is ${status}`,
      async () => JSON.parse((await send(side, get(path))).body).status === status,
    );
  await expectEqual(get(path));
}

describe('a sandbox answers as `berth serve` does', () => {
  it('while an instance and a volume live', async () => {
    const [a, b] = await expectEqual(post('create', '/instances', order));
    for (const [index, { body }] of [a, b].entries())
      (sides[index] as Side).ids.INSTANCE = JSON.parse(body).id;
    await untilBoth('/instances/INSTANCE', 'ONLINE');
    const made = await expectEqual(post('create', '/volumes', volumeOrder));
    for (const [index, { body }] of made.entries()) (sides[index] as Side).ids.VOLUME = JSON.parse(body).id;
    await untilBoth('/volumes/VOLUME', 'AVAILABLE');
  });

  it('to each of more than 300 requests, broken ones too', async () => {
    const questions = harmlessQuestions();
    expect(questions.length).toBeGreaterThan(300);
    const different: string[] = [];
    for (const question of questions)
      await expectEqual(question).catch((error: Error) => different.push(error.message));
    expect(different).toEqual([]);
  });

  const host = 'Host: 127.0.0.1';
  it.each([
    ['no Host', 'GET /v1/availability HTTP/1.1\r\n\r\n'],
    ['two Hosts', `GET /v1/availability HTTP/1.1\r\n${host}\r\n${host}\r\n\r\n`],
    ['no version', `GET /v1/availability\r\n${host}\r\n\r\n`],
    ['another protocol', '\x16\x03\x01\x00\x00'],
    [
      'two lengths',
      `POST /v1/instances HTTP/1.1\r\n${host}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}`,
    ],
    ['a length that is none', `POST /v1/instances HTTP/1.1\r\n${host}\r\nContent-Length: x\r\n\r\n{}`],
    [
      'length and chunks',
      `POST /v1/instances HTTP/1.1\r\n${host}\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ['broken chunks', `POST /v1/instances HTTP/1.1\r\n${host}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`],
    ['a header without a name', `GET /v1/availability HTTP/1.1\r\n${host}\r\n: x\r\n\r\n`],
    ['a space before the colon', `GET /v1/availability HTTP/1.1\r\n${host}\r\nX-A : x\r\n\r\n`],
    ['a header of 80 KB', `GET /v1/availability HTTP/1.1\r\n${host}\r\nX-A: ${'x'.repeat(80_000)}\r\n\r\n`],
    ['an unknown method', `BREW /v1/availability HTTP/1.1\r\n${host}\r\n\r\n`],
  ])('to bytes that are no request: %s', async (_name, bytes) => {
    const replies: (Partial<WireReply> | undefined)[] = [];
    for (const { baseUrl } of sides) {
      const { port, pathname } = new URL(baseUrl);
      await using client = await WireClient.open(Number(port));
      client.send(bytes.replaceAll('/v1', pathname));
      const reply = await client.rawReply();
      replies.push(reply && { status: reply.status, body: reply.body.replace(/"request_id":"[^"]*"/, '') });
    }
    expect(replies[1]).toEqual(replies[0]);
  });

  it('while they change and end', async () => {
    const onInstance = { instance_ids: ['INSTANCE'] };
    await expectEqual(post('attach', '/volumes/VOLUME/attach', onInstance));
    await untilBoth('/volumes/VOLUME', 'ATTACHED');
    await expectEqual(get('/instances/INSTANCE'));
    await expectEqual({ name: 'delete while attached', method: 'DELETE', path: '/volumes/VOLUME' });
    await expectEqual(post('attach again', '/volumes/VOLUME/attach', onInstance));
    await expectEqual(post('start while online', `/instances/INSTANCE/start?region=${REGION}`, {}));
    await expectEqual(post('stop', `/instances/INSTANCE/stop?region=${REGION}`, {}));
    await untilBoth('/instances/INSTANCE', 'STOPPED');
    await expectEqual(post('stop again', '/instances/INSTANCE/stop', {}));
    await expectEqual(post('restart while stopped', '/x/instances/INSTANCE/restart', {}));
    await expectEqual(post('start', '/instances/INSTANCE/start', {}));
    await untilBoth('/instances/INSTANCE', 'ONLINE');
    await expectEqual(post('detach', '/volumes/VOLUME/detach', onInstance));
    await untilBoth('/volumes/VOLUME', 'AVAILABLE');
    for (const path of ['/volumes/VOLUME', `/instances/INSTANCE?region=${REGION}`]) {
      await expectEqual({ name: 'delete', method: 'DELETE', path });
      for (const side of sides)
        await until(`${path} is gone`, async () => (await send(side, get(path))).status === 404);
      await expectEqual(get(path));
      await expectEqual({ name: 'delete again', method: 'DELETE', path });
    }
    await expectEqual(post('start of what is gone', '/instances/INSTANCE/start', {}));
  });
});
