import { expect, vi } from 'vitest';
import { type Reply, startTestOrchestrator, type TestOrchestrator } from '../support/orchestrator.ts';
import { type Residue, residueOf } from '../support/processes/residue.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';
import { PATIENCE_MS } from '../support/time/until.ts';

export interface ErrorReply {
  error: { code: string; message: string; details: { issues: { path: string; message: string }[] } };
}

/** An orchestrator with an instance and a volume of another account. `clean` is what it holds before the tests. */
export async function startWithStranger() {
  const orchestrator = await startTestOrchestrator();
  const key = await orchestrator.addAccount('stranger');
  const volume = await orchestrator.request('POST', '/volumes', { body: volumeRequest(), key });
  const instance = await orchestrator.request('POST', '/instances', { body: instanceRequest(), key });
  const strangersVolume = String(volume.body['id']);
  const strangersInstance = String(instance.body['id']);
  const settled = (path: string, status: string) =>
    vi.waitFor(
      async () => {
        const { body } = await orchestrator.request('GET', path, { key });
        expect(body['status']).toBe(status);
      },
      { timeout: PATIENCE_MS, interval: 10 },
    );
  await settled(`/volumes/${strangersVolume}`, 'AVAILABLE');
  await settled(`/instances/${strangersInstance}`, 'ONLINE');
  return { orchestrator, strangersVolume, strangersInstance, clean: await residueOf(orchestrator) };
}

/** The reply is a 400 in the envelope, whose issues say where and what. */
export function expectIssues(reply: Reply<ErrorReply>, ...paths: string[]): ErrorReply['error'] {
  expect({ status: reply.status, text: reply.text }).toMatchObject({ status: 400 });
  const { error } = reply.body;
  expect(error.details.issues.map((issue) => issue.path).sort()).toEqual([...paths].sort());
  for (const { message } of error.details.issues) expect(message.length).toBeGreaterThan(5);
  for (const { path, message } of error.details.issues) {
    expect(error.message).toContain(path);
    if (error.code === 'invalid_request') expect(error.message).toContain(message);
  }
  expect(reply.headers.get('x-request-id')).toBeTruthy();
  return error;
}

/** Nothing is left behind, and an instance can be created. */
export async function expectUnharmed(orchestrator: TestOrchestrator, clean: Residue): Promise<void> {
  expect(await residueOf(orchestrator)).toEqual(clean);
  const { status, body } = await orchestrator.request('POST', '/instances', { body: instanceRequest() });
  expect(status).toBe(201);
  await orchestrator.waitFor(String(body['id']), 'ONLINE');
}
