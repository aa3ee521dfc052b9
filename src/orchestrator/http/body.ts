import type { MiddlewareHandler } from 'hono';
import { ApiError, invalidRequest } from '../../contract/errors.ts';
import type { HttpEnv } from './deps.ts';

/**
 * Reads the body of a request that may have one: at most `maxBytes`, counted as they come, whatever
 * Content-Length says; JSON only, an object only. The routes find it parsed.
 */
export function readBody(maxBytes: number): MiddlewareHandler<HttpEnv> {
  return async (context, next) => {
    if (context.req.method !== 'POST' && context.req.method !== 'PUT' && context.req.method !== 'PATCH')
      return next();
    const text = await readText(context.req.raw, maxBytes);
    if (text !== '') {
      assertJsonContentType(context.req.header('content-type'));
      assertObject(text);
    }
    Object.assign(context.req.bodyCache, { text: Promise.resolve(text === '' ? '{}' : text) });
    return next();
  };
}

async function readText({ body, headers }: Request, maxBytes: number): Promise<string> {
  if (Number(headers.get('content-length') ?? 0) > maxBytes) throw tooLarge(maxBytes);
  if (body === null) return '';
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    throw invalidRequest([{ path: '', message: 'expected a body in UTF-8' }]);
  }
}

function assertJsonContentType(contentType: string | undefined): void {
  const isJson =
    contentType !== undefined && /^application\/([a-z0-9.-]+\+)?json\s*(;|$)/i.test(contentType.trim());
  if (!isJson) throw invalidRequest([{ path: '', message: 'expected Content-Type: application/json' }]);
}

function assertObject(text: string): void {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalidRequest([{ path: '', message: 'expected well-formed JSON' }]);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalidRequest([{ path: '', message: 'expected a JSON object' }]);
}

function tooLarge(maxBytes: number): ApiError {
  return new ApiError('payload_too_large', `The request body is larger than ${maxBytes} bytes.`, {
    details: { max_bytes: maxBytes },
  });
}
