import type { Context, MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';

/** Creates the errors for invalid bodies, in the server's own shape. */
export interface BodyRefusals {
  /** 400. `message` says what was expected. */
  malformed(message: string): Error;
  /** 413 */
  tooLarge(maxBytes: number): Error;
}

const FIRST_BUFFER_BYTES = 16 * 1024;

/**
 * Reads the body of a POST, PUT or PATCH: at most `maxBytes`, counted as they arrive, independent of Content-Length. It
 * must be a JSON object without a content coding. Routes get it parsed. It is not read if no route takes the request.
 */
export function readBody(maxBytes: number, refusals: BodyRefusals): MiddlewareHandler {
  return async (context, next) => {
    if (context.req.method !== 'POST' && context.req.method !== 'PUT' && context.req.method !== 'PATCH')
      return next();
    if (!hasRoute(context)) return next();
    const { headers, body } = context.req.raw;
    if (Number(headers.get('content-length') ?? 0) > maxBytes) throw refusals.tooLarge(maxBytes);
    const bytes = body === null ? Buffer.alloc(0) : await readBytes(body, maxBytes, refusals);
    if (bytes.length > 0) assertJsonContent(headers, refusals);
    const text = bytes.length > 0 ? toObjectText(bytes, refusals) : '{}';
    // The routes parse the body as JSON only if the type has exactly this spelling.
    headers.set('Content-Type', 'application/json');
    Object.assign(context.req.bodyCache, { text: Promise.resolve(text) });
    return next();
  };
}

/** Whether a route takes the method at this path. Middleware takes every method. */
export function hasRoute(context: Context): boolean {
  return matchedRoutes(context).some(({ method }) => method === context.req.method);
}

/**
 * Reads the whole body into one buffer, so many small chunks cost no extra memory.
 * @throws the error of `refusals` if it is too large; the rest is not read.
 */
export async function readBytes(
  body: ReadableStream<Uint8Array>,
  maxBytes: number,
  refusals: BodyRefusals,
): Promise<Buffer> {
  const reader = body.getReader();
  let buffer = Buffer.alloc(Math.min(FIRST_BUFFER_BYTES, maxBytes));
  let size = 0;
  for (;;) {
    const { done, value } = await readChunk(reader, refusals);
    if (done) return buffer.subarray(0, size);
    const newSize = size + value.byteLength;
    if (newSize > maxBytes) throw refusals.tooLarge(maxBytes);
    if (newSize > buffer.length) buffer = Buffer.concat([buffer], Math.min(maxBytes, 2 * newSize));
    buffer.set(value, size);
    size = newSize;
  }
}

type Reader = ReadableStreamDefaultReader<Uint8Array>;

/** @throws the error of `refusals` if the connection ended before the body did. The reply is not delivered. */
async function readChunk(reader: Reader, refusals: BodyRefusals): ReturnType<Reader['read']> {
  try {
    return await reader.read();
  } catch {
    throw refusals.malformed('the connection ended before the whole body arrived');
  }
}

function assertJsonContent(headers: Headers, refusals: BodyRefusals): void {
  const coding = headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity';
  if (coding !== 'identity' && coding !== '')
    throw refusals.malformed('expected a body without Content-Encoding: it is not decompressed');
  if (!/^application\/([a-z0-9.-]+\+)?json\s*(;|$)/i.test(headers.get('content-type')?.trim() ?? ''))
    throw refusals.malformed('expected Content-Type: application/json');
}

function toObjectText(bytes: Buffer, refusals: BodyRefusals): string {
  const text = decode(bytes, refusals);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw refusals.malformed('expected well-formed JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw refusals.malformed('expected a JSON object');
  return text;
}

function decode(bytes: Buffer, refusals: BodyRefusals): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw refusals.malformed('expected a body in UTF-8');
  }
}
