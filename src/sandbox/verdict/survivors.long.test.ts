import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startBench } from '../faults/bench.fixture.ts';
import { faultCatalog } from '../faults/catalog/catalog.ts';
import type { HttpFault } from '../faults/fault.ts';
import type { Sandbox } from '../sandbox.ts';
import { runClient } from './clients.fixture.ts';
import { requestFaults } from './faults.ts';

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startBench();
});
afterAll(() => sandbox.close());
afterEach(() => sandbox.faults.clear());

/** The requests of the client that can trigger a fault. */
const routes = ['GET /availability', 'POST /instances', 'GET /instances/{id}', 'DELETE /instances/{id}'];

describe.each(requestFaults)('a good client survives %s', (fault) => {
  const { on } = faultCatalog[fault] as HttpFault;
  const affected = routes.filter((route) => on.includes('*') || on.includes(route));

  it.runIf(affected.length > 0)('once at each of its requests', async () => {
    const account = await sandbox.account();
    for (const route of affected) await sandbox.faults.arm(fault, { provider: 'd', route } as never);
    await runClient(sandbox, account);
    await sandbox.clock.advance(40_000);
    const { rules } = await sandbox.verdict({ account: account.name });
    expect(rules.filter(({ result }) => result === 'fail')).toEqual([]);
    expect(rules).toContainEqual(expect.objectContaining({ rule: `survives-${fault}`, result: 'pass' }));
  });
});
