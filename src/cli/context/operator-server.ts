import { z } from 'zod';
import { withDeadline } from '../../client/deadline.ts';
import { createWireTransport, NotConnected, type Transport } from '../../client/transport.ts';
import { parseJson } from '../../contract/parse-json.ts';
import { isOnlyPrinted, type Operation, splitInput } from '../../operator-kit/operation.ts';
import { PRODUCT_HEADER, type Product } from '../../operator-kit/product.ts';
import { MAX_PAGE } from '../../operator-kit/views/values.ts';
import { Fatal } from '../../ports/errors.ts';
import { systemClock } from '../../runtime/system.ts';
import { assertKind, type Context, readCa, readKey } from './contexts.ts';
import { unreachable } from './unreachable.ts';

const TIMEOUT_MS = 60_000;
const CONNECT_TIMEOUT_MS = 10_000;
const MAX_BODY_BYTES = 64 * 1024 * 1024;

type Input = Record<string, unknown>;
type AnyOperation = Pick<Operation<never>, 'method' | 'path' | 'input' | 'reply'>;

/** Reads a view or performs an action. Lists longer than a page are read page by page. @throws {Fatal} */
export type Perform = (operation: AnyOperation, input: Input, by?: string) => Promise<unknown>;

/** Calls the server of a context, and closes the connection after `body`. @throws {Fatal} */
export async function withOperatorServer<T>(
  context: Context,
  product: Product,
  body: (perform: Perform) => Promise<T>,
): Promise<T> {
  assertKind(context, product === 'orchestrator' ? 'operator' : product);
  const key = readKey(context);
  const transport = createWireTransport({
    allowPrivate: true,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    connections: 1,
    ca: readCa(context),
    clock: systemClock,
  });
  const headers = {
    accept: 'application/json',
    authorization: `Bearer ${key}`,
    [PRODUCT_HEADER]: product,
  };
  try {
    return await body(async (operation, input, by) => {
      if (by !== undefined) throw new Fatal('--by: the server knows the operator by the key: leave it out.');
      return readPages(operation, input, (page) => call({ transport, context, headers }, operation, page));
    });
  } finally {
    await transport.close();
  }
}

/** Reads as many pages as the input's `limit` needs. */
async function readPages(
  { input: fields }: AnyOperation,
  input: Input,
  read: (input: Input) => Promise<unknown>,
): Promise<unknown> {
  const { limit, ...rest } = input;
  if (!Object.hasOwn(fields, 'limit')) return read(rest);
  if (typeof limit !== 'number') return read(input);
  const reply = (await read({ ...rest, limit: Math.min(limit, MAX_PAGE) })) as Input;
  const rows = Object.values(reply).find((value) => Array.isArray(value));
  let { next } = reply;
  while (rows !== undefined && typeof next === 'string' && rows.length < limit) {
    const size = Math.min(limit - rows.length, MAX_PAGE);
    const page = (await read({ ...rest, after: next, limit: size })) as Input;
    rows.push(...(Object.values(page).find((value) => Array.isArray(value)) ?? []));
    next = page['next'];
  }
  return reply;
}

interface Caller {
  transport: Transport;
  context: Context;
  headers: Record<string, string>;
}

async function call(caller: Caller, operation: AnyOperation, input: Input): Promise<unknown> {
  const { context, transport, headers } = caller;
  const { place, body } = toRequest(operation, input);
  const { status, text } = await withDeadline(systemClock, TIMEOUT_MS, async (signal) => {
    const reply = await transport.send(
      {
        method: operation.method === 'get' ? 'GET' : 'POST',
        url: `${context.url}/operator/v1${place}`,
        headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
        ...(body !== undefined && { body }),
      },
      signal,
    );
    return { status: reply.status, text: await readText(reply.body) };
  }).catch((error: Error) => {
    const isUnknown = operation.method === 'post' && !(error instanceof NotConnected);
    throw unreachable(
      context,
      error,
      isUnknown ? ' It is unknown whether this was done: see `berth audit`.' : '',
    );
  });
  const value = parseJson(text);
  if (status >= 200 && status < 300) return asReply(context, operation, value);
  throw refused(context, status, value);
}

/** The path, with the query of a view, and the body of an action. */
function toRequest({ method, path, input: fields }: AnyOperation, input: Input) {
  const { params, rest } = splitInput({ input: fields, path });
  const given = Object.entries(input).filter(
    ([name, value]) => value !== undefined && !isOnlyPrinted(fields[name]),
  );
  for (const [name] of given)
    if (!Object.hasOwn(params, name) && !Object.hasOwn(rest, name))
      throw new Fatal(
        `--${name.replaceAll('_', '-')} needs the database: run this on the machine of the server, with --context local.`,
      );
  const place = path.replace(/\{(\w+)\}/g, (_, name: string) => toSegment(String(input[name])));
  const fieldsGiven = given.filter(([name]) => Object.hasOwn(rest, name));
  if (method === 'post')
    return {
      place,
      body: Object.keys(rest).length === 0 ? undefined : JSON.stringify(Object.fromEntries(fieldsGiven)),
    };
  const query = new URLSearchParams(
    fieldsGiven.map(([name, value]): [string, string] => [name, String(value)]),
  );
  return { place: query.size === 0 ? place : `${place}?${query}`, body: undefined };
}

/** @throws {Fatal} for a text that would change the path */
function toSegment(text: string): string {
  if (/^\.{0,2}$/.test(text)) throw new Fatal(`"${text}" cannot be a name or an id: give another.`);
  return encodeURIComponent(text);
}

async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > MAX_BODY_BYTES) throw new Error(`the answer is longer than ${MAX_BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** @throws {Fatal} if this program cannot read it */
function asReply({ name, url }: Context, { reply: [, schema] }: AnyOperation, value: unknown): unknown {
  if (schema.safeParse(value).success) return value;
  throw new Fatal(
    `The answer of ${url} (context ${name}) is not one that this program knows: use the version of the server, which its console shows; this one's is printed by \`berth version\`.`,
  );
}

const errorSchema = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    details: z
      .object({ issues: z.array(z.object({ path: z.string(), message: z.string() })).optional() })
      .optional(),
  }),
});

/** What a listener answers that has no such route. */
const NO_ROUTE = /^There is no (GET|POST) \//;

/** The error for an answer that is not a success. */
function refused(context: Context, status: number, value: unknown): Fatal {
  const { name, url, kind, key_file: file } = context;
  const createKey = kind === 'marketplace' ? 'berth marketplace operators create' : 'berth operators create';
  const parsed = errorSchema.safeParse(value);
  const { code = '', message = '', details } = parsed.data?.error ?? {};
  if (!parsed.success || NO_ROUTE.test(message))
    return new Fatal(
      `${url} (context ${name}) answered ${status}, and not as an admin listener of Berth does: add the context with the URL that the server prints as its console.`,
    );
  if (status === 401)
    return new Fatal(
      `${url} does not accept the key of the context ${name} (${file}): create one on the machine of the server with \`${createKey}\`, and write it into this file.`,
    );
  const others = (details?.issues ?? []).filter(({ path }) => !message.includes(path));
  const text = [message, ...others.map((issue) => `${issue.path}: ${issue.message}`)].join('; ');
  if (status >= 500 || status === 403)
    return new Fatal(`${url} (context ${name}) answered ${status} ${code}: ${text}`);
  return new Fatal(text);
}
