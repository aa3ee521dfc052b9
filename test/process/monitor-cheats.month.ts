import { describe, expect, it } from 'vitest';
import { cheats } from '../../conformance/monitor/cheats.fixture.ts';
import { BUDGET_USD, watchFor } from '../../conformance/monitor/month.fixture.ts';

const DAYS = 30;

describe.each(cheats)('in a month of virtual time, of a provider that $does', (cheat) => {
  it('the monitor revokes the certificate by the right rule, and keeps its budget', async () => {
    const { certificate, spent } = await watchFor(DAYS, cheat);
    expect(certificate.status).toBe('revoked');
    expect(certificate.because.join('\n')).toMatch(cheat.foundBy);
    if (cheat.isBilledAnyway !== true) expect(Math.max(...spent.values())).toBeLessThanOrEqual(BUDGET_USD);
  });
});
