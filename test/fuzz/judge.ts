import { pointerTo } from '../support/http/contract.ts';
import type { Document, Operation, Schema } from './document.ts';
import type { Sent } from './requests.ts';

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

/** May come to any request, whichever route it is for: see docs/errors.md. */
const WIRE = [413, 431];
const NEEDED: Readonly<Record<number, string[]>> = {
  401: ['www-authenticate'],
  405: ['allow'],
  429: ['retry-after'],
};

/** What is wrong with a reply, by the document of its server. Empty: nothing. */
export function findingsIn(
  document: Document,
  operation: Operation,
  sent: Sent,
  { status, headers, text }: Answer,
): string[] {
  const found: string[] = [];
  try {
    document.contract.assertKeeps({
      method: sent.method,
      path: sent.path.replace(/\?.*$/s, ''),
      status,
      contentType: headers.get('content-type'),
      body: text,
    });
  } catch (error) {
    found.push(String(error));
  }
  // A provider may have sold its last machine meanwhile; nothing else is to fail here.
  if (status >= 500 && !text.includes('"OUT_OF_STOCK"')) found.push(`a server error: ${text}`);
  for (const name of ['x-request-id', ...(NEEDED[status] ?? [])])
    if (!headers.get(name)) found.push(`no ${name}`);
  if (sent.method !== operation.method || sent.hasOddPath) return found;
  const documented = operation.responses[status];
  const code = status >= 400 ? /"code":"(\w+)"/.exec(text)?.[1] : undefined;
  if (documented === undefined && !WIRE.includes(status))
    found.push('the operation documents no such status');
  if (documented && code && !documented.description.includes(`\`${code}\``))
    found.push(`the operation documents no ${code} under the status`);
  if (status >= 300) return found;
  if (sent.credential === 'none' && !operation.isPublic) found.push('accepted without a credential');
  const refused = faultsOf(document, operation, sent);
  if (refused) found.push(`accepted, although by the document ${refused}`);
  return found;
}

/** What the document refuses in the request; empty: nothing. */
function faultsOf(document: Document, operation: Operation, { query, body: bytes, headers }: Sent): string {
  const at = pointerTo(operation.method, operation.path);
  for (const [index, { name, in: place, schema }] of operation.parameters.entries()) {
    const key = place === 'header' ? headers['Idempotency-Key']?.trim() : undefined;
    const values = key === undefined ? query.filter(([of]) => of === name).map(([, value]) => value) : [key];
    // Of a parameter that is repeated, and of an empty one, the document says nothing.
    if (place === 'path' || values.length !== 1 || !values[0]) continue;
    const typed = toTyped(values[0], document.resolve(schema));
    const faults = document.contract.faultsOf(`${at}/parameters/${index}/schema`, typed);
    if (faults) return `${name}: ${faults}`;
  }
  if (operation.body === undefined || bytes === undefined || bytes.length === 0) return '';
  if (headers['Content-Encoding'] === 'gzip') return 'a body has no content coding';
  try {
    const json = JSON.parse(bytes.toString().replace(/^\ufeff/, ''));
    const body = withoutNulls(document, json, operation.body);
    return document.contract.faultsOf(`${at}/requestBody/content/application~1json/schema`, body);
  } catch {
    return 'the body is no JSON';
  }
}

function toTyped(text: string, { type }: Schema): unknown {
  const isTyped = type === 'boolean' ? /^(true|false)$/ : /^-?\d+(\.\d+)?$/;
  return type !== 'string' && isTyped.test(text)
    ? type === 'boolean'
      ? text === 'true'
      : Number(text)
    : text;
}

/** An optional field that is null counts as absent, at every depth that the document names. */
function withoutNulls(document: Document, value: unknown, schema: Schema): unknown {
  const { required = [], properties = {}, items } = document.resolve(schema);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => withoutNulls(document, item, items ?? {}));
  const kept = Object.entries(value).filter(([name, field]) => field !== null || required.includes(name));
  return Object.fromEntries(
    kept.map(([name, field]) => [name, withoutNulls(document, field, properties[name] ?? {})]),
  );
}
