import { describe, expect, it } from 'vitest';
import { createSandbox } from '../../src/compose/sandbox/sandbox.ts';
import type { Arming } from '../../src/sandbox/faults/arming.ts';
import { type FaultName, faultCatalog, faultNames } from '../../src/sandbox/faults/catalog/catalog.ts';
import type { Fault } from '../../src/sandbox/faults/fault.ts';
import { judgeProvider, reddened } from './conformance.ts';

const origin = 'https://sandbox.test';
it.for([...'abcdefg'])(
  'provider %s of the sandbox keeps the contract as far as its profile says [sandbox-conforms]',
  async (letter) => {
    await using sandbox = await createSandbox({ origin, providers: [letter] });
    const judged = await judgeProvider(sandbox, letter);
    expect(reddened(judged)).toEqual([]);
    expect(judged.filter(({ verdict }) => verdict === 'pass').length).toBeGreaterThan(110);
  },
);

describe('armed in a provider, a contract fault turns just the checks red that the catalog names [fault-reddens]', () => {
  const reddensOf = (name: FaultName) =>
    (faultCatalog[name] as Fault & { reddens?: readonly string[] }).reddens;
  /** Where a fault is armed that breaks more than one rule everywhere: here the first delete, of an unknown instance. */
  const where: Partial<Record<FaultName, object>> = {
    'error-without-envelope': { route: 'DELETE /instances/{id}', status: 404, times: 1 },
  };
  /** What is sold out nowhere cannot be listed wrongly, nor be missing where it was listed before. */
  const soldOutWith: Partial<Record<FaultName, object>> = {
    'available-without-room': {},
    'sold-out-left-out': { skip: 2 },
  };
  it.for(faultNames.filter((name) => reddensOf(name) !== undefined))('%s', async (name) => {
    await using sandbox = await createSandbox({ origin, providers: ['d'] });
    const soldOut = soldOutWith[name];
    if (soldOut !== undefined)
      await sandbox.faults.arm('sold-out', { configuration: 'd-cpu-64x256', ...soldOut });
    await sandbox.faults.arm(name, { times: 'sticky', ...where[name] } as Arming<FaultName>);
    expect(reddened(await judgeProvider(sandbox, 'd'))).toEqual(reddensOf(name));
  });

  it('extra fields, which are lawful, turn none red', async () => {
    await using sandbox = await createSandbox({ origin, providers: ['d'] });
    await sandbox.faults.arm('extra-fields');
    expect(reddened(await judgeProvider(sandbox, 'd'))).toEqual([]);
  });
});
