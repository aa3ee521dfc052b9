import { describe, expect, it } from 'vitest';
import { lawful } from '../../conformance/monitor/cheats.fixture.ts';
import { BUDGET_USD, watchFor } from '../../conformance/monitor/month.fixture.ts';

const DAYS = 30;

describe.each(lawful)('in a month of virtual time, $id ($why)', (provider) => {
  it('is certified, leaves nothing running, and gets most of the budget and no more', async () => {
    const { certificate, spent, left, running } = await watchFor(DAYS, provider);
    expect(certificate.because).toEqual([]);
    expect(certificate.status).toBe('certified');
    expect(left).toBe(0);
    expect(running).toEqual([]);
    expect(Math.max(...spent.values())).toBeLessThanOrEqual(BUDGET_USD);
    const total = [...spent.values()].reduce((sum, usd) => sum + usd, 0);
    expect(total / (BUDGET_USD * DAYS)).toBeGreaterThan(0.4);
  });
});
