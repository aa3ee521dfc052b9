import type { MiddlewareHandler } from 'hono';
import { ApiError, invalidRequest } from '../../contract/errors.ts';
import type { Clock } from '../ports/clock.ts';
import type { HttpEnv } from './deps.ts';

/**
 * How much of a body that is too large is read and thrown away before the answer, and for how long: a client
 * that is still sending when its connection is reset loses the answer.
 */
const MAX_DISCARDED_BYTES = 64 * 1024 * 1024;
const MAX_DISCARD_MS = 2_000;
const FIRST_BUFFER_BYTES = 16 * 1024;

/**
 * Reads the body of a request that may have one: at most `maxBodyBytes`, counted as they come, whatever
 * Content-Length says; JSON only, an object only, without a content coding. The routes find it parsed.
 */
export function readBody({
  clock,
  maxBodyBytes,
}: {
  clock: Clock;
  maxBodyBytes: number;
}): MiddlewareHandler<HttpEnv> {
  return async (context, next) => {
    if (context.req.method !== 'POST' && context.req.method !== 'PUT' && context.req.method !== 'PATCH')
      return next();
    const { headers, body } = context.req.raw;
    const isTooLarge = Number(headers.get('content-length') ?? 0) > maxBodyBytes;
    const bytes =
      body === null ? Buffer.alloc(0) : await readBytes(body, isTooLarge ? 0 : maxBodyBytes, clock);
    if (isTooLarge || bytes === undefined) throw tooLarge(maxBodyBytes);
    if (bytes.length > 0) assertJsonContent(headers);
    const text = bytes.length > 0 ? toObjectText(bytes) : '{}';
    // What follows reads the body as JSON only under exactly this name, in whatever way it was written.
    headers.set('Content-Type', 'application/json');
    Object.assign(context.req.bodyCache, { text: Promise.resolve(text) });
    return next();
  };
}

/** The bytes, copied together as they come so that a body of many small chunks costs no more; undefined: more than `maxBytes`. */
async function readBytes(
  body: ReadableStream<Uint8Array>,
  maxBytes: number,
  clock: Clock,
): Promise<Buffer | undefined> {
  const reader = body.getReader();
  let buffer = Buffer.alloc(Math.min(FIRST_BUFFER_BYTES, maxBytes));
  let size = 0;
  for (;;) {
    const { done, value } = await readChunk(reader);
    if (done) return buffer.subarray(0, size);
    if (size + value.byteLength > maxBytes) {
      await discard(reader, clock);
      return undefined;
    }
    if (size + value.byteLength > buffer.length)
      buffer = Buffer.concat([buffer], Math.min(maxBytes, 2 * (size + value.byteLength)));
    buffer.set(value, size);
    size += value.byteLength;
  }
}

type Reader = ReadableStreamDefaultReader<Uint8Array>;

/** @throws {ApiError} `invalid_request` if the connection ended before the body did; nobody reads the answer. */
async function readChunk(reader: Reader): ReturnType<Reader['read']> {
  try {
    return await reader.read();
  } catch {
    throw invalidRequest([{ path: '', message: 'expected the whole body; the connection ended before it' }]);
  }
}

async function discard(reader: Reader, clock: Clock): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<{ done: true; value: undefined }>();
  const timer = clock.setTimer(MAX_DISCARD_MS, () => resolve({ done: true, value: undefined }));
  try {
    for (let size = 0; size < MAX_DISCARDED_BYTES; ) {
      const { done, value } = await Promise.race([readChunk(reader), late]);
      if (done) return;
      size += value.byteLength;
    }
  } finally {
    timer.cancel();
  }
}

function assertJsonContent(headers: Headers): void {
  const coding = headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity';
  if (coding !== 'identity' && coding !== '')
    throw invalidRequest([
      { path: '', message: 'expected a body without Content-Encoding: it is not decompressed' },
    ]);
  if (!/^application\/([a-z0-9.-]+\+)?json\s*(;|$)/i.test(headers.get('content-type')?.trim() ?? ''))
    throw invalidRequest([{ path: '', message: 'expected Content-Type: application/json' }]);
}

function toObjectText(bytes: Buffer): string {
  const text = decode(bytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalidRequest([{ path: '', message: 'expected well-formed JSON' }]);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalidRequest([{ path: '', message: 'expected a JSON object' }]);
  return text;
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw invalidRequest([{ path: '', message: 'expected a body in UTF-8' }]);
  }
}

function tooLarge(maxBytes: number): ApiError {
  return new ApiError('payload_too_large', `The request body is larger than ${maxBytes} bytes.`, {
    details: { max_bytes: maxBytes },
  });
}
