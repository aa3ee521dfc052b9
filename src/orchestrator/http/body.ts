import type { MiddlewareHandler } from 'hono';
import { ApiError, invalidRequest } from '../../contract/errors.ts';
import type { HttpEnv } from './deps.ts';

const FIRST_BUFFER_BYTES = 16 * 1024;

/**
 * Reads the body of a request that may have one: at most `maxBytes`, counted as they come, whatever
 * Content-Length says; JSON only, an object only, without a content coding. The routes find it parsed.
 */
export function readBody(maxBytes: number): MiddlewareHandler<HttpEnv> {
  return async (context, next) => {
    if (context.req.method !== 'POST' && context.req.method !== 'PUT' && context.req.method !== 'PATCH')
      return next();
    const { headers, body } = context.req.raw;
    if (Number(headers.get('content-length') ?? 0) > maxBytes) throw tooLarge(maxBytes);
    const bytes = body === null ? Buffer.alloc(0) : await readBytes(body, maxBytes);
    if (bytes.length > 0) assertJsonContent(headers);
    const text = bytes.length > 0 ? toObjectText(bytes) : '{}';
    // What follows reads the body as JSON only under exactly this name, in whatever way it was written.
    headers.set('Content-Type', 'application/json');
    Object.assign(context.req.bodyCache, { text: Promise.resolve(text) });
    return next();
  };
}

/**
 * The bytes, copied together as they come so that a body of many small chunks costs no more.
 *
 * @throws {ApiError} `payload_too_large`; the rest is not read.
 */
async function readBytes(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<Buffer> {
  const reader = body.getReader();
  let buffer = Buffer.alloc(Math.min(FIRST_BUFFER_BYTES, maxBytes));
  let size = 0;
  for (;;) {
    const { done, value } = await readChunk(reader);
    if (done) return buffer.subarray(0, size);
    const newSize = size + value.byteLength;
    if (newSize > maxBytes) throw tooLarge(maxBytes);
    if (newSize > buffer.length) buffer = Buffer.concat([buffer], Math.min(maxBytes, 2 * newSize));
    buffer.set(value, size);
    size = newSize;
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
