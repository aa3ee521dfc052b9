import { gzipSync } from 'node:zlib';
import type { Dice } from '../soak/dice.ts';
import { hostileValues } from '../support/http/hostile-requests.ts';
import type { Operation, Parameter } from './document.ts';
import type { Target } from './setting.ts';
import { toJson, type Values } from './values.ts';

export interface Sent {
  method: string;
  /** With the query. */
  path: string;
  headers: Record<string, string>;
  body: Buffer | undefined;
  query: readonly (readonly [name: string, value: string])[];
  /** Which may belong to another route, or to none. */
  hasOddPath: boolean;
  /** `none`: it is refused, or missing. */
  credential: 'own' | 'other' | 'none';
}

const METHODS = 'HEAD PUT PATCH OPTIONS DELETE POST GET TRACE'.split(' ');
const ODD_IDS = [
  ...hostileValues,
  ...'a%00b|%zz|| |%20|漢字|*|0|null|%0d%0aX: y|%E2%80%AE'.split('|'),
  'x'.repeat(255),
];
const TYPES = [
  ...'text/plain|application/xml|application/x-www-form-urlencoded|multipart/form-data; boundary=b|'.split(
    '|',
  ),
  ...'application/json; charset=latin1|application/merge-patch+json|application/JSON ; charset="utf-8"'.split(
    '|',
  ),
];
const IDEMPOTENCY_KEYS = ['one', 'two', 'x'.repeat(255), '', 'x'.repeat(256), 'a b', 'é', '"', '\t'];
const HEADERS: readonly Record<string, string>[] = [
  { 'If-None-Match': '*' },
  { 'If-None-Match': '"x", W/"y"' },
  { 'X-Request-Id': '{"a":1}' },
  { Accept: 'text/html' },
  { 'Accept-Encoding': 'gzip, br' },
  { Cookie: 'a=b; =; ;' },
  { Range: 'bytes=0-1' },
  { traceparent: '00-x-y-01' },
  { 'X-HTTP-Method-Override': 'DELETE' },
  { Origin: 'null', 'Access-Control-Request-Method': 'PUT' },
];

/** A request to an operation, most of it as its document wants it. */
export function drawRequest(operation: Operation, target: Target, values: Values, dice: Dice): Sent {
  const isRare = (odds: number): boolean => dice.chance() < odds;
  const hasOddPath = operation.path.includes('{') && isRare(0.07);
  const filled = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const { schema = {} } = operation.parameters.find((parameter) => parameter.name === name) ?? {};
    return hasOddPath
      ? (dice.pick(ODD_IDS) ?? '')
      : encodeURIComponent(String(values.lawful(schema, name)).slice(0, 400).toWellFormed() || '-');
  });
  const query = drawQuery(operation.parameters, values, dice);
  const search = new URLSearchParams(
    query.map(([name, value]): [string, string] => [name, value]),
  ).toString();
  const rawSearch = isRare(0.02) ? `${search}&%zz=%&=&a%00=${'&x'.repeat(9)}` : search;
  const [credential, key] = isRare(0.06)
    ? (dice.pick(target.otherKeys) ?? ['none', null])
    : (['own', target.key] as const);
  const scheme = isRare(0.01) ? 'bearer' : 'Bearer';
  const headers: Record<string, string> = {
    ...(key !== null && { Authorization: `${scheme} ${key}` }),
    ...(isRare(0.1) && dice.pick([...HEADERS])),
    ...(operation.method === 'POST' &&
      isRare(0.2) && { 'Idempotency-Key': dice.pick(IDEMPOTENCY_KEYS) ?? '' }),
  };
  const method = isRare(0.02) ? (dice.pick(METHODS) ?? '') : operation.method;
  const body = drawBody(operation, values, dice, headers);
  return {
    method,
    path: `${target.prefix}${filled}${rawSearch && `?${rawSearch}`}`,
    headers,
    body: body === undefined ? undefined : Buffer.from(body as string),
    query,
    hasOddPath,
    credential,
  };
}

function drawQuery(parameters: readonly Parameter[], values: Values, dice: Dice): Sent['query'] {
  const drawn: [string, string][] = [];
  for (const { name, in: place, required, schema } of parameters) {
    if (place !== 'query' || (!required && dice.chance() < 0.7) || (required && dice.chance() < 0.05))
      continue;
    const isOdd = dice.chance() < 0.25;
    const value = isOdd
      ? dice.chance() < 0.5
        ? values.hostile()
        : toText(values.odd(schema))
      : String(values.lawful(schema, name));
    drawn.push([name, value.toWellFormed().slice(0, 3_000)]);
    if (dice.chance() < 0.05)
      drawn.push([name, dice.chance() < 0.5 ? value.toWellFormed().slice(0, 3_000) : 'other']);
  }
  if (dice.chance() < 0.03) drawn.push(['unknown', 'x']);
  return drawn;
}

const toText = (value: unknown): string =>
  typeof value === 'string' ? value.replace('@raw ', '') : toJson(value);

/** Adds the headers of the body. */
function drawBody({ body }: Operation, values: Values, dice: Dice, headers: Record<string, string>) {
  if (body === undefined && dice.chance() < 0.9) return undefined;
  const schema = body ?? {};
  const lawful = body === undefined ? {} : values.lawful(schema);
  const text = toJson(lawful);
  const kind = dice.chance();
  headers['Content-Type'] = 'application/json';
  if (kind < 0.6) return text;
  if (kind < 0.87) return values.mutated(lawful, schema);
  if (kind < 0.91) headers['Content-Type'] = dice.pick(TYPES) ?? '';
  if (kind < 0.91) return text;
  if (kind < 0.93) {
    headers['Content-Encoding'] = dice.pick(['gzip', 'identity', 'br']) ?? '';
    return gzipSync(text);
  }
  return dice.pick([
    ...[
      undefined,
      '',
      '{',
      'null',
      '[]',
      '"x"',
      '7',
      '{}{}',
      `${text}\0`,
      `\ufeff${text}`,
      `${text},`,
      ' \n ',
      `[${text}]`,
    ],
    ...['['.repeat(20_000), '{"a":'.repeat(9_000), `{"a":"${'x'.repeat(1_100_000)}"}`],
    ...[Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), Buffer.from(text, 'utf16le')],
  ]);
}
