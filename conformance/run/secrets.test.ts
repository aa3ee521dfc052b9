import { expect, it } from 'vitest';
import { CHECKS } from '../checks/index.ts';
import { loadRequirements } from '../contract/requirements.ts';
import { createAutoClock } from '../mutants/reference/auto-clock.ts';
import { createReference } from '../mutants/reference/create-reference.ts';
import type { ReferenceRequest } from '../mutants/reference/exchange.ts';
import { toHtml } from '../report/html/html.ts';
import { toJunit } from '../report/junit.ts';
import { toJson, toReport } from '../report/model.ts';
import { toTerminal } from '../report/terminal/terminal.ts';
import type { LedgerLine } from '../resources/ledger.ts';
import { SCENARIOS } from '../scenarios/index.ts';
import type { KeyPair, SshClient } from '../ssh/ssh-client.ts';
import { ssh2Client } from '../ssh/ssh2-client.ts';
import { Draws } from '../transcript/draws.ts';
import { judge } from '../verdict/judge.ts';
import type { RunEvent } from './options.ts';
import { run } from './run.ts';

const apiKeys = ['canary-first/key+with=odd&<characters>', 'canary-second-"key"-\\-with-more'];

const login = { username: 'canary-user@example.test', password: 'canary-pass/word "with" more' };

/** Echoes the request in all the ways of a careless server. */
function echo({ method, path, query, headers, text }: ReferenceRequest): string {
  const authorization = headers['authorization'] ?? '';
  const encoded = [encodeURIComponent(authorization), Buffer.from(authorization).toString('base64')];
  return [method, path, query, authorization, ...encoded, JSON.stringify(text), text].join(' ');
}

it('a target that says all back finds no secret of the run in anything that is written', async () => {
  const clock = createAutoClock();
  const reference = createReference({
    clock,
    apiKeys,
    token: 'api_key',
    behave: (rules) => ({
      ...rules,
      answer: (request, answer) => {
        const usual = rules.answer(request, answer);
        const headers = { ...usual.headers, 'x-echo': echo(request) };
        if (usual.status < 400)
          return { ...usual, headers, json: { ...(usual.json as object), echo: echo(request) } };
        return {
          ...usual,
          headers,
          json: { error: { code: 'echo', message: echo(request), details: request.headers } },
        };
      },
    }),
  });
  const pairs: KeyPair[] = [];
  const client = ssh2Client();
  const ssh: SshClient = {
    newKeyPair(comment, type) {
      const pair = client.newKeyPair(comment, type);
      pairs.push(pair);
      return pair;
    },
    login: (login) => clock.during(client.login(login)),
  };
  const written: (string | LedgerLine | RunEvent)[] = [];
  const [apiKey = '', secondApiKey] = apiKeys;
  const [otherAccountKey = ''] = reference.options.otherAccountKeys;
  const records = await run(
    {
      baseUrl: reference.options.baseUrl,
      apiKey,
      secondApiKey,
      otherAccountKey,
      login,
      level: 'full',
      settings: {
        pollIntervalMs: 10_000,
        readyTimeoutMs: 600_000,
        maxCostUsd: 100,
        maxMinutes: 600,
        allowPrivate: true,
      },
    },
    {
      runId: 'canary',
      draws: new Draws('canary'),
      transport: reference.transport,
      ssh,
      clock,
      ledgerFile: { append: (line) => written.push(line) },
      sink: (line) => written.push(line),
      onEvent: (event) => written.push(event),
    },
    SCENARIOS,
  );
  await reference.close();

  const requirements = loadRequirements();
  const report = toReport(records, judge(records, requirements.rows, CHECKS), requirements);
  const terminal = toTerminal(report, { color: true, width: 100, verbose: true });
  written.push(toJson(report), toJunit(report), toHtml(report), terminal);
  const texts = written.map((item) => (typeof item === 'string' ? item : JSON.stringify(item)));
  const privateLines = pairs.flatMap(({ privateKey }) =>
    privateKey.split('\n').filter((line) => line.length > 40),
  );
  expect(privateLines.length).toBeGreaterThan(3);
  const named = [...apiKeys, otherAccountKey, login.password];
  const others = [login.username, ...privateLines, 'reference-access-token-'];
  for (const secret of [...named, ...named.flatMap(formsOf), ...others])
    for (const text of texts) expect(text.includes(secret), `${secret} in ${text.slice(0, 80)}`).toBe(false);
  for (const name of [
    'api key',
    'second api key',
    'other account key',
    'access token',
    'username',
    'password',
  ])
    expect(texts.some((text) => text.includes(`[redacted: ${name}]`))).toBe(true);
});

/** The secret as it appears in JSON, a URL or base64. */
function formsOf(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  return [json, encodeURIComponent(secret), Buffer.from(secret).toString('base64').slice(4, -4)];
}
