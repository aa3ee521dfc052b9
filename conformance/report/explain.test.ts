import { expect, it } from 'vitest';
import { explain, toList } from './explain.ts';
import { sampleChecks, sampleRequirements } from './sample.fixture.ts';

const checks = sampleChecks();

function of(id: string): string {
  const requirement = sampleRequirements.find((row) => row.id === id);
  return requirement === undefined ? '' : explain(requirement, checks);
}

it('explains a requirement: the clause, its place, its weight, how it is seen and the likely cause', () => {
  expect(of('INS-404-001')).toMatchInlineSnapshot(`
    "INS-404-001  MUST, compute tier

    An instance that exists is never answered with 404: the marketplace would take it for destroyed.

    The contract says
      “Resource does not exist; for instances, terminal (the client maps it to DESTROYED).”
      Errors, row 404; Instances, rule 2

    A failure is
      a failed check: the target is NON-CONFORMANT

    How it is tested
      from --level lifecycle on, by the scenarios create, online

    Usual cause of a failure
      A read replica that lags behind, a cache that forgets, or an error of the platform that is mapped to 404. Answer 5xx where you do not know.

    To run only this
      berth conformance <base_url> --only INS-404-001
    "
  `);
});

it('says of what is excluded why nothing can see it', () => {
  expect(of('STOP-BILL-001')).toContain(
    'not tested: the contract has no endpoint that tells what was billed',
  );
  expect(of('STOP-BILL-001')).not.toContain('--only');
});

it('says that a SHOULD does not change the outcome', () => {
  expect(of('LAT-POLL-001')).toContain('a warning: it does not change the outcome');
});

it('lists every requirement by tier, with the level that it needs', () => {
  const list = toList(sampleRequirements, checks);
  for (const { id } of sampleRequirements) expect(list).toContain(id);
  expect(list).toMatch(/^COMPUTE \(18\)$/m);
  expect(list).toMatch(/^NEG-KEYS-001 +MUST +full +A create without keys is refused with 400/m);
  expect(list).toMatch(/^STOP-BILL-001 +MUST +excluded +Disk preserved/m);
});

it('lists nothing where there is nothing', () => {
  expect(toList([], [])).toBe('\n');
});
