import type { Context } from 'hono';
import type { RequestEnv } from './request-context.ts';

/**
 * Runs `work` with a signal that is aborted when the client closes its connection or its sending half. The two look the
 * same.
 */
export async function untilClientLeaves<E extends RequestEnv, T>(
  context: Context<E>,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const socket = context.env?.incoming?.socket;
  const left = new AbortController();
  const leave = (): void => left.abort();
  socket?.once?.('end', leave);
  if (socket?.readableEnded === true) leave();
  try {
    return await work(AbortSignal.any([context.req.raw.signal, left.signal]));
  } finally {
    socket?.off?.('end', leave);
  }
}
