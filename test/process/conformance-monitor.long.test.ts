import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createClient } from '../support/http/http-client.ts';
import { fileOf } from '../support/processes/built-programs.ts';
import { type KillingProxy, type Moment, startKillingProxy } from '../support/processes/killing-proxy.ts';
import {
  BerthProcess,
  type ServingProcess,
  startServing,
  temporaryFolder,
  writeFastConfig,
} from '../support/processes/process.ts';
import { until } from '../support/time/until.ts';

const entry = fileOf('fast-monitor');

describe('a monitor that is killed', () => {
  const root = temporaryFolder();
  let server: ServingProcess;
  const clockFrom = String(Date.now());
  let count = 0;

  beforeAll(async () => {
    server = await startServing(['--config', writeFastConfig(join(root.path, 'server'))]);
  });
  afterAll(async () => {
    await server.end();
    root[Symbol.dispose]();
  });

  async function live(): Promise<string[]> {
    const { body } = await createClient(server.baseUrl, server.apiKey).request('GET', '/instances');
    const { instances } = body as { instances: { id: string; status: string }[] };
    return instances.filter(({ status }) => status !== 'DESTROYED').map(({ id }) => id);
  }

  function configFor(proxy: KillingProxy): string {
    const path = join(root.path, `monitor-${++count}.yaml`);
    writeFileSync(
      path,
      `state: ${join(root.path, `state-${count}`)}
providers:
  - { name: fast, base_url: "${proxy.baseUrl}", api_key_env: KEY, budget_usd_per_day: 100, allow_private: true }
reads: { mean_hours: 0.2 }
machines: { mean_hours: 0.1 }
listen: 127.0.0.1:0
`,
    );
    return path;
  }

  function start(config: string): BerthProcess {
    return new BerthProcess(['monitor', '--config', config, '--stop-limit-s', '12000'], {
      entry,
      env: { KEY: server.apiKey, CLOCK_FROM: clockFrom },
    });
  }

  it.each<Moment & { title: string; leaves: number }>([
    { title: 'before its create arrives', when: 'before', method: 'POST', step: '', leaves: 0 },
    { title: 'between its create and the answer', when: 'after', method: 'POST', step: '', leaves: 1 },
    { title: 'before its DELETE arrives', when: 'before', method: 'DELETE', step: '', leaves: 1 },
  ])('$title leaves no machine after the next start', async ({ leaves, ...moment }) => {
    await using proxy = await startKillingProxy(server.baseUrl);
    const config = configFor(proxy);
    await using first = start(config);
    proxy.arm(moment, () => {
      first.child.kill('SIGKILL');
      return 'cut';
    });
    expect(await first.ended).toMatchObject({ signal: 'SIGKILL' });
    const left = await live();
    expect(left).toHaveLength(leaves);
    await using second = start(config);
    await until('the monitor has started', () => second.stderr.includes('listening on port'));
    await until('the machine of the killed monitor is gone', async () => {
      const now = await live();
      return left.every((id) => !now.includes(id));
    });
    const { code, stderr } = await second.end('SIGTERM');
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('Stopping') });
    expect(await live()).toEqual([]);
  });
});
