import { execFile } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRedactor } from '../text/redact.ts';
import { toCurl } from './curl.ts';
import { httpTransport } from './http-transport.ts';
import type { HttpRequest } from './transport.ts';

/** Runs the command as if pasted: as an argument of `sh -c` its length would be limited. Returns its output. */
async function runInShell(command: string, variables: Record<string, string>): Promise<string> {
  const { PATH } = process.env;
  const running = promisify(execFile)('sh', [], {
    env: { PATH, HOME: '/nonexistent', LC_ALL: 'C', ...variables },
  });
  running.child.stdin?.end(`${command}\n`);
  return (await running).stdout;
}

interface Seen {
  method: string | undefined;
  path: string | undefined;
  headers: [string, string][];
  body: string;
}

describe('sent by curl, the same request arrives', () => {
  const key = 'a-key-of-"$odd`\\\'%s!-characters';
  const seen: Seen[] = [];
  let server: Server;
  let base: string;
  const transport = httpTransport();

  beforeAll(async () => {
    server = createServer(async (incoming, response) => {
      const body = Buffer.concat(await incoming.toArray()).toString('base64');
      const headers = incoming.rawHeaders.flatMap((name, index, all): [string, string][] =>
        index % 2 === 0 ? [[name.toLowerCase(), all[index + 1] ?? '']] : [],
      );
      seen.push({
        method: incoming.method,
        path: incoming.url,
        headers: headers.filter(([name]) => name !== 'connection').toSorted(),
        body,
      });
      response.setHeader('content-length', 2).end('{}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(async () => {
    await transport.close();
    await new Promise((resolve) => server.close(resolve));
  });

  async function expectSame(request: Omit<HttpRequest, 'url'>, path = '/v1/x'): Promise<string> {
    seen.length = 0;
    const sent = { ...request, url: `${base}${path}` };
    const outcome = await transport.send(sent, { timeoutMs: 60_000, maxBodyBytes: 1_000 });
    expect(outcome).toHaveProperty('status', 200);

    const redactor = createRedactor();
    redactor.add('api key', key);
    const redacted = { ...sent, ...(redactor.value(sent) as HttpRequest) };
    const command = toCurl(redacted);
    expect(command).not.toContain(key);
    const stdout = await runInShell(command, { BERTH_API_KEY: key });
    expect(stdout).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(seen).toHaveLength(2);
    expect(seen[1]).toEqual(seen[0]);
    return command;
  }

  const json = {
    'content-type': 'application/json',
    authorization: `Bearer ${key}`,
    'user-agent': 'suite 1',
  };

  it.each(['GET', 'DELETE', 'POST', 'PUT', 'PATCH', 'HEAD', 'OPTIONS'])('as %s without a body', (method) =>
    expectSame({ method, headers: json }).then(() => {}),
  );

  it.each([
    ['quotes', `it's "quoted"`],
    ['line ends', 'a\nb\n\nc\n'],
    ['carriage returns and tabs', 'a\r\n\tb'],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's.
    ['what a shell expands', '$HOME `id` $(id) ${x} ~ * ! \\ \\n %s %% #'],
    ['the same with an escape', '$HOME `id` $(id) \\ \\n \\033 %s %% \' " \x1b[31m'],
    ['Unicode', '{"name":"für 日本 🙂"}'],
    ['Unicode with an escape', 'für 日本 🙂\x07'],
    ['writing that turns direction', 'a\u202eb'],
    ['NUL', 'a\0b'],
    ['what follows an octal escape', '\x1b0123\x007'],
    ['half a surrogate pair', 'a\ud83db'],
    ['a file name', '@/etc/hostname'],
    ['nothing', ''],
    ['the key as it is', `${key} and ${key}`],
    ['the key beside a control character', `\x07${key}\x07`],
    ['more than an argument may hold', `${"it's ".repeat(50_000)}\n`],
  ])('with a body that holds %s', (_name, body) =>
    expectSame({ method: 'POST', headers: json, body }).then(() => {}),
  );

  it.each<[string, Record<string, string>]>([
    ['no content type', {}],
    ['an empty one', { 'content-type': '' }],
    ['an odd one', { 'content-type': "text/odd; x='$y'" }],
    ['its own Accept', { accept: 'text/plain' }],
    ['bytes beyond ASCII', { 'x-name': 'f\xfcr %s \\n' }],
    ['tabs', { 'x-name': 'a\tb' }],
    ['a wrong key', { authorization: 'Bearer "wrong" $key' }],
    ['a key and more', { authorization: `Bearer ${key}x` }],
    ['the key twice', { authorization: `Bearer ${key}`, 'x-key': `${key}\t${key}` }],
    ['its own host', { host: 'gpu.example' }],
  ])('with headers: %s', (_name, headers) =>
    expectSame({ method: 'POST', headers, body: '{}' }).then(() => {}),
  );

  it.each(['/a/../b/./c?x=%2e%2E', '/[1-3]/{a,b}', "/it's?a=$b&c=d;e|f", '/für alle', '/a?q=*#part'])(
    'with the path %s',
    (path) => expectSame({ method: 'GET', headers: {} }, path).then(() => {}),
  );

  it('whatever the body is', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary' }), async (body) => {
        await expectSame({ method: 'POST', headers: json, body });
      }),
      { numRuns: 15 },
    );
  });
});
