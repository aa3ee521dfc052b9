import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { Recorder } from './recorder.ts';

const KEY = 'sk_live/7Qw+e9ZtYuI"0pAsDfGh\\JkLzXcVbNm';
const PLAIN_KEY = 'sk_live_7Qwe9ZtYuI0pAsDfGhJkLzXcVbNm';
const PRIVATE_KEY = generateKeyPairSync('ed25519').privateKey.export({
  type: 'pkcs8',
  format: 'pem',
}) as string;
const RSA_KEY = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({
  type: 'pkcs1',
  format: 'pem',
}) as string;
const base64 = (text: string) => Buffer.from(text).toString('base64');

interface Place {
  path?: string;
  headers?: Record<string, string>;
  body?: string | object;
  /** What the provider answers. */
  reply?: string | object;
  replyHeaders?: Record<string, string>;
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

/** Records one exchange, and returns the recording as it is written. */
async function recordingOf({
  path = '/instances',
  headers = {},
  body,
  reply = {},
  replyHeaders = {},
}: Place) {
  const toText = (given: string | object) => (typeof given === 'string' ? given : JSON.stringify(given));
  const recorder = new Recorder({
    target: new URL('https://gpu.example/v1'),
    now: () => 0,
    fetch: async () =>
      new Response(toText(reply), { headers: { 'content-type': 'application/json', ...replyHeaders } }),
  });
  const request = new Request(`http://recorder/v1${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: toText(body) }),
  });
  await (await recorder.fetch(request)).text();
  const exchanges = await recorder.exchanges();
  return { exchanges, text: stringify(exchanges, { lineWidth: 0 }) };
}

/** What must not be in a recording: the secret in any coding, and its quarters. */
function formsOf(secret: string): string[] {
  const quarter = Math.max(8, Math.ceil(secret.length / 4));
  const quarters = [0, 1, 2, 3].map((at) => secret.slice(at * quarter, (at + 1) * quarter));
  return [
    secret,
    encodeURIComponent(secret),
    base64(secret),
    Buffer.from(secret).toString('base64url'),
    Buffer.from(secret).toString('hex'),
    JSON.stringify(secret).slice(1, -1),
    ...quarters.filter((part) => part.length >= 8),
  ];
}

/** Texts that a reader finds in a recording by decoding it. */
function decodedIn(text: string): string[] {
  const decoded = [...text.matchAll(/[\w+/-]{16,}/g)].map(([run]) => Buffer.from(run, 'base64').toString());
  const twice = decoded.map((run) => Buffer.from(run, 'base64').toString());
  const plain = text.replaceAll('%25', '%');
  return [...decoded, ...twice, plain, plain.replace(/%[0-9A-F]{2}/g, decodeURIComponent)];
}

const half = Math.ceil(KEY.length / 2);
const halves = [KEY.slice(0, half), KEY.slice(half)];
const lines = PRIVATE_KEY.trim().split('\n');

const places: [what: string, secret: string, place: Place][] = [
  [
    'a bearer token that an error repeats',
    KEY,
    { headers: bearer(KEY), reply: { error: { message: `no key ${KEY}` } } },
  ],
  [
    'an error page that repeats it',
    PLAIN_KEY,
    { headers: bearer(PLAIN_KEY), reply: `<p>bad key: ${PLAIN_KEY}</p>` },
  ],
  [
    'a bearer token in the path',
    KEY,
    { headers: bearer(KEY), path: `/instances/${encodeURIComponent(KEY)}` },
  ],
  [
    'a bearer token in the query',
    KEY,
    { headers: bearer(KEY), path: `/instances?q=${encodeURIComponent(KEY)}` },
  ],
  [
    'a key in the query alone',
    PLAIN_KEY,
    { path: `/instances?api_key=${PLAIN_KEY}`, reply: { seen: PLAIN_KEY } },
  ],
  [
    'a key called `key` in the query',
    PLAIN_KEY,
    { path: `/instances?key=${PLAIN_KEY}`, reply: { seen: PLAIN_KEY } },
  ],
  [
    'an X-API-Key',
    KEY,
    { headers: { 'x-api-key': KEY }, reply: { debug: { headers: [`x-api-key: ${KEY}`] } } },
  ],
  ['an Authorization without a scheme', KEY, { headers: { authorization: KEY }, reply: [KEY] }],
  [
    'the password of basic auth',
    'hunter2-of-anna',
    {
      headers: { authorization: `Basic ${base64('anna:hunter2-of-anna')}` },
      reply: { is: 'hunter2-of-anna' },
    },
  ],
  [
    'basic auth itself',
    base64('anna:hunter2-of-anna'),
    {
      headers: { authorization: `Basic ${base64('anna:hunter2-of-anna')}` },
      reply: { is: base64('anna:hunter2-of-anna') },
    },
  ],
  ['an api_key in a body', KEY, { body: { api_key: KEY }, reply: { echo: [KEY] } }],
  [
    'a password in a body',
    'hunter2-of-anna',
    { body: { user: { password: 'hunter2-of-anna' } }, reply: { echo: 'hunter2-of-anna' } },
  ],
  ['a short password', 'h2x', { body: { pwd: 'h2x' } }],
  [
    'base64 of base64',
    KEY,
    { headers: bearer(KEY), reply: { debug: base64(base64(`${KEY}, that was it`)) } },
  ],
  [
    'a key that is URL-encoded twice',
    KEY,
    { headers: bearer(KEY), path: `/instances?q=${encodeURIComponent(encodeURIComponent(KEY))}` },
  ],
  [
    'a password in a form',
    'hunter2 of+anna',
    {
      body: `user=anna&password=${encodeURIComponent('hunter2 of+anna')}`,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      reply: { echo: 'hunter2 of+anna' },
    },
  ],
  [
    'a refresh token in an answer',
    KEY,
    { reply: { refreshToken: KEY, link: `/token?old=${encodeURIComponent(KEY)}` } },
  ],
  [
    'an access token that the next answer repeats',
    KEY,
    { reply: { access_token: KEY, note: `token ${KEY}` } },
  ],
  [
    'a session cookie',
    's3ss10n-7f8a9b',
    { headers: { cookie: 'theme=dark; sid=s3ss10n-7f8a9b' }, reply: { session: { of: 's3ss10n-7f8a9b' } } },
  ],
  [
    'a cookie that the provider sets',
    's3ss10n-7f8a9b',
    { replyHeaders: { 'set-cookie': 'sid=s3ss10n-7f8a9b; Path=/' }, reply: { note: 'hello s3ss10n-7f8a9b' } },
  ],
  [
    'a password in a URL',
    'hunter2-of-anna',
    {
      body: { proxy: 'http://anna:hunter2-of-anna@proxy.example' },
      reply: { why: 'hunter2-of-anna is refused' },
    },
  ],
  [
    'a private key in a body',
    PRIVATE_KEY,
    { body: { files: [{ content: PRIVATE_KEY }] }, reply: { echo: PRIVATE_KEY } },
  ],
  ['a private key in base64', PRIVATE_KEY, { body: { user_data: base64(`#cloud-config\n${PRIVATE_KEY}`) } }],
  ['a private key as a list of lines', lines[1] ?? '', { body: { lines }, reply: { echo: lines[1] } }],
  [
    'an RSA key whose lines are joined',
    RSA_KEY.split('\n')[3] ?? '',
    { body: { ssh: RSA_KEY }, reply: { echo: RSA_KEY.replaceAll('\n', '') } },
  ],
  ['base64 of the key', KEY, { headers: bearer(KEY), reply: { debug: base64(`key=${KEY};`) } }],
  ['the key in hex', KEY, { headers: bearer(KEY), reply: { debug: Buffer.from(KEY).toString('hex') } }],
  [
    'the key in JSON in JSON',
    KEY,
    { headers: bearer(KEY), reply: { debug: JSON.stringify({ inner: JSON.stringify({ k: KEY }) }) } },
  ],
  ['the key in a field name', KEY, { headers: bearer(KEY), reply: { [KEY]: 1 } }],
  [
    'the key over two fields',
    KEY,
    { headers: bearer(KEY), reply: { first: halves[0], rest: { second: halves[1] } } },
  ],
  [
    'half a key in an error',
    KEY,
    { headers: bearer(KEY), reply: { error: { message: `no key ${halves[0]}…` } } },
  ],
  [
    'the key in a header of the answer',
    KEY,
    {
      headers: bearer(KEY),
      replyHeaders: { etag: `"${PLAIN_KEY}"`, 'x-request-id': PLAIN_KEY, 'x-auth-token': PLAIN_KEY },
    },
  ],
  ['an environment variable', PLAIN_KEY, { body: { env: [{ name: 'HF_TOKEN', value: PLAIN_KEY }] } }],
  ['a violation of the contract', PLAIN_KEY, { headers: bearer(PLAIN_KEY), path: `/${PLAIN_KEY}` }],
  ['a key that only a text names', PLAIN_KEY, { body: { script: `export API_KEY=${PLAIN_KEY}\nrun` } }],
];

describe('a recording has no credential [sandbox-record-secrets]', () => {
  it.each(places)('%s', async (_what, secret, place) => {
    const { text } = await recordingOf(place);
    const readable = [text, ...decodedIn(text)].join('\n');
    for (const form of formsOf(secret)) expect(readable, form).not.toContain(form);
  });

  it('keeps everything else', async () => {
    const body = {
      name: 'demo',
      region: 'eu-frankfurt',
      token_type: 'Bearer',
      ssh_keys: ['ssh-ed25519 AAAA'],
      size: 5,
    };
    const { exchanges } = await recordingOf({
      headers: { ...bearer(KEY), cookie: 'theme=dark; n=1' },
      path: '/instances?region=eu-frankfurt',
      body,
      reply: { ...body, status: 'dark', ok: true },
    });
    expect(exchanges).toMatchObject([
      {
        request: { path: '/v1/instances?region=eu-frankfurt', body },
        response: { body: { ...body, status: 'dark', ok: true } },
      },
    ]);
  });
});
