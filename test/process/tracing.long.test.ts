import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { startOtlpReceiver } from '../support/otlp-receiver.ts';
import { sourceOfBerth } from '../support/processes/built-programs.ts';
import { startServing, temporaryFolder, writeFastConfig } from '../support/processes/process.ts';

const recorder = new URL('../support/processes/print-modules.ts', import.meta.url).href;
const folder = temporaryFolder();
afterAll(() => folder[Symbol.dispose]());
let count = 0;

/** Serves with these variables, answers one request and ends at a signal; what standard error said last. */
async function serveOnce(env: Record<string, string>) {
  const config = writeFastConfig(join(folder.path, `run-${++count}`));
  await using berth = await startServing(['--config', config], {
    entry: sourceOfBerth,
    env: { NODE_OPTIONS: `--import=${recorder}`, ...env },
  });
  const headers = { Authorization: `Bearer ${berth.apiKey}`, 'X-Request-Id': 'traced' };
  expect((await fetch(`${berth.baseUrl}/configurations`, { headers })).status).toBe(200);
  expect((await berth.end('SIGTERM')).code).toBe(0);
  const modules: string[] = JSON.parse(berth.stderr.trim().split('\n').at(-1) ?? '');
  return modules.filter((path) => /@opentelemetry\/(sdk|exporter|otlp)/.test(path));
}

describe('`berth serve`', () => {
  it('loads nothing of the traces where no collector is named', async () => {
    expect(await serveOnce({})).toEqual([]);
  });

  it('sends what waits to the collector before it ends [traces-of-a-process]', async () => {
    await using receiver = await startOtlpReceiver();
    const loaded = await serveOnce({
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_SERVICE_NAME: 'berth-7',
    });
    expect(loaded).not.toEqual([]);
    expect(receiver.spans().map(({ name }) => name)).toContain('GET /v1/configurations');
    expect(receiver.resource()).toMatchObject({ 'service.name': 'berth-7' });
  });

  it('ends though the collector hangs', async () => {
    await using receiver = await startOtlpReceiver({ hangs: true });
    await serveOnce({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url });
    expect(receiver.requests()).toBeGreaterThan(0);
  });
});
