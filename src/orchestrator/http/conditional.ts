import type { Context, MiddlewareHandler, TypedResponse } from 'hono';
import { REPLAYED } from '../../http/api/idempotency.ts';
import type { Created } from '../accounts/quotas.ts';
import { type PreparedReply, toEtag } from '../instances/polled-reads.ts';
import type { HttpEnv } from './deps.ts';

/** The record of a create. Adds the header of a replay if it is one. */
export function markReplay<Record>(context: Context<HttpEnv>, { record, isReplay }: Created<Record>): Record {
  if (isReplay) context.header(REPLAYED, 'true');
  return record;
}

/** Forbids shared caches to keep a reply, since it belongs to one account. */
export const PRIVATE = 'private, no-cache';

/** Whether `If-None-Match` contains the validator (RFC 9110, 13.1.2: compared weakly). */
export function isNoneMatch(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return (
    header.trim() === '*' ||
    header.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === etag)
  );
}

/** A 200 with a body that is made while it is sent, so its validator is unknown beforehand. */
export function respondStreamed<Body>(
  context: Context<HttpEnv>,
  body: ReadableStream<Uint8Array>,
): TypedResponse<Body, 200, 'json'> {
  context.set('isStreamed', true);
  const response = context.body(body, 200, { 'Content-Type': 'application/json' });
  return response as unknown as TypedResponse<Body, 200, 'json'>;
}

/**
 * Adds a validator to every successful read that is not streamed, and answers 304 if the client has the same bytes. An
 * error is never a 304.
 */
export function conditionalReads(): MiddlewareHandler<HttpEnv> {
  return async (context, next) => {
    await next();
    const { res, req } = context;
    if ((req.method !== 'GET' && req.method !== 'HEAD') || res.status !== 200) return;
    if (context.get('isStreamed') === true) {
      res.headers.set('Cache-Control', PRIVATE);
      return;
    }
    const etag = res.headers.get('ETag') ?? toEtag(Buffer.from(await res.clone().arrayBuffer()));
    res.headers.set('ETag', etag);
    res.headers.set('Cache-Control', PRIVATE);
    if (!isNoneMatch(req.header('if-none-match'), etag)) return;
    context.res = new Response(null, { status: 304 });
    context.res.headers.delete('Content-Type');
    context.res.headers.delete('Content-Length');
  };
}

/** A 200 with a prepared body. */
export function respondPrepared<Body>(
  context: Context<HttpEnv>,
  { body, etag }: Pick<PreparedReply, 'body' | 'etag'>,
): TypedResponse<Body, 200, 'json'> {
  const response = context.body(body, 200, {
    'Content-Type': 'application/json',
    ETag: etag,
  });
  // The string is a `Body` in JSON, which its type cannot express.
  return response as unknown as TypedResponse<Body, 200, 'json'>;
}
