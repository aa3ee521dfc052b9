import { writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { afterAll, describe, expect, it } from 'vitest';
import { authority, certificateOf } from '../http/certificates.fixture.ts';
import { expectCalm, expectVerdict, offer, quickIn, refuse } from './bad-input.fixture.ts';
import { runCli, sendJson, serveTarget, temporaryFolder } from './cli.fixture.ts';

const folder = temporaryFolder();
afterAll(() => folder[Symbol.dispose]());

const quick = quickIn(folder.path);

/** Expects a fault of the set-up: reported as CONFIG, with exit code 3 and no verdict on the target. */
async function expectConfig(args: readonly string[], sentence: RegExp, env = {}): Promise<void> {
  const result = await runCli([...args, ...quick], { env });
  expectCalm(result);
  expect(result.err).toMatch(sentence);
  expect(result).toMatchObject({ code: 3, out: '' });
}

describe('a set-up that is at fault', () => {
  it('a host that is not there', () =>
    expectConfig(
      ['http://127.0.0.1:1/v1'],
      /CONFIG {2}TCP .*connection refused by 127.0.0.1:1: does the server run/,
    ));

  it('a name that does not resolve', () =>
    expectConfig(
      ['https://nowhere.invalid/v1'],
      /CONFIG {2}DNS .*nowhere.invalid.*: is nowhere.invalid spelt right/,
    ));

  it('plain HTTP where TLS is expected', async () => {
    await using target = await serveTarget((_request, response) => response.end());
    const url = target.baseUrl.replace('http:', 'https:');
    await expectConfig([url], /CONFIG {2}TLS .*perhaps plain HTTP.*: does the base_url begin with http:/);
  });

  it('a base_url without /v1', async () => {
    await using target = await serveTarget(contract);
    await expectConfig(
      [target.origin],
      new RegExp(`CONFIG  base_url .*404: write ${target.baseUrl}, which answers`),
    );
    await expectConfig([`${target.baseUrl}/v1`], new RegExp(`write ${target.baseUrl}, which answers`));
    await expectConfig(
      [`${target.baseUrl}/configurations`],
      new RegExp(`write ${target.baseUrl}, which answers`),
    );
  });

  it('a page for a browser', async () => {
    await using target = await serveTarget((_request, response) =>
      response
        .writeHead(200, { 'content-type': 'text/html' })
        .end('<html><script>alert(1)</script>\u001b[31m'),
    );
    await expectConfig([target.baseUrl], /CONFIG {2}HTTP .*200 with a page for a browser: .*does a proxy/);
  });

  it.each([401, 403])('a key that is refused with %i', async (status) => {
    await using target = await serveTarget(({ headers }, response) =>
      sendJson(response, status, { error: { code: 'no', message: `${headers.authorization}` } }),
    );
    await expectConfig(
      [target.baseUrl],
      /CONFIG {2}API key .*is answered 40\d: is it the key of this provider/,
    );
  });

  it('redirects for ever', async () => {
    await using target = await serveTarget(({ url }, response) =>
      response.writeHead(308, { location: `${url}/more\u001b`.replace('\u001b', '%1b') }).end(),
    );
    await expectConfig([target.baseUrl], /CONFIG {2}base_url .*redirects to .*follow no redirects/);
    expect(target.requests).toHaveLength(1);
  });

  it('a redirect to where the orchestrator is', async () => {
    await using target = await serveTarget((_request, response) =>
      response.writeHead(301, { location: 'https://new.example/v1/configurations' }).end(),
    );
    await expectConfig([target.baseUrl], /if that is the orchestrator, write https:\/\/new.example\/v1\./);
  });

  it('a target that takes connections and says nothing', async () => {
    await using target = await serveTarget(() => {});
    await expectConfig(
      [target.baseUrl],
      /CONFIG {2}HTTP .*neither GET \/configurations nor .*no answer .*within 500 ms/,
    );
  });

  it('a target that sends one byte now and then', async () => {
    await using target = await serveTarget((_request, response) => drip(response));
    await expectConfig(
      [target.baseUrl],
      /CONFIG {2}HTTP .*did not end within 500 ms; \d+ bytes of its body had come/,
    );
  });

  it('something that is no HTTP', async () => {
    await using target = await serveTarget(({ socket }) => socket.end('\u001b[2JSSH-2.0-OpenSSH_9.6\r\n'));
    await expectConfig([target.baseUrl], /CONFIG {2}HTTP .*is not HTTP.*SSH-2.0/);
  });

  it('an offer or a region that is misspelt', async () => {
    await using target = await serveTarget(contract);
    await expectConfig(
      [target.baseUrl, '--offer', 'gpu-h10'],
      /--offer gpu-h10 is not among .*: did you mean gpu-h100\?/,
    );
    await expectConfig(
      [target.baseUrl, '--region', 'mars'],
      /--region mars is not a region of any offer: there are eu-north/,
    );
  });

  it('a ledger that cannot be kept', async () => {
    await using target = await serveTarget(contract);
    const result = await runCli([target.baseUrl, '--state-dir', '/dev/null/x']);
    expect(result).toMatchObject({ code: 3, out: '' });
    expect(result.err).toMatch(/CONFIG {2}Ledger .*\/dev\/null\/x.*--state-dir/);
    expect(target.requests.filter((line) => line.startsWith('POST /v1/instances'))).toEqual([]);
  });
});

describe('a certificate that is at fault', () => {
  const ca = folder.file('ca.pem');
  writeFileSync(ca, authority);

  it('is self-signed, and is trusted with --ca-file', async () => {
    await using target = await serveTarget(contract, certificateOf('self-signed'));
    await expectConfig([target.baseUrl], /CONFIG {2}TLS .*is self-signed.*--ca-file/);
  });

  it('has expired', async () => {
    await using target = await serveTarget(contract, certificateOf('expired'));
    await expectConfig([target.baseUrl, '--ca-file', ca], /CONFIG {2}TLS .*has expired: renew it/);
  });

  it('is for another host', async () => {
    await using target = await serveTarget(contract, certificateOf('other-host'));
    await expectConfig(
      [target.baseUrl, '--ca-file', ca],
      /CONFIG {2}TLS .*other.example: write the base_url with a name/,
    );
  });
});

describe('a target that is at fault', () => {
  it('answers every request with 500', async () => {
    const { err } = await expectVerdict(quick, (_request, response) =>
      response.writeHead(500).end('<h1>oops</h1>'),
    );
    expect(err).toMatch(/NOTE .*answered 500, which the run will judge/);
  });

  it('answers with an error in the place of the list', async () => {
    const { err } = await expectVerdict(quick, (_request, response) =>
      sendJson(response, 409, { error: { code: 'busy', message: 'later' } }),
    );
    expect(err).toMatch(/NOTE .*answered 409 with an error/);
  });

  it('answers with what is not JSON, not a list, or nothing', async () => {
    for (const body of ['{', '[]', '"x"', 'null', '{"configurations": 7}', ''])
      await expectVerdict(quick, ({ method }, response) => {
        if (method !== 'GET') return refuse(response);
        response.writeHead(200, { 'content-type': 'application/json' }).end(body);
      });
  });
});

/** Implements the part of the contract that checking the set-up needs. */
function contract({ url }: { url?: string | undefined }, response: ServerResponse): void {
  if (url === '/v1/configurations' || url === '/v1/availability')
    sendJson(response, 200, { configurations: [offer] });
  else sendJson(response, 404, { error: { code: 'not_found', message: 'there is no such route' } });
}

function drip(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  const timer = setInterval(() => response.write(' '), 50);
  response.once('close', () => clearInterval(timer));
}
