import { expect } from 'vitest';
import { type Reply, startTestOrchestrator, type TestOptions } from '../support/orchestrator.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

export const SECONDS = 1_000;

export interface ErrorReply {
  error: { code: string; message: string };
}
export interface TokenReply {
  access_token: string;
  token_type: string;
  expires_in: number;
}

/** An orchestrator on a virtual clock, with one instance and one volume. */
export async function startWithResources(options: TestOptions = {}) {
  const clock = new VirtualClock();
  // Hours pass in these tests, and few of them are about the platform.
  const orchestrator = await startTestOrchestrator({
    clock,
    reconcile: { watchIntervalMs: 60_000 },
    ...options,
  });
  const instance = await orchestrator.request('POST', '/instances', { body: instanceRequest() });
  const volume = await orchestrator.request('POST', '/volumes', { body: volumeRequest() });
  const live = { instanceId: String(instance.body['id']), volumeId: String(volume.body['id']) };
  return { clock, orchestrator, live };
}

export function expectUnauthorized(reply: Reply<ErrorReply>): void {
  expect(reply.status).toBe(401);
  expect(reply.body.error.code).toBe('unauthorized');
  expect(reply.headers.get('www-authenticate')).toBe('Bearer');
  expect(reply.headers.get('cache-control')).toBe('no-store');
}
