import { expect, it } from 'vitest';
import { loadConfig } from '../../config/load.ts';
import { toReconcileOptions } from './platforms.ts';

it.each([200, 500, 5_000, 60_000])(
  'leaves a step most of a lease of %s ms for its calls and its listings',
  (given) => {
    const { config } = loadConfig({ flags: {}, env: {} });
    const { leaseMs, callTimeoutMs, listPauseMs } = toReconcileOptions(config, { leaseMs: given });
    expect(leaseMs).toBe(given);
    expect(2 * callTimeoutMs + 2 * listPauseMs).toBeLessThanOrEqual(0.75 * leaseMs);
  },
);
