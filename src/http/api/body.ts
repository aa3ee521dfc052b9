import type { Context, MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import { BodiesUnderWay } from './bodies-under-way.ts';

/** Creates the errors for invalid bodies, in the server's own shape. */
export interface BodyRefusals {
  /** 400. `message` says what was expected. */
  malformed(message: string): Error;
  /** 413 */
  tooLarge(maxBytes: number): Error;
  /** 503, with Retry-After. */
  tooMany(): Error;
}

const MAX_BODY_BYTES = 1024 * 1024;
/** How much is read of a body that was refused. */
const MAX_DISCARDED_BYTES = 64 * MAX_BODY_BYTES;
const FIRST_BUFFER_BYTES = 16 * 1024;
/** The `Retry-After` of the 503 that refuses a body while too many bytes are under way. */
const RETRY_SECONDS = '5';
/** All bodies under way together have at most this many times the maximum size of one, or `LEAST_BYTES`. */
const BODIES_AT_ONCE = 16;
const LEAST_BYTES = 4 * 1024 * 1024;

/**
 * Reads the body of a POST, PUT or PATCH: at most `maxBytes`, counted as they arrive, independent of Content-Length. It
 * must be a JSON object without a content coding. Routes get it parsed. It is not read if no route takes the request.
 */
export function readBody(refusals: BodyRefusals, maxBytes = MAX_BODY_BYTES): MiddlewareHandler {
  const withBytes = bodyReader(maxBytes, refusals);
  return async (context, next) => {
    if (context.req.method !== 'POST' && context.req.method !== 'PUT' && context.req.method !== 'PATCH')
      return next();
    if (!hasRoute(context)) return next();
    return withBytes(context, (bytes) => {
      const { headers } = context.req.raw;
      if (bytes.length > 0) assertJsonContent(headers, refusals);
      const text = bytes.length > 0 ? toObjectText(bytes, refusals) : '{}';
      // The routes parse the body as JSON only if the type has exactly this spelling.
      headers.set('Content-Type', 'application/json');
      Object.assign(context.req.bodyCache, { text: Promise.resolve(text) });
      return next();
    });
  };
}

/**
 * Returns a function that reads the body of a request and passes it to `use`. Until `use` has settled, the body counts
 * as under way: for the request's key, or else its network, and for all. One that would exceed the limit is refused.
 */
export function bodyReader(maxBytes: number, refusals: BodyRefusals) {
  const underWay = new BodiesUnderWay(Math.max(LEAST_BYTES, BODIES_AT_ONCE * maxBytes));
  return async <T>(context: Context, use: (bytes: Buffer) => Promise<T>): Promise<T> => {
    const { headers, body: stream } = context.req.raw;
    const declared = Number(headers.get('content-length')) || 0;
    if (stream === null) return use(Buffer.alloc(0));
    const { key = context.get('network') } = (context.get('who') ?? {}) as { key?: string };
    const body = underWay.begin(key ?? '');
    const reserve = (bytes: number): void => {
      if (body.reserve(bytes)) return;
      context.header('Retry-After', RETRY_SECONDS);
      throw refusals.tooMany();
    };
    try {
      if (declared <= maxBytes) reserve(declared);
      return await use(await readBytes(stream.getReader(), { maxBytes, declared, refusals, reserve }));
    } finally {
      body.end();
    }
  };
}

/** Whether a route takes the method at this path. Middleware takes every method. */
function hasRoute(context: Context): boolean {
  return matchedRoutes(context).some(({ method }) => method === context.req.method);
}

interface Reading {
  maxBytes: number;
  /** Content-Length; 0 if there is none. */
  declared: number;
  refusals: BodyRefusals;
  /** Called with the new size of the buffer before it grows. */
  reserve: (bytes: number) => void;
}

/**
 * Reads the whole body into one buffer, so many small chunks cost no extra memory.
 * @throws the error of `refusals` if it is too large; the rest is discarded.
 */
async function readBytes(
  reader: Reader,
  { maxBytes, declared, refusals, reserve }: Reading,
): Promise<Buffer> {
  const most = declared || maxBytes;
  const allocate = (bytes: number): Buffer => {
    reserve(Math.max(bytes, declared));
    return Buffer.alloc(bytes);
  };
  try {
    if (declared > maxBytes) throw refusals.tooLarge(maxBytes);
    let buffer = allocate(Math.min(FIRST_BUFFER_BYTES, most));
    let size = 0;
    for (;;) {
      const { done, value } = await readChunk(reader, refusals);
      if (done) return buffer.subarray(0, size);
      const newSize = size + value.byteLength;
      if (newSize > maxBytes) throw refusals.tooLarge(maxBytes);
      if (newSize > buffer.length) {
        const larger = allocate(Math.max(newSize, Math.min(most, 2 * newSize)));
        buffer.copy(larger);
        buffer = larger;
      }
      buffer.set(value, size);
      size = newSize;
    }
  } catch (error) {
    void discard(reader);
    throw error;
  }
}

/** Reads on, so that the client can send the rest and read the reply. Beyond the limit, the connection is closed. */
async function discard(reader: Reader): Promise<void> {
  let left = MAX_DISCARDED_BYTES;
  try {
    while (left > 0) {
      const { done, value } = await reader.read();
      if (done) return;
      left -= value.byteLength;
    }
    await reader.cancel();
  } catch {
    // The connection has ended.
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
