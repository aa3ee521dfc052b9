import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Sandbox } from '../sandbox.ts';
import { benchOf, startBench } from './bench.fixture.ts';
import { type FaultName, faultCatalog, faultNames } from './catalog/catalog.ts';
import { httpProofs } from './http-proofs.fixture.ts';
import { platformProofs } from './platform-proofs.fixture.ts';
import type { Proof } from './proofs.fixture.ts';

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startBench();
});
afterAll(() => sandbox.close());
afterEach(() => {
  sandbox.faults.load({ made: 0, armed: [], events: [], stuck: [] });
});

const proofs: Record<FaultName, (name: FaultName) => Proof> = { ...httpProofs, ...platformProofs };

describe('each fault, through HTTP', () => {
  it.each(faultNames)('%s', async (name) => {
    const bench = await benchOf(sandbox);
    await proofs[name](name)(bench);
    sandbox.faults.load({ made: 0, armed: [], events: [], stuck: [] });
    await bench.destroyAll();
    // The orchestrator trusts a platform again after a while of successful answers.
    if (faultCatalog[name].layer === 'platform') await sandbox.clock.advance(30_000);
  });
});

it('has at least 40 faults, in every layer, each with the rule that it tests', () => {
  expect(faultNames.length).toBeGreaterThanOrEqual(40);
  expect(new Set(Object.values(faultCatalog).map(({ layer }) => layer)).size).toBe(7);
  for (const { does, rule } of Object.values(faultCatalog)) {
    expect(does).toMatch(/\.$/);
    expect(rule).toMatch(/^(O|M|Design|Extensions): /);
  }
});
