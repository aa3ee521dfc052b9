import { createClient } from '../../src/client/create-client.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { TestOrchestrator } from '../support/orchestrator.ts';

/** A marketplace's client of an orchestrator in this process. */
export function clientOf(orchestrator: TestOrchestrator, clock: Clock) {
  return createClient({
    baseUrl: 'http://127.0.0.1/v1',
    allowPrivate: true,
    credential: { apiKey: orchestrator.key },
    clock,
    timeoutMs: 10_000,
    fetch: (url, { method = 'GET', headers, body }) => {
      const { pathname, search } = new URL(url);
      const request = { method, headers: headers as Record<string, string> };
      return orchestrator.fetch(pathname + search, {
        ...request,
        ...(typeof body === 'string' && { body }),
      });
    },
  });
}
