/** The rate less `percentage` per cent of it, rounded half up to a micro-USD. Integers alone: nothing drifts. */
export function discounted(rateMicroUsd: number, percentage: number): number {
  return Number((BigInt(rateMicroUsd) * BigInt(100 - percentage) + 50n) / 100n);
}
