const MICRO_PER_CENT = 10_000n;

/** `$12.34`, with as many of six decimals as it needs and two at least; exact for every integer. */
export function toDollars(microUsd: number): string {
  const magnitude = BigInt(Math.abs(microUsd));
  const whole = magnitude / (100n * MICRO_PER_CENT);
  const decimals = String(magnitude % (100n * MICRO_PER_CENT))
    .padStart(6, '0')
    .replace(/0{1,4}$/, '');
  return `${microUsd < 0 ? '-' : ''}$${whole}.${decimals}`;
}
