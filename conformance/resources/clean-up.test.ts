import { expect, it } from 'vitest';
import type { TargetClient } from '../http/target-client.ts';
import { createAutoClock } from '../mutants/reference/auto-clock.ts';
import type { Exchange } from '../transcript/records.ts';
import { cleanUp } from './clean-up.ts';
import { Ledger } from './ledger.ts';

/** Answers each request in the next turn, and counts concurrent DELETEs. */
function countingClient() {
  const deleted = new Set<string>();
  const seen = { atOnce: 0, most: 0 };
  const answer = (method: string, path: string): { status: number; body: string } => {
    if (method === 'DELETE') deleted.add(path);
    if (path === '/instances') return { status: 200, body: '{"instances":[]}' };
    return deleted.has(path) && method === 'GET'
      ? { status: 404, body: '{"error":{"code":"not_found","message":"It is gone."}}' }
      : { status: 200, body: '{"status":"DESTROYING"}' };
  };
  const client = {
    async send(step: string, { method, path }: { method: string; path: string }): Promise<Partial<Exchange>> {
      if (method === 'DELETE') seen.most = Math.max(seen.most, ++seen.atOnce);
      await new Promise(setImmediate);
      if (method === 'DELETE') seen.atOnce--;
      const { status, body } = answer(method, path);
      return { kind: 'exchange', step, answer: { status, body, headers: {}, firstByteMs: 0 } };
    },
  };
  return { client: client as unknown as TargetClient, seen, deleted };
}

it('destroys several resources at the same time, and not more than eight', async () => {
  const clock = createAutoClock();
  const ledger = new Ledger({ file: { append: () => {} }, runId: 'r', wall: clock.wall, onChange: () => {} });
  for (let n = 1; n <= 10; n++)
    ledger.made(ledger.intend({ type: 'instance', step: 'create', region: 'eu' }), `i-${n}`);
  const { client, seen, deleted } = countingClient();
  const left = await cleanUp({
    client,
    ledger,
    clock,
    pollIntervalMs: 200,
    patienceMs: 600_000,
    knownReasons: new Set(),
  });
  expect(left).toEqual([]);
  expect(deleted.size).toBe(10);
  expect(seen.most).toBe(8);
});
