import { z } from 'zod';

const days = z.number().min(1).max(366).default(30);
const share = z.number().min(0).max(1);
const samples = z.int().min(1).default(20);
const of = z.string().regex(/^[A-Z0-9*-]+$/, 'must be the id of a check, with * for any characters');

/** One condition under which a provider's certificate is revoked. */
export const rule = z.discriminatedUnion('revoke_when', [
  /** A check failed, or warned, in at least `times` probes. */
  z.strictObject({ revoke_when: z.literal('fail'), of, times: z.int().min(1).default(1), within_days: days }),
  z.strictObject({ revoke_when: z.literal('warn'), of, times: z.int().min(1).default(1), within_days: days }),
  /** Logins to an ONLINE machine. */
  z.strictObject({ revoke_when: z.literal('reached_below'), share, samples, within_days: days }),
  /** Reads that were answered, and not with 5xx. */
  z.strictObject({ revoke_when: z.literal('answered_below'), share, samples, within_days: days }),
  /** Creates of an offer that was listed as available right before and after, and refused for capacity. */
  z.strictObject({ revoke_when: z.literal('refused_stock_above'), share, samples, within_days: days }),
  /** Instances that cost more than their offer. */
  z.strictObject({ revoke_when: z.literal('overpriced_above'), share, samples, within_days: days }),
  /** Milliseconds of a read. */
  z.strictObject({
    revoke_when: z.literal('latency_above'),
    percentile: z.number().gt(0).lt(100),
    ms: z.number().positive(),
    samples,
    within_days: days,
  }),
]);

export type Rule = z.infer<typeof rule>;

/**
 * The rules of a marketplace that names none. A single failure may be the network's: two probes must see it, except what no
 * network can fake.
 */
export const DEFAULT_RULES: readonly Rule[] = [
  { revoke_when: 'fail', of: '*', times: 2, within_days: 30 },
  { revoke_when: 'fail', of: 'MON-REMNANT-*', times: 1, within_days: 30 },
  { revoke_when: 'fail', of: 'MON-GONE-*', times: 1, within_days: 30 },
  { revoke_when: 'reached_below', share: 0.95, samples: 20, within_days: 30 },
  { revoke_when: 'answered_below', share: 0.95, samples: 100, within_days: 30 },
  { revoke_when: 'refused_stock_above', share: 0.3, samples: 5, within_days: 30 },
  { revoke_when: 'overpriced_above', share: 0.1, samples: 5, within_days: 30 },
  { revoke_when: 'latency_above', percentile: 99, ms: 5000, samples: 100, within_days: 30 },
];

/** The rule in a sentence. */
export function ruleInWords(of: Rule): string {
  const within = `within ${of.within_days} days`;
  switch (of.revoke_when) {
    case 'fail':
    case 'warn':
      return `${of.of} ${of.revoke_when}s in ${of.times === 1 ? 'a probe' : `${of.times} probes`} ${within}`;
    case 'reached_below':
      return `fewer than ${percent(of.share)} of at least ${of.samples} logins to ONLINE machines succeed ${within}`;
    case 'answered_below':
      return `fewer than ${percent(of.share)} of at least ${of.samples} reads are answered ${within}`;
    case 'refused_stock_above':
      return `more than ${percent(of.share)} of at least ${of.samples} creates of listed offers are refused for capacity ${within}`;
    case 'overpriced_above':
      return `more than ${percent(of.share)} of at least ${of.samples} instances cost more than their offer ${within}`;
    case 'latency_above':
      return `the ${of.percentile}th percentile of at least ${of.samples} reads is above ${of.ms} ms ${within}`;
  }
}

function percent(share: number): string {
  return `${Math.round(share * 1000) / 10} %`;
}

/** Whether a rule's `of` names a check. */
export function isOf(pattern: string, check: string): boolean {
  return new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(check);
}
