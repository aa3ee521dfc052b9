import { expect, it } from 'vitest';
import { loadConfig } from '../../config/load.ts';
import { toReconcileOptions } from './platforms.ts';

it.each([0.2, 0.5, 5, 60])(
  'leaves a step most of a lease of %s s for its calls and its listings',
  (lease_s) => {
    const { config } = loadConfig({ flags: {}, env: {} });
    const reconcile = { ...config.reconcile, lease_s };
    const { leaseMs, callTimeoutMs, listPauseMs } = toReconcileOptions({ ...config, reconcile });
    expect(leaseMs).toBe(lease_s * 1000);
    expect(2 * callTimeoutMs + 2 * listPauseMs).toBeLessThanOrEqual(0.75 * leaseMs);
  },
);
