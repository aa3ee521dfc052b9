import { expect } from 'vitest';
import { startServer, WireClient, type WireReply } from '../support/http/wire.ts';
import { startTestOrchestrator } from '../support/orchestrator.ts';
import { residueOf } from '../support/processes/residue.ts';

/** An orchestrator behind real sockets. `clean` is what it holds before the tests. */
export async function startOnWire() {
  const orchestrator = await startTestOrchestrator();
  const server = await startServer(orchestrator);
  const auth: Record<string, string> = { Authorization: `Bearer ${orchestrator.key}` };
  return { orchestrator, server, auth, clean: await residueOf(orchestrator) };
}

type OnWire = Awaited<ReturnType<typeof startOnWire>>;

/** The server still answers, and nothing was left behind. */
export async function expectUnharmed({ orchestrator, server, auth, clean }: OnWire): Promise<void> {
  await using client = await WireClient.open(server.port);
  client.request('GET', '/v1/configurations', auth);
  expect((await client.reply('GET', '/v1/configurations'))?.status, 'it still answers').toBe(200);
  expect(await residueOf(orchestrator)).toEqual(clean);
}

/** The reply is an error in the envelope, with a request id. */
export function expectError(reply: WireReply | undefined, status: number, code: string): void {
  expect(reply?.status).toBe(status);
  expect(JSON.parse(reply?.body ?? '{}')).toMatchObject({ error: { code } });
  expect(reply?.headers.get('x-request-id')).toMatch(/^[\w.-]+$/);
}
