import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { parseJson } from '../contract/parse-json.ts';
import { errorAnswerSchema, toLine } from './answers.ts';
import { ProviderError, type ProviderProblem } from './orchestrator-client.ts';
import type { IncomingAnswer } from './transport.ts';

/** Strips a byte order mark. */
const utf8 = new TextDecoder();

export interface Answer {
  status: number;
  isJson: boolean;
  /** Empty if there is none. */
  etag: string;
  bytes: Buffer;
}

export interface Call {
  /** Such as `POST /instances`, for messages. */
  name: string;
  isWrite: boolean;
  /** Values that must be removed from the provider's text. */
  secrets: readonly string[];
}

/** Reads the body of an answer, up to `maxBytes`. */
export async function readWhole(call: Call, incoming: IncomingAnswer, maxBytes: number): Promise<Answer> {
  const { status, contentType, etag, body } = incoming;
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.byteLength;
    if (length > maxBytes) throw invalidAnswer(call, status, `expected at most ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  const bytes = Buffer.concat(chunks);
  if (!isUtf8(bytes)) throw invalidAnswer(call, status, 'expected UTF-8 text');
  return {
    status,
    isJson: /^application\/([\w.-]+\+)?json\s*(;|$)/i.test(contentType.trim()),
    etag,
    bytes,
  };
}

/** The JSON of a success. @throws {ProviderError} for every other answer */
export function readJson(call: Call, answer: Answer): unknown {
  const { status } = answer;
  if (status !== 200 && status !== 201) throw unsuccessful(call, answer);
  if (!answer.isJson) throw invalidAnswer(call, status, 'expected JSON, with Content-Type: application/json');
  const value = parseJson(utf8.decode(answer.bytes));
  if (value === undefined) throw invalidAnswer(call, status, 'expected valid JSON of at most 200 levels');
  // O: conventions, 7: "a 200 carrying an embedded error is not allowed". An instance's own `error` is a string.
  const embedded = (value as { error?: unknown } | null)?.error;
  if (typeof embedded === 'object' && embedded !== null)
    throw invalidAnswer(call, status, 'a success status with an error body');
  return value;
}

/**
 * The JSON of the answer to a create. Any 2xx that has an id is kept, since what it names may cost money.
 * @throws {ProviderError} for every other answer
 */
export function readCreated(call: Call, answer: Answer): unknown {
  const isSuccess = answer.status >= 200 && answer.status < 300;
  const value = isSuccess ? parseJson(utf8.decode(answer.bytes)) : undefined;
  const hasId = typeof value === 'object' && value !== null && 'id' in value && typeof value.id === 'string';
  return hasId ? value : readJson(call, answer);
}

/** A success whose body is ignored (O: 204). @throws {ProviderError} for every other answer */
export function readNothing(call: Call, answer: Answer): void {
  if (answer.status !== 204 && answer.status !== 200) throw unsuccessful(call, answer);
}

/** The error for an invalid answer. The outcome is unknown, so a write may have taken effect. */
export function invalidAnswer(call: Call, status: number, what: string): ProviderError {
  return new ProviderError('invalid', `${call.name}: ${status}, ${toLine(what, call.secrets)}`, {
    status,
    mayHaveHappened: call.isWrite,
  });
}

function unsuccessful(call: Call, answer: Answer): ProviderError {
  const { status } = answer;
  if (status < 300 || status >= 600) return invalidAnswer(call, status, 'expected 200, 201 or an error');
  if (status < 400) return invalidAnswer(call, status, 'a redirect, which is not followed');
  const body = errorAnswerSchema.safeParse(answer.isJson ? parseJson(utf8.decode(answer.bytes)) : undefined);
  // A 404 page of a proxy does not prove that the resource is gone.
  if (status === 404 && !body.success) return invalidAnswer(call, status, 'expected an Error as its body');
  const { code, message, details } = body.success
    ? body.data.error
    : { code: '', message: '', details: undefined };
  const said = toLine(message, call.secrets);
  return new ProviderError(problemOf(status), [`${call.name}: ${status}`, said].filter(Boolean).join(', '), {
    status,
    code: toToken(code),
    reason: toToken(details?.reason ?? ''),
    said: said || null,
    mayHaveHappened: call.isWrite && status >= 500,
  });
}

function toToken(text: string): string | null {
  return /^[\w.:-]{1,64}$/.test(text) ? text : null;
}

function problemOf(status: number): ProviderProblem {
  if (status >= 500) return 'failed';
  if (status === 401 || status === 403) return 'unauthorized';
  if (status === 404) return 'not_found';
  if (status === 409) return 'conflict';
  return status === 429 ? 'limited' : 'refused';
}

/** A valid header value, short enough to be sent back and stored for each instance. */
const ETAG = /^(W\/)?"[\x21\x23-\x7e]{0,200}"$/;

/** The mark by which an answer is recognised: the digest of its body, and its entity tag if it has one. */
export function markOf({ bytes, etag }: Answer): string {
  return ETAG.test(etag) ? `${digestOf(bytes)} ${etag}` : digestOf(bytes);
}

/** The entity tag in a mark, to be sent as `If-None-Match`. */
export function etagOf(mark: string): string | undefined {
  const end = mark.indexOf(' ');
  return end < 0 ? undefined : mark.slice(end + 1);
}

/** Whether the answer is the one that has this mark. A 200 is compared by its body, never by its tag. */
export function hasMark(mark: string, { status, bytes }: Answer): boolean {
  if (status === 304) return etagOf(mark) !== undefined;
  return status === 200 && mark.split(' ', 1)[0] === digestOf(bytes);
}

function digestOf(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'base64');
}
